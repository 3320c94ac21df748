//! Distributions and totals from messages: what is read is written the same, merges in any order, and every statistic
//! of it can be calculated.

use std::fmt::Debug;

use posthaste_sim::{CaseNumbers, Totals};
use posthaste_stats::{CensoredHistogram, Histogram, Recorder};
use posthaste_units::Span;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::within;

/// Bytes that may be allocated for each byte read. A batch of 30 bytes may have coarse bins of 18 kB, which a growing
/// list doubles.
const PER_BYTE: usize = 1_500;

/// Bytes that may be allocated whatever the length: six fine histograms of 290 kB, likewise.
const FIXED: usize = 5 << 20;

const QUANTILES: [f64; 6] = [0.0, 0.001, 0.5, 0.99, 0.999_999, 1.0];

/// Any bytes as each of them. What follows an empty line is another one of the same kind, to be merged.
pub fn statistics(bytes: &[u8]) {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n");
    let (one, other) = end.map_or((bytes, None), |end| (&bytes[..end], Some(&bytes[end..])));
    if let Some(one) = read::<Histogram>(one) {
        histogram(&one);
        merged(one, other, Histogram::merge, Histogram::clear);
    }
    if let Some(one) = read::<CensoredHistogram>(one) {
        censored(&one);
        merged(
            one,
            other,
            CensoredHistogram::merge,
            CensoredHistogram::clear,
        );
    }
    if let Some(one) = read::<Recorder>(one) {
        recorder(&one);
        merged(one, other, Recorder::merge, Recorder::clear);
    }
    if let Some(one) = read::<Totals>(one) {
        serde_json::to_string(&CaseNumbers::new(&one)).expect("results of a case");
        merged(one, other, Totals::merge, |totals| {
            *totals = Totals::new();
        });
    }
}

/// The value that is read, after a check that it is written the same each time.
fn read<T: DeserializeOwned + Serialize + PartialEq + Debug>(bytes: &[u8]) -> Option<T> {
    let read = within("statistics", bytes.len(), PER_BYTE, FIXED, || {
        serde_json::from_slice::<T>(bytes)
    });
    let read = read.ok()?;
    let form = form(&read);
    let again: T = serde_json::from_slice(&form).expect("what is written can be read");
    assert!(again == read, "another value is read back");
    assert!(self::form(&again) == form, "it is written in another way");
    Some(read)
}

fn form(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("what is read can be written")
}

/// The order of a merge makes no difference, and a cleared value is a new one.
fn merged<T: DeserializeOwned + Serialize + PartialEq + Debug + Default + Clone>(
    one: T,
    other: Option<&[u8]>,
    merge: fn(&mut T, &T),
    clear: fn(&mut T),
) {
    let sum = |one: &T, other: &T| {
        let mut sum = one.clone();
        merge(&mut sum, other);
        form(&sum)
    };
    let new = T::default();
    assert!(sum(&one, &new) == form(&one) && sum(&new, &one) == form(&one));
    sum(&one, &one);
    if let Some(other) = other.and_then(read::<T>) {
        assert!(sum(&one, &other) == sum(&other, &one), "the order matters");
    }
    let mut used = one.clone();
    clear(&mut used);
    assert!(
        used == new && form(&used) == form(&new),
        "something is left"
    );
    merge(&mut used, &one);
    assert!(form(&used) == form(&one), "something is lost");
}

fn histogram(histogram: &Histogram) {
    let (min, max) = (histogram.min(), histogram.max());
    for quantile in QUANTILES {
        let value = histogram.quantile(quantile);
        assert!(min <= value && value <= max, "{value} is a quantile");
        histogram.count_above(value);
    }
    let mean = histogram.mean();
    assert!(min <= mean && mean <= max, "{mean} is the mean");
    let counted: u64 = histogram.steps().map(|step| step.count).sum();
    assert_eq!(counted, histogram.count());
}

fn censored(censored: &CensoredHistogram) {
    for quantile in QUANTILES {
        censored.quantile(quantile);
    }
    censored.mean();
    censored.max();
    censored.summary();
    histogram(censored.known());
}

fn recorder(recorder: &Recorder) {
    for quantile in QUANTILES {
        recorder.quantile(quantile);
    }
    recorder.mean();
    recorder.censored_summary();
    for bound in [Span::ZERO, recorder.histogram().quantile(0.5), Span::MAX] {
        recorder.beyond(bound);
    }
    let mut counted = 0;
    for batch in recorder.batches() {
        batch.mean();
        for quantile in QUANTILES {
            batch.quantile(quantile);
        }
        counted += batch.count();
    }
    assert_eq!(counted, recorder.distribution().count());
    censored(recorder.distribution());
}
