//! Tail of a set of response times: the choice between a linear and a logarithmic axis.
//!
//! The data decide the axis, so two figures of one kind of data follow one rule. The layout of the axis belongs to the
//! crate that draws.

/// Multiple of the median above which the rest of a linear axis is too small to read: at 20, the median is at 5 % of
/// the height.
pub const LONG_TAIL: f64 = 20.0;

/// Returns true if the largest of `values` exceeds [`LONG_TAIL`] times `median`, so that a logarithmic axis is needed.
///
/// Values that are zero, negative or not finite are ignored, because such an axis cannot show them. Without a median
/// above zero there is no long tail.
pub fn has_long_tail(median: Option<f64>, values: impl IntoIterator<Item = f64>) -> bool {
    let Some(median) = median.filter(|median| has_place(*median)) else {
        return false;
    };
    let largest = values.into_iter().filter(|value| has_place(*value));
    largest.fold(0.0, f64::max) > LONG_TAIL * median
}

/// Median of `values`; the lower of the two middle values of an even number. `None` without values.
///
/// Ignores the same values as [`has_long_tail`].
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values
        .into_iter()
        .filter(|value| has_place(*value))
        .collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

fn has_place(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_long_beyond_twenty_medians() {
        assert!(!has_long_tail(Some(10.0), [1.0, 10.0, 200.0]));
        assert!(has_long_tail(Some(10.0), [1.0, 10.0, 200.1]));
        // The lower end does not matter: it is near zero on a linear axis as well.
        assert!(!has_long_tail(Some(10.0), [0.001, 10.0]));
    }

    #[test]
    fn values_without_a_place_count_for_nothing() {
        assert!(!has_long_tail(
            Some(10.0),
            [f64::INFINITY, f64::NAN, -500.0]
        ));
        for none in [None, Some(0.0), Some(-1.0), Some(f64::NAN)] {
            assert!(!has_long_tail(none, [1.0, 500.0]), "{none:?}");
        }
        assert!(!has_long_tail(Some(1.0), []));
        assert_eq!(median([f64::NAN, 0.0, 7.0, -3.0]), Some(7.0));
        assert_eq!(median([]), None);
    }

    #[test]
    fn the_median_of_an_even_number_is_the_lower_one() {
        assert_eq!(median([4.0, 1.0, 3.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 3.0]), Some(3.0));
    }
}
