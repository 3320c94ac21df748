//! Promises of offers and their delivery, for monitoring.

use std::cmp::Reverse;

use posthaste_admission::{Promise, Report, Tally};

use super::Admission;
use crate::clock::now;

/// Delivery on one offer.
pub(crate) struct OfferDelivery {
    pub(crate) offer: String,
    /// Since the first publication.
    pub(crate) ever: Tally,
    /// The last one to two minutes.
    pub(crate) report: Report,
    /// Clients of the offer whose promise was broken in that time.
    pub(crate) let_down: u64,
}

/// Delivery to one client on one offer.
pub(crate) struct ClientDelivery {
    pub(crate) offer: String,
    pub(crate) client: String,
    pub(crate) report: Report,
}

impl Admission {
    /// Promises of every offer.
    pub(crate) fn promise(&self) -> Promise {
        self.state().promise
    }

    /// Every published offer, by name. Empty without prices.
    pub(crate) fn offers(&self) -> Vec<OfferDelivery> {
        let at = now();
        let mut state = self.state();
        let offers = state.monitor.offers();
        let ever: Vec<_> = offers.map(|(name, ever)| (name.to_owned(), ever)).collect();
        let reported = ever.into_iter().filter_map(|(offer, ever)| {
            let report = state.monitor.report(at, &offer, None)?;
            let let_down = 0;
            Some(OfferDelivery {
                offer,
                ever,
                report,
                let_down,
            })
        });
        let mut offers: Vec<OfferDelivery> = reported.collect();
        offers.sort_unstable_by(|a, b| a.offer.cmp(&b.offer));
        for (offer, _, report) in state.monitor.clients(at) {
            if report.is_broken()
                && let Ok(index) = offers.binary_search_by(|known| known.offer.as_str().cmp(offer))
            {
                offers[index].let_down += 1;
            }
        }
        offers
    }

    /// Returns at most `most` clients, broken promises first, then by number of requests; and the total number.
    pub(crate) fn clients(&self, most: usize) -> (Vec<ClientDelivery>, usize) {
        let mut state = self.state();
        let mut clients: Vec<_> = state.monitor.clients(now()).collect();
        let count = clients.len();
        clients.sort_unstable_by_key(|(offer, client, report)| {
            let (broken, requests) = (report.is_broken(), report.seen.requests());
            (Reverse((broken, requests)), *client, *offer)
        });
        clients.truncate(most);
        let served = clients
            .into_iter()
            .map(|(offer, client, report)| ClientDelivery {
                offer: offer.to_owned(),
                client: client.to_owned(),
                report,
            });
        (served.collect(), count)
    }

    /// Requests and offers beyond the capacity of the monitor.
    pub(crate) fn unwatched(&self) -> u64 {
        self.state().monitor.unwatched()
    }
}
