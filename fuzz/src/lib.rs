//! What must hold for any bytes from outside, one function per parser.
//!
//! Each function takes what a fuzzer made and panics when a crate breaks its contract: not only when it
//! panics itself, but also when it forgets what it read, allocates more than its input deserves, or
//! answers something nobody can read. [`target!`] turns one into a fuzz target under cargo-fuzz and
//! into a program that replays files elsewhere. The tests replay every corpus on stable.

mod accounts;
mod bookshop;
mod capture;
mod certificate_names;
mod changes;
pub mod corpus;
mod cuts;
mod decoding;
pub mod doubtful;
mod duplicate_acks;
mod endpoint;
mod envelope;
mod event_stream;
mod fleet_message;
mod forwarded;
mod frames;
mod grpc_frames;
mod grpc_timeout;
mod http2_client;
mod http2_frames;
mod http3_client;
mod http3_server;
mod http_reply;
mod mixing;
mod offer_terms;
mod offers;
mod packets;
mod pattern;
mod plan;
mod proxy_protocol;
mod qpack;
mod quantities;
mod quic_datagram;
mod record;
mod registry_reply;
#[cfg(test)]
mod replay;
mod reply_inspect;
mod request_framing;
mod resolv_conf;
mod sealed;
mod segments;
mod soap_head;
mod stack;
mod statistics;
mod trace;
mod upgrade;
mod wishes;
mod wsdl;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

pub use accounts::accounts;
pub use bookshop::bookshop;
pub use capture::capture;
pub use certificate_names::certificate_names;
pub use changes::changes;
pub use decoding::decoding;
pub use duplicate_acks::duplicate_acks;
pub use endpoint::endpoint;
pub use envelope::envelope;
pub use event_stream::event_stream;
pub use fleet_message::fleet_message;
pub use forwarded::forwarded_fields as forwarded;
pub use frames::frames;
pub use grpc_frames::grpc_frames;
pub use grpc_timeout::grpc_timeout;
pub use http_reply::http_reply;
pub use http2_client::http2_client;
pub use http2_frames::http2_frames;
pub use http3_client::http3_client;
pub use http3_server::http3_server;
pub use mixing::doubtful;
pub use offer_terms::offer_terms;
pub use offers::offers;
pub use packets::packets;
pub use pattern::pattern;
pub use plan::plan;
pub use proxy_protocol::proxy_protocol;
pub use qpack::qpack;
pub use quantities::quantities;
pub use quic_datagram::quic_datagram;
pub use record::record;
pub use registry_reply::registry_reply;
pub use reply_inspect::reply_inspect;
pub use request_framing::request_framing;
pub use resolv_conf::resolv_conf;
pub use sealed::sealed;
pub use soap_head::soap_head;
pub use stack::stack;
pub use statistics::statistics;
pub use trace::trace;
pub use upgrade::upgrade;
pub use wishes::wishes;
pub use wsdl::wsdl;

/// One property over the bytes of one input.
pub type Property = fn(&[u8]);

/// Every property by the name of its target and of its corpus. The shop comes last: its threads
/// would disturb the counts of the others.
pub const TARGETS: &[(&str, Property)] = &[
    ("envelope", envelope),
    ("event_stream", event_stream),
    ("reply_inspect", reply_inspect),
    ("wsdl", wsdl),
    ("soap_head", soap_head),
    ("wishes", wishes),
    ("forwarded", forwarded),
    ("offers", offers),
    ("offer_terms", offer_terms),
    ("changes", changes),
    ("accounts", accounts),
    ("registry_reply", registry_reply),
    ("http_reply", http_reply),
    ("request_framing", request_framing),
    ("http2_frames", http2_frames),
    ("http2_client", http2_client),
    ("http3_client", http3_client),
    ("http3_server", http3_server),
    ("qpack", qpack),
    ("proxy_protocol", proxy_protocol),
    ("certificate_names", certificate_names),
    ("upgrade", upgrade),
    ("doubtful", doubtful),
    ("decoding", decoding),
    ("quantities", quantities),
    ("quic_datagram", quic_datagram),
    ("pattern", pattern),
    ("frames", frames),
    ("duplicate_acks", duplicate_acks),
    ("packets", packets),
    ("endpoint", endpoint),
    ("stack", stack),
    ("trace", trace),
    ("capture", capture),
    ("record", record),
    ("grpc_timeout", grpc_timeout),
    ("grpc_frames", grpc_frames),
    ("resolv_conf", resolv_conf),
    ("statistics", statistics),
    ("plan", plan),
    ("fleet_message", fleet_message),
    ("sealed", sealed),
    ("bookshop", bookshop),
];

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Runs `act`; asserts that it allocates at most `per_byte` times `length` bytes and `fixed` more.
///
/// Counts every byte asked for and not only the peak, so that it bounds work as well as memory,
/// and does so without a clock. The count is the process's: one thread at a time may measure.
fn within<T>(
    subject: &str,
    length: usize,
    per_byte: usize,
    fixed: usize,
    act: impl FnOnce() -> T,
) -> T {
    let region = Region::new(ALLOCATOR);
    let result = act();
    let used = region.change().bytes_allocated;
    let allowed = length * per_byte + fixed;
    assert!(
        used <= allowed,
        "{subject}: {used} bytes were allocated for {length} bytes of input, {allowed} are allowed"
    );
    result
}

/// Makes a target of a property of this crate.
#[cfg(fuzzing)]
#[macro_export]
macro_rules! target {
    ($property:ident) => {
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $crate::$property(bytes));
    };
}

/// Makes a program of a property of this crate that replays the files it is given.
#[cfg(not(fuzzing))]
#[macro_export]
macro_rules! target {
    ($property:ident) => {
        fn main() -> std::io::Result<()> {
            for path in std::env::args_os().skip(1) {
                $crate::$property(&std::fs::read(path)?);
            }
            Ok(())
        }
    };
}
