//! Which requests are traced, and who hears of it.

use posthaste_units::Ratio;
use serde::Deserialize;

/// Spans for an OpenTelemetry collector.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traces {
    /// Where the collector takes traces as OTLP over HTTP: `http://127.0.0.1:4318/v1/traces`.
    pub collector: String,
    /// The share of requests that are traced where the client has not decided. Default 1 %.
    #[serde(default = "one_percent")]
    pub share: Ratio,
    /// What this gateway is called there (`service.name`). Default `posthaste-gateway`.
    #[serde(default = "name")]
    pub service: String,
}

fn one_percent() -> Ratio {
    Ratio::new(0.01).expect("a share")
}

fn name() -> String {
    "posthaste-gateway".to_owned()
}
