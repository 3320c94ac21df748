//! packet-loss/fig-02: FreeBSD, Author, 10 ms, by position of the loss.

use posthaste_study::{Check, Figure, Records, most};

use super::cells::Cells;
use super::curves::of_freebsd;
use super::line::{NetworkLine, PUBLISHED};
use super::service::AUTHOR;
use super::stack::FREEBSD;
use super::{OF_FREEBSD_DIFFERS, PAPER, SIMULATED, instrument, one_line, positions, simulated};

const LINE: NetworkLine = PUBLISHED[0];

/// The paper's time without loss, and the additional time of a loss at position 10 over one at 6, in ms and as a share.
const PAPER_MS: f64 = 610.0;
const PAPER_LATE_MS: f64 = 632.0;
const PAPER_LATE: f64 = 1.03;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-02",
    title: "FreeBSD, Author, 10 ms: response time by position of the loss",
    claim: "Without loss a transaction takes 610 ms. The loss of the SYN-ACK adds three seconds. A loss at positions 2 to 7 costs little, because fast retransmit repairs it. A loss at positions 8 to 11 waits for a timeout: at position 10 it takes 632 ms more than at position 6, 103 %.",
    paper: PAPER,
    budget: SIMULATED,
    study: &simulated::STUDY,
    plot: |records| one_line::plot(&of_freebsd(records, &AUTHOR), LINE, Some(PAPER_MS)),
    checks,
    differs: OF_FREEBSD_DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let cells = FREEBSD.cells(records, &AUTHOR);
    let ms = |position| cells.ms(LINE, position);
    let (none, late) = (ms(0), ms(10) - ms(6));
    let mut checks = instrument::simulation(records);
    checks.extend([
        Check::claim(
            one_line::is_published(none, PAPER_MS),
            format!("Without loss {none:.0} ms (paper: {PAPER_MS} ms)."),
        ),
        Check::claim(
            one_line::is_published(late, PAPER_LATE_MS),
            format!(
                "A loss at position 10 takes {late:.0} ms more than one at position 6, {:.0} % (paper: {PAPER_LATE_MS} ms, {:.0} %).",
                100.0 * late / ms(6),
                100.0 * PAPER_LATE
            ),
        ),
        handshake(&cells),
        early(&cells),
        sensitive(&cells),
    ]);
    checks
}

fn handshake(cells: &Cells<'_>) -> Check {
    let costs = cells.ms(LINE, 1) - cells.ms(LINE, 0);
    // The paper gives whole seconds.
    Check::claim(
        (costs - 3000.0).abs() < 500.0,
        format!("The loss of the SYN-ACK costs {costs:.0} ms (paper: 3 s)."),
    )
}

/// Cost of a loss that fast retransmit repairs.
fn early(cells: &Cells<'_>) -> Check {
    let costs = (2..=7).map(|position| cells.ms(LINE, position) - cells.ms(LINE, 0));
    let times: Vec<String> = costs.clone().map(|ms| format!("{ms:.0}")).collect();
    Check::claim(
        most(costs.clone()) < 0.5 * PAPER_LATE_MS,
        format!(
            "At positions 2 to 7 a loss costs {} ms; the paper calls it small.",
            times.join(", ")
        ),
    )
}

fn sensitive(cells: &Cells<'_>) -> Check {
    let found = cells.sensitive(LINE);
    Check::claim(
        found.iter().copied().eq(cells.late()),
        format!(
            "A loss makes the server wait for a timeout at positions {} (paper: 8 to 11).",
            positions::listed(&found)
        ),
    )
}
