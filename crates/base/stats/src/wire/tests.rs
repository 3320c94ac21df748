//! Forms are read as the values that were written; contradictions are refused.

use super::*;
use posthaste_units::Span;
use proptest::prelude::*;
use serde::de::DeserializeOwned;

/// A moment, a value, and its kind: 0 without a time, 1 abandoned after the value, else known.
type Entry = (u64, u64, u8);

fn record(recorder: &mut Recorder, entries: &[Entry]) {
    for &(at, value, kind) in entries {
        let (at, value) = (Span::from_nanos(at), Span::from_nanos(value));
        match kind {
            0 => recorder.record_censored(at, None),
            1 => recorder.record_censored(at, Some(value)),
            _ => recorder.record(at, value),
        }
    }
}

fn recorder(entries: &[Entry]) -> Recorder {
    let mut recorder = Recorder::new();
    record(&mut recorder, entries);
    recorder
}

fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

fn read<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn refused<T: DeserializeOwned + fmt::Debug>(text: &str) -> String {
    serde_json::from_str::<T>(text).unwrap_err().to_string()
}

const EMPTY: &str = r#"{"sum":"0","min":0,"max":0,"bins":[]}"#;

#[test]
fn the_form_is_sparse_and_delta_coded() {
    let mut histogram = Histogram::new();
    assert_eq!(written(&histogram), EMPTY);
    for ns in [7, 7, 1_000_000_001, u64::MAX] {
        histogram.record(Span::from_nanos(ns));
    }
    let form = r#"{"sum":"17593186044431","min":7,"max":17592186044416,"bins":[7,2,999817209,1,17591186227200,1]}"#;
    assert_eq!(written(&histogram), form);
    let one = recorder(&[(3 << 20, 1_000, 2), (3 << 20, 0, 0)]);
    assert_eq!(
        written(&one),
        format!(
            r#"{{"shift":20,"all":{{"known":{},"waited":{EMPTY},"never":1}},"batches":[[3,1,1,"1000","1000000",[512,1]]]}}"#,
            r#"{"sum":"1000","min":1000,"max":1000,"bins":[1000,1]}"#,
        )
    );
}

#[test]
fn contradictions_are_refused() {
    let histogram = |sum: &str, min: u64, max: u64, bins: &str| {
        let form = format!(r#"{{"sum":"{sum}","min":{min},"max":{max},"bins":{bins}}}"#);
        refused::<Histogram>(&form)
    };
    // Two values: 7 and 4000 or 4001, which share a bin.
    let good = r#"{"sum":"4007","min":7,"max":4000,"bins":[7,1,3993,1]}"#;
    assert_eq!(read::<Histogram>(good).count(), 2);
    let cases = [
        ("4007", 7, 4000, "[7,1,3993]", "pairs"),
        ("4007", 7, 4000, "[7,1,3993,0]", "not 0"),
        ("4007", 7, 4000, "[7,1,3994,1]", "not the start of a bin"),
        ("14", 7, 7, "[7,1,0,1]", "not the start of a bin"),
        (
            "4007",
            7,
            4000,
            "[7,1,18446744073709551615,1]",
            "not the start",
        ),
        ("4007", 7, 4000, "[7,1,35184372088832,1]", "not the start"),
        ("4007", 8, 4000, "[7,1,3993,1]", "min and max"),
        ("4007", 7, 4002, "[7,1,3993,1]", "min and max"),
        ("4006", 7, 4000, "[7,1,3993,1]", "the sum"),
        ("4008", 7, 4000, "[7,1,3993,1]", "the sum"),
        ("8001", 4001, 4000, "[4000,2]", "min and max"),
        ("1", 0, 0, "[]", "min and max"),
        ("04007", 7, 4000, "[7,1,3993,1]", "decimal digits"),
        ("+4007", 7, 4000, "[7,1,3993,1]", "decimal digits"),
        ("", 7, 4000, "[7,1,3993,1]", "decimal digits"),
        (
            "340282366920938463463374607431768211456",
            0,
            0,
            "[]",
            "2^128",
        ),
        ("0", 0, 0, "[0,1099511627777]", "2^40"),
        ("0", 0, 0, "[0,18446744073709551615]", "2^40"),
        ("0", 0, 0, "[0,1099511627776,1,1]", "2^40"),
    ];
    for (sum, min, max, bins, reason) in cases {
        let error = histogram(sum, min, max, bins);
        assert!(error.contains(reason), "{sum} {min} {max} {bins}: {error}");
    }
    let unknown = EMPTY.replace("\"bins\"", "\"mean\":1,\"bins\"");
    assert!(refused::<Histogram>(&unknown).contains("unknown field"));
    let never = format!(r#"{{"known":{EMPTY},"waited":{EMPTY},"never":1099511627777}}"#);
    assert!(refused::<CensoredHistogram>(&never).contains("2^40"));
}

#[test]
fn batches_that_differ_from_the_distribution_are_refused() {
    let good = written(&recorder(&[
        (0, 1_000, 2),
        (5 << 20, 9_000, 2),
        (5 << 20, 1, 1),
    ]));
    let batches =
        r#""batches":[[0,1,0,"1000","1000000",[512,1]],[5,1,1,"9000","81000000",[8704,1]]]"#;
    assert!(good.contains(batches), "{good}");
    read::<Recorder>(&good);
    let cases = [
        (r#""shift":20"#, r#""shift":21"#, "2^21"),
        (r#""shift":20"#, r#""shift":19"#, "2^19"),
        (r#""shift":20"#, r#""shift":59"#, "2^59"),
        ("[5,1,1", "[0,1,1", "not 0"),
        ("[5,1,1", "[64,1,1", "not 64"),
        (
            "[5,1,1",
            "[18446744073709551615,1,1",
            "not 18446744073709551615",
        ),
        ("[5,1,1", "[5,1,2", "values of the distribution"),
        ("[5,1,1", "[5,2,1", "do not have 2 values"),
        ("[5,1,1", "[5,0,1", "do not have 0 values"),
        ("[5,1,1", "[5,1,1099511627777", "2^40"),
        ("[5,1,1", "[5,1,1,1", "invalid type"),
        (r#""9000","#, r#""9001","#, "values of the distribution"),
        (r#""9000","#, r#""9999","#, "the sum is not"),
        (r#""81000000""#, r#""70000000""#, "squares"),
        (r#""81000000""#, r#""99000000""#, "squares"),
        // As large, in another bin: the fine bins have the value.
        (
            r#"[0,1,0,"1000","1000000",[512,1]],[5,1,1,"9000","81000000",[8704,1]]"#,
            r#"[0,1,0,"2000","4000000",[1536,1]],[5,1,1,"8000","64000000",[7680,1]]"#,
            "values of the distribution",
        ),
        ("[0,1,0", r#"[0,0,0,"0","0",[]],[1,1,0"#, "omitted"),
    ];
    for (part, other, reason) in cases {
        let error = refused::<Recorder>(&good.replace(part, other));
        assert!(error.contains(reason), "{part} -> {other}: {error}");
    }
}

#[test]
fn a_full_bin_of_a_batch_is_no_contradiction() {
    // 2^32 equal values, of which the bin counts one less.
    let known = r#"{"sum":"4294967296000","min":1000,"max":1000,"bins":[1000,4294967296]}"#;
    let form = |squares: &str| {
        let batch = format!(r#"[0,4294967296,0,"4294967296000","{squares}",[512,4294967295]]"#);
        let all = format!(r#"{{"known":{known},"waited":{EMPTY},"never":0}}"#);
        format!(r#"{{"shift":20,"all":{all},"batches":[{batch}]}}"#)
    };
    let good = form("4294967296000000");
    assert_eq!(written(&read::<Recorder>(&good)), good);
    assert!(refused::<Recorder>(&form("1")).contains("squares"));
}

#[test]
fn a_short_form_takes_little_memory() {
    let far = recorder(&[(u64::MAX, u64::MAX, 2)]);
    let form = written(&far);
    assert!(form.len() < 400, "{form}");
    let back: Recorder = read(&form);
    let coarse = |batch: &Bucket| batch.bins.distinct_values() * 4;
    let coarse: usize = back.batches.iter().map(coarse).sum();
    assert!(coarse < 100_000, "{coarse} bytes of coarse bins");
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let entry = (0u64..1 << 45, 0u32..46, any::<u64>(), 0u8..6);
    let entry = entry.prop_map(|(at, shift, value, kind)| (at, value >> (63 - shift), kind));
    let stretch = 0u32..40;
    (prop::collection::vec(entry, 0..80), stretch).prop_map(|(entries, stretch)| {
        let entries = entries.into_iter();
        entries
            .map(|(at, value, kind)| (at >> stretch, value, kind))
            .collect()
    })
}

proptest! {
    #[test]
    fn a_form_is_read_as_the_value_that_was_written(entries in entries()) {
        let value = recorder(&entries);
        let form = written(&value);
        let back: Recorder = read(&form);
        prop_assert!(back == value);
        prop_assert_eq!(written(&back), form);
        let all: CensoredHistogram = read(&written(value.distribution()));
        prop_assert_eq!(&all, value.distribution());
        let known: Histogram = read(&written(value.histogram()));
        prop_assert_eq!(&known, value.histogram());
        prop_assert_eq!(written(&value.censored_summary()), written(&back.censored_summary()));
    }

    #[test]
    fn equal_values_have_equal_forms_in_any_order_and_any_parts(
        mut entries in entries(),
        parts in 1usize..5,
    ) {
        let whole = written(&recorder(&entries));
        let mut merged = Recorder::new();
        for part in entries.chunks(entries.len().div_ceil(parts).max(1)) {
            merged.merge(&read(&written(&recorder(part))));
        }
        prop_assert_eq!(&written(&merged), &whole);
        entries.sort_by_key(|entry| std::cmp::Reverse((entry.1, entry.0)));
        prop_assert_eq!(&written(&recorder(&entries)), &whole);
    }

    #[test]
    fn a_cleared_value_is_a_new_one(before in entries(), after in entries()) {
        let mut used = recorder(&before);
        used.clear();
        prop_assert!(used == Recorder::new());
        prop_assert_eq!(written(&used), written(&Recorder::new()));
        record(&mut used, &after);
        let new = recorder(&after);
        prop_assert!(used == new);
        prop_assert_eq!(written(&used), written(&new));
        prop_assert_eq!(written(&used.censored_summary()), written(&new.censored_summary()));
        let mut all = recorder(&before).distribution().clone();
        all.clear();
        prop_assert_eq!(&all, &CensoredHistogram::new());
        all.merge(new.distribution());
        prop_assert_eq!(written(&all), written(new.distribution()));
    }

    #[test]
    fn any_change_of_a_number_is_refused_or_is_another_value(
        entries in entries(),
        chosen: prop::sample::Index,
        digit in b'0'..=b'9',
    ) {
        let form = written(&recorder(&entries));
        let digits: Vec<usize> = form
            .bytes()
            .enumerate()
            .filter_map(|(at, byte)| byte.is_ascii_digit().then_some(at))
            .collect();
        let mut bytes = form.clone().into_bytes();
        bytes[digits[chosen.index(digits.len())]] = digit;
        let changed = String::from_utf8(bytes).unwrap();
        if let Ok(back) = serde_json::from_str::<Recorder>(&changed) {
            prop_assert_eq!(written(&back), changed);
        }
    }
}
