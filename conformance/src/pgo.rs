//! `cargo xtask pgo`: the release build, optimised with a profile of the study.
//!
//! Profile-guided optimisation takes three steps: a build that counts the direction of each branch, a run of it, and a
//! build that arranges its code by these counts. The run consists of figures of the study, in which load, links,
//! gateways and brokers run in one process. Each figure is a line in [`FIGURES`].

use std::process::Command;
use std::time::Duration;

use crate::builds::Build;
use crate::checkout::Checkout;
use crate::error::{Outcome, TaskError};
use crate::process::{self, Running};
use crate::profile_guided::{MOMENT, Toolchain, profile};

/// Figures to count: load on a service, emulated and simulated links, codings, gateways, brokers.
const FIGURES: [&str; 7] = [
    "overload/fig-08",
    "packet-loss/fig-06",
    "packet-loss/remedies",
    "wsqos/codecs-2026",
    "wsqos/promises-2026",
    "wsqos/fig-57",
    "wsqos/fig-62",
];

/// Time limit for all of them. They take four minutes on two cores.
const TRAINING: Duration = Duration::from_secs(1200);

/// Counts, and builds with the counts.
pub(crate) fn run(checkout: &Checkout) -> Outcome<()> {
    // Checked first, because everything else takes minutes.
    let profdata = Toolchain::ask(checkout)?.profdata()?;
    let counting = Build::Counting.binary(checkout)?;
    let counts = checkout.folder("pgo/counts")?;
    std::fs::remove_dir_all(&counts).map_err(|error| TaskError::at(&counts, error))?;
    let logs = checkout.folder("pgo/logs")?;
    println!(
        "running {} figures to count: {}",
        FIGURES.len(),
        FIGURES.join(", ")
    );
    let mut study = Command::new(counting);
    study
        .args(["reproduce", "--out"])
        .arg(checkout.folder("pgo/results")?)
        .args(FIGURES)
        .env("LLVM_PROFILE_FILE", counts.join("%p.profraw"));
    let done = Running::start("study", &mut study, &logs)?.finish(TRAINING)?;
    // Exit code 1 means that a figure was too late or too noisy to be quoted. It still ran.
    if done.code != Some(1) {
        done.succeeded("the study")?;
    }
    let mut merge = Command::new(profdata);
    merge
        .args(["merge", "--output"])
        .arg(profile(checkout)?)
        .arg(&counts);
    process::run("llvm-profdata", &mut merge, MOMENT, &logs)?;
    println!("{}", Build::Profiled.binary(checkout)?.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::FIGURES;

    #[test]
    fn every_trained_figure_is_on_the_page_of_figures() {
        let study = include_str!("../../docs/papers/figures.md");
        for figure in FIGURES {
            assert!(study.contains(&format!("`{figure}`")), "{figure}");
        }
    }
}
