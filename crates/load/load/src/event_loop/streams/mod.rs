//! Requests on connections with several streams (HTTP/2, HTTP/3).
//!
//! Request n belongs to queue n mod N (`queues`). A queue has one connection; a request that finds it full waits in the
//! queue. Sending it elsewhere would hide a stalled connection from the measurement.
//!
//! | module | stage |
//! |---|---|
//! | `assign` | puts a request into its queue, and gives waiting requests a stream |
//! | `connect` | opens the connection of a queue |
//! | `flush` | passes the output of a turn to the kernel, one call per connection |
//! | `receive` | reads frames, and collects the ends of streams (`replies`) |
//! | `end` | records the end of each stream |
//! | `close` | ends connections: after GOAWAY, at the server's end, after an error |
//! | `quic` | reads datagrams of HTTP/3, and handles the ends of its connections |
//! | `early` | requests in early data, and those that were rejected |
//! | `timers` | calls connections over QUIC when their timers expire |

mod assign;
mod close;
mod connect;
mod early;
mod end;
mod flush;
mod queues;
mod quic;
mod receive;
mod replies;
mod timers;

pub(super) use self::queues::StreamQueues;
use super::buffers::LoopBuffers;
use super::connections::LoopConnections;
use super::requests::LoopRequests;
use super::shared::Shared;

/// The parts of an event loop that carry requests over HTTP/2 and HTTP/3.
pub(super) struct Streams<'l, 'r> {
    pub(super) shared: &'r Shared<'r>,
    pub(super) requests: &'l mut LoopRequests<'r>,
    pub(super) connections: &'l mut LoopConnections<'r>,
    pub(super) queues: &'l mut StreamQueues,
    pub(super) buffers: &'l mut LoopBuffers,
}
