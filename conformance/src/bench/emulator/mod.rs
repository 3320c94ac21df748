//! The emulator's benchmarks: its effects on real packets, determined at both ends.
//!
//! The emulator's own example sends, receives and prints. This module reads the output and evaluates it. Packets during
//! a pause of the machine are separated with the [witness](super::witness), and every table also has a line for all
//! packets.

mod capacity;
mod positions;
mod punctuality;
mod rate;
mod toxiproxy;
mod worker;

pub(super) use capacity::capacity;
pub(super) use positions::positions;
pub(super) use punctuality::{delay, flows};
pub(super) use rate::rate;
pub(super) use toxiproxy::toxiproxy;

use crate::bench::witness::Pauses;
use crate::bench::{Figure, Measure};

/// Wrapper for a command that runs as nobody, without privileges.
const NOBODY: &[&str] = &[
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];

/// Other work on the machine: the load average before the run, and pauses of the cores.
fn surroundings(load: f64, pauses: &Pauses) -> [Figure; 2] {
    let load = Measure::new(load, "programs");
    [
        Figure::new("programs that wanted a core in the minute before", load).detail(),
        pauses.figure(),
    ]
}

/// The machine's load average of the last minute. NaN if unknown.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = text.split(' ').next().and_then(|word| word.parse().ok());
    load.unwrap_or(f64::NAN)
}
