//! The packet-loss study: the position of a single loss in a reply, and its cost.
//!
//! Garcia, Hurtig and Brunstrom dropped one packet of each transaction, at every position, on 56 lines. This study does
//! the same with this machine's kernel, configured like Linux of that time and of today. The paper's two stacks are not
//! available any more, so they are simulated in virtual time.
//!
//! A study takes jobs and produces records:
//!
//! | module | task |
//! |---|---|
//! | `testbed` | transactions between two ends, each on a line of its own |
//! | `observed` | outcome of each transaction, read from its packets |
//! | `campaign` | one table of all transactions, with the lateness of the emulator |
//! | `cells` | groups of transactions that differ by chance alone |
//!
//! The packets show if an end waited for a timeout. A transaction that lost other data than intended is in no cell.
//!
//! - `simulated_run` runs the same jobs in virtual time, on all cores, with the same `columns`. A cell is the same for
//!   emulated and simulated transactions.
//! - A transaction is identified by seed and number. A simulated one with those of an emulated one meets the same
//!   delays, packet by packet.
//! - `paired` compares with the kernel. The simulated transaction also starts at the same tick of the kernel's timer
//!   wheel, derived from the kernel's own timeouts (`ticks`), with programs of the same speed. No chance is left
//!   between the two. Where they still differ, `divergence` finds the first difference in their ladders.

mod all_delays;
mod all_lines;
mod campaign;
mod cells;
mod chance;
mod columns;
mod cores;
mod curves;
mod divergence;
pub(crate) mod fig_02;
pub(crate) mod fig_03;
pub(crate) mod fig_06;
pub(crate) mod fig_07;
mod instrument;
mod job;
mod kernel;
pub(crate) mod late_loss_2026;
mod late_loss_plots;
mod line;
pub(crate) mod loss_2_percent;
pub(crate) mod model_2026;
mod observed;
mod one_line;
pub(crate) mod overviews;
mod paired;
mod positions;
pub(crate) mod quic;
mod remedies;
pub(crate) mod remedies_compared;
mod service;
mod simulated;
mod simulated_run;
mod stack;
mod sweep;
mod testbed;
mod ticks;
mod trials;
mod variants;

use posthaste_units::Span;

const PAPER: &str = "Garcia, Hurtig, Brunstrom: The Effect of Packet Loss on the Response Times of Web Services, WEBIST 2007";

/// Budget of the figures with emulated transactions. They share one sweep.
const BUDGET: Span = Span::from_secs(60);

/// Budget of the figures without. They share one simulation.
const SIMULATED: Span = Span::from_secs(20);

/// Differences of all figures with a simulated FreeBSD.
const OF_FREEBSD_DIFFERS: &str = include_str!("freebsd_differs.md").trim_ascii();

/// Differences of all figures that compare the paper's Linux with this machine's.
const DIFFERS: &str = include_str!("linux_differs.md").trim_ascii();
