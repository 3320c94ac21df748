//! Serving threads of a server under test, with their CPU time.

use std::fs;
use std::path::PathBuf;

use posthaste_study::{Failure, lab::starting};

use super::measured::Done;

/// Folders of threads in /proc.
#[derive(Default)]
pub(crate) struct ServingThreads(Vec<PathBuf>);

impl ServingThreads {
    /// Runs `start`. Returns its result and the serving threads of this process that it started.
    pub(crate) fn started_by<T>(
        start: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<(T, Self), Failure> {
        let _turn = starting();
        let serving = || tasks("self", |name| name == "serve-0");
        let others = serving();
        let started = start()?;
        let mut threads = serving();
        threads.retain(|thread| !others.contains(thread));
        Ok((started, Self(threads)))
    }

    /// The current threads of another process.
    pub(super) fn of_process(process: u32) -> Self {
        Self(tasks(&process.to_string(), |_| true))
    }

    /// CPU time and waits so far, from the first two fields of schedstat (nanoseconds).
    pub(crate) fn done(&self) -> Result<Done, Failure> {
        let mut done = Done::default();
        for task in &self.0 {
            let text = fs::read_to_string(task.join("schedstat"))?;
            let mut fields = text.split_whitespace().map(str::parse::<f64>);
            done.used += fields.next().ok_or("schedstat is empty")?? / 1e9;
            done.waited += fields.next().ok_or("schedstat is short")?? / 1e9;
        }
        Ok(done)
    }
}

/// Folders of a process's threads with matching names.
fn tasks(process: &str, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let folder = fs::read_dir(format!("/proc/{process}/task"));
    let tasks = folder.into_iter().flatten().flatten();
    let named = |path: &PathBuf| {
        fs::read_to_string(path.join("comm")).is_ok_and(|name| wanted(name.trim()))
    };
    tasks.map(|task| task.path()).filter(named).collect()
}
