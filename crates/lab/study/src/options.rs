//! The options of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use posthaste_units::Seed;

use crate::lab::Lab;
use crate::records::Records;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// True for runs as long as the papers', instead of the quick budgets.
    pub full: bool,
    /// The seed of everything random.
    pub seed: Seed,
    /// The commit of the binary, if known.
    pub commit: Option<String>,
    /// The folder for the results.
    pub out: PathBuf,
    /// Result of [`lab::enter`](crate::lab::enter).
    pub lab: Lab,
    /// The program that runs studies side by side as `PROGRAM reproduce --part`. Without it, studies run one after
    /// another.
    pub program: Option<PathBuf>,
    /// Records of studies in virtual time that ran elsewhere, by study. They do not run here.
    pub simulated: BTreeMap<String, Records>,
}
