//! The load generator: arrivals that never wait for the server, and accounting that adds up.
//!
//! A [`Plan`] defines the requests and their times. [`run`] prepares it (`run::preparation`), carries it out on
//! event loops, one per thread, and assembles a [`Run`] (`results::assembly`). The loops speak HTTP/1.1, HTTP/2 or HTTP/3
//! over non-blocking sockets. The crate `evaluation` makes reports and verdicts from the `Run` afterwards. Several
//! processes can carry out a [`Share`] of the loops each ([`PreparedShare`]); the sum of their tallies is the tally of
//! the whole plan.
//!
//! # Folders
//!
//! A folder names only those below it.
//!
//! | folder | content |
//! |---|---|
//! | `run` | the execution of a plan, from preparation to results |
//! | `results` | the results of a run, and the check of the generator itself |
//! | `event_loop` | the loop of one core, with its parts |
//! | `exchange` | exchanges in progress, and the connections that carry them |
//! | `tally` | measurements of a loop in a second, and their sums |
//! | `plan` | every setting; arrivals, the mix, shares of a plan |
//! | `buying`, `retry` | clients that choose by price, and clients that retry |
//! | `request` | descriptions of requests, and their written forms |
//! | `reply` | readers of replies, events, decoding |
//! | `transport` | sockets, TLS, QUIC |
//! | `grpc` | calls and their replies |
//!
//! # Arrivals
//!
//! `plan::pace` decides when requests are due. Arrivals are points on an axis of expected arrivals: whole numbers for
//! constant arrivals, sums of exponential draws for Poisson. The inverse of the plan's cumulative rate maps the axis to
//! time. One mechanism therefore serves all processes with all plans (steady, steps, ramps), and another process is one
//! more kind of point. `plan::source` gives each of n event loops every n-th arrival, so that any number of loops sends the
//! same run.
//!
//! # Event loop
//!
//! One turn of `event_loop`: send the requests that are due, handle events, end exchanges that are late.
//!
//! - The loop sleeps in the kernel until shortly before the next request and polls from there. `spin` learns the
//!   length of the polling from the lateness of earlier sleeps, so that punctuality costs a shared core as little as
//!   possible. A wait of 12 ms or more is slept to its end.
//! - Timeouts of one kind have one length, so they expire in the order in which they were set. `exchange::fifo` stores
//!   their links by slot. Memory depends on the number of open connections, not on the number of requests.
//! - A request allocates nothing if it has no placeholders, and its reply fits a read and is not XML. XML is inspected
//!   for faults.
//!
//! # Connections
//!
//! - `exchange::connection` moves bytes between a socket and a protocol. For HTTP/1, [`http::ReplyReader`] keeps its
//!   position between two reads and enforces the limits. For HTTP/2 and HTTP/3 it is the state machine of
//!   `posthaste_http::streams`. Both have fuzz targets of their own, and both fill a [`reply::HttpReply`].
//! - `exchange` has the exchanges in progress, apart from connections: one carries several over HTTP/2.
//! - Over HTTP/2, request n belongs to queue n mod N, and waits there for a stream of the queue's connection
//!   (`event_loop::streams`). All requests of a turn leave with one system call per connection.
//! - On loopback the handshake is complete when `connect` returns. The request is therefore sent at once, without a
//!   query to the kernel. `EAGAIN` from `send` means that the SYN was dropped.
//! - After a request to close, a connection waits for the server's FIN. TIME_WAIT then stays on the server's side.
//!
//! # Accounting
//!
//! - A request without a complete reply has a response time, too: longer than any bound. `tally::responses` and `tally`
//!   record good replies and the rest separately, so that each request costs one entry.
//! - With retries, a request has several attempts (`tally::attempts`). `retry` decides about the next one and its time. The
//!   event loop sends it like a request that is due. Response time still counts from the first due time.
//! - Each loop records into a [`LoadTally`], passes it on once a second, and continues with an empty one.
//!   `tally::seconds` joins those of all loops. All counts are integers, so the sum does not depend on the division into loops and seconds.
//! - `tally::lost` accounts for the share of a process that has died: the schedule says how many requests it owed.
//! - `results::self_check` checks that the generator has carried the plan out.
//! - With decoding, a reply is kept until it is complete. `reply::decoding` calculates the decoding time of a slower machine
//!   and waits for none of it, so that one loop can stand for any number of slow clients.
//!
//! # Prices
//!
//! - `buying` models clients that choose by price. They share a catalogue of offers, which a thread keeps in step with
//!   a broker. Each event loop is one client. It repeats its choice only after a change of the catalogue's version
//!   number, or when the chosen offer expires. A choice before every request therefore costs no lock.

mod buying;
mod cause;
mod clock;
mod error;
mod event_loop;
mod exact;
mod exchange;
mod grpc;
mod outcome;
mod plan;
pub mod reply;
mod request;
mod results;
mod retry;
mod run;
mod stop;
mod tally;
mod target;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod transport;

pub use buying::{Buying, QuoteUse, WithoutOffers};
pub use cause::Cause;
pub use error::RunError;
pub use exchange::attempt_recorder::{AttemptRecorder, EndedAttempt};
pub use grpc::{GrpcCall, GrpcStatuses};
pub use outcome::{Outcome, Outcomes};
pub use plan::pace::{Arrivals, RateStep, TraceError, read_trace};
pub use plan::protocol::{Multiplexing, Protocol, WhenFull, WhenRejected};
pub use plan::share::Share;
pub use plan::{Connections, Pace, Plan, PlanError};
pub use posthaste_http::streams::CodeCounts;
pub use reply::decoding::Decoded;
pub use reply::events::{
    EventFormat, EventPart, EventPlan, EventReader, EventTally, LONGEST_END_MARK,
};
pub use reply::{http, is_redirect};
pub use request::data::{Data, DataError};
pub use request::grpc_request::{GrpcCallError, ReflectedServer, SchemaSource, grpc_request};
pub use request::mix_file::read_mix;
pub use request::soap::{WsdlCall, WsdlError, soap_request};
pub use request::{RequestError, RequestSpec};
pub use results::agents::AgentReport;
pub use results::generator::Generator;
pub use results::{Portion, Run};
pub use retry::{Backoff, BackoffError, RetryPolicy};
pub use run::observer::Observer;
pub use run::{PreparedShare, ShareObserver, run, run_recorded};
pub use stop::{StopOrders, StopTime};
pub use tally::LoadTally;
pub use tally::address_counts::AddressCounts;
pub use tally::attempts::Attempts;
pub use tally::lost::requests_by_loop;
pub use tally::part_results::PartResults;
pub use tally::phases::Phases;
pub use tally::received::TallyError;
pub use tally::responses::Responses;
pub use tally::seconds::JoinedSeconds;
pub use tally::tick::Tick;
pub use target::{
    AddressSource, AnyTarget, RequestTarget, Resolve, TargetError, TargetOrigin, TargetPolicy,
};
pub use transport::multiplexed::{EarlyDataCounts, QueuedRequests, StreamCounts};
pub use transport::quic::{QUIC_DATAGRAM, QlogOptions, QlogReport, QuicOptions};
pub use transport::tls::{PemFile, TlsError, TlsOptions};
