//! Charts, packet ladders and pages from data: self-contained SVG and HTML, ladders as text too.
//!
//! Data in, text out: no clock, no file, no request to anywhere, and the same bytes for the
//! same data. Charts stand alone ([`Chart::svg`]) or in a [`Page`]; all follow the reader's
//! light or dark theme, can be printed in black and white and read aloud. What the data mean
//! is left to the rooms above.

mod area;
mod axis;
mod bars;
mod chart;
mod drawing;
mod frame;
mod ink;
mod ladder;
mod layer;
mod marks;
mod number;
mod page;
mod plot;
mod trace;

pub use axis::{Axis, Scale, TopAxis};
pub use bars::{Bar, Bars, Group};
pub use chart::{Along, Chart, Mark, Point, Role, Series, Shape};
pub use drawing::Plot;
pub use frame::Format;
pub use ink::chart_style;
pub use ladder::{Arrow, Ladder, Line, Side, Wait};
pub use number::Unit;
pub use page::{Align, Answer, Block, Card, Cell, Page, Picture, Section, State, Table, Verdict};
