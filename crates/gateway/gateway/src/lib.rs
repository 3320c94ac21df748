//! A reverse proxy that compresses as far as CPU time allows, for clients that want it.
//!
//! [`start`] runs it. Preferences, policies and admission are decided in the crates `compression`, `qos` and
//! `admission`, which do no I/O. Each thread serves independently: a request stays on its thread, and connections to
//! upstreams are not shared. On the path of a request threads share no lock, except those of the admission state and of
//! the random numbers that sample distributed traces.
//!
//! # Pipeline
//!
//! `proxy` has the list of the stages; each folder holds the functions of its stage.
//! `docs/contributing/life-of-a-request.md` lists all phases in order.
//!
//! | stage | module | task |
//! |---|---|---|
//! | check | `serve`, `request::validate` | reject ambiguous messages, and those that no upstream should get |
//! | route | `routing` | select the route by host and the longest path prefix |
//! | prefer | `request::body` | limit the body and decode a compressed one within bounds |
//! | | `request::account` | find the account by key or certificate; reject wrong keys |
//! | | `request::preferences` | read the head and the SOAP header; keep the bytes read ahead |
//! | admit | `admission` | apply a rate, a limit or prices |
//! | queue | `upstream::concurrency_limit` | limit the requests under way of this thread |
//! | forward | `upstream` | send to the upstream with the fewest requests in flight, and stream the reply |
//! | record | `proxy::recording`, `record` | record the outcome for metrics, admission and traces |
//! | compress | `response::compress` | ask the policy and encode |
//! | mark | `response::marking` | select the code point |
//!
//! - A connection to an upstream has no task. The request that uses it drives it (`upstream::connection`). A pooled
//!   connection is not polled; the next use detects that it was closed.
//! - Excess requests wait for a permit while replies arrive. As soon as the thread has nothing else to do, one more may
//!   go.
//! - A new configuration creates a new `Router`, for requests that begin after it.
//! - `serve` accepts four connections at a time and serves them before it accepts more. Clients without a reply open
//!   more connections, so accepting all of them first would only add more.
//! - `serve` sets the code point on the socket before the first byte of the reply, after the client has acknowledged
//!   all of the previous reply.
//!
//! # Compression
//!
//! - A reply of up to 64 KiB is encoded at once (`response::codec::whole`), a longer one as it arrives
//!   (`response::compressed_body`, `response::codec::stream`).
//! - `response::cache` holds results of short replies. The key is the whole uncompressed content and nothing else. The
//!   policy only learns that a step has a cached result (`Question::at_hand`).
//! - `response::worker` holds the CPU token bucket, the cost model and the encoders of one thread.
//! - `load` samples the load five times a second, outside the path of requests, and publishes the CPU time that
//!   optional compression may use until the next sample. By default each worker samples its own idle time. For a
//!   process, a cgroup, processors or the reports of an upstream, one thread samples for all workers.
//! - `idle` measures the time since the last pause of a worker. It rises before any sample does.
//!
//! # Admission
//!
//! - All threads share one state, used before anything is sent to an upstream. A request takes its lock twice, for
//!   about a microsecond. Readers of the metrics or of the status page hold it while they visit the monitored clients,
//!   16,384 at most.
//! - The reply carries its price and the quote (`admission::admitted`). A rejection states its reason and the current
//!   offer (`admission::rejected`).
//! - The price moves outside the path of requests, every 200 ms by default (`admission::price_loop`). Inputs are the
//!   load of the protected resource, the excess of response times over their minimum, and the rejected work. A separate
//!   task publishes the result at the broker, so that a slow broker delays nothing else.
//!
//! # Accounts
//!
//! - `request::account` identifies the account of a request by its API key or certificate.
//! - `accounts::payment` holds the price of a request at admission, and charges it or gives it back at its end.
//! - `accounts::report_loop` reports the charges to the broker, outside the path of requests.
//!
//! # Distributed traces
//!
//! `record::traces` gives a traced request its position in the distributed trace and queues the ended trace span for a
//! thread. That thread exports to the collector.

mod accounts;
mod admin;
mod admission;
mod client_address;
mod clock;
mod context;
mod drain;
mod error;
mod grpc;
mod idle;
mod listening;
mod load;
mod offers;
mod proxy;
mod record;
mod request;
mod response;
mod retry_after;
mod routing;
mod running;
mod tunnel;
mod upload_progress;
mod upstream;
mod worker;

pub use crate::error::{DescriptionError, GatewayError, PromiseError, ResolveError, TargetError};
pub use crate::running::{RunningGateway, check, start};
pub use posthaste_gateway_config::{self as config, GatewayConfig};
