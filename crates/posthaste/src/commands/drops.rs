//! What `--drop` takes wherever it is offered: a direction and the places in it, `down:8`.
//!
//! Which places there are is the pattern format's business; here is only the short way to write them.

use posthaste_link::pattern::Draft;

use super::Failure;

/// Adds what was given to the draft, which refuses what contradicts it.
pub(super) fn add(given: &[String], draft: &mut Draft) -> Result<(), Failure> {
    for given in given {
        let refused = |why: &str| Failure::usage(format!("--drop {given}: {why}"));
        let (direction, places) = given
            .split_once(':')
            .ok_or_else(|| refused("write a direction first: down:8"))?;
        draft
            .add_line(&format!("{direction} drop {places}"))
            .map_err(|error| refused(&format!("{}: {}", error.what, error.remedy)))?;
    }
    Ok(())
}
