//! Agreement of emulated and simulated transactions, cell by cell.

use super::super::line::NetworkLine;
use super::cells::QuicCells;

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
        worst: Vec::new(),
    };
    let mut differ = Vec::new();
    for [emulated, simulated] in pairs {
        for line in lines {
            let [emulated, simulated] = [emulated, simulated].map(|cells| cells.on(*line));
            for (role, row) in emulated.all().filter(|(role, _)| !role.contains("ack")) {
                let ours = row.number("median_ms");
                let Some(model) = simulated.named(role) else {
                    found.alone += 1;
                    continue;
                };
                let apart = ours - model.number("median_ms");
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
        worst,
    } = found;
    let at = |share| super::super::cells::quantile(apart, share);
    format!(
        "{place} the emulated response time with quinn is within {WITHIN_MS} ms of the simulated one in {agree} of {compared} cells with a lost packet of data ({:.1} ms at the median, {:.1} ms at the 95th percentile); {alone} cells have no simulated counterpart. Farthest apart: {}.",
        at(0.5),
        at(0.95),
        worst.join("; ")
    )
}
