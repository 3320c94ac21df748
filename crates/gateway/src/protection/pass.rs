//! The lifetime of an admitted request. It is in service until its reply's head arrives or it fails, except while the
//! gateway waits for the client.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;

use hyper::http::StatusCode;
use hyper::{HeaderMap, header::HeaderValue};
use posthaste_admission::{By as Ground, Delivery};
use posthaste_qos::Priorities;
use posthaste_units::{Instant, Span};

use super::counts::Entrance;
use super::{By, Entered, Protection};
use crate::body::Progress;
use crate::clock::now;

/// An admitted request. If it is dropped before [`Pass::ended`], only its time in service counts.
pub(crate) struct Pass<'p> {
    protection: &'p Protection,
    /// `None` without an admission policy.
    entered: Option<(Instant, Entered, String)>,
    /// Requests in service at admission, including this one.
    in_service: u32,
    /// The request is temporarily not in service.
    is_away: Cell<bool>,
}

impl<'p> Pass<'p> {
    pub(super) const fn free(protection: &'p Protection) -> Self {
        Self {
            protection,
            entered: None,
            in_service: 0,
            is_away: Cell::new(false),
        }
    }

    pub(super) fn new(
        protection: &'p Protection,
        at: Instant,
        in_service: u32,
        client: String,
        entered: Entered,
    ) -> Self {
        Self {
            protection,
            entered: Some((at, entered, client)),
            in_service,
            is_away: Cell::new(false),
        }
    }

    /// Runs `work`. The request is not in service while the gateway waits for its client, so it takes no capacity then.
    pub(crate) async fn attend<T>(
        &self,
        mut work: Pin<&mut impl Future<Output = T>>,
        progress: Option<&Progress>,
    ) -> T {
        poll_fn(|cx| {
            let polled = work.as_mut().poll(cx);
            let waits = progress.is_some_and(Progress::waits_for_client);
            self.be_away(polled.is_pending() && waits);
            polled
        })
        .await
    }

    fn be_away(&self, away: bool) {
        if self.entered.is_none() || self.is_away.replace(away) == away {
            return;
        }
        let mut door = self.protection.door();
        match away {
            true => door.in_service -= 1,
            false => door.in_service += 1,
        }
    }

    /// Records the end, with the status of the reply if there is one. `upload` is subtracted, because time spent
    /// waiting for the client says nothing about the service.
    pub(crate) fn ended(&self, status: Option<StatusCode>, upload: Span) {
        let Some((began, entered, client)) = &self.entered else {
            return;
        };
        let at = now();
        let time = at.since(*began).saturating_sub(upload);
        let failed = status.is_none_or(|status| status.is_server_error());
        let mut door = self.protection.door();
        if !failed {
            door.served += 1;
            door.waited += time;
        }
        if let By::Limit(limit) | By::Prices(limit, _) = &mut door.by {
            limit.push(time, self.in_service, failed);
        }
        if let Some(offer) = &entered.offer {
            let delivery = if failed {
                Delivery::Failed
            } else {
                Delivery::Served(time)
            };
            door.monitor.record(at, offer, client, delivery);
        }
    }

    /// Network priorities promised by the offer or quote that admitted the request. Naming an offer is not enough.
    pub(crate) fn priorities(&self) -> Option<&Priorities> {
        let (_, entered, _) = self.entered.as_ref()?;
        match entered.by {
            Entrance::Price(Ground::Offer | Ground::Quote) => self.protection.priorities.as_ref(),
            Entrance::Price(Ground::Free) | Entrance::Plain => None,
        }
    }

    /// Adds the fields with the price and the quote to the reply.
    pub(crate) fn tell(&self, headers: &mut HeaderMap) {
        let fields = self
            .entered
            .iter()
            .flat_map(|(_, entered, _)| &entered.fields);
        for (name, value) in fields {
            // Numbers, a base64 token and a currency are always valid.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(*name, value);
            }
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.entered.is_some() && !self.is_away.get() {
            self.protection.door().in_service -= 1;
        }
    }
}
