//! What a broker is told: `broker.toml`, checked whole before anything starts.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use posthaste_serve::{ConfigError, Timeouts, read_config};
use posthaste_units::Span;
use posthaste_wsqos::index;
use posthaste_wsqos::qos::{Currency, Document, Ontologies, Rates};
use serde::{Deserialize, Deserializer};

use crate::offered::fault_of_name;
use crate::prototype::Design;
use crate::sources::Source;
use crate::store::Place;
use crate::uddi::Uddi;

/// How often a source is fetched at most.
const LEAST: Span = Span::from_secs(1);

/// A broker's configuration. Every key has a default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where clients connect; port 0 takes any free one. Default 127.0.0.1:8090.
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    /// Where offers are kept. Default `sqlite:posthaste-offers.db`; a broker that follows another keeps none.
    #[serde(deserialize_with = "store")]
    pub store: Place,
    /// The URL of a broker whose changes this one follows, in place of a store.
    pub follow: Option<String>,
    /// Event loops, each with a thread of its own. Default 1.
    pub threads: usize,
    /// Processors for those threads, in turn; empty leaves them free.
    pub cpus: Vec<usize>,
    /// Connections that wait in the kernel to be accepted. Default 1024.
    pub backlog: u32,
    /// Connections in service at most; default as many as there are descriptors.
    pub connections: Option<usize>,
    /// Changes that the store's log keeps: for readers that come back, and as the record of who changed what.
    /// Default 1,000,000.
    pub changes: usize,
    /// Limits on offers and on changes.
    pub limits: Limits,
    /// A registry that says which services and trusted providers there are.
    pub uddi: Option<Uddi>,
    /// Certificate chain and key, for HTTPS.
    pub tls: Option<Tls>,
    /// What prices are compared in.
    pub currency: Money,
    /// What names of metrics mean.
    #[serde(rename = "ontology")]
    pub ontologies: Vec<Definitions>,
    /// Offers that the broker fetches itself.
    #[serde(rename = "source")]
    pub sources: Vec<Source>,
    /// Time limits of a connection; not to be had from a file.
    #[serde(skip)]
    pub timeouts: Timeouts,
    /// A machine so many times slower than this one: each request costs this multiple of its own processor time.
    /// Default 1; for experiments, and not to be had from a file.
    #[serde(skip)]
    pub slowdown: u32,
    /// Another way to find the best offer, of those that there are at the start; for experiments, and not to be had
    /// from a file.
    #[serde(skip)]
    pub prototype: Option<Design>,
}

/// Limits on offers and on changes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Offers in all. Default 1,000,000.
    pub offers: usize,
    /// Offers for one type of interface. Default 1,000,000.
    pub per_type: usize,
    /// Offers of one provider. Default 100,000.
    pub per_provider: usize,
    /// Memory of all offers, in bytes, about. Default 536,870,912 (512 MiB).
    pub bytes: usize,
    /// Offers that one token may change within a minute. Default 60,000.
    pub changes_per_minute: u32,
}

/// PEM files.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate chain, the server's own first.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Currencies.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Money {
    /// The one that the others are counted in. Default EUR.
    pub base: Currency,
    /// What one of each other is worth in the base.
    pub worth: BTreeMap<Currency, f64>,
}

/// An ontology in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definitions {
    /// The URL by which offers and requirements refer to it.
    pub url: String,
    /// A `.wsqos` document with an `ontology`.
    pub file: PathBuf,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: ([127, 0, 0, 1], 8090).into(),
            store: Place::Sqlite("posthaste-offers.db".into()),
            follow: None,
            threads: 1,
            cpus: Vec::new(),
            backlog: 1024,
            connections: None,
            changes: 1_000_000,
            limits: Limits::default(),
            uddi: None,
            tls: None,
            currency: Money::default(),
            ontologies: Vec::new(),
            sources: Vec::new(),
            timeouts: Timeouts::default(),
            slowdown: 1,
            prototype: None,
        }
    }
}

impl Default for Limits {
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

impl Limits {
    /// Those on what is offered.
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
            Some((name, _)) => Err(ConfigError::of(format!("limits.{name} must be at least 1"))),
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

impl Config {
    /// Reads a `broker.toml`. Files that it names are looked for beside it, in `folder`.
    pub fn read(text: &str, folder: &Path) -> Result<Self, ConfigError> {
        let mut config: Self = read_config(text)?;
        if config.threads == 0 {
            return Err(ConfigError::of("threads must be at least 1"));
        }
        for ontology in &mut config.ontologies {
            ontology.file = folder.join(&ontology.file);
        }
        config.store = config.store.beside(folder);
        for source in &config.sources {
            let names = [&source.kind, &source.provider].map(|name| fault_of_name(name));
            if let Some(words) = names.into_iter().flatten().next() {
                return Err(ConfigError::of(format!("source {:?}: {words}", source.url)));
            }
            if source.every < LEAST {
                return Err(ConfigError::of(format!(
                    "source {:?}: every must be at least {LEAST}",
                    source.url
                )));
            }
        }
        for (index, source) in config.sources.iter().enumerate() {
            let same = |other: &&Source| {
                (&other.kind, &other.provider) == (&source.kind, &source.provider)
            };
            if let Some(other) = config.sources[..index].iter().find(same) {
                return Err(ConfigError::of(format!(
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

    /// Refuses what cannot be used, whether a file or the command line has said so.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.follow.is_some() && (self.uddi.is_some() || !self.sources.is_empty()) {
            return Err(ConfigError::of(
                "a broker that follows another fetches no offers: leave out follow, or uddi and every source",
            ));
        }
        self.limits.check()?;
        self.rates().map(drop)
    }

    /// What currencies are worth.
    pub(crate) fn rates(&self) -> Result<Rates, ConfigError> {
        let mut rates = Rates::new(self.currency.base);
        for (currency, worth) in &self.currency.worth {
            let set = rates.set(*currency, *worth);
            set.map_err(|error| ConfigError::of(format!("currency.worth: {error}")))?;
        }
        Ok(rates)
    }

    /// What names mean.
    pub(crate) fn ontologies(&self) -> Result<Ontologies, ConfigError> {
        let mut known = Ontologies::new();
        for Definitions { url, file } in &self.ontologies {
            let wrong = |error: String| ConfigError::of(format!("{}: {error}", file.display()));
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

fn store<'de, D: Deserializer<'de>>(from: D) -> Result<Place, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(serde::de::Error::custom)
}
