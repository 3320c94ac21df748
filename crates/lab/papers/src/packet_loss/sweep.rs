//! The sweep: every line, every position, both services, both kernels. Each kernel is compared with the matching
//! profile of the simulator, and the paper's stacks are simulated on the same lines.
//!
//! Each cell is measured three times, and twice more if an end waited for a timeout in one of them. The kernel's timers
//! are coarse, so such cells vary by tens of milliseconds.

use posthaste_study::{Conditions, Failure, Needs, Records, Study};

use super::campaign::Campaign;
use super::cells::summarise;
use super::instrument::steady;
use super::job::Job;
use super::kernel::{self, KernelSetup};
use super::paired::{Paired, Tables};
use super::simulated;
use super::testbed::Ends;

pub(super) static STUDY: Study = Study {
    name: "packet-loss-sweep",
    needs: Needs::Time,
    core: true,
    run: |conditions| study(conditions, if conditions.full { [7, 8] } else { [3, 2] }),
};

/// Repetitions of every cell, and additional ones for cells with a timeout.
type Repetitions = [u32; 2];

fn study(conditions: &Conditions<'_>, repetitions: Repetitions) -> Result<Records, Failure> {
    let [all, more] = repetitions;
    let mut campaign = Campaign::new(conditions);
    let mut tables = Tables::new();
    let cells = simulated::cells();
    for kernel in kernel::BOTH {
        if !sweep(&mut campaign, kernel, &cells, repetitions, &mut tables)? {
            break;
        }
    }
    let mut records = campaign.records();
    let repetitions_in_words = format!("{all}, and {more} more where there is a timeout");
    records.set_parameter("repetitions", repetitions_in_words);
    tables.keep(&mut records);
    let simulated = simulated::run(conditions, &cells)?;
    simulated.note(&mut records);
    summarise(&mut records, &simulated.transactions);
    Ok(records)
}

/// Measures everything for one kernel. Returns false if stopped.
fn sweep(
    campaign: &mut Campaign<'_>,
    kernel: &KernelSetup,
    cells: &[Job],
    [all, more]: Repetitions,
    tables: &mut Tables,
) -> Result<bool, Failure> {
    let (key, name) = (kernel.key, kernel.name);
    let ends = Ends {
        kept: true,
        ..kernel.ends()?
    };
    let mut paired = Paired::new(kernel, &kernel.matching_stack())?;
    let steady = steady();
    let mut jobs = steady.clone();
    jobs.extend(cells.repeat(all as usize));
    let Some(results) = campaign.run(key, name, &ends, &jobs)? else {
        return Ok(false);
    };
    let of_cells = &results.measured[steady.len()..];
    let waited = |index: usize| {
        let mut repetitions = of_cells.iter().skip(index).step_by(cells.len());
        repetitions.any(|measured| measured.traced.timeouts() != [0, 0])
    };
    let again: Vec<Job> = (0..cells.len())
        .filter(|index| waited(*index))
        .map(|index| cells[index])
        .collect();
    let again = again.repeat(more as usize);
    paired.take(&jobs, results);
    let mut whole = true;
    if !again.is_empty() {
        match campaign.run(key, name, &ends, &again)? {
            Some(results) => paired.take(&again, results),
            None => whole = false,
        }
    }
    paired.write(tables)?;
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::super::cells::Cells;
    use super::super::instrument;
    use super::super::line::{NetworkLine, PlannedDrops};
    use super::super::service::{AUTHOR, SEGMENT};
    use super::*;
    use crate::test_study;
    use posthaste_study::{RecordRow, RecordTable};

    const LINE: NetworkLine = NetworkLine {
        kbit: 10_000,
        ms: 10,
    };

    #[test]
    fn a_tiny_sweep_finds_the_late_positions_by_their_packets() {
        let cells = [0, 6, 9, 10, 11].map(|position| Job {
            service: &AUTHOR,
            line: LINE,
            drops: PlannedDrops::one(position),
            varies: true,
        });
        let Some(mut records) = test_study::on_links(|conditions| {
            let mut campaign = Campaign::new(conditions);
            let mut tables = Tables::new();
            let kernel = &kernel::OF_2005;
            let swept = sweep(&mut campaign, kernel, &cells, [1, 1], &mut tables)?;
            assert!(swept, "nobody stopped it");
            let mut records = campaign.records();
            tables.keep(&mut records);
            Ok(records)
        }) else {
            return;
        };
        let rows = || records.table("transactions").rows();
        let first = instrument::steady().len() + cells.len();
        let timeouts = ["client_timeouts", "server_timeouts"];
        let waited = |row: &RecordRow<'_>| timeouts.iter().any(|column| row.number(column) > 0.0);
        let again = rows().take(first).filter(waited).count();
        assert_eq!(records.table("transactions").len(), first + again);
        for check in [instrument::exact(&records), instrument::well(&records)] {
            assert!(check.holds, "{}", check.sentence);
        }
        assert_eq!(records.table("model").len(), cells.len());
        let agree = records.table("model").rows();
        let agree = agree.filter(|row| row.number("agrees") == 1.0).count();
        assert!(agree + 1 >= cells.len(), "{agree} of {}", cells.len());
        summarise(&mut records, &RecordTable::default());
        let of_2005 = Cells::new(&records, ("2005", "linux-2005"), &AUTHOR);
        assert!(of_2005.sensitive(LINE).into_iter().eq(AUTHOR.late(SEGMENT)));
        let [none, reference] = [0, 6].map(|position| of_2005.ms(LINE, position));
        assert!(none < reference && reference < of_2005.late_ms(LINE));
    }
}
