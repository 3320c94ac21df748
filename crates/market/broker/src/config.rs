//! Configuration of the broker: `broker.toml`, validated completely before anything starts.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use posthaste_qos::index;
use posthaste_qos::{Currency, Document, Ontologies, Rates};
use posthaste_serve::{ConfigError, Timeouts, read_config};
use posthaste_units::Span;
use serde::{Deserialize, Deserializer};

use crate::fetching::config::SourceConfig;
use crate::offered::fault_of_name;
use crate::store::StoreUrl;
use crate::uddi::Uddi;

/// Minimum interval between two fetches of a source.
const LEAST: Span = Span::from_secs(1);

/// A broker's configuration. Every key has a default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BrokerConfig {
    /// Listening address; port 0 selects a free port. Default 127.0.0.1:8090.
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    /// Store of the offers. Default `sqlite:posthaste-offers.db`. Unused by a broker that follows another.
    #[serde(deserialize_with = "store")]
    pub store: StoreUrl,
    /// URL of a broker to follow. Replaces the store.
    pub follow: Option<String>,
    /// Number of event loops, each with its own thread. Default 1.
    pub threads: usize,
    /// Processors for those threads, in turn. Empty: no pinning.
    pub cpus: Vec<usize>,
    /// Length of the kernel's accept queue. Default 1024.
    pub backlog: u32,
    /// Maximum number of connections. Default: the limit of open files.
    pub connections: Option<usize>,
    /// Number of changes that the store's log keeps, for reconnecting readers and as audit record. Default 1,000,000.
    pub changes: usize,
    /// Limits on offers and changes.
    pub limits: OfferLimits,
    /// Limits on accounts and charges.
    pub accounts: AccountLimits,
    /// UDDI registry that lists services and trusted providers.
    pub uddi: Option<Uddi>,
    /// Certificate chain and private key, for HTTPS.
    pub tls: Option<Tls>,
    /// Currencies and their exchange rates, for the comparison of prices.
    pub currency: Money,
    /// Ontologies that define metric names.
    #[serde(rename = "ontology")]
    pub ontologies: Vec<Definitions>,
    /// Documents with offers that the broker fetches.
    #[serde(rename = "source")]
    pub sources: Vec<SourceConfig>,
    /// Time limits of a connection. Not settable in the file.
    #[serde(skip)]
    pub timeouts: Timeouts,
}

/// Limits on offers and changes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OfferLimits {
    /// Maximum number of offers. Default 1,000,000.
    pub offers: usize,
    /// Maximum number of offers per interface type. Default 1,000,000.
    pub per_type: usize,
    /// Maximum number of offers per provider. Default 100,000.
    pub per_provider: usize,
    /// Approximate maximum memory of all offers, in bytes. Default 536,870,912 (512 MiB).
    pub bytes: usize,
    /// Maximum number of offers that one token may change per minute. Default 60,000.
    pub changes_per_minute: u32,
}

/// Limits on accounts and charges.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccountLimits {
    /// Maximum number of accounts, closed ones included. Default 100,000.
    pub most: usize,
    /// Number of booked charges that the store keeps, as audit record. Default 10,000,000.
    pub charges: usize,
}

/// PEM files for TLS.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Certificate chain, starting with the server's own certificate.
    pub certificate: PathBuf,
    /// Private key.
    pub key: PathBuf,
}

/// Currencies and exchange rates.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Money {
    /// Base currency. Default EUR.
    pub base: Currency,
    /// Value of one unit of each other currency, in the base currency.
    pub worth: BTreeMap<Currency, f64>,
}

/// An ontology file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definitions {
    /// URL that offers and requirements use to refer to the ontology.
    pub url: String,
    /// `.wsqos` document with an `ontology` element.
    pub file: PathBuf,
}

impl Default for BrokerConfig {
    fn default() -> Self {
        Self {
            listen: ([127, 0, 0, 1], 8090).into(),
            store: StoreUrl::Sqlite("posthaste-offers.db".into()),
            follow: None,
            threads: 1,
            cpus: Vec::new(),
            backlog: 1024,
            connections: None,
            changes: 1_000_000,
            limits: OfferLimits::default(),
            accounts: AccountLimits::default(),
            uddi: None,
            tls: None,
            currency: Money::default(),
            ontologies: Vec::new(),
            sources: Vec::new(),
            timeouts: Timeouts::default(),
        }
    }
}

impl Default for OfferLimits {
    fn default() -> Self {
        let index::Limits {
            offers,
            per_type,
            per_provider,
            bytes,
        } = index::Limits::default();
        Self {
            offers,
            per_type,
            per_provider,
            bytes,
            changes_per_minute: 60_000,
        }
    }
}

impl Default for AccountLimits {
    fn default() -> Self {
        Self {
            most: 100_000,
            charges: 10_000_000,
        }
    }
}

impl OfferLimits {
    /// Limits that the index enforces.
    pub(crate) const fn held(&self) -> index::Limits {
        index::Limits {
            offers: self.offers,
            per_type: self.per_type,
            per_provider: self.per_provider,
            bytes: self.bytes,
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let all = [
            ("offers", self.offers),
            ("per_type", self.per_type),
            ("per_provider", self.per_provider),
            ("bytes", self.bytes),
            ("changes_per_minute", self.changes_per_minute as usize),
        ];
        match all.into_iter().find(|(_, most)| *most == 0) {
            Some((name, _)) => Err(ConfigError::new(format!(
                "limits.{name} must be at least 1"
            ))),
            None => Ok(()),
        }
    }
}

impl Default for Money {
    fn default() -> Self {
        Self {
            base: "EUR".parse().expect("a currency"),
            worth: BTreeMap::new(),
        }
    }
}

impl BrokerConfig {
    /// Parses and validates a `broker.toml`. Relative paths in it are resolved against `folder`.
    pub fn read(text: &str, folder: &Path) -> Result<Self, ConfigError> {
        let mut config: Self = read_config(text)?;
        if config.threads == 0 {
            return Err(ConfigError::new("threads must be at least 1"));
        }
        for ontology in &mut config.ontologies {
            ontology.file = folder.join(&ontology.file);
        }
        config.store = config.store.beside(folder);
        for source in &config.sources {
            let names = [&source.kind, &source.provider].map(|name| fault_of_name(name));
            if let Some(reason) = names.into_iter().flatten().next() {
                return Err(ConfigError::new(format!(
                    "source {:?}: {reason}",
                    source.url
                )));
            }
            if source.every < LEAST {
                return Err(ConfigError::new(format!(
                    "source {:?}: every must be at least {LEAST}",
                    source.url
                )));
            }
        }
        for (index, source) in config.sources.iter().enumerate() {
            let same = |other: &&SourceConfig| {
                (&other.kind, &other.provider) == (&source.kind, &source.provider)
            };
            if let Some(other) = config.sources[..index].iter().find(same) {
                return Err(ConfigError::new(format!(
                    "sources {:?} and {:?} have one type and one provider, and each would withdraw what the other offers: have one document include the other",
                    other.url, source.url
                )));
            }
        }
        if let Some(uddi) = &config.uddi {
            uddi.check()?;
        }
        config.check()?;
        Ok(config)
    }

    /// Validates the configuration, from a file or from the command line.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.follow.is_some() && (self.uddi.is_some() || !self.sources.is_empty()) {
            return Err(ConfigError::new(
                "a broker that follows another fetches no offers: leave out follow, or uddi and every source",
            ));
        }
        self.limits.check()?;
        self.rates().map(drop)
    }

    /// Exchange rates of the currencies.
    pub(crate) fn rates(&self) -> Result<Rates, ConfigError> {
        let mut rates = Rates::new(self.currency.base);
        for (currency, worth) in &self.currency.worth {
            let set = rates.set(*currency, *worth);
            set.map_err(|error| ConfigError::new(format!("currency.worth: {error}")))?;
        }
        Ok(rates)
    }

    /// Reads the ontology files.
    pub(crate) fn ontologies(&self) -> Result<Ontologies, ConfigError> {
        let mut known = Ontologies::new();
        for Definitions { url, file } in &self.ontologies {
            let wrong = |error: String| ConfigError::new(format!("{}: {error}", file.display()));
            let bytes = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
            let document = Document::read(&bytes).map_err(|error| wrong(error.to_string()))?;
            let Document::Ontology(ontology) = document else {
                return Err(wrong("there is no ontology in it".to_owned()));
            };
            known.insert(url.clone(), ontology);
        }
        Ok(known)
    }
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    posthaste_serve::listen_address(&text).map_err(serde::de::Error::custom)
}

fn store<'de, D: Deserializer<'de>>(from: D) -> Result<StoreUrl, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(serde::de::Error::custom)
}
