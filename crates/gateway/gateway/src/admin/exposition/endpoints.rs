//! Addresses of upstreams, resolutions of their names, retries and ejections.

use std::fmt::Error;

use posthaste_serve::exposition::{counters, gauges};
use prometheus_client::encoding::DescriptorEncoder;

use super::load;
use crate::record::upstream_counters::{EJECTIONS, RETRIES, UpstreamCounters};
use crate::routing::resolved::ResolvedConfig;
use crate::upstream::health::UpstreamState;
use crate::upstream::resolution::LOOKUPS;

/// Encodes the addresses of each upstream by state, and the lookups of each name by outcome.
pub(super) fn encode(out: &mut DescriptorEncoder, resolved: &ResolvedConfig) -> Result<(), Error> {
    let rows = resolved.routes().flat_map(|route| {
        let label = route.label;
        route.targets.iter().flat_map(move |target| {
            let endpoints = target.endpoints();
            UpstreamState::OF_ENDPOINTS.map(|state| {
                let in_state = endpoints
                    .iter()
                    .filter(|endpoint| endpoint.state() == state);
                let labels = [
                    ("route", label),
                    ("upstream", &*target.name),
                    ("state", state.name()),
                ];
                (labels, in_state.count() as f64)
            })
        })
    });
    gauges(
        out,
        "upstream_addresses",
        "Addresses of an upstream, by state",
        rows,
    )?;

    let rows = resolved.routes().flat_map(|route| {
        let label = route.label;
        let named = route.targets.iter();
        let named = named.filter_map(|target| Some((&*target.name, target.host_name.as_ref()?)));
        named.flat_map(move |(name, host)| {
            let counts = LOOKUPS.iter().zip(&host.lookups);
            counts.map(move |(outcome, count)| {
                let labels = [("route", label), ("upstream", name), ("outcome", *outcome)];
                (labels, load(count))
            })
        })
    });
    let help = "Resolutions of the name of an upstream after the first, by outcome";
    counters(out, "upstream_resolutions", help, rows)
}

/// Encodes the counters of retries and ejections.
pub(super) fn encode_counters(
    out: &mut DescriptorEncoder,
    upstreams: &UpstreamCounters,
) -> Result<(), Error> {
    let retries = RETRIES.iter().zip(&upstreams.retries);
    let rows = retries.map(|(reason, count)| ([("reason", *reason)], load(count)));
    counters(out, "retries", "Requests sent again, by reason", rows)?;
    let help = "Requests not sent again because the budget of retries was used";
    let refused = load(&upstreams.retries_refused);
    counters(out, "retries_refused", help, [([], refused)])?;
    let ejections = EJECTIONS.iter().zip(&upstreams.ejections);
    let rows = ejections.map(|(outcome, count)| ([("outcome", *outcome)], load(count)));
    let help = "Addresses ejected by reason, and failures after which ejection was not permitted";
    counters(out, "ejections", help, rows)
}
