//! Studies made small for tests, where the machine allows a network of one's own.

use std::sync::atomic::AtomicBool;

use posthaste_emulator::namespace;

use crate::figure::{Conditions, Failure};
use crate::lab::Lab;
use crate::records::Records;

/// What `run` measures; nothing, and said so, where there can be no emulation: a user namespace has to
/// be entered before a harness starts its threads, so that these tests want root.
pub(crate) fn study(
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
    Some(run(&Conditions::of_a_test(&lab, &stop)).expect("an emulation"))
}
