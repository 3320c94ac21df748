//! A gateway over real sockets: forwarding, rejections, and faulty upstreams.

mod compressed_requests;
mod compressing;
mod discounts;
mod dns;
mod documented;
mod ejection;
mod faults;
mod forwarding;
mod listening;
mod marking;
mod names;
mod priced;
mod promising;
mod protecting;
mod refusing;
mod reloading;
mod retries;
mod rewriting;
mod routing;
mod schema;
mod support;
mod tracing;
mod trusting;
mod watching;
