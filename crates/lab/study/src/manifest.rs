//! The manifest of each figure: the study, the machine, and the end of the run.
//!
//! Drawing needs only the manifest and `records.csv`. The machine is described from `/proc`. Unreadable values are
//! omitted, not guessed.

use std::collections::BTreeMap;

use posthaste_units::Seed;
use serde::{Deserialize, Serialize};

use crate::records::Columns;

/// Contents of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Id of the figure.
    pub figure: String,
    /// The study that produced the records.
    pub study: String,
    /// End of the run.
    pub ended: StudyEnd,
    /// The commit of the binary, with "-dirty" if the checkout had changes.
    pub commit: Option<String>,
    /// The release of posthaste.
    pub version: String,
    /// The seed of the whole run.
    pub seed: Seed,
    /// True for a run as long as the paper's.
    pub full: bool,
    /// Duration of the study, in seconds. `null` if another machine simulated it.
    pub duration_s: Option<f64>,
    /// Machine of the run.
    pub machine: Machine,
    /// Every parameter of the study.
    pub parameters: BTreeMap<String, String>,
    /// Named numbers. `null` stands for NaN.
    pub numbers: BTreeMap<String, Option<f64>>,
    /// The columns of each table in `records.csv`.
    pub tables: BTreeMap<String, Columns>,
}

/// End of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StudyEnd {
    /// As planned.
    Complete,
    /// Early, on request. The records hold the measurements until then.
    Stopped,
    /// With this error. The records, if any, hold the measurements until then.
    Failed(String),
}

/// A machine, as described by its kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the processor.
    pub cpu: Option<String>,
    /// Cores available to this process.
    pub cores: usize,
    /// Name and release of the kernel.
    pub kernel: String,
    /// Main memory in bytes.
    pub memory_bytes: Option<u64>,
}

impl Machine {
    /// Describes the current machine.
    pub fn here() -> Self {
        let read = |file| std::fs::read_to_string(file).unwrap_or_default();
        let system = rustix::system::uname();
        Self {
            cpu: cpu_model(&read("/proc/cpuinfo")),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: format!(
                "{} {}",
                system.sysname().to_string_lossy(),
                system.release().to_string_lossy()
            ),
            memory_bytes: memory(&read("/proc/meminfo")),
        }
    }

    /// Describes the machine in words: "2 cores, some CPU, 4 GB of memory, Linux 6.1".
    pub fn describe(&self) -> String {
        let cores = if self.cores == 1 { "core" } else { "cores" };
        format!("{} {cores}, {}", self.cores, self.build())
    }

    /// The same description without the cores.
    pub(crate) fn build(&self) -> String {
        let gigabytes = |bytes: u64| format!("{:.0} GB of memory", bytes as f64 / 1e9);
        let memory = self.memory_bytes.map(gigabytes);
        let parts = [self.cpu.clone(), memory, Some(self.kernel.clone())];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Returns the first "model name" of /proc/cpuinfo, or the equivalent field of other architectures.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let names = ["model name", "Model", "cpu model", "Hardware"];
    let field = |name: &str| {
        let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let mut values = fields.filter(|(key, _)| key.trim() == name);
        values.next().map(|(_, value)| value.trim().to_owned())
    };
    names
        .into_iter()
        .find_map(field)
        .filter(|model| !model.is_empty())
}

/// Returns "MemTotal" of /proc/meminfo in bytes.
fn memory(meminfo: &str) -> Option<u64> {
    let total = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_says() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n\nmodel name\t: other\n";
        assert_eq!(cpu_model(cpuinfo).as_deref(), Some("Some CPU @ 2 GHz"));
        assert_eq!(cpu_model("garbage"), None);
        assert_eq!(
            memory("MemTotal:   1024 kB\nMemFree: 1 kB"),
            Some(1_048_576)
        );
        assert_eq!(memory("MemTotal: many"), None);
    }

    #[test]
    fn this_machine_can_be_described() {
        let machine = Machine::here();
        assert!(machine.cores >= 1);
        assert!(machine.describe().contains("core"), "{machine:?}");
    }
}
