//! Studies made small for tests, where the machine allows a network of one's own.

use std::sync::atomic::AtomicBool;

use posthaste_emulator::namespace;
use posthaste_units::Seed;

use crate::figure::{Conditions, Failure};
use crate::lab::Lab;
use crate::progress::Silent;
use crate::records::Records;

/// What `run` measures; nothing, and said so, where there can be no emulation: a user namespace has to
/// be entered before a harness starts its threads, so that these tests want root.
pub(super) fn study(
    run: impl FnOnce(&Conditions<'_>) -> Result<Records, Failure>,
) -> Option<Records> {
    if let Err(error) = namespace::enter() {
        eprintln!("skipped: {error}");
        return None;
    }
    let conditions = Conditions {
        full: false,
        seed: Seed(1),
        lab: &Lab::Shared("a test".to_owned()),
        stop: &AtomicBool::new(false),
        progress: &Silent,
    };
    Some(run(&conditions).expect("an emulation"))
}
