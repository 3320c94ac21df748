//! The sweep: every line, every position, both services, both kernels.
//!
//! Each cell is measured three times, and twice more where an end waited for a timeout in one of the
//! three: the kernel's timers are coarse, so that such cells scatter by tens of milliseconds.

use super::campaign::Campaign;
use super::cells::summarise;
use super::instrument::steady;
use super::kernel::{self, Kernel};
use super::line::{self, Drops};
use super::rig::Job;
use super::service::{self, Service};
use crate::figure::{Conditions, Failure, Study};
use crate::records::Records;

pub(super) static STUDY: Study = Study {
    name: "packet-loss-sweep",
    run: |conditions| study(conditions, if conditions.full { [7, 8] } else { [3, 2] }),
};

/// Repetitions of every cell, and further ones of cells with a timeout.
type Repetitions = [u32; 2];

fn study(conditions: &Conditions<'_>, repetitions: Repetitions) -> Result<Records, Failure> {
    let [all, more] = repetitions;
    let mut campaign = Campaign::new(conditions);
    for kernel in kernel::BOTH {
        if !sweep(&mut campaign, kernel, &cells(), repetitions)? {
            break;
        }
    }
    let mut records = campaign.records();
    let repetitions_in_words = format!("{all}, and {more} more where there is a timeout");
    records.set_parameter("repetitions", repetitions_in_words);
    summarise(&mut records);
    Ok(records)
}

/// Everything for one kernel; false when stopped.
fn sweep(
    campaign: &mut Campaign<'_>,
    kernel: &Kernel,
    cells: &[Job],
    [all, more]: Repetitions,
) -> Result<bool, Failure> {
    let (names, ends) = ((kernel.key, kernel.name), kernel.ends()?);
    let steady = steady();
    let mut jobs = steady.clone();
    jobs.extend(cells.repeat(all as usize));
    let Some(results) = campaign.run(names, &ends, &jobs)? else {
        return Ok(false);
    };
    let of_cells = &results.measured[steady.len()..];
    let waited = |place: usize| {
        let mut repetitions = of_cells.iter().skip(place).step_by(cells.len());
        repetitions.any(|measured| measured.traced.timeouts() != [0, 0])
    };
    let again: Vec<Job> = (0..cells.len())
        .filter(|place| waited(*place))
        .map(|place| cells[place])
        .collect();
    let again = again.repeat(more as usize);
    Ok(again.is_empty() || campaign.run(names, &ends, &again)?.is_some())
}

/// Every line with every position of both services, the one without loss first.
fn cells() -> Vec<Job> {
    let of = |service: &'static Service| {
        line::all().flat_map(move |line| {
            (0..=service.packets()).map(move |position| Job {
                service,
                line,
                drops: Drops::one(position),
                varies: true,
            })
        })
    };
    service::BOTH.into_iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::cells::Cells;
    use super::super::instrument;
    use super::super::line::Line;
    use super::super::service::{AUTHOR, SEGMENT};
    use super::super::tiny;
    use super::*;
    use crate::records::Row;

    const LINE: Line = Line {
        kbit: 10_000,
        ms: 10,
    };

    #[test]
    fn a_tiny_sweep_finds_the_late_positions_by_their_packets() {
        let cells = [0, 6, 9, 10, 11].map(|position| Job {
            service: &AUTHOR,
            line: LINE,
            drops: Drops::one(position),
            varies: true,
        });
        let Some(mut records) = tiny::study(|conditions| {
            let mut campaign = Campaign::new(conditions);
            let swept = sweep(&mut campaign, &kernel::OF_2005, &cells, [1, 1])?;
            assert!(swept, "nobody stopped it");
            Ok(campaign.records())
        }) else {
            return;
        };
        let rows = || records.table("transactions").rows();
        let first = instrument::steady().len() + cells.len();
        let timeouts = ["client_timeouts", "server_timeouts"];
        let waited = |row: &Row<'_>| timeouts.iter().any(|column| row.number(column) > 0.0);
        let again = rows().take(first).filter(waited).count();
        assert_eq!(records.table("transactions").len(), first + again);
        for check in [instrument::exact(&records), instrument::well(&records)] {
            assert!(check.holds, "{}", check.sentence);
        }
        summarise(&mut records);
        let of_2005 = Cells::of(&records, ("2005", "linux-2005"), &AUTHOR);
        assert!(of_2005.sensitive(LINE).into_iter().eq(AUTHOR.late(SEGMENT)));
        let [none, reference] = [0, 6].map(|position| of_2005.ms(LINE, position));
        assert!(none < reference && reference < of_2005.late_ms(LINE));
    }
}
