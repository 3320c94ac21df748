//! The tests with real foreign software: their list and their execution.
//!
//! A peer that cannot be installed is a skip with a reason. In CI every peer must exist, so a skip counts as a failure.

mod actions;
pub(crate) mod broker;
pub(crate) mod charges;
mod cut_off;
mod demo;
mod documentation;
pub(crate) mod gateway;
pub(crate) mod generators;
mod hostile;
mod htb;
mod http3;
mod juddi;
pub(crate) mod namespace;
mod nats;
mod packetdrill;
mod prometheus;
mod reply_forms;
mod rpc;
mod rpc_load;
mod self_signed;
mod servers;
pub(crate) mod stores;
mod streams;
pub(crate) mod toolkits;

use std::process::ExitCode;
use std::time::Instant;

use posthaste_harness::peers::PeerResult;
use posthaste_harness::tally::{self, TestTally};

use crate::builds::Build;
use crate::checkout::Checkout;
use crate::error::{Outcome, TaskError};
use crate::site::Site;

/// A peer test: its name, as in `conformance/peers.txt`, which also has its description, and its function.
pub(crate) type Peer = (&'static str, fn(&Site) -> Outcome<()>);

/// All peer tests, in their order of execution.
pub(crate) const PEERS: &[Peer] = &[
    ("zeep", toolkits::zeep),
    ("cxf", toolkits::cxf),
    ("node-soap", toolkits::node_soap),
    ("gsoap", toolkits::gsoap),
    ("php", toolkits::php),
    ("curl", generators::curl),
    ("grpc-bookshop", rpc::grpcio),
    ("grpcurl", rpc::grpcurl),
    ("grpc-load", rpc_load::grpc_load),
    ("wrk", generators::wrk),
    ("nginx", servers::nginx),
    ("nginx-tls", servers::nginx_tls),
    ("http2-logs", streams::logs),
    ("http2-due-times", streams::due_times),
    ("http3-logs", http3::logs),
    ("self-signed", self_signed::self_signed),
    ("wsdl-load", servers::from_wsdl),
    ("garbage", hostile::garbage),
    ("reply-forms", reply_forms::reply_forms),
    ("gateway", gateway::curl),
    ("gateway-connections", gateway::connections),
    ("gateway-load", gateway::load),
    ("gateway-php", gateway::php),
    ("gateway-traces", gateway::traces),
    ("grpc", gateway::grpc),
    ("websocket", gateway::websocket),
    ("prometheus", prometheus::prometheus),
    ("gateway-strict", gateway::strict),
    ("gateway-differ", gateway::differ),
    ("gateway-parsers", gateway::parsers),
    ("gateway-forwarding", gateway::forwarding),
    ("gateway-crowd", gateway::crowd),
    ("gateway-changes", gateway::changes),
    ("broker", broker::python),
    ("juddi", juddi::juddi),
    ("postgres", stores::postgres),
    ("postgres-cut-off", cut_off::for_a_minute),
    ("nats", nats::nats),
    ("charges", charges::charges),
    ("packetdrill", packetdrill::packetdrill),
    ("actions", actions::action),
    ("htb", htb::htb),
    ("demo", demo::browser),
    ("site", documentation::site),
    ("overload", namespace::overload),
];

/// Runs all peer tests or one, with a line for each on standard output. Without `is_part` of a longer run, the last
/// lines are the names of what failed, and `N passed, N failed`.
pub(crate) fn run(checkout: Checkout, only: Option<&str>, is_part: bool) -> Outcome<ExitCode> {
    let chosen: Vec<&Peer> = PEERS
        .iter()
        .filter(|(name, _)| only.is_none_or(|only| only == *name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = PEERS.iter().map(|(name, _)| *name).collect();
        return Err(TaskError::Failed(format!(
            "no such peer test; there are {}",
            names.join(", ")
        )));
    }
    let build = if is_part { Build::Tested } else { Build::Dev };
    let site = Site::new(checkout, build)?;
    let mut tally = TestTally::default();
    for (name, test) in chosen {
        let since = Instant::now();
        let result = result(test(&site));
        println!("{}", result.line(name, since.elapsed().as_secs_f64()));
        tally.add_peer(name, &result);
    }
    Ok(if is_part {
        ExitCode::SUCCESS
    } else {
        tally::report(&[("peers", tally)])
    })
}

/// In CI every peer must exist.
fn result(outcome: Outcome<()>) -> PeerResult {
    let is_strict = std::env::var_os("CI").is_some_and(|value| value == "true");
    match outcome {
        Ok(()) => PeerResult::Passed,
        Err(TaskError::Missing(why)) if !is_strict => PeerResult::Skipped(why),
        Err(error) => PeerResult::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use posthaste_harness::peers::names;

    use super::PEERS;

    #[test]
    fn the_list_names_every_peer_test() {
        let listed = names(include_str!("../peers.txt"));
        let tests: Vec<&str> = PEERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(listed, tests, "conformance/peers.txt, and PEERS");
    }
}
