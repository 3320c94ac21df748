//! Real transactions over a line with random losses, from server to client only.
//!
//! The study chooses only the loss rate. The number, position and cost of losses are results.

use posthaste_study::{Conditions, Failure, Needs, Records, Study};

use super::campaign::Campaign;
use super::instrument::steady;
use super::job::Job;
use super::kernel;
use super::line::{NetworkLine, PlannedDrops};
use super::service::AUTHOR;

pub(super) static STUDY: Study = Study {
    name: "packet-loss-by-chance",
    needs: Needs::Time,
    core: true,
    run: |conditions| study(conditions, if conditions.full { 20_000 } else { 5000 }),
};

/// Loss rate, in percent.
pub(super) const PERCENT: u32 = 2;

/// The paper's line within a country.
pub(super) const LINE: NetworkLine = NetworkLine { kbit: 300, ms: 10 };

fn study(conditions: &Conditions<'_>, transactions: usize) -> Result<Records, Failure> {
    let mut campaign = Campaign::new(conditions);
    let job = Job {
        service: &AUTHOR,
        line: LINE,
        drops: PlannedDrops::Percent(PERCENT),
        varies: true,
    };
    for kernel in kernel::BOTH {
        let mut jobs = steady();
        jobs.extend(vec![job; transactions]);
        let results = campaign.run(kernel.key, kernel.name, &kernel.ends()?, &jobs)?;
        if results.is_none() {
            break;
        }
    }
    let mut records = campaign.records();
    records.set_parameter("transactions", format!("{transactions} with each kernel"));
    records.set_parameter(
        "loss",
        format!("{PERCENT} %, server to client, independent"),
    );
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::super::{instrument, loss_2_percent};
    use posthaste_study::{Progress, RecordRow};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::test_study;

    /// Stops the run at its first progress report.
    struct Stopping<'a>(&'a AtomicBool);

    impl Progress for Stopping<'_> {
        fn step(&self, _: u64, _: u64, _: &str) {
            self.0.store(true, Ordering::Relaxed);
        }
        fn end(&self, _: &str) {}
    }

    #[test]
    fn transactions_before_a_stop_are_kept() {
        let stopped = |conditions: &Conditions<'_>| {
            let progress = &Stopping(conditions.stop);
            let conditions = Conditions {
                progress,
                ..*conditions
            };
            study(&conditions, 2000)
        };
        let Some(records) = test_study::on_links(stopped) else {
            return;
        };
        let kept = records.table("transactions").len();
        assert!((50..2000).contains(&kept), "{kept}");
        assert!(instrument::well(&records).holds);
        // A partial run can be drawn and checked.
        let figure = &loss_2_percent::FIGURE;
        assert!(!(figure.plot)(&records).is_empty() && !(figure.checks)(&records).is_empty());
    }

    #[test]
    fn a_tiny_study_loses_by_chance_and_from_the_server_only() {
        let Some(records) = test_study::on_links(|conditions| study(conditions, 60)) else {
            return;
        };
        for check in [instrument::exact(&records), instrument::well(&records)] {
            assert!(check.holds, "{}", check.sentence);
        }
        let lost = |row: &RecordRow<'_>| row.number("dropped") > 0.0;
        let with_loss = records.table("transactions").rows().filter(lost).count();
        // Expected: a fifth of 120. Fewer than 5 or more than 60 have a probability of one in a million.
        assert!((5..=60).contains(&with_loss), "{with_loss}");
        assert_eq!((loss_2_percent::FIGURE.plot)(&records).len(), 3);
        let checks = (loss_2_percent::FIGURE.checks)(&records);
        assert_eq!(checks.len(), 12);
    }
}
