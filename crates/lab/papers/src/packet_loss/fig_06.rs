//! packet-loss/fig-06: Linux, Author, 10 ms, by position of the loss.

use posthaste_study::{Check, Figure, Records, least, most};

use super::cells::Cells;
use super::curves::{of_both, of_linux};
use super::line::{NetworkLine, PUBLISHED};
use super::service::{AUTHOR, SEGMENT};
use super::stack::LINUX;
use super::{BUDGET, DIFFERS, PAPER, instrument, one_line, positions, sweep};

const LINE: NetworkLine = PUBLISHED[0];

/// The paper's time without loss.
const PAPER_MS: f64 = 661.0;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-06",
    title: "Linux, Author, 10 ms: response time by position of the loss",
    claim: "Without loss a transaction takes 661 ms. A loss of one of the last three data packets (positions 9 to 11) has to wait for a timeout. Fast retransmit repairs any other loss of data. The loss of the SYN-ACK costs its own timeout.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| one_line::plot(&of_linux(records, &AUTHOR), LINE, Some(PAPER_MS)),
    checks,
    differs: DIFFERS,
};

/// The answer of this run: cost of a loss by position, in 2005 and today.
pub(crate) fn answer(records: &Records) -> String {
    let costs = |cells: &Cells<'_>| {
        let late: Vec<f64> = cells
            .late()
            .map(|position| cells.ms(LINE, position))
            .collect();
        format!(
            "{:.0} ms without loss, {:.0} with one in the middle, {:.0} to {:.0} with one of the last three",
            cells.ms(LINE, 0),
            cells.ms(LINE, cells.reference()),
            least(late.iter().copied()),
            most(late)
        )
    };
    let [then, today] = of_both(records, &AUTHOR);
    format!(
        "The paper: yes, the last three of a reply, because a timeout repairs their loss. Here, TCP as in 2005: {}. Today's Linux: {}.",
        costs(&then),
        costs(&today)
    )
}

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
        format!("With linux-2005 a loss makes the server wait for a timeout at positions {} (paper: 9, 10 and 11).", positions::listed(&sensitive)),
    ));
    let sensitive = today.sensitive(LINE);
    checks.push(Check::claim(
        !sensitive.is_empty(),
        format!("With today's default it does so at positions {}: {:.0}, {:.0} and {:.0} ms for a loss at 9, 10 and 11, {:.0} ms without.", positions::listed(&sensitive), today.ms(LINE, 9), today.ms(LINE, 10), today.ms(LINE, 11), today.ms(LINE, 0)),
    ).because("today's kernel repairs each of these losses without a timeout, by RACK and tail loss probes, since the FIN follows in a packet of its own.").better_if(sensitive.is_empty() && today.is_measured(LINE)));
    checks.extend(simulated(&LINUX.cells(records, &AUTHOR)));
    let handshake = then.ms(LINE, 1) - lossless;
    checks.push(Check::claim(
        (handshake / 3000.0 - 1.0).abs() < 0.1,
        format!("The loss of the SYN-ACK costs {handshake:.0} ms (paper: 3 s; today's kernels wait for one)."),
    ).because("linux-2005 is this machine's kernel with the congestion control of its day; the first timeout of a SYN-ACK is one second since RFC 6298.").better_if(handshake < 3000.0));
    checks
}

/// Checks of the paper's Linux in the simulator against its published numbers.
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
                "{}: a loss makes the server wait for a timeout at positions {} (paper: 9, 10 and 11).",
                cells.name(),
                positions::listed(&found)
            ),
        ),
        Check::claim(
            (costs / 3000.0 - 1.0).abs() < 0.1,
            format!(
                "{}: the loss of the SYN-ACK costs {costs:.0} ms (paper: 3 s).",
                cells.name()
            ),
        ).because("linux-2005 is this machine's kernel with the congestion control of its day; the first timeout of a SYN-ACK is one second since RFC 6298.").better_if(handshake < 3000.0),
    ]
}
