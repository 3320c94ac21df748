//! Changes of the links that a trace has yet to write.
//!
//! The emulator's records of packets come later than the packets, in the order of arrival. A change is written before the
//! first event after it.

use posthaste_link::change::AppliedChange;
use posthaste_units::Instant;

use crate::control::ChangeLog;

/// Changes of the links, and the number of those that were written.
#[derive(Default)]
pub(super) struct UnwrittenChanges {
    log: Option<ChangeLog>,
    written: usize,
}

impl UnwrittenChanges {
    /// All changes of a run.
    pub(super) fn new(log: ChangeLog) -> Self {
        Self {
            log: Some(log),
            written: 0,
        }
    }

    /// The changes up to `until` that were not written.
    pub(super) fn take(&mut self, until: Instant) -> Vec<AppliedChange> {
        let Some(log) = &self.log else {
            return Vec::new();
        };
        let mut changes = log.after(self.written);
        changes.retain(|applied| applied.at <= until);
        self.written += changes.len();
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::{with_a_loss, written_with};

    #[test]
    fn changes_of_the_links_are_in_every_form() {
        let log = ChangeLog::default();
        for (ms, change) in [(235, "down:delay=30ms loss=2%"), (900, "outage=3s")] {
            log.add(AppliedChange {
                at: Instant::from_nanos(ms * 1_000_000),
                change: change.parse().expect("a change"),
            });
        }
        let text = |name| {
            let bytes = written_with(name, &with_a_loss(), log.clone());
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let csv = text("t.csv");
        let lines: Vec<&str> = csv.lines().collect();
        let at = |word: &str| {
            lines
                .iter()
                .position(|line| line.contains(word))
                .expect(word)
        };
        let change = at(",change,");
        assert!(at("data-fin") < change && change < lines.len() - 3, "{csv}");
        assert!(lines[change].starts_with("235000000,,,"), "{csv}");
        assert!(lines[change].contains(",down:delay=30ms loss=2%,"), "{csv}");
        assert!(
            lines.last().expect("lines").contains(",outage=3s,"),
            "{csv}"
        );
        let fields = lines.iter().map(|line| line.matches(',').count());
        assert!(fields.clone().min() == fields.max(), "{csv}");
        let ladder = text("t.txt");
        assert!(
            ladder.contains("Changed at 235.000 ms: down:delay=30ms loss=2%."),
            "{ladder}"
        );
        let capture = text("t.pcapng");
        for comment in [
            "change of the links at 235ms: down:delay=30ms loss=2%",
            "change of the links at 900ms: outage=3s",
        ] {
            assert_eq!(capture.matches(comment).count(), 1, "{comment}");
        }
    }
}
