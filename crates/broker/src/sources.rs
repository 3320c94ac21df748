//! Offers that the broker fetches from providers, again and again: a `.wsqos` document, or one inside a WSDL.
//!
//! Only what the configuration names is fetched. A document may include others from where it came itself, by scheme,
//! host and port, so that no provider has the broker ask whom it likes. What fails is told once and tried again; what was
//! offered before stands until it expires.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::JoinHandle;

use posthaste_offers::Document as Remote;
use posthaste_soap::Limits;
use posthaste_soap::xml::{Scanner, Token, decode};
use posthaste_units::Span;
use posthaste_wsqos::qos::{Document, NAMESPACES, Offer, Offers, bounds};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::keeper::Keeper;
use crate::metrics::Metrics;
use crate::offered::replacement;
use crate::registry::Registry;
use crate::store::{Condition, Write};

/// Documents that one source may come to.
const DOCUMENTS: usize = 64;

/// In the log, for what the broker has fetched itself.
const NO_TOKEN: u64 = 0;

/// Where a provider's offers for a type are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The type of interface.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whose offers they are.
    pub provider: String,
    /// Where the document is.
    pub url: String,
    /// How often to fetch it. Default 60 s.
    #[serde(default = "minute")]
    pub every: Span,
}

fn minute() -> Span {
    Span::from_secs(60)
}

/// What the fetching tasks use.
#[derive(Clone)]
pub(crate) struct Shelves {
    pub(crate) registry: Arc<Registry>,
    pub(crate) keeper: Keeper,
    pub(crate) metrics: Arc<Metrics>,
}

/// The thread that fetches. Dropping it ends it.
pub(crate) struct Fetching {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Fetching {
    /// Begins to fetch every source.
    pub(crate) fn start(sources: Vec<Source>, shelves: &Shelves) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, mut stopped) = watch::channel(false);
        let shelves = shelves.clone();
        let body = move || {
            runtime.block_on(async move {
                let mut tasks = JoinSet::new();
                for source in sources {
                    tasks.spawn(keep_fetching(source, shelves.clone()));
                }
                // Dropped or told: either is the end, and the tasks end with it.
                let _ = stopped.changed().await;
            });
        };
        let thread = std::thread::Builder::new()
            .name("fetch".to_owned())
            .spawn(body)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            tracing::error!("the thread that fetches offers has panicked");
        }
    }
}

async fn keep_fetching(source: Source, shelves: Shelves) {
    let mut failing = false;
    loop {
        let outcome = fetch(&source, &shelves).await;
        shelves.metrics.count_fetch(outcome.is_ok());
        match outcome {
            Ok(0) if !failing => {}
            Ok(changes) => tracing::info!(url = source.url, changes, "offers fetched"),
            Err(ref words) if !failing => tracing::warn!(url = source.url, "no offers: {words}"),
            Err(_) => {}
        }
        failing = outcome.is_err();
        tokio::time::sleep(source.every.into()).await;
    }
}

/// Brings what there is of a source into the store; how many offers have changed.
async fn fetch(source: &Source, shelves: &Shelves) -> Result<usize, String> {
    let offers = offers_at(&source.url).await?;
    let changes = replacement(&shelves.registry, &source.kind, &source.provider, offers)?;
    let count = changes.len();
    if count > 0 {
        let only_if = Condition::Any;
        let write = Write {
            by: NO_TOKEN,
            changes,
            only_if,
        };
        shelves
            .keeper
            .write(write)
            .await
            .map_err(|error| error.to_string())?;
    }
    Ok(count)
}

/// The offers of a document and of those that it includes, each document once.
async fn offers_at(url: &str) -> Result<Vec<Offer>, String> {
    let first = Remote::new(url).map_err(|error| error.to_string())?;
    let mut seen = BTreeSet::from([first.url().to_owned()]);
    let mut waiting = vec![first.clone()];
    let mut offers = Vec::new();
    while let Some(document) = waiting.pop() {
        let at = |words: String| format!("{}: {words}", document.url());
        let bytes = document
            .fetch(bounds::BYTES)
            .await
            .map_err(|error| at(error.to_string()))?;
        let found = read(&bytes).map_err(at)?;
        offers.extend(found.offers);
        if offers.len() > bounds::OFFERS {
            return Err(at(format!("more than {} offers in all", bounds::OFFERS)));
        }
        for url in found.includes {
            let included = document
                .relative(&url)
                .map_err(|error| at(error.to_string()))?;
            if !included.is_beside(&first) {
                return Err(at(format!(
                    "includes {url:?}, which is elsewhere: name it as a source of its own"
                )));
            }
            if seen.len() == DOCUMENTS {
                return Err(at(format!("includes more than {DOCUMENTS} documents")));
            }
            if seen.insert(included.url().to_owned()) {
                waiting.push(included);
            }
        }
    }
    Ok(offers)
}

/// The offers in a `.wsqos` document, or in one that is a child of a WSDL's service or port.
fn read(bytes: &[u8]) -> Result<Offers, String> {
    let limits = Limits {
        total: bounds::BYTES,
        ..Limits::default()
    };
    let text = decode(bytes, &limits).map_err(|error| error.to_string())?;
    let mut scanner = Scanner::new(&text, &limits);
    loop {
        match scanner.token().map_err(|error| error.to_string())? {
            Token::Start(name)
                if name.local == "wsqos"
                    && (name.namespace.is_empty() || NAMESPACES.contains(&&*name.namespace)) =>
            {
                break;
            }
            Token::Eof => return Err("there is no element wsqos in it".to_owned()),
            _ => {}
        }
    }
    match Document::read_from(&mut scanner).map_err(|error| error.to_string())? {
        Document::Offers(offers) => Ok(offers),
        _ => Err("there are no offers in it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFERS: &str = include_str!("../../../examples/offers.wsqos");

    #[test]
    fn offers_are_found_in_a_document_and_inside_a_wsdl() {
        let bare = OFFERS.split_once("?>").unwrap().1;
        let inside = |service: &str| {
            format!(
                "<w:definitions xmlns:w=\"http://schemas.xmlsoap.org/wsdl/\"><w:types/><w:service name=\"B\">{service}</w:service></w:definitions>"
            )
        };
        for text in [
            OFFERS.to_owned(),
            inside(&format!("<w:port name=\"P\"/>{bare}")),
            inside(&format!("<w:port name=\"P\">{bare}</w:port>")),
        ] {
            let names: Vec<String> = read(text.as_bytes())
                .unwrap()
                .offers
                .into_iter()
                .map(|offer| offer.name)
                .collect();
            assert_eq!(names, ["Gold", "Silver"]);
        }
        for (text, words) in [
            (inside(""), "no element wsqos"),
            (
                "<wsqos><definition><requirements/></definition></wsqos>".to_owned(),
                "no offers",
            ),
            ("<wsqos".to_owned(), "byte"),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
