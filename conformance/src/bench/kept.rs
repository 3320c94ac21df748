//! Kept runs: `conformance/results/<bench>/<date>-<commit>.json`, with machine, commit and time next to the figures.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jiff::Timestamp;

use crate::bench::result::{Figure, Machine, Run};
use crate::checkout::Checkout;
use crate::error::{Outcome, TaskError};
use crate::process;
use crate::tools::write;

/// The folder of all runs in the checkout.
const FOLDER: &str = "conformance/results";
/// Files that a run or its page writes. They do not change the measured program.
const WRITTEN: [&str; 2] = [
    ":(exclude)conformance/results",
    ":(exclude)docs/benchmarks.md",
];
/// Length of the commit in a file's name.
const COMMIT: &str = "--short=10";

/// The measured commit, noted before a run begins, and the folder for its result.
pub(super) struct RunOrigin {
    folder: PathBuf,
    commit: String,
}

impl RunOrigin {
    /// The commit of the checkout, with the suffix `-dirty` if tracked files differ from it.
    pub(super) fn from_checkout(checkout: &Checkout) -> Outcome<Self> {
        let logs = checkout.peer_folder("logs")?;
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.current_dir(checkout.root()).args(arguments);
            let done = process::run("git", &mut git, Duration::from_secs(60), &logs)?;
            Ok::<_, TaskError>(done.stdout.trim().to_owned())
        };
        let commit = git(&["rev-parse", COMMIT, "HEAD"])?;
        let ask = ["status", "--porcelain", "--untracked-files=no", "--", "."];
        let changes = git(&[&ask[..], &WRITTEN].concat())?;
        Ok(Self {
            folder: checkout.path(FOLDER),
            commit: commit + if changes.is_empty() { "" } else { "-dirty" },
        })
    }

    /// Measures with `measure` and keeps the figures. Returns the file and the figures.
    pub(super) fn keep(
        &self,
        bench: &str,
        command: String,
        measure: impl FnOnce() -> Outcome<Vec<Figure>>,
    ) -> Outcome<(PathBuf, Vec<Figure>)> {
        let (date, machine) = (now(), Machine::here()?);
        let run = Run {
            bench: bench.to_owned(),
            date,
            commit: self.commit.clone(),
            command,
            machine,
            figures: measure()?,
        };
        Ok((run.write(&self.folder)?, run.figures))
    }
}

/// The time in UTC, to the second.
fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl Machine {
    /// This machine, with its load average.
    fn here() -> Outcome<Self> {
        let read = |path: &str| {
            std::fs::read_to_string(path).map_err(|error| TaskError::at(Path::new(path), error))
        };
        let load = read("/proc/loadavg")?;
        let load = load.split(' ').next().unwrap_or("unknown");
        Ok(Self {
            cpu: field(&read("/proc/cpuinfo")?, "model name").unwrap_or_else(|| "unknown".into()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gib: gibibytes(&read("/proc/meminfo")?).unwrap_or(0),
            kernel: format!("Linux {}", version(&read("/proc/sys/kernel/osrelease")?)),
            remark: format!("load average {load} before the run"),
        })
    }
}

/// The value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_owned())
}

/// Total memory of `/proc/meminfo`, rounded up because the kernel reserves some.
fn gibibytes(meminfo: &str) -> Option<u64> {
    let kib = field(meminfo, "MemTotal")?;
    let kib: u64 = kib.strip_suffix(" kB")?.parse().ok()?;
    Some(kib.div_ceil(1 << 20))
}

/// A kernel's version without its builder's suffix.
fn version(release: &str) -> &str {
    release.trim().split(['-', '+']).next().unwrap_or_default()
}

impl Run {
    /// The day of the run, or the month if the day is unknown.
    pub(crate) fn day(&self) -> &str {
        self.date.split('T').next().unwrap_or_default()
    }

    /// Writes the run below `folder`, next to other runs of the same day and commit. Returns its path.
    fn write(&self, folder: &Path) -> Outcome<PathBuf> {
        let folder = folder.join(&self.bench);
        std::fs::create_dir_all(&folder).map_err(|error| TaskError::at(&folder, error))?;
        let mut name = format!("{}-{}", self.day(), self.commit);
        let mut number = 1;
        while folder.join(format!("{name}.json")).exists() {
            number += 1;
            name = format!("{}-{}-{number}", self.day(), self.commit);
        }
        let path = folder.join(format!("{name}.json"));
        let text =
            serde_json::to_string_pretty(self).map_err(|error| TaskError::at(&path, error))?;
        write(&path, text + "\n")?;
        Ok(path)
    }

    /// Reads a run and checks it against its path.
    fn read(path: &Path) -> Outcome<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| TaskError::at(path, error))?;
        let run: Self = serde_json::from_str(&text).map_err(|error| TaskError::at(path, error))?;
        let stem = format!("{}/{}-{}", run.bench, run.day(), run.commit);
        let own = path.with_extension("").display().to_string();
        match own.rsplit_once(&stem) {
            Some((before, rest)) if before.ends_with('/') && is_number(rest) => Ok(run),
            _ => Err(TaskError::at(path, format!("holds a run of {stem}"))),
        }
    }
}

/// True for the end of a second run's name, `-2`, and for an empty one.
fn is_number(rest: &str) -> bool {
    let digits = rest.strip_prefix('-');
    rest.is_empty() || digits.is_some_and(|digits| digits.parse::<u32>().is_ok())
}

/// All runs of the checkout, oldest first.
pub(super) fn runs(root: &Path) -> Outcome<Vec<Run>> {
    let mut runs = Vec::new();
    for folder in entries(&root.join(FOLDER))? {
        for file in entries(&folder)? {
            runs.push(Run::read(&file)?);
        }
    }
    runs.sort_by(|one: &Run, other| one.date.cmp(&other.date));
    Ok(runs)
}

/// Entries of a folder, sorted by name without ending, so that a second run of a day follows the first.
fn entries(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let read = std::fs::read_dir(folder).map_err(|error| TaskError::at(folder, error))?;
    let mut paths = read
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TaskError::at(folder, error))?;
    paths.sort_by_key(|path| path.with_extension(""));
    Ok(paths)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bench::result::Measure;

    /// A run with one figure.
    pub(in crate::bench) fn run(bench: &str, date: &str, figure: Figure) -> Run {
        Run {
            bench: bench.to_owned(),
            date: date.to_owned(),
            commit: "0c67fc3".to_owned(),
            command: format!("cargo xtask bench {bench}"),
            machine: Machine {
                cpu: "AMD EPYC".to_owned(),
                cores: 2,
                memory_gib: 24,
                kernel: "Linux 6.18".to_owned(),
                remark: String::new(),
            },
            figures: vec![figure],
        }
    }

    #[test]
    fn a_run_comes_back_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let figure = Figure::new("CPU", Measure::median(&[11.0, 11.2], "µs"))
            .peer("wrk", Measure::new(12.6, "µs"))
            .target("at most 0.90 of wrk's", true);
        let run = run("cpu", "2026-11-25T13:40:00Z", figure);
        for name in ["2026-11-25-0c67fc3.json", "2026-11-25-0c67fc3-2.json"] {
            let path = run.write(folder.path()).expect("it is written");
            assert_eq!(path, folder.path().join("cpu").join(name));
            assert_eq!(Run::read(&path).expect("it is read"), run);
        }
    }

    #[test]
    fn a_run_in_the_wrong_place_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = run("cpu", "2026-11-25", Figure::sentence("none"));
        let path = run.write(folder.path()).expect("it is written");
        let wrong = path.with_file_name("2026-11-26-0c67fc3.json");
        std::fs::rename(&path, &wrong).expect("it is moved");
        let error = Run::read(&wrong).expect_err("the date differs");
        assert!(
            error
                .to_string()
                .ends_with("holds a run of cpu/2026-11-25-0c67fc3")
        );
    }

    #[test]
    fn a_run_is_one_readable_document() {
        let figure = Figure::new("CPU", Measure::median(&[11.0, 11.2], "µs"));
        let run = run("cpu", "2026-11-25", figure);
        let text = serde_json::to_string(&run.figures).expect("it is data");
        let expected = r#"[{"what":"CPU","ours":{"value":11.1,"unit":"µs","spread":{"low":11.0,"high":11.2,"kind":"range"},"n":2}}]"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn the_machine_is_read_from_the_kernel() {
        let cpuinfo = "processor\t: 0\nmodel name\t: AMD EPYC\nmodel name\t: other\n";
        assert_eq!(field(cpuinfo, "model name").as_deref(), Some("AMD EPYC"));
        assert_eq!(gibibytes("MemTotal:       24100000 kB\n"), Some(23));
        assert_eq!(version("6.18.44-some+build\n"), "6.18.44");
    }
}
