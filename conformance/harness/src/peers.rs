//! Results of peer tests as lines of text, for the program that runs them and for the one that counts them.

use crate::tally::TestTally;

/// Result of a peer test.
#[derive(Debug, PartialEq, Eq)]
pub enum PeerResult {
    /// Passed.
    Passed,
    /// Not run, with the solution.
    Skipped(String),
    /// Failed, with the reason.
    Failed(String),
}

impl PeerResult {
    /// The line that reports the result. A reason can have further lines.
    pub fn line(&self, name: &str, seconds: f64) -> String {
        match self {
            Self::Passed => format!("peer {name} ... ok ({seconds:.1} s)"),
            Self::Skipped(why) => format!("peer {name} ... skipped: {why}"),
            Self::Failed(why) => format!("peer {name} ... FAILED: {why}"),
        }
    }

    /// Name and result in such a line.
    pub fn read(line: &str) -> Option<(&str, Self)> {
        let (name, end) = line.strip_prefix("peer ")?.split_once(" ... ")?;
        let result = match end.split_once(": ") {
            Some(("skipped", why)) => Self::Skipped(why.to_owned()),
            Some(("FAILED", why)) => Self::Failed(why.to_owned()),
            _ if end.starts_with("ok ") => Self::Passed,
            _ => return None,
        };
        Some((name, result))
    }
}

impl TestTally {
    /// Adds the result of a peer test.
    pub fn add_peer(&mut self, name: &str, result: &PeerResult) {
        match result {
            PeerResult::Passed => self.passed += 1,
            PeerResult::Skipped(_) => self.skipped += 1,
            PeerResult::Failed(why) => self.fail(&format!("peer {name}"), why),
        }
    }
}

/// Names in the list.
pub fn names(list: &str) -> Vec<&str> {
    let names = list.lines().map(|line| line.split(' ').next());
    names.map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_as_they_are_written() {
        let skipped = PeerResult::Skipped("no apt-get here: install it".to_owned());
        let failed = PeerResult::Failed("exit 1: none".to_owned());
        for result in [PeerResult::Passed, skipped, failed] {
            let line = result.line("zeep", 1.5);
            assert_eq!(PeerResult::read(&line), Some(("zeep", result)));
        }
        assert_eq!(PeerResult::read("peer zeep calls ... nobody"), None);
    }

    #[test]
    fn names_are_the_first_words() {
        assert_eq!(names("zeep   Python\ncurl curl\n"), ["zeep", "curl"]);
    }
}
