//! The upstreams with their addresses on the status page.

use std::net::SocketAddr;
use std::sync::Arc;

use maud::{Markup, html};
use serde::Serialize;

use crate::routing::resolved::ResolvedConfig;
use crate::upstream::endpoint::UpstreamEndpoint;
use crate::upstream::health::UpstreamState;
use crate::upstream::target::UpstreamTarget;

/// An address of an upstream, with its state.
#[derive(Serialize)]
pub(super) struct AddressStatus {
    address: SocketAddr,
    state: UpstreamState,
}

impl AddressStatus {
    pub(super) fn all(target: &UpstreamTarget) -> Vec<Self> {
        let endpoints = target.endpoints();
        let status = |endpoint: &Arc<UpstreamEndpoint>| Self {
            address: endpoint.address,
            state: endpoint.state(),
        };
        endpoints.iter().map(status).collect()
    }
}

/// Renders the upstreams of each route.
pub(super) fn table(resolved: &ResolvedConfig) -> Markup {
    html! {
        table {
            tr { th { "Route" } th { "Upstream" } th { "State" } th { "Addresses" } }
            @for route in resolved.routes() {
                @for target in route.targets {
                    tr {
                        td { (route.label) }
                        td { (target.name) }
                        @let state = target.state().name();
                        td class=(state) { (state) }
                        td {
                            @for AddressStatus { address, state } in AddressStatus::all(target) {
                                span class=(state.name()) { (address) " " (state.name()) } " "
                            }
                        }
                    }
                }
            }
        }
    }
}
