//! The registry in `broker.toml`.

use posthaste_offers::{Document, Endpoint};
use posthaste_serve::ConfigError;
use posthaste_uddi::Version;
use posthaste_units::Span;
use serde::{Deserialize, Deserializer, de::Error as _};

use super::is_key;
use crate::sources::minute;

/// How often anybody is asked at most.
const LEAST: Span = Span::from_secs(1);

/// A registry, what it is asked for, and whom to believe.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uddi {
    /// Where it answers questions; what `GetRegistryLocation` answers.
    pub inquiry: String,
    /// The version that it is asked in: 2 or 3, the default.
    #[serde(default, deserialize_with = "version")]
    pub version: Version,
    /// Types of interface that it is asked for from the beginning, by their keys; others once a client asks.
    #[serde(default)]
    pub types: Vec<String>,
    /// Trusted providers: the keys of their businesses.
    #[serde(default)]
    pub businesses: Vec<String>,
    /// A category whose businesses are trusted, too.
    pub category: Option<Category>,
    /// Where offers may be fetched, as URLs of which scheme, host and port count.
    pub from: Vec<String>,
    /// How often it is asked for services and providers. Default 300 s.
    #[serde(default = "minutes")]
    pub ask_every: Span,
    /// How often each document with offers is fetched. Default 60 s.
    #[serde(default = "minute")]
    pub fetch_every: Span,
}

/// A category in a registry.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Category {
    /// The key of the system of categories. Only in one that the registry checks it means anything: in others every
    /// publisher can put himself.
    pub tmodel: String,
    /// The place's name, which counts among `uddi:uddi.org:categorization:general_keywords` only.
    #[serde(default)]
    pub name: String,
    /// The place.
    pub value: String,
}

fn minutes() -> Span {
    Span::from_secs(300)
}

fn version<'de, D: Deserializer<'de>>(from: D) -> Result<Version, D::Error> {
    let number = u8::deserialize(from)?;
    let unknown = || D::Error::custom(format!("there is no version {number} here: write 2 or 3"));
    Version::of(number).ok_or_else(unknown)
}

impl Uddi {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |words: String| Err(ConfigError::of(format!("uddi: {words}")));
        if self.businesses.is_empty() && self.category.is_none() {
            return wrong(
                "nobody is trusted, so nothing would be fetched: name businesses or a category"
                    .to_owned(),
            );
        }
        if let Some(key) = self.types.iter().find(|key| !is_key(key)) {
            return wrong(format!(
                "{key:?} is no key of a type: keys begin with uddi: or uuid:"
            ));
        }
        if self.ask_every < LEAST || self.fetch_every < LEAST {
            return wrong(format!(
                "ask_every and fetch_every must be at least {LEAST}"
            ));
        }
        let asked = Endpoint::new(&self.inquiry).err();
        let fetched = self.from.iter().find_map(|url| Document::new(url).err());
        match asked.or(fetched) {
            Some(error) => wrong(error.to_string()),
            None => Ok(()),
        }
    }
}
