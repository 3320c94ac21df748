//! The peer tests as seen from outside: their list, and a run of their program.

use std::time::Duration;

use posthaste_harness::peers::{PeerResult, names};
use posthaste_harness::tally::TestTally;

use crate::checkout::Checkout;
use crate::conformance;
use crate::error::{Outcome, TaskError};
use crate::process;

/// All peer tests in their order of execution: a line with name and description for each.
const LIST: &str = "conformance/peers.txt";

/// Time limit of all peer tests, with the installation of what they need.
const PEERS: Duration = Duration::from_secs(7200);

/// Text of the list.
pub(crate) fn list(checkout: &Checkout) -> Outcome<String> {
    let path = checkout.path(LIST);
    std::fs::read_to_string(&path).map_err(|error| TaskError::at(&path, error))
}

/// Runs all peer tests. Those without a result have failed.
pub(super) fn run(checkout: &Checkout) -> Outcome<TestTally> {
    let list = list(checkout)?;
    let mut command = conformance::tested(checkout)?;
    command.args(["peers", "--tested"]);
    let mut results = PeerResults::new(&list);
    let hear = |line: &str| results.hear(line);
    let ended = process::pass_through("their program", &mut command, PEERS, hear);
    Ok(results.end(ended))
}

/// Results of the peer tests so far.
struct PeerResults<'a> {
    tally: TestTally,
    /// Names without a result.
    open: Vec<&'a str>,
}

impl<'a> PeerResults<'a> {
    fn new(list: &'a str) -> Self {
        Self {
            tally: TestTally::default(),
            open: names(list),
        }
    }

    /// Takes a line of the program's output.
    fn hear(&mut self, line: &str) {
        if let Some((name, result)) = PeerResult::read(line) {
            self.open.retain(|open| *open != name);
            self.tally.add_peer(name, &result);
        }
    }

    fn end(mut self, ended: Outcome<()>) -> TestTally {
        if let Err(error) = ended {
            self.tally.fail("peers", &error.to_string());
        }
        for name in self.open {
            self.tally.fail(&format!("peer {name}"), "no result");
        }
        self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_without_a_result_have_failed() {
        let mut results = PeerResults::new("zeep Python\ncurl pages\nhtb floods\n");
        results.hear("peer zeep ... ok (1.0 s)");
        results.hear("  curl: a line of its own");
        let tally = results.end(Err(TaskError::Failed("a signal".to_owned())));
        assert_eq!(tally.passed, 1);
        let expected = [
            "peers: a signal",
            "peer curl: no result",
            "peer htb: no result",
        ];
        assert_eq!(tally.failures, expected);
    }
}
