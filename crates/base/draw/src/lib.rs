//! Charts, packet ladders and pages from data: self-contained SVG and HTML, ladders also as text.
//!
//! Pure functions: no clock, files or network, and the same output for the same data. Charts are separate
//! ([`Chart::svg`]) or part of a [`Page`]. All follow the reader's light or dark theme, can be printed in black and
//! white, and work with screen readers. The meaning of the data is left to the callers.

mod area;
mod axis;
mod bars;
mod chart;
mod drawing;
mod frame;
mod ladder;
mod layer;
mod marks;
mod number;
mod page;
mod palette;
mod plot;
mod table;
mod trace;

pub use axis::{Axis, Scale, TopAxis};
pub use bars::{Bar, Bars, Group};
pub use chart::{Along, Chart, Mark, Point, Role, Series, Shape};
pub use drawing::Plot;
pub use frame::Format;
pub use ladder::{Arrow, Ladder, Line, Side, Wait};
pub use number::Unit;
pub use page::{Answer, Block, Card, Page, Picture, Section, Verdict};
pub use palette::chart_style;
pub use table::{Align, Cell, State, Table};
