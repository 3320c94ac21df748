//! The offers of a gateway apart from their price: promises, and the place of publication.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use posthaste_admission::Promise;
use posthaste_gateway_config::Prices;
use posthaste_qos::{Definition, Document, Priorities};

use super::publication::OfferPublisher;
use crate::error::{PromiseError, ResolveError};

/// Promises of the offers, and their publisher, if any.
#[derive(Default)]
pub(crate) struct Offering {
    pub(crate) promise: Promise,
    /// Promised network priorities, if stated.
    pub(crate) priorities: Option<Arc<Priorities>>,
    pub(super) publisher: Option<OfferPublisher>,
}

impl Offering {
    /// Builds the offering from `prices`, with its files read.
    pub(crate) fn new(prices: &Prices) -> Result<Self, ResolveError> {
        let stated = prices.promise.as_deref().map(|file| {
            promised(file).map_err(|reason| ResolveError::Promise {
                file: file.to_owned(),
                reason,
            })
        });
        let qos = stated.transpose()?;
        let qos = qos.unwrap_or_default();
        let server = &qos.default.server;
        let promise = Promise {
            processing_time: server.processing_time,
            rate: server.requests_per_second.map(|rate| rate.as_per_second()),
            reliability: server.reliability,
            availability: server.availability,
        };
        let transport = &qos.default.transport;
        let states_some = *transport != Priorities::default();
        Ok(Self {
            promise,
            priorities: states_some.then(|| Arc::new(transport.clone())),
            publisher: match &prices.broker {
                Some(broker) => Some(OfferPublisher::new(broker, qos)?),
                None => None,
            },
        })
    }
}

/// Reads the promises from a document with one offer.
fn promised(file: &Path) -> Result<Definition, PromiseError> {
    match Document::read(&fs::read(file)?)? {
        Document::Offers(offers) if offers.offers.len() == 1 => {
            let mut offers = offers.offers;
            Ok(offers.remove(0).qos)
        }
        _ => Err(PromiseError::NotOneOffer),
    }
}
