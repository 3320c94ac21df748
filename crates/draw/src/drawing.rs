//! A drawing of either kind, for callers that need not know which.

use maud::Markup;

use crate::bars::Bars;
use crate::chart::Chart;
use crate::frame::Format;
use crate::page::Table;

/// Series over two axes, or bars.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Series over two axes.
    Chart(Chart),
    /// Bars.
    Bars(Bars),
}

impl Plot {
    /// The heading.
    pub fn title(&self) -> &str {
        match self {
            Self::Chart(chart) => &chart.title,
            Self::Bars(bars) => &bars.title,
        }
    }

    /// The data in words, for readers who cannot see the drawing.
    pub fn description(&self) -> String {
        match self {
            Self::Chart(chart) => chart.description(),
            Self::Bars(bars) => bars.description(),
        }
    }

    /// The numbers behind the drawing, exactly as they were given.
    pub fn numbers(&self) -> Table {
        match self {
            Self::Chart(chart) => chart.numbers(),
            Self::Bars(bars) => bars.numbers(),
        }
    }

    /// One self-contained SVG file.
    pub fn svg_in(&self, format: Format) -> String {
        match self {
            Self::Chart(chart) => chart.svg_in(format),
            Self::Bars(bars) => bars.svg_in(format),
        }
    }

    /// The drawing to be put into a page that holds [`chart_style`](crate::chart_style) once.
    pub fn inline_in(&self, format: Format) -> Markup {
        match self {
            Self::Chart(chart) => chart.inline_in(format),
            Self::Bars(bars) => bars.inline_in(format),
        }
    }
}
