//! When the machine took a core away: seen by a witness that stands beside what is measured.
//!
//! A virtual machine may lose its processors for milliseconds, and nothing can be on time
//! meanwhile. The witness has a priority that no program here can hold up and knows nothing of what
//! is measured. What it saw tells apart and throws nothing away: a benchmark shows what was
//! measured without a pause beside all that was measured. Other programs on a core are no pause.

use std::time::{Duration, Instant};

use crate::bench::{Bench, Figure, Measure};
use crate::process::Running;
use crate::tools;
use crate::trouble::{Outcome, check};

/// A witness on each of some cores.
pub(crate) struct Witness(Vec<Running>);

/// Between which times one of the cores was gone, in ns of the wall clock.
pub(crate) struct Pauses {
    priority: String,
    list: Vec<(u64, u64)>,
}

impl Bench {
    /// Has each of these cores looked at every so many microseconds, which takes about ten of them;
    /// returns when all are.
    pub(crate) fn watch(&self, cores: &[usize], period: u32) -> Outcome<Witness> {
        let python = tools::debian(&self.site.checkout, "python3", "python3")?;
        let script = self.site.checkout.path("peers/arrivals/witness.py");
        let start = |core: &usize| {
            let mut command = std::process::Command::new(&python);
            let words = [core.to_string(), period.to_string()];
            let command = command.arg(&script).args(words);
            let running = Running::start("witness", command, &self.site.logs)?;
            // It says its priority first, and then stands ready.
            let patience = Instant::now() + Duration::from_secs(30);
            while running.words().is_empty() {
                let late = running.has_ended() || Instant::now() > patience;
                check(!late, || "the witness does not start".into())?;
                std::thread::sleep(Duration::from_millis(10));
            }
            Ok(running)
        };
        Ok(Witness(cores.iter().map(start).collect::<Outcome<_>>()?))
    }

    /// The same for every core, less often: what is measured may run on any.
    pub(crate) fn watch_all(&self) -> Outcome<Witness> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.watch(&Vec::from_iter(0..cores), 1000)
    }
}

impl Witness {
    /// Ends it and says what it saw.
    pub(crate) fn end(self) -> Pauses {
        let said: Vec<String> = self.0.iter().map(Running::words).collect();
        Pauses::read(&said.concat())
    }
}

impl Pauses {
    fn read(said: &str) -> Self {
        let pause = |line: &str| {
            let (from, to) = line.split_once(' ')?;
            Some((from.parse().ok()?, to.parse().ok()?))
        };
        Self {
            priority: said.lines().next().unwrap_or("priority unknown").into(),
            list: said.lines().filter_map(pause).collect(),
        }
    }

    /// Whether one of them fell between these times.
    pub(crate) fn hit(&self, from: u64, to: u64) -> bool {
        self.list.iter().any(|pause| pause.0 < to && from < pause.1)
    }

    /// The longest of them.
    pub(crate) fn figure(&self) -> Figure {
        let longest = self.list.iter().map(|(from, to)| to - from).max();
        let longest = longest.unwrap_or(0) as f64 / 1e6;
        let what = "pauses of a core: the longest";
        Figure::new(what, Measure::new(longest, "ms").n(self.list.len() as u64))
            .remark(format!("seen by a witness ({})", self.priority))
            .detail()
    }
}

#[cfg(test)]
mod tests {
    use super::Pauses;

    #[test]
    fn the_witness_is_understood() {
        let said = "priority real-time\n1000 2500\nTraceback: 3 4\npriority real-time\n5000 7000\n";
        let pauses = Pauses::read(said);
        assert_eq!(pauses.list, [(1000, 2500), (5000, 7000)]);
        assert!(pauses.hit(0, 1001) && pauses.hit(2000, 2001) && pauses.hit(1, 9000));
        assert!(!pauses.hit(2500, 5000));
        assert_eq!(Pauses::read("").list, []);
    }
}
