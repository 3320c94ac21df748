//! Data area of a chart: axes fitted to all values that can be placed, and the mapping to pixels.
//!
//! Computes sizes and positions only; `plot` and `marks` draw.

use plotters::coord::CoordTranslate;
use plotters::coord::cartesian::Cartesian2d;

use crate::axis::{Axis, Coord, Fitted};
use crate::chart::{Along, Chart};
use crate::frame::{Above, Format, Frame};
use crate::layer::{PixelPosition, UNITS};
use crate::trace::{Placed, Trace};

/// Data area with its mapping.
pub(crate) struct Area {
    pub(crate) frame: Frame,
    pub(crate) x: Fitted,
    pub(crate) y: Fitted,
    mapping: Cartesian2d<Coord, Coord>,
}

impl Area {
    /// Fits both axes of `chart` to its traces and marks, and lays out the frame around them.
    pub(crate) fn new(chart: &Chart, traces: &[Trace<'_>], format: Format) -> Self {
        let (across, up) = format.ticks();
        let points = || traces.iter().flat_map(Trace::points);
        let marks = |axis: &Axis, along: Along| -> Vec<f64> {
            let along = chart.marks.iter().filter(|mark| mark.along == along);
            along.filter_map(|mark| axis.position(mark.at)).collect()
        };
        let xs = points().map(|placed| placed.x);
        let x = chart.x.fit(xs.chain(marks(&chart.x, Along::X)), across);
        let ends = |placed: &Placed<'_>| {
            let ends = placed.interval.map(|(low, high)| [low, Some(high)]);
            [Some(placed.y)]
                .into_iter()
                .chain(ends.into_iter().flatten())
        };
        let ys = points().flat_map(ends).flatten();
        let y = chart.y.fit(ys.chain(marks(&chart.y, Along::Y)), up);
        let above = above(chart, &x, format);
        let (title, y_label) = (&chart.title, &chart.y.label);
        let frame = Frame::new(format, title, y_label, &x.ticks, &y, above.as_ref());
        let (across, up) = frame.limits();
        let mapping = Cartesian2d::new(x.coord, y.coord, (across.0..across.1, up.0..up.1));
        Self {
            frame,
            x,
            y,
            mapping,
        }
    }

    /// Ticks of the top axis, if the chart has one.
    pub(crate) fn above(&self, chart: &Chart) -> Option<Above> {
        above(chart, &self.x, self.frame.format)
    }

    /// Position on the page of two values on their scales.
    pub(crate) fn position(&self, x: f64, y: f64) -> PixelPosition {
        let (x, y) = self.mapping.translate(&(x, y));
        (f64::from(x) / UNITS, f64::from(y) / UNITS)
    }

    /// Returns true if a point lies between the axes.
    pub(crate) fn shows(&self, placed: &Placed<'_>) -> bool {
        self.x.coord.shows(placed.x) && self.y.coord.shows(placed.y)
    }

    /// Positions of the points of a run.
    pub(crate) fn places(&self, run: &[Placed<'_>]) -> Vec<PixelPosition> {
        let position = |placed: &Placed<'_>| self.position(placed.x, placed.y);
        run.iter().map(position).collect()
    }

    /// Positions of both ends of an interval, the lower first.
    pub(crate) fn ends(&self, placed: &Placed<'_>) -> Option<(PixelPosition, PixelPosition)> {
        let (low, high) = placed.interval?;
        let low = low.unwrap_or(self.y.coord.low);
        Some((self.position(placed.x, low), self.position(placed.x, high)))
    }
}

fn above(chart: &Chart, x: &Fitted, format: Format) -> Option<Above> {
    let top = chart.top.as_ref().filter(|_| format != Format::Small)?;
    let ticks = top.ticks(x.coord, format.ticks().0);
    (!ticks.is_empty()).then(|| Above {
        label: top.label.clone(),
        ticks,
    })
}
