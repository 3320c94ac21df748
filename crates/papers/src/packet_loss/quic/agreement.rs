//! Agreement of emulated and simulated transactions, cell by cell.
//!
//! Costs are compared: the response time with a loss minus the one without. The time of the programs at the ends is in
//! the emulated response times, and the model has none.

use super::super::cells::quantile;
use super::super::line::NetworkLine;
use super::cells::QuicCells;
use super::role::PacketRole;

/// Difference that a cell may have, in ms: 5 ms and one tick of the kernel's timer.
const WITHIN_MS: f64 = 5.0 + 4.0;
/// Share of the cells that have to agree.
const SHARE: f64 = 0.95;

/// Counts of compared cells.
pub(super) struct CellAgreement {
    pub(super) agree: usize,
    pub(super) compared: usize,
    /// Cells that only one of the two has.
    pub(super) alone: usize,
    /// Differences in ms, ascending.
    pub(super) apart: Vec<f64>,
    /// Differences of the response times without a loss in ms, ascending: the time of the programs.
    pub(super) programs: Vec<f64>,
    /// The cells that differ most.
    pub(super) worst: Vec<String>,
}

impl CellAgreement {
    /// True if enough cells agree. A cell that only one side has does not.
    pub(super) fn is_met(&self) -> bool {
        let all = self.compared + self.alone;
        all > 0 && self.agree as f64 >= SHARE * all as f64
    }
}

/// Compares the cells with data: those of lost acknowledgements are compared by position, and left out.
pub(super) fn agreement(pairs: &[[QuicCells<'_>; 2]], lines: &[NetworkLine]) -> CellAgreement {
    let mut found = CellAgreement {
        agree: 0,
        compared: 0,
        alone: 0,
        apart: Vec::new(),
        programs: Vec::new(),
        worst: Vec::new(),
    };
    let mut differ = Vec::new();
    for [emulated, simulated] in pairs {
        for line in lines {
            let [emulated, simulated] = [emulated, simulated].map(|cells| cells.on(*line));
            let none = [&emulated, &simulated].map(|cells| cells.ms(PacketRole::None));
            found.programs.push(none[0] - none[1]);
            let lost = |(role, _): &(&str, _)| *role != "none" && !role.contains("ack");
            for (role, row) in emulated.all().filter(lost) {
                let ours = row.number("median_ms") - none[0];
                let Some(model) = simulated.named(role) else {
                    found.alone += 1;
                    continue;
                };
                let apart = ours - (model.number("median_ms") - none[1]);
                found.compared += 1;
                found.agree += usize::from(apart.abs() <= WITHIN_MS);
                found.apart.push(apart.abs());
                differ.push((
                    apart,
                    format!("{role} at {} kbit/s, {} ms", line.kbit, line.ms),
                ));
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
pub(super) fn told(place: &str, found: &CellAgreement) -> String {
    let CellAgreement {
        agree,
        compared,
        alone,
        apart,
        programs,
        worst,
    } = found;
    let at = |share| quantile(apart, share);
    format!(
        "{place} the emulated cost with quinn is within {WITHIN_MS} ms of the simulated one in {agree} of {compared} cells with a lost packet of data ({:.1} ms apart at the median, {:.1} ms at the 95th percentile); {alone} cells have no simulated counterpart. Without a loss the emulated response takes {:.1} ms longer at the median: the programs. Farthest apart: {}.",
        at(0.5),
        at(0.95),
        quantile(programs, 0.5),
        worst.join("; ")
    )
}
