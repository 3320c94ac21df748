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

/// The value that this share of all values does not exceed. NaN for no values.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_are_values() {
        let values = [1.0, 2.0, 3.0, 4.0];
        let at = |share| quantile(&values, share);
        assert_eq!([at(0.0), at(0.5), at(0.51), at(1.0)], [1.0, 2.0, 3.0, 4.0]);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
