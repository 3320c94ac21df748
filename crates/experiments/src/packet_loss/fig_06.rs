//! packet-loss/fig-06: Linux, Author, 10 ms, by position of the loss.

use super::cells::Cells;
use super::curves::{of_both, of_linux};
use super::line::Line;
use super::service::{AUTHOR, SEGMENT};
use super::stack::LINUX;
use super::{BUDGET, DIFFERS, PAPER, instrument, one_line, sweep};
use crate::check::Check;
use crate::figure::Figure;
use crate::records::Records;

const LINE: Line = Line { kbit: 300, ms: 10 };

/// The paper's time without loss.
const PAPER_MS: f64 = 661.0;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-06",
    title: "Linux, Author, 10 ms: response time by position of the loss",
    claim: "Without loss a transaction takes 661 ms. A loss of the last three data packets (positions 9 to 11) has to wait for a timeout, any other of data is repaired by fast retransmit; the loss of the SYN-ACK costs its own timeout.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| one_line::plot(&of_linux(records, &AUTHOR), LINE, Some(PAPER_MS)),
    checks,
    differs: DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let [then, today] = of_both(records, &AUTHOR);
    let mut checks = instrument::all(records);
    let (lossless, sensitive) = (then.ms(LINE, 0), then.sensitive(LINE));
    checks.push(Check::claim(
        (lossless / PAPER_MS - 1.0).abs() < 0.05,
        format!("Without loss {lossless:.0} ms (paper: {PAPER_MS} ms)."),
    ));
    checks.push(Check::claim(
        sensitive.iter().copied().eq(AUTHOR.late(SEGMENT)),
        format!("With linux-2005 a loss makes the server wait for a timeout at positions {sensitive:?} (paper: 9, 10 and 11)."),
    ));
    let sensitive = today.sensitive(LINE);
    checks.push(Check::claim(
        !sensitive.is_empty(),
        format!("With today's default it does so at positions {sensitive:?}: {:.0}, {:.0} and {:.0} ms for a loss at 9, 10 and 11, {:.0} ms without.", today.ms(LINE, 9), today.ms(LINE, 10), today.ms(LINE, 11), today.ms(LINE, 0)),
    ));
    checks.extend(simulated(&LINUX.cells(records, &AUTHOR)));
    let handshake = then.ms(LINE, 1) - lossless;
    checks.push(Check::claim(
        (handshake / 3000.0 - 1.0).abs() < 0.1,
        format!("The loss of the SYN-ACK costs {handshake:.0} ms (paper: 3 s; today's kernels wait for one)."),
    ));
    checks
}

/// The paper's Linux in the simulator, by its published numbers.
fn simulated(cells: &Cells<'_>) -> [Check; 3] {
    let [none, handshake] = [0, 1].map(|position| cells.ms(LINE, position));
    let (found, costs) = (cells.sensitive(LINE), handshake - none);
    [
        Check::claim(
            one_line::is_published(none, PAPER_MS),
            format!(
                "{}: without loss {none:.0} ms (paper: {PAPER_MS} ms).",
                cells.name()
            ),
        ),
        Check::claim(
            found.iter().copied().eq(cells.late()),
            format!(
                "{}: a loss makes the server wait for a timeout at positions {found:?} (paper: 9, 10 and 11).",
                cells.name()
            ),
        ),
        Check::claim(
            (costs / 3000.0 - 1.0).abs() < 0.1,
            format!(
                "{}: the loss of the SYN-ACK costs {costs:.0} ms (paper: 3 s).",
                cells.name()
            ),
        ),
    ]
}
