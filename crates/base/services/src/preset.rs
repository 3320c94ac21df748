//! Named services with which instruments are tested, each with an objective.

use posthaste_units::{Seed, Span};

use crate::model::ServiceModel;
use crate::spec::ServiceSpec;
use crate::truth::TimeBound;

/// A named service.
#[derive(Clone, Copy, Debug)]
pub struct ServicePreset {
    /// Its name, in kebab case.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// The bound on the 99th percentile.
    pub p99: Span,
    /// Active time after which the service has its last state. For `drift`, the end of a search of 50 s.
    pub age: Span,
    /// The state and time for which a truth holds.
    pub note: &'static str,
}

impl ServicePreset {
    /// The description.
    pub fn spec(&self) -> ServiceSpec {
        self.text.parse().expect("tested: every preset is valid")
    }

    /// The service, idle at its origin.
    pub fn service(&self, seed: Seed) -> ServiceModel {
        ServiceModel::new(self.spec(), seed)
    }

    /// The objective.
    pub const fn bound(&self) -> TimeBound {
        TimeBound::p99(self.p99)
    }

    /// The preset of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }
}

const fn preset(
    name: &'static str,
    text: &'static str,
    p99_ms: u64,
    age_s: u64,
    note: &'static str,
) -> ServicePreset {
    ServicePreset {
        name,
        text,
        p99: Span::from_millis(p99_ms),
        age: Span::from_secs(age_s),
        note,
    }
}

/// The services.
pub const PRESETS: &[ServicePreset] = &[
    preset(
        "stall",
        "md1:5ms,stall=300ms/30s",
        100,
        0,
        "Over many periods. Between two pauses it is md1.",
    ),
    preset("md1", "md1:5ms", 50, 0, "From any state."),
    preset("mm1", "mm1:5ms", 100, 0, "From any state."),
    preset("mm4", "mmc:5ms:4", 50, 0, "From any state."),
    preset(
        "bimodal",
        "bimodal:5ms:50ms:10%",
        200,
        0,
        "From any state. The mean service time is 9.5 ms.",
    ),
    preset(
        "collapse",
        "md1:5ms,collapse=100/s",
        50,
        0,
        "From any state: one second without overload ends a collapse, then its queue is served.",
    ),
    preset(
        "limiter",
        "md1:5ms,limit=100/s:5",
        50,
        0,
        "From any state, as the bucket is empty after 5 requests too many.",
    ),
    preset(
        "bucket",
        "md1:5ms,limit=100/s:50",
        50,
        0,
        "After the bucket was emptied. A full one lets 50 more requests pass.",
    ),
    preset(
        "cold-start",
        "md1:5ms,cold=5x/3s",
        50,
        3,
        "After 3 s of activity and the end of their queue. Before, the service time is 25 ms.",
    ),
    preset(
        "doubling",
        "md1:5ms,warm=2x/8s",
        50,
        8,
        "After 8 s of activity. Before, it is md1.",
    ),
    preset(
        "drift",
        "mm1:5ms,drift=10%/min",
        100,
        50,
        "At the end of 50 s of activity. At the beginning it is mm1.",
    ),
    preset(
        "hysteresis",
        "md1:5ms,hysteresis=150/s:60/s:2x",
        50,
        0,
        "Until 150/s were exceeded in a second. Afterwards the service time is 10 ms until fewer than 60/s arrive.",
    ),
    preset("hang-half", "mm1:5ms,hang=0.5%", 100, 0, "From any state."),
    preset("hang-two", "mm1:5ms,hang=2%", 100, 0, "No rate holds."),
];
