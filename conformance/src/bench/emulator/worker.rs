//! The emulator's example as a measuring program, and its output.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::str::FromStr;

use crate::bench::Bench;
use crate::builds::example;
use crate::error::{Outcome, TaskError};

/// The program, built.
pub(super) struct Worker<'a> {
    bench: &'a Bench,
    program: PathBuf,
}

/// Output of one run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ran {
    /// Send and arrival time of each packet, in ns of the wall clock.
    pub(super) packets: Vec<(u64, u64)>,
    /// Start, end, and the number of packets that arrived between.
    pub(super) windows: Vec<(u64, u64, u64)>,
    pub(super) texts: BTreeMap<String, String>,
}

impl<'a> Worker<'a> {
    pub(super) fn build(bench: &'a Bench) -> Outcome<Self> {
        let program = example(&bench.site.checkout, "posthaste-emulator", "measure")?;
        Ok(Self { bench, program })
    }

    /// Runs it to its end, with `wrapper` before its command.
    pub(super) fn run(&self, wrapper: &[&str], arguments: &str) -> Outcome<Ran> {
        let program = self.program.display().to_string();
        let line = [wrapper, &[&program]].concat();
        let mut command = Command::new(line[0]);
        command.args(&line[1..]).args(arguments.split(' '));
        let output = self.bench.site.run("measure", &mut command, 300)?.stdout;
        Ran::read(&output)
    }
}

impl Ran {
    fn read(output: &str) -> Outcome<Self> {
        let mut ran = Self::default();
        for line in output.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let numbers: Vec<u64> = rest
                .split(' ')
                .filter_map(|number| number.parse().ok())
                .collect();
            match (word, numbers.as_slice()) {
                ("packet", [sent, arrived]) => ran.packets.push((*sent, *arrived)),
                ("window", [from, to, packets]) => ran.windows.push((*from, *to, *packets)),
                ("packet" | "window", _) => {
                    return Err(TaskError::Failed(format!("output of measure: {line}")));
                }
                _ => {
                    ran.texts.insert(word.into(), rest.into());
                }
            }
        }
        Ok(ran)
    }

    /// Returns the printed value of this name.
    pub(super) fn word<T: FromStr>(&self, name: &str) -> Outcome<T> {
        let word = self.texts.get(name).and_then(|word| word.parse().ok());
        word.ok_or_else(|| TaskError::Failed(format!("measure did not say {name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_a_worker_is_parsed() {
        let output = "packet 1 2\nwindow 3 4 5\nsent 77\nverdict late: by 3 ms\n";
        let ran = Ran::read(output).expect("it is right");
        assert_eq!(
            (ran.packets.as_slice(), ran.windows.as_slice()),
            ([(1, 2)].as_slice(), [(3, 4, 5)].as_slice())
        );
        assert_eq!(ran.word::<u64>("sent").expect("said"), 77);
        assert_eq!(
            ran.word::<String>("verdict").expect("said"),
            "late: by 3 ms"
        );
        assert!(ran.word::<bool>("real-time").is_err());
        assert!(Ran::read("packet 1\n").is_err());
    }
}
