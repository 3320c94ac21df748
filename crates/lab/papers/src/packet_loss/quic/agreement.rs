//! Agreement of emulated and simulated transactions, cell by cell.
//!
//! Response times are compared, and costs: the response time with a loss minus the one without. The time of the programs
//! at the ends is in the emulated response times, and the model has none.

use super::super::cells::quantile;
use super::super::line::NetworkLine;
use super::cells::QuicCells;
use super::role::PacketRole;

/// Difference that a cell may have, in ms: 5 ms and one tick of the kernel's timer.
const WITHIN_MS: f64 = 5.0 + 4.0;
/// Share of the cells that have to agree.
const SHARE: f64 = 0.95;

/// Counts of compared cells.
#[derive(Default)]
pub(super) struct CellAgreement {
    /// Cells whose response times agree.
    agree: usize,
    /// Cells whose costs agree.
    agree_in_cost: usize,
    compared: usize,
    /// Cells that only one of the two has.
    alone: usize,
    /// Differences of costs in ms, ascending.
    apart: Vec<f64>,
    /// Differences of the response times without a loss in ms, ascending: the time of the programs.
    programs: Vec<f64>,
    /// The cells whose costs differ most.
    worst: Vec<String>,
}

impl CellAgreement {
    /// True if the response times of enough cells agree. Those of a cell that only one side has do not.
    pub(super) fn is_met(&self) -> bool {
        let all = self.compared + self.alone;
        all > 0 && self.agree as f64 >= SHARE * all as f64
    }
}

/// Compares the cells with a lost packet of data. Packets of acknowledgements have no role of their own, and their number
/// varies.
pub(super) fn agreement(pairs: &[[QuicCells<'_>; 2]], lines: &[NetworkLine]) -> CellAgreement {
    let mut found = CellAgreement::default();
    let mut differ = Vec::new();
    for [emulated, simulated] in pairs {
        for line in lines {
            let [emulated, simulated] = [emulated, simulated].map(|cells| cells.on(*line));
            let programs = emulated.ms(PacketRole::None) - simulated.ms(PacketRole::None);
            found.programs.push(programs);
            let is_alone = |(role, _): &(&str, _)| emulated.named(role).is_none();
            found.alone += simulated.with_data_lost().filter(is_alone).count();
            for (role, row) in emulated.with_data_lost() {
                let Some(model) = simulated.named(role) else {
                    found.alone += 1;
                    continue;
                };
                let apart = row.number("median_ms") - model.number("median_ms");
                let cost = apart - programs;
                found.compared += 1;
                found.agree += usize::from(apart.abs() <= WITHIN_MS);
                found.agree_in_cost += usize::from(cost.abs() <= WITHIN_MS);
                found.apart.push(cost.abs());
                let name = format!("{role} at {} kbit/s, {} ms", line.kbit, line.ms);
                differ.push((cost, name));
            }
        }
    }
    found.apart.sort_by(f64::total_cmp);
    found.programs.sort_by(f64::total_cmp);
    differ.sort_by(|one, other| other.0.abs().total_cmp(&one.0.abs()));
    let worst = differ.into_iter().take(5);
    let worst = worst.map(|(apart, name)| format!("{name}: {apart:+.0} ms"));
    found.worst = worst.collect();
    found
}

/// Describes the agreement.
pub(super) fn sentence(subject: &str, found: &CellAgreement) -> String {
    let at = |share| quantile(&found.apart, share);
    format!(
        "{subject} the emulated response time with quinn is within {WITHIN_MS} ms of the simulated one in {} of {} cells with a lost packet of data; {} more cells exist on one side only. Costs are within it in {}, {:.1} ms apart at the median and {:.1} ms at the 95th percentile. Without a loss the emulated response takes {:.1} ms longer at the median: the programs. Costs are farthest apart: {}.",
        found.agree,
        found.compared,
        found.alone,
        found.agree_in_cost,
        at(0.5),
        at(0.95),
        quantile(&found.programs, 0.5),
        found.worst.join("; ")
    )
}
