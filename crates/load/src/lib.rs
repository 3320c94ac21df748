//! The load generator: arrivals that never wait for the server, and accounting that adds up.
//!
//! A [`Plan`] defines the requests and their times. [`run`] carries it out on event loops, one per thread, and returns
//! a [`Run`]. The loops speak HTTP/1.1 over non-blocking sockets. Reports are made from the `Run` afterwards.

mod assertion;
mod buying;
mod clock;
mod connection;
mod data;
mod decoding;
mod engine;
mod fetch;
mod fifo;
pub mod find;
mod generator;
pub mod http;
mod inspect;
mod live;
mod mix;
mod mix_file;
mod outcome;
mod pace;
mod plan;
pub mod report;
mod request;
mod responses;
mod run;
mod soap;
mod socket;
mod source;
mod tally;
mod target;
#[cfg(test)]
mod testing;
mod tls;

pub use assertion::{Assertion, AssertionError, Checked};
pub use buying::{Buying, QuoteUse, Without};
pub use data::{Data, DataError};
pub use decoding::Decoded;
pub use find::{Capacity, Effort, FindError, LimitedBy, Trial, find};
pub use generator::Generator;
pub use live::Live;
pub use mix_file::read_mix;
pub use outcome::{Outcome, Outcomes};
pub use pace::{Arrivals, Step, TraceError, read_trace};
pub use plan::{Connections, Pace, Plan};
pub use request::{RequestError, RequestSpec};
pub use responses::Responses;
pub use run::{Observer, Portion, Run, RunError, run};
pub use soap::{WsdlCall, WsdlError, soap_request};
pub use tally::{Part, Phases, Tick};
pub use target::{Origin, Resolve, Target, TargetError};
pub use tls::{TlsError, TlsOptions};
