//! Documents with offers in `broker.toml`.

use posthaste_units::Span;
use serde::Deserialize;

/// Document with a provider's offers for a type.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceConfig {
    /// Interface type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Provider of the offers.
    pub provider: String,
    /// URL of the document.
    pub url: String,
    /// Fetch interval. Default 60 s.
    #[serde(default = "minute")]
    pub every: Span,
}

pub(crate) fn minute() -> Span {
    Span::from_secs(60)
}
