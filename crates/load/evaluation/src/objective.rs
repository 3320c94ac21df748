//! The objective in the form that the search uses, and the effort of the search.

use posthaste_units::{Rate, Span};

/// The times that an objective bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoundedFigure {
    /// Response times of all requests due.
    #[default]
    Response,
    /// Due to first event, of all requests due.
    FirstEvent,
    /// Gaps between the events of a reply.
    Gap,
    /// Mean gap of each stream, the inverse of its rate.
    StreamPeriod,
}

/// An upper bound on a statistic of one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// The bounded times.
    pub figure: BoundedFigure,
    /// The share of the times that must lie within the bound; 1 for all of them, `None` for the mean.
    pub quantile: Option<f64>,
    /// The bound.
    pub bound: Span,
    /// The share of requests that may fail.
    pub tolerance: f64,
}

impl BoundedFigure {
    /// True if the figure is about events in replies.
    pub(crate) const fn is_of_events(self) -> bool {
        !matches!(self, Self::Response)
    }

    /// The counted times in words, for a report of a trial. Empty for response times.
    pub(crate) const fn plural(self) -> &'static str {
        match self {
            Self::Response => "",
            Self::FirstEvent => "first events ",
            Self::Gap => "gaps ",
            Self::StreamPeriod => "streams ",
        }
    }
}

impl Objective {
    /// The share of times that may lie beyond the bound. For a mean, the share of requests that may fail.
    pub fn allowed(&self) -> f64 {
        self.quantile.map_or(self.tolerance, |share| 1.0 - share)
    }
}

/// Time and precision of a search.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The first rate, and the rate of the light load that shows recovery of the service.
    pub start: Rate,
    /// Time for the whole search.
    pub budget: Span,
    /// Half the width of the requested interval, as a share of the capacity.
    pub precision: f64,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            start: Rate::per_second(20.0).expect("20 is a rate"),
            budget: Span::from_secs(50),
            precision: 0.05,
        }
    }
}
