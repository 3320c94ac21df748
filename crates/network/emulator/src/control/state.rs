//! Documents of a control: values, changes and their times.

use std::collections::BTreeMap;

use posthaste_link::Plan;
use posthaste_link::change::{AppliedChange, values};
use posthaste_units::Instant;
use serde::{Deserialize, Serialize};

/// The present values of both directions, and the changes so far.
#[derive(Debug, Serialize)]
pub(super) struct StateDocument {
    /// Time on the clock of the run.
    time_ms: f64,
    up: BTreeMap<&'static str, String>,
    down: BTreeMap<&'static str, String>,
    changes: Vec<AppliedChangeDocument>,
}

/// A change that took effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppliedChangeDocument {
    /// Time of the change in ms, on the clock of the run and of its traces.
    pub time_ms: f64,
    /// The change as text.
    pub change: String,
}

impl StateDocument {
    pub(super) fn new(now: Instant, plans: [&Plan; 2], changes: &[AppliedChange]) -> Self {
        let [up, down] = plans.map(|plan| values(plan, now).collect());
        Self {
            time_ms: ms(now),
            up,
            down,
            changes: changes.iter().map(AppliedChangeDocument::from).collect(),
        }
    }
}

impl From<&AppliedChange> for AppliedChangeDocument {
    fn from(applied: &AppliedChange) -> Self {
        Self {
            time_ms: ms(applied.at),
            change: applied.change.to_string(),
        }
    }
}

fn ms(time: Instant) -> f64 {
    time.since(Instant::ORIGIN).as_millis_f64()
}
