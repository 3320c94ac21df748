//! `[log]`: format of the access log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Format of the access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// Format of a line.
    pub format: LogFormat,
    /// Treatment of the query of a URL, which may contain secrets. Applies to the request and to its field `Referer`.
    pub query: QueryLogging,
}

/// Format of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum LogFormat {
    /// One JSON object.
    #[default]
    Json,
    /// The combined log format of Apache and nginx.
    Combined,
}

/// Treatment of the query of a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum QueryLogging {
    /// Names of parameters, with `*` for their values. A parameter without a name is a value.
    #[default]
    Redact,
    /// As received.
    Keep,
    /// Not logged.
    Omit,
}
