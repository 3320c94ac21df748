//! A plot of either kind, for callers that treat both alike.

use maud::Markup;

use crate::bars::Bars;
use crate::chart::Chart;
use crate::frame::Format;

/// Series on two axes, or bars.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Series on two axes.
    Chart(Chart),
    /// Bars.
    Bars(Bars),
}

impl Plot {
    /// Title.
    pub fn title(&self) -> &str {
        match self {
            Self::Chart(chart) => &chart.title,
            Self::Bars(bars) => &bars.title,
        }
    }

    /// Data as text, for readers who cannot see the plot.
    pub fn description(&self) -> String {
        match self {
            Self::Chart(chart) => chart.description(),
            Self::Bars(bars) => bars.description(),
        }
    }

    /// Renders a self-contained SVG file.
    pub fn svg_in(&self, format: Format) -> String {
        match self {
            Self::Chart(chart) => chart.svg_in(format),
            Self::Bars(bars) => bars.svg_in(format),
        }
    }

    /// Renders the plot for a page that contains [`chart_style`](crate::chart_style) once.
    pub fn inline_in(&self, format: Format) -> Markup {
        match self {
            Self::Chart(chart) => chart.inline_in(format),
            Self::Bars(bars) => bars.inline_in(format),
        }
    }
}
