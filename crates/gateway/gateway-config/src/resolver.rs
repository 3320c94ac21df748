//! `[resolver]`: resolution of the names of upstreams.

use std::net::SocketAddr;

use posthaste_serve::ConfigError;
use posthaste_units::Span;
use schemars::JsonSchema;
use serde::Deserialize;

/// Resolution of the names of upstreams. A name is resolved again when its time to live has passed, and after a failed
/// connection.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Resolver {
    /// Name servers with their ports. Empty means those of the system, with its search domains and `/etc/hosts`.
    #[schemars(with = "Vec<String>")]
    pub servers: Vec<SocketAddr>,
    /// Lower bound on the time between two resolutions of a name. At least 100 ms.
    pub min_ttl: Span,
    /// Upper bound on it, also for names in `/etc/hosts`. At least `min_ttl`.
    pub max_ttl: Span,
}

impl Default for Resolver {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            min_ttl: Span::from_secs(1),
            max_ttl: Span::from_secs(30),
        }
    }
}

impl Resolver {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let shortest = Span::from_millis(100);
        if self.min_ttl < shortest || self.max_ttl < self.min_ttl {
            return Err(ConfigError::new(format!(
                "resolver.min_ttl is at least {shortest}, and resolver.max_ttl at least resolver.min_ttl"
            )));
        }
        Ok(())
    }
}
