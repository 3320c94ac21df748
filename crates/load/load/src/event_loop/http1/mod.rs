//! Requests over HTTP/1.1: one after the other on a connection.
//!
//! | module | stage |
//! |---|---|
//! | `connect` | opens a connection for an exchange, or takes an idle one |
//! | `send` | writes a request |
//! | `receive` | reads replies, and reuses or ends their connections |
//! | `end` | ends exchanges without a complete reply |

mod connect;
mod end;
mod receive;
mod send;

use super::buffers::LoopBuffers;
use super::connections::LoopConnections;
use super::requests::LoopRequests;
use super::shared::Shared;

/// The parts of an event loop that carry requests over HTTP/1.1.
pub(super) struct Http1<'l, 'r> {
    pub(super) shared: &'r Shared<'r>,
    pub(super) requests: &'l mut LoopRequests<'r>,
    pub(super) connections: &'l mut LoopConnections<'r>,
    pub(super) buffers: &'l mut LoopBuffers,
}
