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
}
