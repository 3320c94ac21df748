//! The packet-loss study: where in a reply a single loss falls, and what it costs.
//!
//! Garcia, Hurtig and Brunstrom dropped one packet of each transaction, at every position, on 56 lines.
//! Here the same is done around this machine's own kernel, set as Linux was then and as it is today; the
//! figures of FreeBSD need a stack that no machine here has, and come with the simulator.

mod all_delays;
mod all_lines;
mod campaign;
mod cells;
mod chance;
mod curves;
pub(crate) mod fig_06;
pub(crate) mod fig_07;
pub(crate) mod fig_08;
pub(crate) mod fig_09;
pub(crate) mod fig_12;
pub(crate) mod fig_13;
mod instrument;
mod kernel;
pub(crate) mod late_loss_2026;
mod late_loss_plots;
mod line;
pub(crate) mod loss_2_percent;
mod remedies;
mod rig;
mod seen;
mod service;
mod sweep;
#[cfg(test)]
mod tiny;
mod variants;

use posthaste_units::Span;

const PAPER: &str = "Garcia, Hurtig, Brunstrom: The Effect of Packet Loss on the Response Times of Web Services, WEBIST 2007";

/// All of these figures come from one sweep.
const BUDGET: Span = Span::from_secs(60);

/// What differs from the paper wherever its Linux is compared with ours.
const DIFFERS: &str = "The paper's Linux 2.6.15 is gone; linux-2005 is this machine's kernel with Reno, without SACK (and so without RACK and tail loss probes) and with an initial window of three segments. Its timers and delayed ACKs are today's: a retransmission timeout of at least 200 ms, rounded up by the kernel's timer wheel, and one second instead of three for a lost SYN-ACK. At long delays the loss of the first data packet times out, too: a window of three gives two duplicate ACKs, which let out one packet in a round trip, and the third comes later than the timeout of a round trip and 200 ms. Lines are 300 kbit/s each way where the paper does not say: its published times fit no other of its bandwidths.";
