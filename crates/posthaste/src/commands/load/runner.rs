//! The machines that carry out a plan: this one, or agents.

use std::sync::atomic::AtomicBool;

use posthaste_evaluation::{LocalRunner, Runner};
#[cfg(feature = "agents")]
use posthaste_fleet::conductor::fleet::{AgentFleet, FleetError};
#[cfg(feature = "agents")]
use posthaste_fleet::conductor::load::{FleetRunner, RunRules};
use posthaste_load::{Observer, Plan, Run};

use super::from_run;
use crate::commands::Failure;

/// Carries out plans.
pub(super) enum PlanRunner {
    /// On this machine.
    Local,
    /// On agents.
    #[cfg(feature = "agents")]
    Fleet(Box<AgentFleet>, RunRules),
}

impl PlanRunner {
    /// Carries out one plan. `notice` takes messages for the user.
    pub(super) fn run(
        &mut self,
        plan: &Plan,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
        notice: &mut dyn FnMut(&str),
    ) -> Result<Run, Failure> {
        match self {
            Self::Local => {
                let _ = notice;
                posthaste_load::run(plan, stop, observer).map_err(from_run)
            }
            #[cfg(feature = "agents")]
            Self::Fleet(fleet, rules) => fleet
                .run(plan, *rules, stop, observer, notice)
                .map_err(from_fleet),
        }
    }

    /// Carries out the trials of a search.
    pub(super) fn trials<'s>(&'s mut self, stop: &'s AtomicBool) -> Box<dyn Runner + 's> {
        match self {
            Self::Local => Box::new(LocalRunner(stop)),
            #[cfg(feature = "agents")]
            Self::Fleet(fleet, rules) => Box::new(FleetRunner {
                fleet,
                rules: *rules,
                stop,
            }),
        }
    }
}

#[cfg(feature = "agents")]
pub(super) fn from_fleet(error: FleetError) -> Failure {
    match error {
        FleetError::Processors(_) | FleetError::Allot(_) => Failure::usage(error),
        _ => Failure::run(error),
    }
}
