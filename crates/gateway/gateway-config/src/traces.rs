//! `[traces]`: the traced requests and the collector of their spans.

use posthaste_units::Ratio;
use schemars::JsonSchema;
use serde::Deserialize;

/// Spans for an OpenTelemetry collector.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Traces {
    /// URL of an OTLP over HTTP endpoint, for example `http://127.0.0.1:4318/v1/traces`.
    pub collector: String,
    /// Share of requests traced if the client has not decided.
    #[serde(default = "one_percent")]
    pub share: Ratio,
    /// `service.name` of the spans.
    #[serde(default = "name")]
    pub service: String,
}

fn one_percent() -> Ratio {
    Ratio::new(0.01).expect("a share")
}

fn name() -> String {
    "posthaste-gateway".to_owned()
}
