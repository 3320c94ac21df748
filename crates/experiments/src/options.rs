//! The options of a run.

use std::path::PathBuf;

use posthaste_units::Seed;

use crate::lab::Lab;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// As long as the papers did, instead of within the quick budgets.
    pub full: bool,
    /// The seed of everything random.
    pub seed: Seed,
    /// The commit that the program was built from, where it is known.
    pub commit: Option<String>,
    /// The folder for the results.
    pub out: PathBuf,
    /// What [`lab::enter`](crate::lab::enter) has reached.
    pub lab: Lab,
    /// The program that runs studies side by side as `PROGRAM reproduce --part`; without it all run one after the other.
    pub program: Option<PathBuf>,
}
