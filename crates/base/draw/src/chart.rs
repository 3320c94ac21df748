//! Charts: series of points on two axes, reference lines and text.
//!
//! This module has the data and their meaning; `plot` draws them, and `frame` draws the parts around them. A chart
//! accepts any data: values that cannot be placed on its axes are omitted, counted and reported.

use crate::axis::{Axis, TopAxis};
use crate::table::{Cell, Table};

/// A chart: series on an x and a y axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Title. Screen readers announce it first.
    pub title: String,
    /// Axis below the data.
    pub x: Axis,
    /// Axis at the left.
    pub y: Axis,
    /// A second x axis above the data; for linear x axes.
    pub top: Option<TopAxis>,
    /// Series in the order of the legend. Series of the same name share hue and marker.
    pub series: Vec<Series>,
    /// Series are ordered by a quantity, such as a delay: colours go from light to dark in that order.
    pub ordered: bool,
    /// Reference lines.
    pub marks: Vec<Mark>,
    /// Notes below the legend.
    pub notes: Vec<String>,
}

/// Source of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Measured, emulated or predicted by us: full colours, filled markers.
    #[default]
    Ours,
    /// The paper's: muted, dashed, hollow markers, and labelled as such in the legend.
    Paper,
}

/// Connection between the points of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Straight lines. A point that cannot be placed leaves a gap.
    #[default]
    Line,
    /// None.
    Points,
    /// Steps: each value holds until the next point.
    Steps,
}

/// A series of points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Source of the numbers.
    pub role: Role,
    /// Connection between the points.
    pub shape: Shape,
    /// Points. Lines follow their order.
    pub points: Vec<Point>,
}

/// One value with its interval and tooltip.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Value on the x axis.
    pub x: f64,
    /// Value on the y axis.
    pub y: f64,
    /// Lower and upper end of the interval of `y`, drawn as a whisker, or as a band along a line of many points.
    pub interval: Option<(f64, f64)>,
    /// Additional text of the tooltip; may be empty.
    pub hint: String,
}

/// Axis of a reference line's value.
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
    /// Axis of `at`.
    pub along: Along,
    /// Value at the line.
    pub at: f64,
    /// Label: "capacity of the page".
    pub label: String,
    /// Source of the value.
    pub role: Role,
}

impl Point {
    /// Creates a point without interval or hint.
    pub fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            ..Self::default()
        }
    }

    /// Sets the interval of y.
    pub fn with_interval(mut self, low: f64, high: f64) -> Self {
        self.interval = Some((low, high));
        self
    }
}

impl Series {
    /// Creates a series of ours, connected by lines.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        Self {
            name: name.into(),
            points: points.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Sets the connection between the points.
    pub fn shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// Marks the series as the paper's.
    pub fn of_paper(mut self) -> Self {
        self.role = Role::Paper;
        self
    }

    /// Name with its source.
    pub(crate) fn legend(&self) -> String {
        legend(&self.name, self.role)
    }
}

/// `name` with its source, unless ours or already named after the paper.
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
    /// Creates a chart without series.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            title: title.into(),
            x,
            y,
            ..Self::default()
        }
    }

    /// Creates a percentile curve: a value against its quantile (0 to below 1) on an axis of nines.
    pub fn percentiles(title: impl Into<String>, y: Axis) -> Self {
        Self::new(title, Axis::percentile("percentile"), y)
    }

    /// The chart's numbers, exactly as given.
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
