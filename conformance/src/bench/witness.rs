//! Pauses of the machine, detected by a witness that runs next to a measurement.
//!
//! A virtual machine may lose its processors for milliseconds, and nothing can be on time during that pause. The
//! witness has a priority that no program here can delay, and it is independent of the measurement. Its result
//! separates values and discards none: a benchmark shows the values without a pause next to all values. Other programs
//! on a core are no pause.

use std::time::{Duration, Instant};

use crate::bench::{Bench, Figure, Measure};
use crate::error::{Outcome, check};
use crate::process::Running;
use crate::tools;

/// A witness on each of some cores.
pub(crate) struct Witness(Vec<Running>);

/// Start and end of the pauses of any core, in ns of the wall clock.
pub(crate) struct Pauses {
    priority: String,
    list: Vec<(u64, u64)>,
}

impl Bench {
    /// Starts a witness on each of these cores that checks every `period` microseconds. Each check
    /// takes about ten microseconds. Returns when all are ready.
    pub(crate) fn watch(&self, cores: &[usize], period: u32) -> Outcome<Witness> {
        let python = tools::debian(&self.site.checkout, "python3", "python3")?;
        let script = self
            .site
            .checkout
            .path("conformance/programs/arrivals/witness.py");
        let start = |core: &usize| {
            let mut command = std::process::Command::new(&python);
            let arguments = [core.to_string(), period.to_string()];
            let command = command.arg(&script).args(arguments);
            let running = Running::start("witness", command, &self.site.logs)?;
            // It prints its priority first, and is then ready.
            let patience = Instant::now() + Duration::from_secs(30);
            while running.output().is_empty() {
                let late = running.has_ended() || Instant::now() > patience;
                check(!late, || "the witness does not start".into())?;
                std::thread::sleep(Duration::from_millis(10));
            }
            Ok(running)
        };
        Ok(Witness(cores.iter().map(start).collect::<Outcome<_>>()?))
    }

    /// The same for every core, at a longer interval, because a measurement may run on any core.
    pub(crate) fn watch_all(&self) -> Outcome<Witness> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.watch(&Vec::from_iter(0..cores), 1000)
    }
}

impl Witness {
    /// Stops it and returns the pauses.
    pub(crate) fn end(self) -> Pauses {
        let output: Vec<String> = self.0.iter().map(Running::output).collect();
        Pauses::read(&output.concat())
    }
}

impl Pauses {
    fn read(output: &str) -> Self {
        let pause = |line: &str| {
            let (from, to) = line.split_once(' ')?;
            Some((from.parse().ok()?, to.parse().ok()?))
        };
        Self {
            priority: output.lines().next().unwrap_or("priority unknown").into(),
            list: output.lines().filter_map(pause).collect(),
        }
    }

    /// True if a pause overlaps this time.
    pub(crate) fn hit(&self, from: u64, to: u64) -> bool {
        self.list.iter().any(|pause| pause.0 < to && from < pause.1)
    }

    /// The longest pause.
    pub(crate) fn figure(&self) -> Figure {
        let longest = self.list.iter().map(|(from, to)| to - from).max();
        let longest = longest.unwrap_or(0) as f64 / 1e6;
        let name = "pauses of a core: the longest";
        Figure::new(name, Measure::new(longest, "ms").n(self.list.len() as u64))
            .remark(format!("seen by a witness ({})", self.priority))
            .detail()
    }
}

#[cfg(test)]
mod tests {
    use super::Pauses;

    #[test]
    fn the_witness_is_understood() {
        let output =
            "priority real-time\n1000 2500\nTraceback: 3 4\npriority real-time\n5000 7000\n";
        let pauses = Pauses::read(output);
        assert_eq!(pauses.list, [(1000, 2500), (5000, 7000)]);
        assert!(pauses.hit(0, 1001) && pauses.hit(2000, 2001) && pauses.hit(1, 9000));
        assert!(!pauses.hit(2500, 5000));
        assert_eq!(Pauses::read("").list, []);
    }
}
