//! `cargo xtask fuzz`: runs every target in fuzz/ in sequence, each for the same time.

use std::time::Duration;

use crate::checkout::{Checkout, cargo};
use crate::error::{Outcome, TaskError};
use crate::process::pass_through;

/// Time limit for building the targets.
const BUILD: Duration = Duration::from_secs(1200);

/// Runs all targets. Stops at the first with a finding.
pub(crate) fn run(checkout: &Checkout, seconds: u64) -> Outcome<()> {
    let targets = targets(checkout)?;
    let fuzz = |arguments: &[&str]| {
        // Not the cargo that started us, because a fixed toolchain cannot replace nightly.
        let mut command = std::process::Command::new("cargo");
        command
            .args(["+nightly", "fuzz"])
            .args(arguments)
            .current_dir(checkout.root());
        command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
        command
    };
    if !cargo(checkout)
        .args(["fuzz", "--version"])
        .output()
        .is_ok_and(|tried| tried.status.success())
    {
        return Err(TaskError::Missing(
            "no cargo-fuzz here: `rustup toolchain install nightly`, `cargo install cargo-fuzz`"
                .into(),
        ));
    }
    for target in &targets {
        println!("fuzzing {target} for {seconds} s");
        // Findings go to the first folder, so that the kept corpus stays unchanged.
        let finds = checkout.path(&format!("fuzz/target/finds/{target}"));
        std::fs::create_dir_all(&finds).map_err(|error| TaskError::at(&finds, error))?;
        let limit = format!("-max_total_time={seconds}");
        let mut command = fuzz(&[
            "run",
            target,
            &finds.to_string_lossy(),
            &format!("fuzz/corpus/{target}"),
            "--",
            &limit,
            &format!("-dict=fuzz/dictionaries/{target}.dict"),
            "-timeout=10",
            "-rss_limit_mb=1024",
        ]);
        pass_through(
            target,
            &mut command,
            BUILD + Duration::from_secs(seconds),
            |_| (),
        )?;
    }
    println!(
        "{} targets found nothing in {seconds} s each",
        targets.len()
    );
    Ok(())
}

/// The targets, named after their files.
fn targets(checkout: &Checkout) -> Outcome<Vec<String>> {
    let folder = checkout.path("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).map_err(|error| TaskError::at(&folder, error))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .collect();
    names.sort();
    if names.is_empty() {
        return Err(TaskError::at(&folder, "no fuzz target here"));
    }
    Ok(names)
}
