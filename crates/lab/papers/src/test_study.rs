//! Short runs of studies for tests, on machines that allow network namespaces.

use std::num::NonZero;
use std::sync::atomic::AtomicBool;
use std::thread;

use posthaste_emulator::namespace;
use posthaste_study::lab::Lab;
use posthaste_study::{Conditions, Failure, Records, Silent};
use posthaste_units::Seed;

/// Returns the records of `run`. Without permission for an emulation, returns `None` with a message, or fails in CI. A
/// user namespace must be entered before a test harness starts its threads, so these tests need root.
pub(crate) fn on_links(
    run: impl FnOnce(&Conditions<'_>) -> Result<Records, Failure>,
) -> Option<Records> {
    if let Err(error) = namespace::enter() {
        let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!in_ci, "{error}");
        eprintln!("skipped: {error}");
        return None;
    }
    let lab = Lab::Shared("a test".to_owned());
    let stop = AtomicBool::new(false);
    Some(run(&conditions(&lab, &stop)).expect("an emulation"))
}

/// Returns the records of `run` without an emulation. `capacity` replaces measured ones, because a test is too short to
/// measure a busy machine.
pub(crate) fn run(
    capacity: Option<f64>,
    run: impl FnOnce(&Conditions<'_>) -> Result<Records, Failure>,
) -> Records {
    let lab = Lab::Shared("a test".to_owned());
    let stop = AtomicBool::new(false);
    let conditions = Conditions {
        assumed_capacity: capacity,
        ..conditions(&lab, &stop)
    };
    run(&conditions).expect("a study")
}

/// Conditions of a short run with the first seed and no progress output.
pub(crate) fn conditions<'a>(lab: &'a Lab, stop: &'a AtomicBool) -> Conditions<'a> {
    Conditions {
        full: false,
        seed: Seed(1),
        threads: thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN),
        lab,
        stop,
        progress: &Silent,
        assumed_capacity: None,
    }
}
