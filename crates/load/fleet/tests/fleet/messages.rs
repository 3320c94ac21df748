//! Messages as JSON, as `nats sub` shows them.

use posthaste_fleet::allot::AgentShare;
use posthaste_fleet::envelope::{BodyCoding, ProtocolVersion, decode, encode};
use posthaste_fleet::message::{
    AgentInfo, ArmReply, ArmRequest, ArmResult, Note, NoteContent, NoteHeader, OrderMessage,
    PrepareReply, PrepareRequest, PrepareResult, RunOrder,
};
use posthaste_fleet::names::RunId;
use posthaste_fleet::sealed::SealingKey;
use serde::Serialize;
use serde::de::DeserializeOwned;

fn round_trip<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    message: T,
    json: &str,
) {
    let encoded = encode(&message).unwrap();
    assert_eq!(String::from_utf8(encoded.body.clone()).unwrap(), json);
    assert_eq!(decode::<T>(&encoded.body, encoded.coding).unwrap(), message);
}

#[test]
fn every_message_reads_back() {
    let (v, run) = (ProtocolVersion, RunId::from_bits(1));
    round_trip(
        PrepareRequest {
            v,
            run,
            plan: "p".to_owned(),
            share: AgentShare::new(2, 4).unwrap(),
            files: vec!["rows".into()],
            key: Some(SealingKey::from_bytes([255; 32])),
        },
        &format!(
            r#"{{"v":1,"run":"0000000000000001","plan":"p","share":{{"first":2,"of":4}},"files":["rows"],"key":"{}"}}"#,
            "f".repeat(64)
        ),
    );
    round_trip(
        PrepareReply {
            v,
            result: PrepareResult::<u8>::Refused("no".into()),
        },
        r#"{"v":1,"result":{"refused":"no"}}"#,
    );
    round_trip(
        PrepareReply {
            v,
            result: PrepareResult::Ready(7),
        },
        r#"{"v":1,"result":{"ready":7}}"#,
    );
    round_trip(
        ArmRequest {
            v,
            run,
            origin_ns: 5,
        },
        r#"{"v":1,"run":"0000000000000001","origin_ns":5}"#,
    );
    round_trip(
        ArmReply {
            v,
            result: ArmResult::Armed { left_ns: 9 },
        },
        r#"{"v":1,"result":{"armed":{"left_ns":9}}}"#,
    );
    for (order, json) in [
        (RunOrder::Go, r#"{"v":1,"order":"go"}"#),
        (RunOrder::Cancel, r#"{"v":1,"order":"cancel"}"#),
        (
            RunOrder::Stop { at_ns: 3 },
            r#"{"v":1,"order":{"stop":{"at_ns":3}}}"#,
        ),
        (RunOrder::Pulse, r#"{"v":1,"order":"pulse"}"#),
        (RunOrder::Release, r#"{"v":1,"order":"release"}"#),
    ] {
        round_trip(OrderMessage { v, order }, json);
    }
}

#[test]
fn every_note_reads_back() {
    let note = |content| Note::<u64, u8> {
        v: ProtocolVersion,
        seq: 4,
        content,
    };
    for (content, json) in [
        (
            NoteContent::Seconds {
                first: 2,
                last: 3,
                sum: 10,
            },
            r#"{"v":1,"seq":4,"content":{"seconds":{"first":2,"last":3,"sum":10}}}"#,
        ),
        (
            NoteContent::Total { sum: 11 },
            r#"{"v":1,"seq":4,"content":{"total":{"sum":11}}}"#,
        ),
        (
            NoteContent::End {
                messages: 4,
                end: 1,
            },
            r#"{"v":1,"seq":4,"content":{"end":{"messages":4,"end":1}}}"#,
        ),
        (
            NoteContent::StoodDown {
                reason: "late".into(),
            },
            r#"{"v":1,"seq":4,"content":{"stood_down":{"reason":"late"}}}"#,
        ),
    ] {
        round_trip(note(content), json);
    }
}

#[test]
fn unknown_orders_and_fields_are_refused() {
    for json in [
        r#"{"v":1,"order":"leave"}"#,
        r#"{"v":1,"order":{"stop":{"at_ns":-1}}}"#,
        r#"{"v":1,"order":{"stop":{"at_ns":1,"by":2}}}"#,
        r#"{"v":1,"order":{"go":{},"stop":{"at_ns":1}}}"#,
        r#"{"v":1,"order":"go","x":1}"#,
    ] {
        let read = decode::<OrderMessage>(json.as_bytes(), BodyCoding::Identity);
        assert!(read.is_err(), "{json}");
    }
    let share = r#"{"first":4,"of":4}"#;
    assert!(serde_json::from_str::<AgentShare>(share).is_err());
}

#[test]
fn keys_are_never_printed() {
    let key = SealingKey::from_bytes([0xab; 32]);
    assert!(!format!("{key:?}").contains("ab"));
    let bad = "zz".repeat(32);
    let error = serde_json::from_str::<SealingKey>(&format!("{bad:?}")).unwrap_err();
    assert!(!error.to_string().contains("zz"), "{error}");
}

#[test]
fn headers_of_notes_have_one_form() {
    let header = NoteHeader::read(Some("7"), Some("1/2")).unwrap();
    assert_eq!((header.seq, header.part.to_string()), (7, "1/2".into()));
    for (seq, part) in [
        (None, Some("0/1")),
        (Some("7"), None),
        (Some("07"), Some("0/1")),
        (Some("+7"), Some("0/1")),
        (Some("18446744073709551615"), Some("0/1")),
        (Some("7"), Some("1/1")),
    ] {
        assert!(NoteHeader::read(seq, part).is_err(), "{seq:?} {part:?}");
    }
}

#[test]
fn properties_of_agents_are_metadata() {
    let info = AgentInfo {
        name: "a".parse().unwrap(),
        fleet: "f".parse().unwrap(),
        build: "00ff".into(),
        version: "0.1.0".into(),
        numerics: "12".into(),
        loops: 4,
        processor: "EPYC".into(),
        descriptors: 1024,
        allow: "::1".into(),
        machine: "m".into(),
    };
    let metadata = info.to_metadata();
    assert_eq!(AgentInfo::from_metadata(&metadata), Ok(info));
    for name in metadata.keys() {
        let mut without = metadata.clone();
        without.remove(name);
        let error = AgentInfo::from_metadata(&without).unwrap_err().to_string();
        assert!(error.contains(name.as_str()), "{error}");
    }
    for (name, value) in [
        ("name", "a.b"),
        ("loops", "0"),
        ("loops", "-1"),
        ("descriptors", "x"),
    ] {
        let mut bad = metadata.clone();
        bad.insert(name.into(), value.into());
        assert!(AgentInfo::from_metadata(&bad).is_err(), "{name}={value}");
    }
}
