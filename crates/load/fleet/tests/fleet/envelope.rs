//! Bodies: version, compression, bounds.

use posthaste_fleet::envelope::{
    BodyCoding, EncodedMessage, MAX_DECODED, MessageError, ProtocolVersion, decode, encode,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SampleMessage {
    v: ProtocolVersion,
    text: String,
}

fn sample(length: usize) -> SampleMessage {
    SampleMessage {
        v: ProtocolVersion,
        text: "a".repeat(length),
    }
}

fn read(json: &str) -> Result<SampleMessage, String> {
    decode(json.as_bytes(), BodyCoding::Identity).map_err(|error| error.to_string())
}

#[test]
fn the_first_field_is_the_version() {
    let encoded = encode(&sample(2)).unwrap();
    assert_eq!(encoded.body, br#"{"v":1,"text":"aa"}"#);
    assert_eq!(encoded.coding.header(), None);
}

#[test]
fn another_version_is_named_before_its_fields() {
    let error = read(r#"{"v":2,"words":[]}"#).unwrap_err();
    assert!(
        error.contains("protocol 2") && error.contains("same build"),
        "{error}"
    );
}

#[test]
fn ambiguous_json_is_refused() {
    assert!(read(r#"{"v":1,"text":"a"}"#).is_ok());
    for json in [
        r#"{"text":"a"}"#,
        r#"{"v":1,"text":"a","more":1}"#,
        r#"{"v":1,"text":"a","text":"b"}"#,
        r#"{"v":1,"v":1,"text":"a"}"#,
        r#"{"v":1,"text":"a"}{}"#,
        r#"{"v":1.0,"text":"a"}"#,
        r#"{"v":"1","text":"a"}"#,
        "",
    ] {
        assert!(read(json).is_err(), "{json}");
    }
}

#[test]
fn long_bodies_are_compressed() {
    for (length, header) in [
        (4 << 10, Some("zstd")),
        (100, None),
        (3 << 20, Some("zstd")),
    ] {
        let message = sample(length);
        let EncodedMessage { body, coding } = encode(&message).unwrap();
        assert_eq!(coding.header(), header);
        assert!(header.is_none() || body.len() < length);
        let coding = BodyCoding::from_header(coding.header()).unwrap();
        assert_eq!(decode::<SampleMessage>(&body, coding).unwrap(), message);
    }
}

#[test]
fn incompressible_bodies_survive() {
    let mut state = 1u32;
    let letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b' ' + ((state >> 24) % 90) as u8)
    };
    let text: String = std::iter::repeat_with(letter).take(2 << 20).collect();
    let message = SampleMessage {
        v: ProtocolVersion,
        text,
    };
    let encoded = encode(&message).unwrap();
    assert_eq!(
        decode::<SampleMessage>(&encoded.body, encoded.coding).unwrap(),
        message
    );
}

#[test]
fn a_bomb_is_an_error() {
    let mut bomb = br#"{"v":1,"text":""#.to_vec();
    bomb.resize(MAX_DECODED + 1, b'a');
    bomb.extend(br#""}"#);
    let body = zstd::bulk::compress(&bomb, 3).unwrap();
    assert!(body.len() < 10_000);
    let read = decode::<SampleMessage>(&body, BodyCoding::Zstd);
    assert!(matches!(read, Err(MessageError::TooLong)), "{read:?}");
    let read = decode::<SampleMessage>(&bomb, BodyCoding::Identity);
    assert!(matches!(read, Err(MessageError::TooLong)));
    assert!(matches!(
        encode(&sample(MAX_DECODED)),
        Err(MessageError::TooLong)
    ));
}

#[test]
fn a_body_is_exactly_one_frame_of_a_small_window() {
    let json = br#"{"v":1,"text":"a"}"#;
    let frame = zstd::bulk::compress(json, 3).unwrap();
    assert!(decode::<SampleMessage>(&frame, BodyCoding::Zstd).is_ok());
    let twice = [&*frame, &*frame].concat();
    let followed = [&*frame, b"x"].concat();
    let cut = &frame[..frame.len() - 1];
    for body in [&*twice, &*followed, cut, b"", json] {
        let read = decode::<SampleMessage>(body, BodyCoding::Zstd);
        assert!(matches!(read, Err(MessageError::Zstd(_))), "{body:?}");
    }
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(27).unwrap();
    std::io::Write::write_all(&mut encoder, json).unwrap();
    let wide = encoder.finish().unwrap();
    let read = decode::<SampleMessage>(&wide, BodyCoding::Zstd);
    assert!(matches!(read, Err(MessageError::Zstd(_))), "{read:?}");
}

#[test]
fn unknown_codings_are_refused() {
    for value in ["gzip", "ZSTD", "zstd, zstd", ""] {
        let read = BodyCoding::from_header(Some(value));
        assert!(matches!(read, Err(MessageError::Coding(_))), "{value}");
    }
}
