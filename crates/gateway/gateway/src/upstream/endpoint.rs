//! Endpoints of upstreams: one per address, shared by all threads.

use std::net::SocketAddr;
use std::sync::Arc;

use posthaste_gateway_config as config;

use super::ejection_state::EjectionState;
use super::health::{Health, UpstreamState};
use crate::clock::now;

/// One address of an upstream, with the knowledge about it.
///
/// A resolution that lists the address again keeps the endpoint. One without it drops the endpoint, so that an address
/// that comes back starts afresh.
#[derive(Debug)]
pub(crate) struct UpstreamEndpoint {
    pub(crate) address: SocketAddr,
    pub(crate) health: Arc<Health>,
    pub(super) ejection: EjectionState,
}

/// The endpoints of an upstream, in the order of their addresses. Empty until the name of the upstream has an address.
pub(crate) type EndpointSet = Arc<[Arc<UpstreamEndpoint>]>;

impl UpstreamEndpoint {
    pub(super) fn new(address: SocketAddr, health: &config::Health) -> Self {
        Self {
            address,
            health: Arc::new(Health::new(health)),
            ejection: EjectionState::default(),
        }
    }

    /// The same address with the same health, without the statistics for ejection.
    pub(super) fn without_statistics(&self) -> Self {
        Self {
            address: self.address,
            health: self.health.clone(),
            ejection: EjectionState::default(),
        }
    }

    /// True if requests go to the address.
    pub(crate) fn is_usable(&self) -> bool {
        self.health.is_up() && !self.is_ejected()
    }

    fn is_ejected(&self) -> bool {
        self.ejection.was_ejected() && self.ejection.is_ejected(now())
    }

    /// The state for `/status`.
    pub(crate) fn state(&self) -> UpstreamState {
        match self.health.state() {
            UpstreamState::Up | UpstreamState::Unknown if self.is_ejected() => {
                UpstreamState::Ejected
            }
            state => state,
        }
    }
}

/// Returns the endpoints for `addresses`: those of `known` that stay, and new ones. `None` if nothing changes.
pub(super) fn updated(
    known: &[Arc<UpstreamEndpoint>],
    addresses: &[SocketAddr],
    health: &config::Health,
) -> Option<EndpointSet> {
    debug_assert!(
        addresses.is_sorted(),
        "addresses are not in their own order"
    );
    if known
        .iter()
        .map(|endpoint| endpoint.address)
        .eq(addresses.iter().copied())
    {
        return None;
    }
    let kept = |address: &SocketAddr| {
        let kept = known.iter().find(|endpoint| endpoint.address == *address);
        kept.cloned()
            .unwrap_or_else(|| Arc::new(UpstreamEndpoint::new(*address, health)))
    };
    Some(addresses.iter().map(kept).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_stays_keeps_its_endpoint() {
        let rules = config::Health::default();
        let addresses = |ports: &[u16]| -> Vec<SocketAddr> {
            ports
                .iter()
                .map(|port| ([127, 0, 0, 1], *port).into())
                .collect()
        };
        let first = updated(&[], &addresses(&[1, 2]), &rules).unwrap();
        assert!(updated(&first, &addresses(&[1, 2]), &rules).is_none());
        let second = updated(&first, &addresses(&[2, 3]), &rules).unwrap();
        assert!(Arc::ptr_eq(&first[1], &second[0]));
        let third = updated(&second, &addresses(&[1, 2]), &rules).unwrap();
        assert!(!Arc::ptr_eq(&first[0], &third[0]), "it was gone in between");
    }
}
