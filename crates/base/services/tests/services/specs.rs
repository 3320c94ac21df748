//! Texts of services: round trips, and errors that state the remedy.

use posthaste_services::{LAWS, MISBEHAVIOURS, PRESETS, ServiceSpec};
use proptest::prelude::*;

use crate::spec;

#[test]
fn every_example_reads_and_prints() {
    for form in LAWS {
        assert!(form.example.starts_with(form.name));
        assert_eq!(spec(form.example).to_string(), form.example);
        assert!(spec(form.example).is_plain());
    }
    for known in MISBEHAVIOURS {
        let text = format!("md1:5ms,{}", known.example);
        let read = spec(&text);
        assert!(!read.is_plain());
        assert_eq!(read.to_string(), text.replace("bucket", "limit"));
    }
    for preset in PRESETS {
        assert_eq!(preset.spec().to_string(), preset.text, "{}", preset.name);
    }
}

#[test]
fn plus_signs_and_spaces_separate_too() {
    let wanted = spec("md1:5ms,stall=300ms/30s,hang=2%");
    assert_eq!(spec("md1:5ms+stall=300ms/30s+hang=2%"), wanted);
    assert_eq!(spec("md1:5ms, hang=2%, stall=300ms/30s"), wanted);
}

#[test]
fn values_survive_a_round_trip() {
    for text in [
        "md1:1234567ns",
        "mm1:1.2345678s,limit=123.456789/s:7",
        "lognormal:5ms:0.123456789,hang=0.0001%",
        "md1:5ms,cold=1.0000001x/61001ms",
        "bimodal:1us:3h:33.3333%,error=100%:599",
    ] {
        assert_eq!(spec(&spec(text).to_string()), spec(text), "{text}");
    }
}

#[test]
fn errors_state_the_remedy() {
    for (text, remedy) in [
        ("", "mm1k:5ms:10"),
        ("mm1", "no time"),
        ("mm1:5", "no unit"),
        ("mm1:0s", "the time is zero"),
        ("mm1:5ms:3", "mm1 has 1 values as in mm1:5ms"),
        ("mm1k:5ms", "mm1k has 2 values as in mm1k:5ms:10"),
        ("mm1k:5ms:1", "K is from 2 to 65536"),
        ("gg1:5ms", "it starts with md1, mm1"),
        ("bimodel:5ms:50ms:1%", "did you mean bimodal?"),
        ("bimodal:5ms:50ms:0.1", "write 10% or 0.1%"),
        ("md1:5ms,stal=300ms/30s", "did you mean stall=300ms/30s?"),
        ("md1:5ms,zzz=1", "there are stall, queue, limit"),
        ("md1:5ms,stall=300ms", "its form is TIME/PERIOD"),
        ("md1:5ms,stall=3s/2s", "write a longer period"),
        ("md1:5ms,hang=0.02", "write 2% or 0.02%"),
        ("md1:5ms,hang=120%", "from 0.0001% to 100%"),
        ("md1:5ms,hang=1%,hang=2%", "given twice"),
        ("md1:5ms,limit=100/s:5,bucket=100/s:50", "given twice"),
        ("md1:5ms,limit=100/s", "its form is RATE:BURST"),
        ("md1:5ms,limit=100:5", "no unit"),
        ("md1:5ms,error=1%:200", "the status is from 400 to 599"),
        ("md1:5ms,cold=0.5x/3s", "no factor above 1x"),
        ("md1:5ms,cold=5/3s", "no factor above 1x"),
        ("md1:5ms,drift=10%", "it ends with /min"),
        (
            "md1:5ms,hysteresis=60/s:150/s:2x",
            "write the lower one second",
        ),
        ("md1:5ms,collapse=300/s", "at most 200/s"),
        ("inf:5ms,collapse=300/s", "no capacity"),
        ("mmc:5ms:4,autoscale=4/10s", "autoscale=5/10s"),
        ("mm1k:5ms:4,queue=3", "write mm1 with queue"),
    ] {
        let error = text.parse::<ServiceSpec>().expect_err(text).to_string();
        assert!(error.contains(remedy), "{text}: {error}");
    }
}

/// Texts that are nearly valid.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(",".to_owned()),
        Just(":".to_owned()),
        Just("=".to_owned()),
        Just("/".to_owned()),
        Just("%".to_owned()),
        "[0-9]{1,25}",
        "[a-z.µ\u{1F600} +-]{1,3}",
        prop::sample::select(LAWS).prop_map(|form| form.example.to_owned()),
        prop::sample::select(MISBEHAVIOURS.iter().map(|m| m.example).collect::<Vec<_>>())
            .prop_map(|example| format!(",{example}")),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_panics_and_each_valid_one_is_stable(text in prop_oneof![texts(), any::<String>()]) {
        if let Ok(read) = text.parse::<ServiceSpec>() {
            prop_assert_eq!(read.to_string().parse::<ServiceSpec>(), Ok(read));
        }
    }
}
