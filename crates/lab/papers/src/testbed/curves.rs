//! Readings along a measured curve, and reservations about its run.

use posthaste_draw::{Point, Series};
use posthaste_study::{Records, estimate, lab::SHARED_CORE};

/// Capacity of `who`, in replies a second.
pub(crate) fn capacity(records: &Records, who: &str) -> f64 {
    records.number(&format!("capacity {who}"))
}

/// The curve of `who` over the rate as a multiple of `capacity`, with the interval of the runs at each point.
pub(crate) fn series(records: &Records, who: &str, quantity: &str, capacity: f64) -> Series {
    let rows = records.table("points").rows();
    let points = rows.filter(|row| row.text("who") == who).map(|row| {
        let [middle, low, high] =
            ["", " low", " high"].map(|end| row.number(&format!("{quantity}{end}")));
        let rate = row.number("rate_per_s");
        let mut point = Point::new(rate / capacity, middle).with_interval(low, high);
        point.hint = format!("{rate:.0}/s offered");
        point
    });
    Series::line(who, points)
}

/// Reservations about this run: a missing check, and a core that server and generator share.
pub(crate) fn reservations(records: &Records) -> Vec<String> {
    let mut notes = Vec::new();
    if records.number("own namespace") == 0.0 {
        notes.push("Not checked: connections against the kernel's counters, because the network was shared with other programs.".to_owned());
    }
    if records.number("shared core") == 1.0 {
        notes.push(format!("Note that {SHARED_CORE}."));
    }
    notes
}

/// Median of the values of a curve from `from` on.
pub(crate) fn plateau(curve: &[(f64, f64)], from: f64) -> f64 {
    let values: Vec<f64> = curve
        .iter()
        .filter(|(x, _)| *x >= from)
        .map(|(_, y)| *y)
        .collect();
    estimate(&values).median
}

/// First position where a curve reaches `level`, by linear interpolation. NaN if it does not.
pub(crate) fn crossing(curve: &[(f64, f64)], level: f64) -> f64 {
    let mut steps = curve.windows(2).filter_map(|pair| match pair {
        [(x, y), (next_x, next_y)] if *y < level && *next_y >= level => {
            Some(x + (next_x - x) * (level - y) / (next_y - y))
        }
        _ => None,
    });
    steps.next().unwrap_or(f64::NAN)
}

/// Value of a curve at the point nearest to `x`.
pub(crate) fn nearest(curve: &[(f64, f64)], x: f64) -> f64 {
    let distance = |point: &&(f64, f64)| (point.0 - x).abs();
    let near = curve
        .iter()
        .min_by(|a, b| distance(a).total_cmp(&distance(b)));
    near.map_or(f64::NAN, |(_, y)| *y)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURVE: [(f64, f64); 4] = [(0.5, 1.0), (1.0, 2.0), (1.5, 10.0), (2.0, 12.0)];

    #[test]
    fn curves_are_read_between_their_points() {
        assert!((crossing(&CURVE, 6.0) - 1.25).abs() < 1e-12);
        assert!(crossing(&CURVE, 50.0).is_nan());
        assert!((plateau(&CURVE, 1.4) - 11.0).abs() < 1e-12);
        assert!((nearest(&CURVE, 0.9) - 2.0).abs() < 1e-12);
    }
}
