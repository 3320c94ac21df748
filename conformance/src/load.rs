//! `posthaste load` for tests and benchmarks: runs it, reads its JSON, checks its identity.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{Outcome, TaskError, check};
use crate::process::{Finished, Running};
use crate::site::Site;

/// Result of one run of `posthaste load`.
pub(crate) struct LoadReport {
    json: Value,
    /// CPU time and memory of the process.
    pub(crate) finished: Finished,
}

/// A run of `posthaste load` in progress.
pub(crate) struct Loading(Running);

impl Site {
    /// Runs `posthaste load` with these arguments and `--json`, for at most `seconds`.
    pub(crate) fn load(&self, arguments: &[&str], seconds: u64) -> Outcome<LoadReport> {
        self.start_load(&[], arguments)?.finish(seconds)
    }

    /// Starts it, with `wrapper`, such as `taskset`, before its own command.
    pub(crate) fn start_load(&self, wrapper: &[&str], arguments: &[&str]) -> Outcome<Loading> {
        let program = self.binary.display().to_string();
        let line: Vec<&str> = wrapper
            .iter()
            .copied()
            .chain([program.as_str(), "load"])
            .collect();
        let mut command = std::process::Command::new(line[0]);
        // Peers and benchmarks judge lateness with limits of their own.
        let own = ["--allow-late", "--json"];
        command.args(&line[1..]).args(arguments).args(own);
        Ok(Loading(Running::start("load", &mut command, &self.logs)?))
    }
}

impl Loading {
    /// The process.
    pub(crate) fn running(&self) -> &Running {
        &self.0
    }

    /// Waits for its end and reads its report. The outcomes must sum to the intended requests. A run without a reply
    /// has a report too.
    pub(crate) fn finish(self, seconds: u64) -> Outcome<LoadReport> {
        let report = self.report(seconds, &[0, 3])?;
        let (intended, sum) = (report.intended()?, report.sum());
        check(intended == sum, || {
            format!("{intended} intended, but the outcomes sum to {sum}")
        })?;
        Ok(report)
    }

    /// Waits for the end of a `--find`, with or without a rate that holds. Its report has a capacity and no outcomes.
    pub(crate) fn finish_search(self, seconds: u64) -> Outcome<LoadReport> {
        self.report(seconds, &[0, 1, 3])
    }

    fn report(self, seconds: u64, codes: &[i32]) -> Outcome<LoadReport> {
        let finished = self.0.finish(std::time::Duration::from_secs(seconds))?;
        let finished = match finished.code {
            Some(code) if codes.contains(&code) && !finished.stdout.is_empty() => finished,
            _ => finished.succeeded("posthaste load")?,
        };
        let json = serde_json::from_str(&finished.stdout).map_err(|error| {
            TaskError::Failed(format!(
                "posthaste load --json: {error} in:\n{}",
                finished.stdout
            ))
        })?;
        Ok(LoadReport { json, finished })
    }
}

impl LoadReport {
    /// A part of the report by its JSON pointer without the first slash.
    pub(crate) fn part(&self, pointer: &str) -> Outcome<&Value> {
        self.at(pointer)
    }

    /// A number by its JSON pointer without the first slash: `response_time_ms/p99`.
    pub(crate) fn number(&self, pointer: &str) -> Outcome<f64> {
        self.at(pointer)?
            .as_f64()
            .ok_or_else(|| TaskError::Failed(format!("{pointer} is no number")))
    }

    /// An interval. `None` if the run was too short for one.
    pub(crate) fn interval(&self, pointer: &str) -> Option<(f64, f64)> {
        let ends = self.at(pointer).ok()?.as_array()?;
        Some((ends.first()?.as_f64()?, ends.get(1)?.as_f64()?))
    }

    /// Number of requests in the schedule.
    pub(crate) fn intended(&self) -> Outcome<u64> {
        self.at("intended")?
            .as_u64()
            .ok_or_else(|| TaskError::Failed("intended is no count".into()))
    }

    /// Number of requests with this outcome.
    pub(crate) fn outcome(&self, name: &str) -> u64 {
        self.json["outcomes"][name].as_u64().unwrap_or(0)
    }

    /// Calls of gRPC by name of their status.
    pub(crate) fn grpc_statuses(&self) -> BTreeMap<String, u64> {
        let statuses = self.json["grpc"]["statuses"].as_object();
        let statuses = statuses.into_iter().flatten();
        statuses
            .map(|(name, count)| (name.clone(), count.as_u64().unwrap_or(0)))
            .collect()
    }

    /// The reported reason for an outcome.
    pub(crate) fn reason(&self, name: &str) -> &str {
        self.json["reasons"][name].as_str().unwrap_or_default()
    }

    /// All outcomes that occurred, for a person.
    pub(crate) fn outcomes(&self) -> String {
        self.json["outcomes"].to_string()
    }

    /// Fails unless exactly `count` requests have this outcome.
    pub(crate) fn expect(&self, name: &str, count: u64) -> Outcome<()> {
        check(self.outcome(name) == count, || {
            format!(
                "expected {count} {name}, the outcomes are {}",
                self.outcomes()
            )
        })
    }

    /// Fails unless every request that was begun has this outcome. If this machine stands still at the end of a run, the
    /// generator does not begin the last requests (`dropped`), which says nothing about the peer.
    pub(crate) fn expect_all(&self, name: &str) -> Outcome<()> {
        let not_begun = self.number("generator/not_begun")? as u64;
        let begun = self.intended()?.saturating_sub(not_begun);
        check(begun > 0, || "nothing was sent".into())?;
        self.expect(name, begun)
    }

    fn sum(&self) -> u64 {
        let outcomes = self.json["outcomes"].as_object();
        outcomes
            .into_iter()
            .flat_map(|map| map.values())
            .filter_map(Value::as_u64)
            .sum()
    }

    fn at(&self, pointer: &str) -> Outcome<&Value> {
        self.json
            .pointer(&format!("/{pointer}"))
            .ok_or_else(|| TaskError::Failed(format!("posthaste load --json has no {pointer}")))
    }
}
