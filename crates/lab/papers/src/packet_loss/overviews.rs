//! packet-loss/fig-04, 05 and 08 to 13: both stacks and both services, at all delays and on all lines.

use posthaste_study::{Check, Figure, Records};

use super::cells::Cells;
use super::curves::{of_freebsd, of_linux};
use super::service::{AUTHOR, SELLERPROFILE};
use super::{
    BUDGET, DIFFERS, OF_FREEBSD_DIFFERS, PAPER, SIMULATED, all_delays, all_lines, instrument,
    simulated, sweep,
};

pub(crate) static FIG_04: Figure = Figure {
    id: "packet-loss/fig-04",
    title: "FreeBSD, Author, 1000 kbit/s: all delays",
    claim: "The last four data packets are the sensitive ones at every delay.",
    paper: PAPER,
    budget: SIMULATED,
    study: &simulated::STUDY,
    plot: |records| all_delays::plot(&of_freebsd(records, &AUTHOR)),
    checks: |records| {
        at_all_delays(
            instrument::simulation(records),
            &of_freebsd(records, &AUTHOR),
        )
    },
    differs: OF_FREEBSD_DIFFERS,
};

pub(crate) static FIG_05: Figure = Figure {
    id: "packet-loss/fig-05",
    title: "FreeBSD, Author: relative increase, 56 combinations",
    claim: "On every line a loss of the last data packets takes longer than one at position 6. The increase is considerably larger than with Linux.",
    plot: |records| all_lines::plot(&of_freebsd(records, &AUTHOR)),
    checks: |records| {
        on_all_lines(
            records,
            instrument::simulation(records),
            &of_freebsd(records, &AUTHOR),
        )
    },
    ..FIG_04
};

pub(crate) static FIG_08: Figure = Figure {
    id: "packet-loss/fig-08",
    title: "Linux, Author, 1000 kbit/s: all delays",
    claim: "The late positions are the sensitive ones at every delay.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| all_delays::plot(&of_linux(records, &AUTHOR)),
    checks: |records| at_all_delays(instrument::all(records), &of_linux(records, &AUTHOR)),
    differs: DIFFERS,
};

pub(crate) static FIG_09: Figure = Figure {
    id: "packet-loss/fig-09",
    title: "Linux, Author: relative increase, 56 combinations",
    claim: "On every line a loss of the last data packets takes longer than one at position 6. The increase is considerably smaller than with FreeBSD.",
    plot: |records| all_lines::plot(&of_linux(records, &AUTHOR)),
    checks: |records| {
        on_all_lines(
            records,
            instrument::all(records),
            &of_linux(records, &AUTHOR),
        )
    },
    ..FIG_08
};

pub(crate) static FIG_10: Figure = Figure {
    id: "packet-loss/fig-10",
    title: "FreeBSD, Sellerprofile, 1000 kbit/s: all delays",
    claim: "With a shorter reply, too, the last data packets are the sensitive ones.",
    plot: |records| all_delays::plot(&of_freebsd(records, &SELLERPROFILE)),
    checks: |records| {
        at_all_delays(
            instrument::simulation(records),
            &of_freebsd(records, &SELLERPROFILE),
        )
    },
    ..FIG_04
};

pub(crate) static FIG_11: Figure = Figure {
    id: "packet-loss/fig-11",
    title: "FreeBSD, Sellerprofile: relative increase, 56 combinations",
    claim: "In a shorter reply the late region covers a larger part, and the increase is larger.",
    plot: |records| all_lines::plot(&of_freebsd(records, &SELLERPROFILE)),
    checks: |records| {
        shorter_on_all_lines(
            instrument::simulation(records),
            &of_freebsd(records, &SELLERPROFILE),
            &of_freebsd(records, &AUTHOR),
        )
    },
    ..FIG_04
};

pub(crate) static FIG_12: Figure = Figure {
    id: "packet-loss/fig-12",
    title: "Linux, Sellerprofile, 1000 kbit/s: all delays",
    claim: "With a shorter reply, too, the last data packets are the sensitive ones.",
    plot: |records| all_delays::plot(&of_linux(records, &SELLERPROFILE)),
    checks: |records| at_all_delays(instrument::all(records), &of_linux(records, &SELLERPROFILE)),
    ..FIG_08
};

pub(crate) static FIG_13: Figure = Figure {
    id: "packet-loss/fig-13",
    title: "Linux, Sellerprofile: relative increase, 56 combinations",
    claim: "In a shorter reply the late region covers a larger part, and the increase is larger.",
    plot: |records| all_lines::plot(&of_linux(records, &SELLERPROFILE)),
    checks: |records| {
        shorter_on_all_lines(
            instrument::all(records),
            &of_linux(records, &SELLERPROFILE),
            &of_linux(records, &AUTHOR),
        )
    },
    ..FIG_08
};

/// Adds the claims about all delays.
fn at_all_delays(mut checks: Vec<Check>, all: &[Cells<'_>]) -> Vec<Check> {
    checks.extend(all_delays::checks(all));
    checks
}

/// Adds the claims about all lines, and the comparison of both stacks.
fn on_all_lines(records: &Records, mut checks: Vec<Check>, all: &[Cells<'_>]) -> Vec<Check> {
    checks.extend(all_lines::checks(all));
    checks.push(all_lines::is_less_with_linux(records));
    checks
}

/// Adds the claims about all lines, and the comparison of the shorter reply with the longer one.
fn shorter_on_all_lines(
    mut checks: Vec<Check>,
    shorter: &[Cells<'_>],
    longer: &[Cells<'_>],
) -> Vec<Check> {
    checks.extend(all_lines::checks(shorter));
    let pairs = shorter.iter().zip(longer);
    checks.extend(pairs.map(|(shorter, longer)| all_lines::is_larger(shorter, longer)));
    checks
}
