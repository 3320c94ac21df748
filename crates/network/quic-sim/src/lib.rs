//! Simulation of a client, a server and the path between them over QUIC in virtual time.
//!
//! The sibling of `posthaste_sim` for QUIC. Both ends are state machines of `quinn-proto`, with real TLS 1.3. The path,
//! the positions of packets, the seeds, the clock of response times, the totals and the sweeps are those of the TCP
//! simulator. A [`QuicScenario`] describes a simulation as data, and a [`QuicSimulator`] runs its transactions by
//! number. A [`DatagramTrace`] records every datagram, for a [`quic_ladder`].
//!
//! # Transactions
//!
//! A transaction is one new connection. The client connects, sends each request on its own bidirectional stream, reads
//! the reply, and closes the connection. Programs act before their end sends, so that data leaves with the packets that
//! the end has to send at this moment.
//!
//! # Repeatability
//!
//! - Time is an argument of quinn-proto. `epoch` converts it, and has the only access to a clock.
//! - Random numbers of quinn-proto come from the seed of the transaction.
//! - TLS draws its keys from the system. They change the bytes of packets, and neither their number, nor their lengths,
//!   nor their times.
//!
//! # Not simulated
//!
//! Session resumption and 0-RTT, address validation by Retry, migration, path MTU discovery, segmentation offload, and
//! the frames of HTTP/3.

#![forbid(unsafe_code)]

mod cases;
mod certificate;
mod datagram;
mod end;
mod epoch;
mod frames;
mod ladder;
mod late;
mod options;
mod programs;
mod scenario;
mod simulator;
mod tls;
mod trace;
mod transaction;
mod witness;

pub use cases::{QuicCaseError, QuicCaseOptions, quic_cases};
pub use certificate::{SMALLEST_CERTIFICATE, server_certificate};
pub use datagram::CarriedDatagram;
pub use frames::{Frames, SentCause};
pub use ladder::quic_ladder;
pub use options::{QuicOptionError, QuicOptions};
pub use scenario::{EndBehaviour, LateHandshake, QuicScenario};
pub use simulator::QuicSimulator;
pub use trace::{DatagramTrace, TracedDatagram};
pub use transaction::QuicTransaction;
pub use witness::{DatagramWitness, OfferedDatagram};
