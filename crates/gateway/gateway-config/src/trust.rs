//! `[trust]`: networks whose statements about clients are believed.

use posthaste_serve::Networks;
use schemars::JsonSchema;
use serde::Deserialize;

/// Networks whose statements about clients are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trust {
    /// Networks, such as `10.0.0.0/8`, or addresses of load balancers that begin each connection with the header of the
    /// PROXY protocol, version 1 or 2. Their connections without one are closed; from all others it is an error.
    #[schemars(with = "Vec<String>")]
    pub proxy_protocol: Networks,
    /// Networks or addresses of proxies whose `Forwarded` and `X-Forwarded-*` fields are believed and extended. From all
    /// others these fields are replaced.
    #[schemars(with = "Vec<String>")]
    pub forwarded: Networks,
    /// The only field in which these proxies name their client. Without it, both are read, and `X-Forwarded-For` counts
    /// where they differ. Name the one that they write, if they forward the other as a client sent it.
    pub field: Option<ForwardingField>,
}

/// A field in which a proxy names its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum ForwardingField {
    /// `X-Forwarded-For`.
    #[serde(rename = "x-forwarded-for")]
    ForwardedFor,
    /// `Forwarded` (RFC 7239).
    #[serde(rename = "forwarded")]
    Forwarded,
}
