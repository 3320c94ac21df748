//! The form of distributions in messages: exact, sparse and canonical.
//!
//! | type | fields |
//! |---|---|
//! | [`Histogram`] | `{sum, min, max, bins}` |
//! | [`CensoredHistogram`] | `{known, waited, never}` |
//! | [`Recorder`] | `{shift, all, batches: [[index, count, censored, sum, squares, bins], ...]}` |
//!
//! - `bins` is a list of numbers, two for each non-empty bin: its lowest value and its count. Each value after the first
//!   is the difference to the one before it.
//! - Sums exceed the whole numbers of JSON and are decimal strings. An empty histogram has the `min` 0.
//! - Empty batches are omitted.
//! - Bins are a function of the value. A distribution that was read therefore equals the one that was written, and
//!   merges like it. Equal distributions have equal forms, regardless of the order of values and merges.
//!
//! Each statement of a form is checked against the others when it is read. Memory is in proportion to the form, plus
//! the capacity of the bins (290 kB for each fine histogram). `hdrhistogram` has a deserializer of its own, which
//! allocates as much as a message states (4 GB) and accepts any precision.

use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::{Counter, Histogram as Bins};
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::histogram::LONGEST;
use crate::recorder::{BATCHES, Bucket, FIRST_SHIFT};
use crate::{CensoredHistogram, Histogram, Recorder};

/// Maximum number of values of one kind in a form: a million per second for twelve days. Sums of accepted forms do not
/// overflow.
const MOST_VALUES: u64 = 1 << 40;
/// Maximum sum of squares of a batch, in square nanoseconds: 2^40 values of a minute. Sums of accepted forms do not
/// overflow.
const MOST_SQUARES: u128 = 1 << 112;
/// Maximum width of batches: 64 of 2^58 ns are the longest span.
const LAST_SHIFT: u32 = 58;

/// Contradiction in a form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum FormError {
    /// A value without a count.
    #[error("bins are pairs of a value and a count: {0} numbers are not")]
    Odd(usize),
    /// A value that is not the start of the next bin.
    #[error("{0} ns is not the start of a bin above the one before it and up to 2^44 ns")]
    Bin(u64),
    /// No values, or too many.
    #[error("a count is 1 to 2^40, in a bin of a batch to 2^32 - 1: not {0}")]
    Count(u64),
    /// A smallest or largest value outside its bin.
    #[error("min and max are not in the first and the last bin")]
    Range,
    /// A sum of other values.
    #[error("the sum is not that of values in these bins")]
    Sum,
    /// A sum of squares of other values.
    #[error("the sum of squares is not that of values in these bins, or above 2^112")]
    Squares,
    /// Another number of values than in the bins.
    #[error("the bins of a batch do not have {0} values")]
    BatchCount(u64),
    /// A width of batches that no run leads to.
    #[error(
        "a batch is 2^20 to 2^58 ns wide, and wider than 2^20 only if the last index is 32 or more: not 2^{0}"
    )]
    Shift(u32),
    /// A batch that is not the next one.
    #[error("the index of a batch is above the one before it and at most 63: not {0}")]
    Index(u64),
    /// A batch without values.
    #[error("a batch without values is omitted")]
    Empty,
    /// Other values in the batches than in the distribution.
    #[error("the batches do not have the values of the distribution")]
    Batches,
}

/// Form of a histogram.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HistogramForm {
    sum: Decimal,
    min: u64,
    max: u64,
    bins: Vec<u64>,
}

/// Form of a censored histogram.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CensoredForm {
    known: Histogram,
    waited: Histogram,
    never: u64,
}

/// Form of a censored histogram, to be written.
#[derive(Serialize)]
struct CensoredView<'a> {
    known: &'a Histogram,
    waited: &'a Histogram,
    never: u64,
}

/// Form of a recorder.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecorderForm {
    shift: u32,
    all: CensoredHistogram,
    batches: Vec<BatchForm>,
}

/// Form of a recorder, to be written.
#[derive(Serialize)]
struct RecorderView<'a> {
    shift: u32,
    all: &'a CensoredHistogram,
    batches: Vec<BatchForm>,
}

/// Index, count, censored, sum, sum of squares, bins.
#[derive(Serialize, Deserialize)]
struct BatchForm(u64, u64, u64, Decimal, Decimal, Vec<u64>);

/// A whole number as a string of its decimal digits.
#[derive(Clone, Copy)]
struct Decimal(u128);

/// A bin with values.
#[derive(Clone, Copy)]
struct FilledBin {
    /// Its smallest value.
    low: u64,
    /// Its largest value, at most [`LONGEST`].
    high: u64,
    count: u64,
}

/// The non-empty bins, in ascending order.
fn filled<C: Counter>(bins: &Bins<C>) -> Vec<FilledBin> {
    let recorded = bins.iter_recorded();
    recorded
        .map(|bin| FilledBin {
            low: bins.lowest_equivalent(bin.value_iterated_to()),
            high: bin.value_iterated_to().min(LONGEST),
            count: bin.count_at_value().as_u64(),
        })
        .collect()
}

/// Pairs of the lowest value and the count of each non-empty bin.
fn write_bins<C: Counter>(bins: &Bins<C>) -> Vec<u64> {
    let mut before = 0;
    let pair = |bin: FilledBin| {
        let difference = bin.low - std::mem::replace(&mut before, bin.low);
        [difference, bin.count]
    };
    filled(bins).into_iter().flat_map(pair).collect()
}

/// Adds the bins of `numbers` to `bins`, which are empty.
fn read_bins<C: Counter>(bins: &mut Bins<C>, numbers: &[u64]) -> Result<(), FormError> {
    let (pairs, rest) = numbers.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(FormError::Odd(numbers.len()));
    }
    let (mut last, mut total) = (None::<u64>, 0_u64);
    let mut read = Vec::with_capacity(pairs.len());
    for [difference, count] in pairs {
        let low = last.unwrap_or(0).saturating_add(*difference);
        let is_next = last.is_none_or(|last| low > last) && low <= LONGEST;
        if !is_next || bins.lowest_equivalent(low) != low {
            return Err(FormError::Bin(low));
        }
        last = Some(low);
        total = count.saturating_add(total);
        let counted = C::from_u64(*count).filter(|_| *count > 0 && total <= MOST_VALUES);
        read.push((low, counted.ok_or(FormError::Count(*count))?));
    }
    // From the largest on, so that the bins grow once.
    for (low, count) in read.into_iter().rev() {
        bins.record_n(low, count)
            .expect("bins grow as far as LONGEST");
    }
    Ok(())
}

impl From<&Histogram> for HistogramForm {
    fn from(histogram: &Histogram) -> Self {
        Self {
            sum: Decimal(histogram.sum),
            min: histogram.min().as_nanos(),
            max: histogram.max,
            bins: write_bins(&histogram.bins),
        }
    }
}

impl TryFrom<HistogramForm> for Histogram {
    type Error = FormError;

    fn try_from(form: HistogramForm) -> Result<Self, FormError> {
        let HistogramForm {
            sum: Decimal(sum),
            min,
            max,
            ref bins,
        } = form;
        let mut histogram = Self::new();
        read_bins(&mut histogram.bins, bins)?;
        let bins = filled(&histogram.bins);
        let (Some(first), Some(last)) = (bins.first(), bins.last()) else {
            return match (sum, min, max) {
                (0, 0, 0) => Ok(histogram),
                _ => Err(FormError::Range),
            };
        };
        let is_within = |bin: &FilledBin, value| (bin.low..=bin.high).contains(&value);
        if min > max || !is_within(first, min) || !is_within(last, max) {
            return Err(FormError::Range);
        }
        let sum_of = |value: &dyn Fn(&FilledBin) -> u64| -> u128 {
            let parts = bins.iter();
            parts
                .map(|bin| u128::from(value(bin)) * u128::from(bin.count))
                .sum()
        };
        // One value is the smallest and one the largest. The others lie anywhere in their bins, between both.
        let low = |bin: &FilledBin| bin.low.max(min);
        let high = |bin: &FilledBin| bin.high.min(max);
        let least = sum_of(&low) + u128::from(max - low(last));
        let most = sum_of(&high) - u128::from(high(first) - min);
        if !(least..=most).contains(&sum) {
            return Err(FormError::Sum);
        }
        (histogram.sum, histogram.min, histogram.max) = (sum, min, max);
        Ok(histogram)
    }
}

impl TryFrom<CensoredForm> for CensoredHistogram {
    type Error = FormError;

    fn try_from(form: CensoredForm) -> Result<Self, FormError> {
        let CensoredForm {
            known,
            waited,
            never,
        } = form;
        if never > MOST_VALUES {
            return Err(FormError::Count(never));
        }
        Ok(Self {
            known,
            waited,
            never,
        })
    }
}

impl BatchForm {
    fn new(index: usize, bucket: &Bucket) -> Self {
        Self(
            index as u64,
            bucket.count,
            bucket.censored,
            Decimal(bucket.sum),
            Decimal(bucket.sum_of_squares),
            write_bins(&bucket.bins),
        )
    }

    /// Adds the batch to `bucket`, which is empty.
    fn read(&self, bucket: &mut Bucket) -> Result<(), FormError> {
        let &Self(_, count, censored, Decimal(sum), Decimal(squares), ref numbers) = self;
        if let Some(over) = [count, censored].into_iter().find(|it| *it > MOST_VALUES) {
            return Err(FormError::Count(over));
        }
        if count + censored == 0 {
            return Err(FormError::Empty);
        }
        read_bins(&mut bucket.bins, numbers)?;
        let bins = filled(&bucket.bins);
        let counted: u64 = bins.iter().map(|bin| bin.count).sum();
        // A bin that is full counts no further, and values without a bin are anywhere.
        let missing = match is_exact(&bins) {
            true if counted == count => 0,
            false if counted < count => count - counted,
            _ => return Err(FormError::BatchCount(count)),
        };
        let sum_of = |value: &dyn Fn(&FilledBin) -> u128| -> u128 {
            bins.iter()
                .map(|bin| value(bin) * u128::from(bin.count))
                .sum()
        };
        let longest = u128::from(LONGEST);
        let least = sum_of(&|bin| u128::from(bin.low));
        let most = sum_of(&|bin| u128::from(bin.high)) + longest * u128::from(missing);
        if !(least..=most).contains(&sum) {
            return Err(FormError::Sum);
        }
        // The bounds may exceed 2^128, the accepted sum does not.
        let square = |value: u64| u128::from(value).pow(2);
        let least = saturating_sum(&bins, |bin| square(bin.low));
        let most = saturating_sum(&bins, |bin| square(bin.high))
            .saturating_add(longest.pow(2).saturating_mul(u128::from(missing)));
        if !(least..=most.min(MOST_SQUARES)).contains(&squares) {
            return Err(FormError::Squares);
        }
        (bucket.count, bucket.censored) = (count, censored);
        (bucket.sum, bucket.sum_of_squares) = (sum, squares);
        Ok(())
    }
}

/// True if no bin of a batch has reached the largest count that it can have.
fn is_exact(bins: &[FilledBin]) -> bool {
    bins.iter().all(|bin| bin.count < u64::from(u32::MAX))
}

fn saturating_sum(bins: &[FilledBin], value: impl Fn(&FilledBin) -> u128) -> u128 {
    let product = |bin| value(bin).saturating_mul(u128::from(bin.count));
    bins.iter().map(product).fold(0, u128::saturating_add)
}

impl TryFrom<RecorderForm> for Recorder {
    type Error = FormError;

    fn try_from(form: RecorderForm) -> Result<Self, FormError> {
        let RecorderForm {
            shift,
            all,
            batches,
        } = form;
        let wide = FIRST_SHIFT + 1..=LAST_SHIFT;
        let last = batches.last().map_or(0, |batch| batch.0);
        let is_reached = wide.contains(&shift) && last >= BATCHES as u64 / 2;
        if shift != FIRST_SHIFT && !is_reached {
            return Err(FormError::Shift(shift));
        }
        let mut recorder = Self::new();
        (recorder.shift, recorder.all) = (shift, all);
        for batch in &batches {
            let index = usize::try_from(batch.0).unwrap_or(usize::MAX);
            if index < recorder.batches.len() || index >= BATCHES {
                return Err(FormError::Index(batch.0));
            }
            recorder.extend(index);
            batch.read(&mut recorder.batches[index])?;
        }
        check_batches(&recorder)?;
        Ok(recorder)
    }
}

/// Checks that the batches have the values of the distribution, bin by bin.
fn check_batches(recorder: &Recorder) -> Result<(), FormError> {
    let (batches, all) = (&recorder.batches, &recorder.all);
    let total = |part: fn(&Bucket) -> u128| batches.iter().map(part).sum::<u128>();
    let totals = [
        (total(|batch| batch.count.into()), all.known.count().into()),
        (total(|batch| batch.censored.into()), all.censored().into()),
        (total(|batch| batch.sum), all.known.sum),
    ];
    if totals.iter().any(|(batches, all)| batches != all) {
        return Err(FormError::Batches);
    }
    let mut coarse = BTreeMap::<u64, u64>::new();
    for batch in batches {
        let bins = filled(&batch.bins);
        if !is_exact(&bins) {
            return Ok(());
        }
        for bin in bins {
            *coarse.entry(bin.low).or_default() += bin.count;
        }
    }
    // Every fine bin lies in one coarse bin.
    for bin in filled(&all.known.bins) {
        let (low, _) = Bucket::bin(&batches[0], bin.low);
        let count = coarse.get_mut(&low).ok_or(FormError::Batches)?;
        *count = count.checked_sub(bin.count).ok_or(FormError::Batches)?;
    }
    debug_assert!(
        coarse.values().all(|count| *count == 0),
        "equal totals differ in a bin"
    );
    Ok(())
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        HistogramForm::from(self).serialize(serializer)
    }
}

impl Serialize for CensoredHistogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let view = CensoredView {
            known: &self.known,
            waited: &self.waited,
            never: self.never,
        };
        view.serialize(serializer)
    }
}

impl Serialize for Recorder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let batches = self.batches.iter().enumerate();
        let batches = batches.filter(|(_, bucket)| bucket.total() > 0);
        let view = RecorderView {
            shift: self.shift,
            all: &self.all,
            batches: batches
                .map(|(index, bucket)| BatchForm::new(index, bucket))
                .collect(),
        };
        view.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = HistogramForm::deserialize(deserializer)?;
        form.try_into().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for CensoredHistogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = CensoredForm::deserialize(deserializer)?;
        form.try_into().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Recorder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = RecorderForm::deserialize(deserializer)?;
        form.try_into().map_err(D::Error::custom)
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Digits)
    }
}

/// Reads a [`Decimal`] in its only spelling.
struct Digits;

impl Visitor<'_> for Digits {
    type Value = Decimal;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the decimal digits of a whole number below 2^128, as a string")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Decimal, E> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit())
            && (text == "0" || !text.starts_with('0'));
        let number = text.parse().ok().filter(|_| is_plain);
        number
            .map(Decimal)
            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
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
            place: prop::sample::Index,
            digit in b'0'..=b'9',
        ) {
            let form = written(&recorder(&entries));
            let digits: Vec<usize> = form
                .bytes()
                .enumerate()
                .filter_map(|(at, byte)| byte.is_ascii_digit().then_some(at))
                .collect();
            let mut bytes = form.clone().into_bytes();
            bytes[digits[place.index(digits.len())]] = digit;
            let changed = String::from_utf8(bytes).unwrap();
            if let Ok(back) = serde_json::from_str::<Recorder>(&changed) {
                prop_assert_eq!(written(&back), changed);
            }
        }
    }
}
