//! UDDI registry in `broker.toml`.

use posthaste_broker_client::{Endpoint, RemoteDocument};
use posthaste_serve::ConfigError;
use posthaste_units::Span;
use serde::{Deserialize, Deserializer, de::Error as _};

use super::is_key;
use super::messages::Version;
use crate::fetching::config::minute;

/// Minimum query and fetch interval.
const LEAST: Span = Span::from_secs(1);

/// A UDDI registry, the types to query, and the trusted providers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uddi {
    /// URL of the inquiry API. Also the answer to `GetRegistryLocation`.
    pub inquiry: String,
    /// UDDI version of the queries: 2 or 3. Default 3.
    #[serde(default, deserialize_with = "version")]
    pub version: Version,
    /// Keys of the interface types queried from the start. Others are added when a client requests them.
    #[serde(default)]
    pub types: Vec<String>,
    /// Trusted providers, as business keys.
    #[serde(default)]
    pub businesses: Vec<String>,
    /// Category whose businesses are also trusted.
    pub category: Option<Category>,
    /// Origins from which offers may be fetched: scheme, host and port of these URLs.
    pub from: Vec<String>,
    /// Query interval for services and providers. Default 300 s.
    #[serde(default = "minutes")]
    pub ask_every: Span,
    /// Fetch interval of each document with offers. Default 60 s.
    #[serde(default = "minute")]
    pub fetch_every: Span,
}

/// A category in a registry.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Category {
    /// Key of the category system. Use a system that the registry checks; in others every publisher can categorise
    /// itself.
    pub tmodel: String,
    /// Name of the category. Only significant in `uddi:uddi.org:categorization:general_keywords`.
    #[serde(default)]
    pub name: String,
    /// Value of the category.
    pub value: String,
}

fn minutes() -> Span {
    Span::from_secs(300)
}

fn version<'de, D: Deserializer<'de>>(from: D) -> Result<Version, D::Error> {
    let number = u8::deserialize(from)?;
    let unknown = || D::Error::custom(format!("there is no version {number} here: write 2 or 3"));
    Version::from_number(number).ok_or_else(unknown)
}

impl Uddi {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |reason: String| Err(ConfigError::new(format!("uddi: {reason}")));
        if self.businesses.is_empty() && self.category.is_none() {
            return wrong(
                "no provider is trusted, so that nothing would be fetched: set businesses or category"
                    .to_owned(),
            );
        }
        if let Some(key) = self.types.iter().find(|key| !is_key(key)) {
            return wrong(format!(
                "{key:?} is not the key of a type: keys begin with uddi: or uuid:"
            ));
        }
        if self.ask_every < LEAST || self.fetch_every < LEAST {
            return wrong(format!(
                "ask_every and fetch_every must be at least {LEAST}"
            ));
        }
        let inquiry_error = Endpoint::new(&self.inquiry).err();
        let fetched = self
            .from
            .iter()
            .find_map(|url| RemoteDocument::new(url).err());
        match inquiry_error.or(fetched) {
            Some(error) => wrong(error.to_string()),
            None => Ok(()),
        }
    }
}
