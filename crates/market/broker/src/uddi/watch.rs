//! Periodic queries to the UDDI registry, and the fetching of offers from its services.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use posthaste_broker_client::{Endpoint, RemoteDocument, UrlError};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::config::Uddi;
use super::directory::Directory;
use super::inquiry::{Inquiry, InquiryError};
use crate::fetching::context::FetchContext;
use crate::fetching::source::{DocumentUrl, OfferSource};

/// Wait before the first retry. Doubles with each retry, up to the usual query interval.
const BACK_OFF: Duration = Duration::from_secs(1);

/// Watcher of a registry.
pub(crate) struct Watch {
    uddi: Uddi,
    inquiry: Inquiry,
    from: Vec<RemoteDocument>,
    directory: Arc<Directory>,
    trusted: BTreeSet<String>,
}

/// Offer sources in use, by type and provider.
struct Fetched {
    context: FetchContext,
    sources: BTreeMap<(String, String), (Vec<DocumentUrl>, AbortHandle)>,
    // Dropping the set ends the tasks.
    tasks: JoinSet<()>,
}

impl Watch {
    pub(crate) fn new(uddi: Uddi, directory: Arc<Directory>) -> Result<Self, UrlError> {
        let inquiry = Inquiry::new(Endpoint::new(&uddi.inquiry)?, uddi.version);
        let from = uddi.from.iter().map(|url| RemoteDocument::new(url));
        let from = from.collect::<Result<_, _>>()?;
        Ok(Self {
            uddi,
            inquiry,
            from,
            directory,
            trusted: BTreeSet::new(),
        })
    }

    /// Runs forever.
    pub(crate) async fn run(mut self, context: FetchContext) {
        let mut fetched = Fetched {
            context,
            sources: BTreeMap::new(),
            tasks: JoinSet::new(),
        };
        let usual = Duration::from(self.uddi.ask_every);
        let (mut wait, mut next) = (BACK_OFF, Instant::now());
        let mut failing = false;
        loop {
            let only_new = tokio::select! {
                () = sleep_until(next) => false,
                // During an outage, requests of clients trigger no extra queries.
                () = self.directory.demanded(), if !failing => true,
            };
            let outcome = self.ask(only_new, &mut fetched).await;
            failing = outcome.is_err();
            if !only_new || failing {
                next = Instant::now() + if failing { wait.min(usual) } else { usual };
                wait = if failing { wait * 2 } else { BACK_OFF }.min(usual.max(BACK_OFF));
            }
            let error = outcome.as_ref().err().cloned();
            if self.directory.note(outcome) {
                let registry = &self.uddi.inquiry;
                match error {
                    Some(error) => {
                        tracing::warn!(registry, "the last known services are used: {error}")
                    }
                    None => tracing::info!(registry, "the registry answers again"),
                }
            }
        }
    }

    /// Queries new types or everything. Returns the last error.
    async fn ask(&mut self, only_new: bool, fetched: &mut Fetched) -> Result<(), String> {
        let kinds = self.directory.kinds(only_new);
        if !only_new {
            let mut trusted: BTreeSet<String> = self.uddi.businesses.iter().cloned().collect();
            if let Some(category) = &self.uddi.category {
                let more = self.inquiry.businesses(category).await;
                trusted.extend(more.map_err(|error| error.to_string())?);
            }
            self.directory.trust(trusted.clone());
            self.trusted = trusted;
        }
        let mut outcome = Ok(());
        for kind in kinds {
            match self
                .inquiry
                .services(&kind, &self.trusted, &self.from)
                .await
            {
                Ok(choice) => {
                    self.directory.record(&kind, choice.tally);
                    fetched.set(&kind, choice.documents, &self.uddi);
                }
                Err(error @ InquiryError::Unheard(_)) => return Err(error.to_string()),
                // An error for one type does not stop the others.
                Err(error @ InquiryError::Answer(_)) => outcome = Err(format!("{kind}: {error}")),
            }
        }
        if !only_new && outcome.is_ok() {
            self.directory.forget_unknown();
        }
        outcome
    }
}

impl Fetched {
    /// Fetches exactly these documents for a type, and stops all others.
    fn set(&mut self, kind: &str, mut found: BTreeMap<String, Vec<DocumentUrl>>, uddi: &Uddi) {
        let known = self.sources.keys().filter(|(of_kind, _)| of_kind == kind);
        let known: Vec<String> = known.map(|(_, provider)| provider.clone()).collect();
        for provider in known {
            // A provider without documents withdraws its offers.
            found.entry(provider).or_default();
        }
        for (provider, documents) in found {
            let key = (kind.to_owned(), provider);
            let before = self.sources.get(&key);
            if before.is_some_and(|(before, _)| *before == documents) {
                continue;
            }
            if let Some((_, task)) = before {
                task.abort();
            }
            let (kind, provider) = key.clone();
            let source = OfferSource {
                kind,
                provider,
                documents: documents.clone(),
                every: uddi.fetch_every,
            };
            let task = self.tasks.spawn(source.poll_forever(self.context.clone()));
            self.sources.insert(key, (documents, task));
        }
        // Removes tasks that have finished their withdrawals.
        while self.tasks.try_join_next().is_some() {}
        self.sources
            .retain(|_, (documents, task)| !documents.is_empty() || !task.is_finished());
    }
}
