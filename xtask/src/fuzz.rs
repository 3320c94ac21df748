//! `cargo xtask fuzz`: runs every target in fuzz/ in sequence, each for the same time.
//!
//! The inputs come from the archives in fuzz/corpus, which stay unchanged unless the new inputs are to be kept. The
//! example `corpus` of fuzz/ reads and writes archives, so that only one program knows their form.

use std::path::Path;
use std::time::Duration;

use crate::checkout::{Checkout, cargo};
use crate::error::{Outcome, TaskError};
use crate::process::pass_through;

/// Time limit for building the targets.
const BUILD: Duration = Duration::from_secs(1200);

/// Runs all targets or `only` one. Stops at the first with a finding. `keep` adds the new inputs that increase the
/// coverage to the archives.
pub(crate) fn run(
    checkout: &Checkout,
    only: Option<&str>,
    seconds: u64,
    keep: bool,
) -> Outcome<()> {
    let mut targets = targets(checkout)?;
    targets.retain(|target| only.is_none_or(|only| only == target));
    if let (Some(only), []) = (only, &targets[..]) {
        return Err(TaskError::Failed(format!(
            "no target {only:?}: fuzz/README.md lists them"
        )));
    }
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
        run_target(checkout, target, seconds, keep)?;
    }
    println!(
        "{} targets found nothing in {seconds} s each",
        targets.len()
    );
    Ok(())
}

fn run_target(checkout: &Checkout, target: &str, seconds: u64, keep: bool) -> Outcome<()> {
    let corpus = checkout.path(&format!("fuzz/target/corpus/{target}"));
    if corpus.exists() {
        std::fs::remove_dir_all(&corpus).map_err(|error| TaskError::at(&corpus, error))?;
    }
    archive(checkout, "unpack", target, &corpus)?;
    // New inputs go to the first folder.
    let finds = checkout.path(&format!("fuzz/target/finds/{target}"));
    std::fs::create_dir_all(&finds).map_err(|error| TaskError::at(&finds, error))?;
    let options: [&str; 4] = [
        &format!("-max_total_time={seconds}"),
        &format!("-dict=fuzz/dictionaries/{target}.dict"),
        "-timeout=10",
        "-rss_limit_mb=1024",
    ];
    let limit = BUILD + Duration::from_secs(seconds);
    fuzz(checkout, target, [&finds, &corpus], &options, limit)?;
    if keep {
        fuzz(checkout, target, [&corpus, &finds], &["-merge=1"], BUILD)?;
        archive(checkout, "pack", target, &corpus)?;
    }
    Ok(())
}

/// Runs one target under cargo-fuzz.
fn fuzz(
    checkout: &Checkout,
    target: &str,
    folders: [&Path; 2],
    options: &[&str],
    limit: Duration,
) -> Outcome<()> {
    // Not the cargo that started us, because a fixed toolchain cannot replace nightly.
    let mut command = std::process::Command::new("cargo");
    command
        .args(["+nightly", "fuzz", "run", target])
        .args(folders)
        .arg("--")
        .args(options)
        .current_dir(checkout.root())
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN");
    pass_through(target, &mut command, limit, |_| ())
}

/// Unpacks the archive of a target into `folder`, or packs `folder`.
fn archive(checkout: &Checkout, action: &str, target: &str, folder: &Path) -> Outcome<()> {
    let mut command = cargo(checkout);
    command
        .args(["run", "-q", "-p", "posthaste-fuzz", "--example", "corpus"])
        .args(["--", action, target])
        .arg(folder);
    pass_through(target, &mut command, BUILD, |_| ())
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
