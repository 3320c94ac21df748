//! The packet-loss study: the position of a single loss in a reply, and its cost.
//!
//! Garcia, Hurtig and Brunstrom dropped one packet of each transaction, at every position, on 56 lines. This study does
//! the same with this machine's kernel, configured like Linux of that time and of today. The paper's two stacks are not
//! available any more, so they are simulated in virtual time.

mod account;
mod all_delays;
mod all_lines;
mod campaign;
mod cells;
mod chance;
mod curves;
pub(crate) mod fig_02;
pub(crate) mod fig_03;
pub(crate) mod fig_04;
pub(crate) mod fig_05;
pub(crate) mod fig_06;
pub(crate) mod fig_07;
pub(crate) mod fig_08;
pub(crate) mod fig_09;
pub(crate) mod fig_10;
pub(crate) mod fig_11;
pub(crate) mod fig_12;
pub(crate) mod fig_13;
mod instrument;
mod kernel;
pub(crate) mod late_loss_2026;
mod late_loss_plots;
mod line;
pub(crate) mod loss_2_percent;
pub(crate) mod model_2026;
mod one_line;
mod parting;
mod played;
mod remedies;
pub(crate) mod remedies_compared;
mod rig;
mod seen;
mod service;
mod simulated;
mod stack;
mod sweep;
mod ticks;
mod trials;
mod twin;
mod variants;
mod words;

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
