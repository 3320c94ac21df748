//! The cost of one lost packet over HTTP/3, beside TCP and TCP with TLS 1.3.
//!
//! The studies use the transactions, lines and delays of the paper's study. A transaction is one request of the load
//! generator on a new connection, and its reply.
//!
//! | module | content |
//! |---|---|
//! | `transport` | the three transports, and the position of the lost packet |
//! | `server` | servers: ours, and those of other stacks |
//! | `testbed` | transactions of the generator with a server, each on an emulated line of its own |
//! | `simulated` | the same transactions in virtual time |
//! | `campaign` | runs of both kinds, with the accuracy of the emulator |
//! | `role` | what a lost packet carried |
//! | `positions`, `sweep`, `variants` | the three studies |
//! | `cells` | response times by server, line and lost packet |

mod agreement;
mod campaign;
mod cells;
mod instrument;
mod positions;
pub(crate) mod predictions;
pub(crate) mod quic_2026;
pub(crate) mod quic_remedies_2026;
pub(crate) mod quic_sweep_2026;
mod role;
mod server;
mod simulated;
mod sweep;
mod testbed;
mod transport;
mod variants;
