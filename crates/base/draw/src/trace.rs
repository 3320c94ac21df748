//! Traces: the points of a series, placed on scales and thinned for the page.
//!
//! Points that cannot be placed (not a number, zero on a logarithmic axis) are counted and not drawn. Ten thousand
//! points become as many shapes as the page can show.

use std::collections::BTreeSet;

use crate::axis::Axis;
use crate::chart::{Chart, Point, Series, Shape};
use crate::layer::PixelPosition;

/// Maximum number of points of a line with markers.
const MARKED: usize = 60;
/// Maximum number of points of a line with whiskers. Longer lines get a band.
const WHISKERED: usize = 30;
/// Maximum number of points that are not thinned.
const THINNED: usize = 1500;
/// Cell sizes of one hover target and of one thinned point, in pixels.
const HIT_CELL: f64 = 6.0;
const DOT_CELL: f64 = 1.5;

/// A point whose values can be placed on both scales.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'a> {
    pub(crate) point: &'a Point,
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// Both ends of the interval. No lower end if it lies below a logarithmic axis.
    pub(crate) interval: Option<(Option<f64>, f64)>,
}

/// Points of a series in runs without gaps, and the number of omitted points.
#[derive(Debug, Default)]
pub(crate) struct Trace<'a> {
    pub(crate) runs: Vec<Vec<Placed<'a>>>,
    pub(crate) lost: usize,
}

impl<'a> Trace<'a> {
    /// Places the points of `series` on the scales of `chart`.
    pub(crate) fn new(chart: &Chart, series: &'a Series) -> Self {
        let mut trace = Self::default();
        let mut gap = true;
        for point in &series.points {
            let (Some(x), Some(y)) = (chart.x.position(point.x), chart.y.position(point.y)) else {
                trace.lost += 1;
                gap = true;
                continue;
            };
            let placed = Placed {
                point,
                x,
                y,
                interval: place_interval(&chart.y, point.interval),
            };
            match trace.runs.last_mut() {
                Some(run) if !gap => run.push(placed),
                _ => trace.runs.push(vec![placed]),
            }
            gap = false;
        }
        trace
    }

    /// All placed points.
    pub(crate) fn points(&self) -> impl Iterator<Item = &Placed<'a>> {
        self.runs.iter().flatten()
    }

    /// Returns true if the points get markers.
    pub(crate) fn marked(&self, shape: Shape) -> bool {
        shape == Shape::Points || (shape == Shape::Line && self.points().count() <= MARKED)
    }

    /// Returns true if the intervals are drawn as a band.
    pub(crate) fn banded(&self, shape: Shape) -> bool {
        shape != Shape::Points && self.points().count() > WHISKERED
    }
}

/// Both ends on the scale, lower first; `None` if one is not a number.
fn place_interval(axis: &Axis, interval: Option<(f64, f64)>) -> Option<(Option<f64>, f64)> {
    let (one, other) = interval.filter(|(one, other)| one.is_finite() && other.is_finite())?;
    Some((
        axis.position(one.min(other)),
        axis.position(one.max(other))?,
    ))
}

/// Thins the line through `places` to at most four places per pixel column, without visible change.
pub(crate) fn thin_line(places: &[PixelPosition]) -> Vec<PixelPosition> {
    if places.len() <= THINNED {
        return places.to_vec();
    }
    places
        .chunk_by(|a, b| a.0.floor() == b.0.floor())
        .flat_map(|column| {
            let by_height = |a: &&PixelPosition, b: &&PixelPosition| a.1.total_cmp(&b.1);
            let mut kept = vec![column[0]];
            kept.extend(column.iter().min_by(by_height));
            kept.extend(column.iter().max_by(by_height));
            kept.push(column[column.len() - 1]);
            kept.dedup();
            kept
        })
        .collect()
}

/// Indices of the visible places if each takes a cell; all if they are few.
pub(crate) fn seen(places: &[PixelPosition], for_pointer: bool) -> Vec<usize> {
    let cell = if for_pointer { HIT_CELL } else { DOT_CELL };
    let few = if for_pointer { THINNED / 10 } else { THINNED };
    if places.len() <= few {
        return (0..places.len()).collect();
    }
    let mut taken = BTreeSet::new();
    (0..places.len())
        .filter(|index| {
            let (x, y) = places[*index];
            taken.insert(((x / cell) as i64, (y / cell) as i64))
        })
        .collect()
}

/// Connects `places` as steps: each height holds until the next.
pub(crate) fn steps(places: &[PixelPosition]) -> Vec<PixelPosition> {
    let corners = places
        .windows(2)
        .flat_map(|pair| [pair[0], (pair[1].0, pair[0].1)]);
    corners.chain(places.last().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Unit;

    #[test]
    fn points_that_cannot_be_drawn_are_counted_and_leave_a_gap() {
        let mut chart = Chart::new(
            "t",
            Axis::linear("x", Unit::Count),
            Axis::log("y", Unit::Count),
        );
        let ys = [1.0, 2.0, 0.0, f64::NAN, 3.0, f64::INFINITY];
        let points = ys
            .into_iter()
            .enumerate()
            .map(|(x, y)| Point::new(x as f64, y));
        chart.series.push(Series::line("s", points));
        let trace = Trace::new(&chart, &chart.series[0]);
        assert_eq!(trace.lost, 3);
        let runs: Vec<usize> = trace.runs.iter().map(Vec::len).collect();
        assert_eq!(runs, [2, 1]);
    }

    #[test]
    fn thinning_keeps_ends_and_extremes() {
        let wave = |n: u32| (f64::from(n) / 100.0, f64::from(n * 7919 % 1000));
        let places: Vec<PixelPosition> = (0..10_000).map(wave).collect();
        let thin = thin_line(&places);
        assert!(thin.len() <= 400, "{}", thin.len());
        assert_eq!((thin[0], thin[thin.len() - 1]), (places[0], places[9_999]));
        assert!(thin.iter().any(|position| position.1 == 999.0));
        assert!(seen(&places, true).len() < seen(&places, false).len());
    }

    #[test]
    fn steps_hold_their_value() {
        let corners = steps(&[(0.0, 5.0), (2.0, 7.0)]);
        assert_eq!(corners, [(0.0, 5.0), (2.0, 5.0), (2.0, 7.0)]);
    }
}
