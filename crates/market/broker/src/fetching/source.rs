//! Offer source: the offers of one provider for one interface type, polled from one or several documents.
//!
//! A document that cannot be fetched or is invalid is logged once and retried. Its earlier offers stay until they
//! expire. The provider's other documents are not affected.

use std::collections::BTreeSet;

use jiff::Timestamp;
use posthaste_qos::{Offer, bounds};
use posthaste_units::Span;

use super::config::SourceConfig;
use super::context::FetchContext;
use super::documents::fetch_offers;
use crate::change::OfferGroup;
use crate::offered::{all, check, differing};
use crate::store::WriteOutcome;

/// Token number in the log for changes from fetched documents.
const NO_TOKEN: u64 = 0;

/// Offer source: documents of a provider for a type.
#[derive(Clone, Debug)]
pub(crate) struct OfferSource {
    pub(crate) kind: String,
    pub(crate) provider: String,
    pub(crate) documents: Vec<DocumentUrl>,
    pub(crate) every: Span,
}

/// URL of a document with offers, and the service that they are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentUrl {
    pub(crate) url: String,
    /// Address of the service. Replaces the endpoint in the document.
    pub(crate) endpoint: Option<String>,
    /// The document describes the type. It may lack offers, and the provider's own documents take precedence.
    pub(crate) of_type: bool,
}

/// Result of one poll.
struct PollResult {
    changes: usize,
    failed: Vec<String>,
}

impl From<SourceConfig> for OfferSource {
    fn from(source: SourceConfig) -> Self {
        let SourceConfig {
            kind,
            provider,
            url,
            every,
        } = source;
        let endpoint = None;
        let of_type = false;
        let documents = vec![DocumentUrl {
            url,
            endpoint,
            of_type,
        }];
        Self {
            kind,
            provider,
            documents,
            every,
        }
    }
}

impl OfferSource {
    /// Polls the documents and stores their offers, forever. Without documents: until the offers are withdrawn.
    pub(crate) async fn poll_forever(self, context: FetchContext) {
        let mut failing = false;
        loop {
            let poll = self.poll(&context).await;
            let first = poll.failed.first();
            match (first, poll.changes) {
                (Some(reason), _) if !failing => {
                    let others = poll.failed.len() - 1;
                    tracing::warn!(provider = self.provider, others, "no offers: {reason}");
                }
                (None, changes) if failing || changes > 0 => {
                    tracing::info!(provider = self.provider, changes, "offers fetched");
                }
                _ => {}
            }
            failing = first.is_some();
            if self.documents.is_empty() && !failing {
                return;
            }
            tokio::time::sleep(self.every.into()).await;
        }
    }

    /// Fetches all documents once and stores the changes.
    async fn poll(&self, context: &FetchContext) -> PollResult {
        let (mut offers, mut failed) = (Vec::new(), Vec::new());
        let mut unheard = BTreeSet::new();
        for document in &self.documents {
            let fetched = self.fetch(document, &offers, context).await;
            context.metrics.count_fetch(fetched.is_ok());
            match fetched {
                Ok(more) => offers.extend(more),
                Err(reason) => {
                    failed.push(reason);
                    unheard.insert(document.endpoint.as_deref());
                }
            }
        }
        if !failed.is_empty() && failed.len() == self.documents.len() {
            return PollResult { changes: 0, failed };
        }
        let standing = self.standing(&offers, &unheard, context);
        offers.extend(standing);
        let (kind, provider) = (self.kind.clone(), self.provider.clone());
        let group = OfferGroup { kind, provider };
        let changes = differing(&context.registry, &group, &offers);
        if changes > 0 {
            match context.writer.write(all(group, offers, NO_TOKEN)).await {
                // `Refused` cannot happen, because the write has no condition.
                Ok(WriteOutcome::Made(_) | WriteOutcome::Refused) => {}
                Ok(WriteOutcome::Full(full)) => {
                    context.metrics.count_fetch(false);
                    failed.push(format!("{full} (limits.{})", full.limit()));
                }
                Err(error) => failed.push(error.to_string()),
            }
        }
        PollResult { changes, failed }
    }

    /// Returns the valid offers in a document, given the offers `beside` from the other documents.
    async fn fetch(
        &self,
        document: &DocumentUrl,
        beside: &[Offer],
        context: &FetchContext,
    ) -> Result<Vec<Offer>, String> {
        // The semaphore is never closed.
        let _permit = context.at_once.acquire().await;
        let at = |reason: String| format!("{}: {reason}", document.url);
        let mut offers = match fetch_offers(&document.url).await? {
            Some(offers) => offers,
            None if document.of_type => Vec::new(),
            None => return Err(at("there is no element wsqos in it".to_owned())),
        };
        if let Some(endpoint) = &document.endpoint {
            for offer in &mut offers {
                offer.endpoint = Some(endpoint.clone());
            }
        }
        check(&context.registry, &offers).map_err(at)?;
        let names: BTreeSet<&str> = beside.iter().map(|offer| offer.name.as_str()).collect();
        if document.of_type {
            offers.retain(|offer| !names.contains(&*offer.name));
        }
        if let Some(twice) = offers.iter().find(|offer| names.contains(&*offer.name)) {
            let name = &twice.name;
            return Err(at(format!(
                "another document of this provider offers {name:?}, too: their names must differ"
            )));
        }
        if beside.len() + offers.len() > bounds::OFFERS {
            let most = bounds::OFFERS;
            return Err(at(format!("more than {most} offers of this provider")));
        }
        Ok(offers)
    }

    /// Unexpired offers from documents that could not be fetched.
    fn standing(
        &self,
        heard: &[Offer],
        unheard: &BTreeSet<Option<&str>>,
        context: &FetchContext,
    ) -> Vec<Offer> {
        let now = Timestamp::now();
        let current = context.registry.read();
        let own = current.index.offers(&self.kind);
        let own = own.filter(|found| found.provider == self.provider);
        let offers = own.map(|found| found.offer);
        let stands = |offer: &Offer| {
            offer.expires > now
                && unheard.contains(&offer.endpoint.as_deref())
                && heard.iter().all(|other| other.name != offer.name)
        };
        offers.filter(stands).collect()
    }
}
