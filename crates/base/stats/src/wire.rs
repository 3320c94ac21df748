//! The form of distributions in messages: exact, sparse and canonical.
//!
//! | type | fields |
//! |---|---|
//! | [`Histogram`] | `{sum, min, max, bins}` |
//! | [`CensoredHistogram`] | `{known, waited, never}` |
//! | [`Recorder`] | `{shift, all, batches: [[index, count, censored, sum, squares, bins], ...]}` |
//!
//! - `bins` is a list of numbers, two for each non-empty bin: its lowest value and its count. Each value after the
//!   first is the difference to the one before it.
//! - Sums exceed the whole numbers of JSON and are decimal strings. An empty histogram has the `min` 0.
//! - Empty batches are omitted.
//! - Bins are a function of the value. A distribution that was read therefore equals the one that was written, and
//!   merges like it. Equal distributions have equal forms, regardless of the order of values and merges.
//!
//! Each statement of a form is checked against the others when it is read. Memory is in proportion to the form, plus
//! the capacity of the bins (290 kB for each fine histogram). `hdrhistogram` has a deserializer of its own, which
//! allocates as much as a message states (4 GB) and accepts any precision.

#[cfg(test)]
mod tests;

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
