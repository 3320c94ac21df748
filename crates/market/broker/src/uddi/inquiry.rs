//! Queries to a UDDI registry, page by page.

use std::collections::BTreeSet;

use posthaste_broker_client::{Endpoint, RemoteDocument};
use thiserror::Error;

use super::choice::{DocumentChoice, ServiceState};
use super::config::Category;
use super::messages::reply::{self, ListPage, Rest};
use super::messages::{PAGE, ReplyError, Version};

/// Maximum number of services per type, and of providers per category.
const MOST: usize = 10_000;

/// Inquiry API of a registry.
pub(super) struct Inquiry {
    endpoint: Endpoint,
    version: Version,
}

/// Errors of a query.
#[derive(Debug, Error)]
pub(super) enum InquiryError {
    /// No reply, or an unusable one.
    #[error(transparent)]
    Unheard(#[from] posthaste_broker_client::Error),
    /// The reply is not a valid answer.
    #[error(transparent)]
    Answer(#[from] ReplyError),
}

impl Inquiry {
    pub(super) const fn new(endpoint: Endpoint, version: Version) -> Self {
        Self { endpoint, version }
    }

    /// Keys of the businesses in a category.
    pub(super) async fn businesses(
        &self,
        category: &Category,
    ) -> Result<BTreeSet<String>, InquiryError> {
        let wanted = super::messages::Category {
            tmodel: category.tmodel.clone(),
            name: category.name.clone(),
            value: category.value.clone(),
        };
        let mut keys = BTreeSet::new();
        let mut from = 1;
        loop {
            let page = self.ask(self.version.find_business(&wanted, from)).await?;
            let page = reply::businesses_found(&page, self.version, from)?;
            keys.extend(page.keys);
            match page.rest {
                Rest::From(next) if next <= MOST => {
                    assert!(next > from, "a page that leads nowhere");
                    from = next;
                }
                Rest::None => return Ok(keys),
                Rest::From(_) | Rest::Cut => {
                    tracing::warn!(
                        known = keys.len(),
                        "the registry has more trusted providers than are known"
                    );
                    return Ok(keys);
                }
            }
        }
    }

    /// Documents to fetch for a type, from trusted businesses and allowed origins.
    pub(super) async fn services<'c>(
        &self,
        kind: &'c str,
        trusted: &'c BTreeSet<String>,
        places: &'c [RemoteDocument],
    ) -> Result<DocumentChoice<'c>, InquiryError> {
        let overview = self.overview(kind).await?;
        let mut choice = DocumentChoice::new(kind, overview.as_deref(), trusted, places);
        let mut from = 1;
        loop {
            let page = self.page(kind, from).await?;
            for keys in page.keys.chunks(PAGE) {
                let keys = keys.iter().map(String::as_str);
                let details = self.ask(self.version.get_service_detail(keys)).await?;
                for service in reply::services(&details, self.version)? {
                    choice.take(&service);
                }
            }
            match page.rest {
                Rest::From(next) if next <= MOST => {
                    assert!(next > from, "a page that leads nowhere");
                    from = next;
                }
                Rest::None => return Ok(choice),
                Rest::From(_) | Rest::Cut => {
                    choice.count(ServiceState::Cut, 1);
                    return Ok(choice);
                }
            }
        }
    }

    /// Document that a type names.
    async fn overview(&self, kind: &str) -> Result<Option<String>, InquiryError> {
        let found = self.ask(self.version.get_tmodel_detail(kind)).await?;
        match reply::tmodels(&found, self.version) {
            Err(error) if error.is_unknown_key() => Ok(None),
            tmodels => Ok(tmodels?.into_iter().find_map(|tmodel| tmodel.overview)),
        }
    }

    async fn page(&self, kind: &str, from: usize) -> Result<ListPage, InquiryError> {
        let found = self.ask(self.version.find_service(kind, from)).await?;
        match reply::services_found(&found, self.version, from) {
            // Version 2 returns an error where version 3 returns an empty result.
            Err(error) if error.is_unknown_key() => Ok(ListPage {
                keys: Vec::new(),
                rest: Rest::None,
            }),
            page => Ok(page?),
        }
    }

    async fn ask(&self, envelope: String) -> Result<bytes::Bytes, InquiryError> {
        Ok(self.endpoint.call(envelope, reply::LIMITS.total).await?)
    }
}
