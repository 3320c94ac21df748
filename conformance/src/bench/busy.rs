//! Programs that use all available CPU time, for measurements on a busy machine.

use std::process::Command;

use crate::bench::Bench;
use crate::error::Outcome;
use crate::process::Running;

/// Number of programs.
const BUSY: usize = 4;
/// A busy program ends by itself, in case the benchmark is killed.
const SECONDS: &str = "1200";

impl Bench {
    /// Starts four busy programs. They end with the value.
    pub(crate) fn busy_programs(&self) -> Outcome<Vec<Running>> {
        let programs = (0..BUSY).map(|_| {
            let mut command = Command::new("timeout");
            command.args([SECONDS, "sh", "-c", "while :; do :; done"]);
            Running::start("busy", &mut command, &self.site.logs)
        });
        programs.collect()
    }
}
