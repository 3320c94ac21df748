//! The study of 2026: every variant on some lines, with late losses of one and of two packets.
//!
//! Cells that may wait for a timeout are measured at least five times, and here any cell may. Each variant is an
//! emulation of its own, because it configures the kernels.

use std::cmp::Reverse;

use posthaste_emulator::agent;
use posthaste_study::{Conditions, Failure, Needs, RecordTable, RecordValue, Records, Study};
use posthaste_units::Span;

use super::campaign::{Campaign, Results};
use super::cells::summarise;
use super::instrument::steady;
use super::job::{Job, PROCESSING};
use super::kernel::TODAY;
use super::line::{NetworkLine, PlannedDrops, all};
use super::service::AUTHOR;
use super::variants::{VARIANTS, Variant};

pub(super) static STUDY: Study = Study {
    name: "packet-loss-remedies",
    needs: Needs::Time,
    core: false,
    run: |conditions| {
        // Every fifth line in a quick run. They include each bandwidth, each delay and the lines with all positions.
        let (skipped, step, repetitions) = if conditions.full {
            (0, 1, 9)
        } else {
            (4, 5, 5)
        };
        let lines: Vec<NetworkLine> = all().skip(skipped).step_by(step).collect();
        let mut records = study(conditions, &VARIANTS, &lines, repetitions)?;
        let of_all = format!("{} of 56", lines.len());
        records.set_parameter("lines", of_all);
        records.set_parameter("repetitions", repetitions);
        Ok(records)
    },
};

/// The lines with losses at every position at the end: one near, one far.
pub(super) const SHOWN: [NetworkLine; 2] = [
    NetworkLine { kbit: 300, ms: 10 },
    NetworkLine {
        kbit: 1000,
        ms: 100,
    },
];

/// Maximum number of data packets behind the lost one, on the lines in `SHOWN`.
pub(super) const FARTHEST: u32 = 8;

/// Two losses at the end, by the number of data packets behind each. For the first pair, two packets arrive behind the
/// losses and cause two duplicate ACKs, one less than needed.
pub(super) const PAIRS: [[u32; 2]; 3] = [[3, 2], [2, 1], [1, 0]];

fn study(
    conditions: &Conditions<'_>,
    variants: impl IntoIterator<Item = &'static Variant>,
    lines: &[NetworkLine],
    repetitions: u32,
) -> Result<Records, Failure> {
    let mut campaign = Campaign::new(conditions);
    let mut counted = counted();
    for variant in variants {
        let cells: Vec<Job> = lines
            .iter()
            .flat_map(|line| cells(*line, variant))
            .collect();
        let mut jobs = cells.repeat(repetitions as usize);
        // The slowest first, so that the last ones finish quickly.
        jobs.sort_by_key(|job| Reverse(job.line.lossless(&AUTHOR, PROCESSING, Span::ZERO)));
        if variant.key == TODAY.key {
            jobs.splice(0..0, steady());
        }
        let results = campaign.run(variant.key, &variant.name(), &variant.ends()?, &jobs)?;
        let Some(results) = results else {
            break;
        };
        counted.push(count(variant, &results));
    }
    let mut records = campaign.records();
    records.set_table("variants", counted);
    summarise(&mut records, &RecordTable::default());
    Ok(records)
}

/// Losses that are measured on a line.
fn cells(line: NetworkLine, variant: &Variant) -> Vec<Job> {
    let segment = variant.change.segment;
    let behind = |behind: u32| AUTHOR.last_data(segment) - behind;
    let pair = |pair: [u32; 2]| PlannedDrops::At(pair.map(behind));
    let mut drops = vec![PlannedDrops::NONE];
    if SHOWN.contains(&line) {
        drops.extend((0..=FARTHEST).map(|count| PlannedDrops::one(behind(count))));
        drops.extend(PAIRS.map(pair));
    } else {
        drops.push(PlannedDrops::one(AUTHOR.reference(segment)));
        drops.extend(AUTHOR.late(segment).map(PlannedDrops::one));
        drops.push(pair(PAIRS[0]));
    }
    let job = |drops| Job {
        service: &AUTHOR,
        line,
        drops,
        varies: true,
    };
    drops.into_iter().map(job).collect()
}

/// Counters of kernel and agent for each variant's run.
fn counted() -> RecordTable {
    RecordTable::new([
        "kernel",
        "transactions",
        "timeouts",
        "fast_retransmits",
        "loss_probes",
        "taken_for_reordering",
        "holes",
        "injected",
    ])
}

fn count(variant: &Variant, results: &Results) -> Vec<RecordValue> {
    let agent::AgentCounters {
        served, injected, ..
    } = results.agent.unwrap_or_default();
    let kernel = results.kernel;
    let mut row = vec![RecordValue::from(variant.key)];
    let counts = [
        results.measured.len() as u64,
        kernel.timeouts,
        kernel.fast_retransmits,
        kernel.loss_probes,
        kernel.taken_for_reordering,
        served,
        injected,
    ];
    row.extend(counts.map(RecordValue::from));
    row
}

#[cfg(test)]
mod tests {
    use super::super::cells::Cells;
    use super::super::late_loss_plots::cells as agent_cells;
    use super::super::line::{BANDWIDTHS, DELAYS};
    use super::super::variants::{AGENT, NOTHING, OLD, variant_of};
    use super::super::{instrument, late_loss_2026};
    use super::*;
    use crate::test_study;

    #[test]
    fn the_lines_of_a_quick_run_have_everything_among_them() {
        let lines: Vec<NetworkLine> = all().skip(4).step_by(5).collect();
        assert!(SHOWN.iter().all(|shown| lines.contains(shown)));
        assert!(
            BANDWIDTHS
                .iter()
                .all(|kbit| lines.iter().any(|line| line.kbit == *kbit))
        );
        assert!(
            DELAYS
                .iter()
                .all(|ms| lines.iter().any(|line| line.ms == *ms))
        );
    }

    #[test]
    fn a_tiny_study_shows_what_the_agent_gains_and_what_it_does_not() {
        let line = NetworkLine {
            kbit: 10_000,
            ms: 10,
        };
        let both = [4, 0].map(|index: usize| &VARIANTS[index]);
        assert_eq!(both.map(|variant| variant.key), ["2005 agent", "2005"]);
        let Some(records) = test_study::on_links(|conditions| study(conditions, both, &[line], 3))
        else {
            return;
        };
        for check in [instrument::exact(&records), instrument::well(&records)] {
            assert!(check.holds, "{}", check.sentence);
        }
        let [with, without] =
            [AGENT, NOTHING].map(|change| agent_cells(&records, variant_of(&OLD, &change)));
        let waited = |cells: &Cells<'_>, drops| {
            let row = cells.row(line, drops).unwrap();
            row.number("timed_out")
        };
        let (one, two) = (PlannedDrops::one(10), PlannedDrops::At([8, 9]));
        assert!(waited(&with, one) > 1.0 && waited(&without, one) > 1.0);
        assert!(waited(&with, two) < 2.0 && waited(&without, two) > 1.0);
        // Every claim is stated, regardless of the measurements.
        let checks = (late_loss_2026::FIGURE.checks)(&records);
        assert_eq!(checks.len(), 17);
        assert_eq!((late_loss_2026::FIGURE.plot)(&records).len(), 6);
    }
}
