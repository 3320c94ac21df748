//! `[drain]`: the time between a signal to stop and the end of service.

use posthaste_units::Span;
use schemars::JsonSchema;
use serde::Deserialize;

/// The time between a signal to stop and the end of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DrainConfig {
    /// Time after SIGTERM or SIGINT in which `/healthz` answers 503 and clients are still served. Then the gateway
    /// accepts no more connections, and requests in service have `timeouts.grace`. A second signal ends the time.
    pub delay: Span,
}

impl Default for DrainConfig {
    fn default() -> Self {
        Self { delay: Span::ZERO }
    }
}
