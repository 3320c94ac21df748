//! Comparison of the response times of a cell, by median or by mode.
//!
//! Some cells have several modes: a coarse timer, or a race between two packets, decides. Which mode has the median is
//! then chance. Such a cell also agrees if each frequent mode of one side is near a mode of the other. Rare modes are
//! not compared: nine runs may miss them, and a busy machine adds some.

use crate::cell::{Cell, StackPair};
use crate::emulated::emulate;
use crate::simulated::simulate;

/// Emulations of a cell that differs.
const TRIES: usize = 5;
/// Share from which a mode of the emulation must be one of the simulation.
const OFTEN: f64 = 0.4;
/// Share from which a mode of the simulation must be one of the emulation. Few runs see few phases of a coarse clock.
const NEARLY_ALWAYS: f64 = 0.8;

/// Describes each cell of the pair whose response times differ in every emulation.
pub(crate) fn differences(pair: &StackPair, runs: usize) -> Vec<String> {
    let mut cells = Cell::all();
    cells.retain(|cell| !cell.depends_on_reader(pair));
    let mut found = Vec::new();
    for _ in 0..TRIES {
        let emulated = emulate(pair, &cells, runs);
        found = cells
            .iter()
            .zip(emulated)
            .filter_map(|(cell, emulated)| {
                let complete = emulated.len() == runs;
                let difference = difference(pair, *cell, emulated);
                let difference = difference.or((!complete).then(|| "incomplete".to_owned()));
                Some((*cell, difference?))
            })
            .collect();
        cells = found.iter().map(|(cell, _)| *cell).collect();
        if cells.is_empty() {
            break;
        }
    }
    found
        .into_iter()
        .map(|(cell, difference)| format!("{pair}, {cell}: {difference}"))
        .collect()
}

fn difference(pair: &StackPair, cell: Cell, mut emulated: Vec<f64>) -> Option<String> {
    let mut simulated = simulate(pair, cell);
    emulated.sort_by(f64::total_cmp);
    simulated.sort_by(f64::total_cmp);
    if agrees(&emulated, &simulated) {
        return None;
    }
    Some(format!(
        "emulated {}, simulated {}",
        in_words(&emulated),
        in_words(&simulated)
    ))
}

/// Tolerated difference of two medians in ms.
fn tolerance(ms: f64) -> f64 {
    0.03 * ms + 10.0
}

/// A group of neighbouring response times.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mode {
    median: f64,
    /// Part of all response times.
    share: f64,
}

/// True if each frequent mode of the emulation has a mode at the same time in the simulation, and the medians agree or
/// each frequent mode of the simulation has one in the emulation.
fn agrees(emulated: &[f64], simulated: &[f64]) -> bool {
    let near = |one: f64, other: f64| (one - other).abs() <= tolerance(other);
    let found =
        |mode: Mode, modes: &[Mode]| modes.iter().any(|other| near(mode.median, other.median));
    let [ours, theirs] = [modes(emulated), modes(simulated)];
    // A mode that the kernel often has and the model lacks is a difference, whatever the medians are.
    let ours_found = ours
        .iter()
        .all(|mode| mode.share < OFTEN || found(*mode, &theirs));
    let theirs_found = theirs
        .iter()
        .all(|mode| mode.share < NEARLY_ALWAYS || found(*mode, &ours));
    ours_found && (theirs_found || near(median(emulated), median(simulated)))
}

/// Splits sorted values where two neighbours are farther apart than the tolerance.
fn modes(sorted: &[f64]) -> Vec<Mode> {
    let groups = sorted.chunk_by(|one, other| other - one <= tolerance(*one));
    groups
        .map(|group| Mode {
            median: median(group),
            share: group.len() as f64 / sorted.len() as f64,
        })
        .collect()
}

fn median(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn in_words(sorted: &[f64]) -> String {
    let mode = |mode: &Mode| format!("{:.0} ms ({:.0} %)", mode.median, 100.0 * mode.share);
    let modes: Vec<String> = modes(sorted).iter().map(mode).collect();
    modes.join(" or ")
}
