//! Addresses of upstreams, and resolutions of their names.

use std::fmt::Error;

use posthaste_serve::exposition::{counters, gauges};
use prometheus_client::encoding::DescriptorEncoder;

use super::load;
use crate::routing::resolved::ResolvedConfig;
use crate::upstream::health::UpstreamState;
use crate::upstream::resolution::LOOKUPS;

/// Encodes the addresses of each upstream by state, and the lookups of each name by outcome.
pub(super) fn encode(out: &mut DescriptorEncoder, resolved: &ResolvedConfig) -> Result<(), Error> {
    let rows = resolved.routes().flat_map(|route| {
        let path = &*route.config.path;
        route.targets.iter().flat_map(move |target| {
            let endpoints = target.endpoints();
            UpstreamState::ALL.map(|state| {
                let in_state = endpoints
                    .iter()
                    .filter(|endpoint| endpoint.state() == state);
                let labels = [
                    ("route", path),
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
        let path = &*route.config.path;
        let named = route.targets.iter();
        let named = named.filter_map(|target| Some((&*target.name, target.host_name.as_ref()?)));
        named.flat_map(move |(name, host)| {
            let counts = LOOKUPS.iter().zip(&host.lookups);
            counts.map(move |(outcome, count)| {
                let labels = [("route", path), ("upstream", name), ("outcome", *outcome)];
                (labels, load(count))
            })
        })
    });
    let help = "Resolutions of the name of an upstream after the first, by outcome";
    counters(out, "upstream_resolutions", help, rows)
}
