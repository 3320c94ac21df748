//! Order statistics of few values, such as the results of repeated measurements.

/// Median of `values`; the mean of the two middle values of an even number. `None` without values.
///
/// All values count. [`median`](crate::median) ignores those that have no position on an axis of response times.
pub fn sample_median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

/// Quantile of `sorted` values by nearest rank: the least value that a share `share` of all values does not exceed.
/// `None` without values.
pub fn nearest_rank(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(sample_median(&[]), None);
        assert_eq!(sample_median(&[3.0]), Some(3.0));
        assert_eq!(sample_median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(sample_median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    #[test]
    fn quantiles_are_values() {
        let sorted = [1.0, 2.0, 3.0, 4.0];
        let found = [0.0, 0.25, 0.26, 0.5, 0.99, 1.0].map(|share| nearest_rank(&sorted, share));
        assert_eq!(found, [1.0, 1.0, 2.0, 2.0, 4.0, 4.0].map(Some));
        assert_eq!(nearest_rank(&[], 0.5), None);
    }
}
