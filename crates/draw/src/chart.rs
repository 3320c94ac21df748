//! What a chart shows: series of points over two axes, marks, and words.
//!
//! Only data and its reading live here; `plot` draws it, `frame` sets what stands around it.
//! A chart takes any data: what has no place on its axes is left out, counted and said so.

use maud::Markup;

use crate::axis::{Axis, TopAxis};
use crate::frame::Format;
use crate::page::{Cell, Table};
use crate::plot;

/// A chart: series over an x and a y axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// The heading, also what a screen reader says first.
    pub title: String,
    /// The axis beneath.
    pub x: Axis,
    /// The axis at the left.
    pub y: Axis,
    /// A second x axis above; for linear x axes.
    pub top: Option<TopAxis>,
    /// What is drawn, in the order of the legend. Series of one name share hue and marker.
    pub series: Vec<Series>,
    /// Series stand in the order of a quantity, such as a delay: colours go from light to dark in that order.
    pub ordered: bool,
    /// Reference lines.
    pub marks: Vec<Mark>,
    /// Sentences beneath the legend.
    pub notes: Vec<String>,
}

/// Whose numbers a series holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Measured, emulated or predicted by us: full ink, filled markers.
    #[default]
    Ours,
    /// The paper's: muted, dashed, hollow markers, and named so in the legend.
    Paper,
}

/// How the points of a series are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// By straight lines; a point without a place leaves a gap.
    #[default]
    Line,
    /// Not at all.
    Points,
    /// Each value holds until the next point.
    Steps,
}

/// Points that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Whose numbers they are.
    pub role: Role,
    /// How they are joined.
    pub shape: Shape,
    /// The points; lines follow their order.
    pub points: Vec<Point>,
}

/// One value, its interval and what the pointer is told about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Place on the x axis.
    pub x: f64,
    /// Place on the y axis.
    pub y: f64,
    /// Lower and upper end of the interval of `y`, drawn as a whisker, or as a band along a
    /// line of many points.
    pub interval: Option<(f64, f64)>,
    /// What is shown beside the numbers when the pointer rests on the point; may be empty.
    pub hint: String,
}

/// The axis at a value of which a mark stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// A vertical line at a value of x.
    X,
    /// A horizontal line at a value of y.
    Y,
}

/// A reference line with a label.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Which axis `at` is a value of.
    pub along: Along,
    /// Where it stands.
    pub at: f64,
    /// What it says: "capacity of the page".
    pub label: String,
    /// Whose it is.
    pub role: Role,
}

impl Point {
    /// A point without interval or hint.
    pub fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            ..Self::default()
        }
    }

    /// The same point with an interval of its y.
    pub fn with_interval(mut self, low: f64, high: f64) -> Self {
        self.interval = Some((low, high));
        self
    }
}

impl Series {
    /// Our own series, joined by lines.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        Self {
            name: name.into(),
            points: points.into_iter().collect(),
            ..Self::default()
        }
    }

    /// The same series with another shape.
    pub fn shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// The same series as the paper's.
    pub fn of_paper(mut self) -> Self {
        self.role = Role::Paper;
        self
    }

    /// Its name with whose it is.
    pub(crate) fn legend(&self) -> String {
        legend(&self.name, self.role)
    }
}

/// `name`, and that it is the paper's unless it says so itself.
pub(crate) fn legend(name: &str, role: Role) -> String {
    if role == Role::Ours || name.contains("paper") {
        name.to_owned()
    } else if name.is_empty() {
        "the paper".to_owned()
    } else {
        format!("{name}, paper")
    }
}

impl Chart {
    /// A chart without series.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            title: title.into(),
            x,
            y,
            ..Self::default()
        }
    }

    /// A percentile curve: a value against its quantile (0 to below 1) on an axis of nines.
    pub fn percentiles(title: impl Into<String>, y: Axis) -> Self {
        Self::new(title, Axis::percentile("percentile"), y)
    }

    /// One self-contained SVG file.
    pub fn svg(&self) -> String {
        self.svg_in(Format::Wide)
    }

    /// One self-contained SVG file of this size.
    pub fn svg_in(&self, format: Format) -> String {
        plot::draw(self, format, true).into_string()
    }

    /// The chart to be put into a page that holds [`chart_style`](crate::chart_style) once.
    pub fn inline(&self) -> Markup {
        self.inline_in(Format::Wide)
    }

    /// The same in another size.
    pub fn inline_in(&self, format: Format) -> Markup {
        plot::draw(self, format, false)
    }

    /// The series and their ranges in words, for readers who cannot see the chart.
    pub fn description(&self) -> String {
        plot::describe(self)
    }

    /// The numbers behind the chart, exactly as they were given.
    pub fn numbers(&self) -> Table {
        let mut table = Table::new(["series", &*self.x.label, &*self.y.label, "interval"]);
        for series in &self.series {
            for point in &series.points {
                let interval = point.interval.map_or_else(String::new, |(low, high)| {
                    format!("{} to {}", self.y.exact(low), self.y.exact(high))
                });
                table.rows.push(vec![
                    Cell::text(series.legend()),
                    Cell::number(self.x.exact(point.x)),
                    Cell::number(self.y.exact(point.y)),
                    Cell::number(interval),
                ]);
            }
        }
        table
    }
}
