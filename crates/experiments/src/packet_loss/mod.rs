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
const OF_FREEBSD_DIFFERS: &str = "FreeBSD 6.0 is a model, read from sources of February 2006 and told in the profile freebsd-6.0. Five things the paper does not state were chosen with its numbers for figures 2, 3 and 6 in view (610, 632, 886 and 661 ms): lines of 300 kbit/s where it gives none; delays drawn anew for each packet, on a line that keeps order; 14 bytes of Ethernet header a packet; a first flight of three segments (by the code the acknowledgement of the SYN-ACK makes four of RFC 3390's three); and processing reckoned from accept(), for Linux from the whole request. The other figures were not fitted. FreeBSD 14 and today's Linux stand beside it as they would answer on the same lines.";

/// Differences of all figures that compare the paper's Linux with this machine's.
const DIFFERS: &str = "The paper's Linux 2.6.15 runs in the simulator only, on lines that count the Ethernet header; linux-2005 is this machine's kernel with Reno, without SACK (and so without RACK and tail loss probes) and with an initial window of three segments. Its timers and delayed ACKs are today's: a retransmission timeout of at least 200 ms, rounded up by the kernel's timer wheel, and one second instead of three for a lost SYN-ACK. At long delays the loss of the first data packet times out, too: a window of three gives two duplicate ACKs, which let out one packet in a round trip, and the third comes later than the timeout of a round trip and 200 ms. Lines are 300 kbit/s each way where the paper does not say: its published times fit no other of its bandwidths.";
