//! Studies in virtual time on other machines.
//!
//! A study that needs nothing of its machine is a function of its seed and its length. Another machine with the same
//! program runs it ([`simulate`]) and sends its records ([`SentRecords`](crate::SentRecords)). The run gets them as
//! [`Options::simulated`](crate::Options::simulated).

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};

use posthaste_units::Seed;

use crate::collection::Collection;
use crate::figure::{Conditions, Failure, Figure, Needs, Study};
use crate::lab::Lab;
use crate::measuring::run_study;
use crate::progress::Silent;
use crate::records::Records;

/// A study in virtual time, for another machine.
#[derive(Clone, Copy, Debug)]
pub struct VirtualRun<'r> {
    /// Name of the study.
    pub study: &'r str,
    /// True for a run as long as the paper's.
    pub full: bool,
    /// The seed of the whole run.
    pub seed: Seed,
    /// Number of threads.
    pub threads: NonZero<usize>,
}

/// Names of the studies in virtual time that these figures need, each once.
pub fn virtual_studies(selection: &[&Figure]) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    let studies = selection.iter().map(|figure| figure.study);
    for study in studies.filter(|study| study.needs == Needs::Nothing) {
        if !names.contains(&study.name) {
            names.push(study.name);
        }
    }
    names
}

/// Runs a study in virtual time. Returns an error if it is stopped, or if it is another kind of study: those measure,
/// and another machine is another experiment.
pub fn simulate(
    collection: &Collection<'_>,
    run: VirtualRun<'_>,
    stop: &AtomicBool,
) -> Result<Records, Failure> {
    let studies = collection.figures.iter().map(|figure| figure.study);
    let is_wanted =
        |study: &&'static Study| study.name == run.study && study.needs == Needs::Nothing;
    let study = studies.into_iter().find(is_wanted);
    let study =
        study.ok_or_else(|| format!("no study in virtual time has the name {:?}", run.study))?;
    let lab = Lab::Shared("a study in virtual time uses no network".to_owned());
    let conditions = Conditions {
        full: run.full,
        seed: run.seed.child(study.name),
        threads: run.threads,
        lab: &lab,
        stop,
        progress: &Silent,
        assumed_capacity: None,
    };
    let records = run_study(study, &conditions)?;
    if stop.load(Ordering::Relaxed) {
        return Err("the study was stopped".into());
    }
    Ok(records)
}
