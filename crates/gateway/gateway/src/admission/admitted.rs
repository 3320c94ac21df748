//! The lifetime of an admitted request. It is in service until its reply's head arrives or it fails, except while the
//! gateway waits for the client.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;

use hyper::{HeaderMap, header::HeaderValue};
use posthaste_admission::{By, Delivery, ServiceReply};
use posthaste_qos::Priorities;
use posthaste_units::{Instant, Span};

use super::Admission;
use super::counters::{AdmissionGround, RejectionReason};
use super::held_limits::HeldLimits;
use super::offer_fields::price_text;
use super::route_location::PlacedTicket;
use super::state::AdmittedRequest;
use crate::accounts::payment::Payment;
use crate::clock::now;
use crate::upload_progress::UploadProgress;

/// An admitted request. If it is dropped before [`AdmissionGuard::record`], only its time in service counts.
pub(crate) struct AdmissionGuard<'p> {
    admission: &'p Admission,
    /// `None` without an admission policy and limits.
    service: Option<AdmittedService<'p>>,
    /// The request is temporarily not in service.
    is_paused: Cell<bool>,
}

/// The service of a request.
pub(super) struct AdmittedService<'p> {
    pub(super) began: Instant,
    pub(super) request: AdmittedRequest,
    pub(super) client: String,
    pub(super) ticket: PlacedTicket,
    pub(super) held: HeldLimits,
    /// Requests in service at admission that it may have to queue with, including this one.
    pub(super) among: u32,
    /// Payment from an account. Settled with the end.
    pub(super) payment: Option<Payment<'p>>,
}

/// The end of an admitted request's service.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServiceEnd {
    Served,
    Failed,
    /// The deadline that the client has chosen passed before the reply.
    Abandoned,
}

impl<'p> AdmissionGuard<'p> {
    pub(super) const fn uncounted(admission: &'p Admission) -> Self {
        Self {
            admission,
            service: None,
            is_paused: Cell::new(false),
        }
    }

    pub(super) fn new(admission: &'p Admission, service: AdmittedService<'p>) -> Self {
        debug_assert!(service.among > 0, "an admitted request is not in service");
        Self {
            admission,
            service: Some(service),
            is_paused: Cell::new(false),
        }
    }

    /// Runs `work`. The request is not in service while the gateway waits for its client, so it takes no capacity then.
    pub(crate) async fn run<T>(
        &self,
        mut work: Pin<&mut impl Future<Output = T>>,
        progress: Option<&UploadProgress>,
    ) -> T {
        if let Some(payment) = self.payment() {
            payment.begin();
        }
        poll_fn(|cx| {
            let polled = work.as_mut().poll(cx);
            let waits = progress.is_some_and(UploadProgress::waits_for_client);
            self.pause(polled.is_pending() && waits);
            polled
        })
        .await
    }

    fn payment(&self) -> Option<&Payment<'p>> {
        self.service.as_ref()?.payment.as_ref()
    }

    /// Starts or ends a pause of the service.
    fn pause(&self, paused: bool) {
        let Some(service) = &self.service else {
            return;
        };
        if self.is_paused.replace(paused) == paused {
            return;
        }
        let mut state = self.admission.state();
        if paused {
            state.leave(&service.ticket, now());
        } else {
            state.resume(&service.ticket, now());
        }
    }

    /// Records the end. `upload` is subtracted, because time spent waiting for the client says nothing about the
    /// service.
    ///
    /// An abandoned request is a failure if it has left the service at least the mean time of a reply. With less time it
    /// does not count, so that clients cannot lower the limit by short deadlines. It never changes that mean.
    pub(crate) fn record(&self, end: ServiceEnd, upload: Span) {
        let Some(service) = &self.service else {
            return;
        };
        if let Some(payment) = &service.payment {
            match end {
                ServiceEnd::Served | ServiceEnd::Abandoned => payment.charge(),
                ServiceEnd::Failed => payment.give_back(),
            }
        }
        let at = now();
        let time = at.since(service.began).saturating_sub(upload);
        let failed = end != ServiceEnd::Served;
        let mut state = self.admission.state();
        let location = service.ticket.location;
        let is_abandoned = end == ServiceEnd::Abandoned;
        if is_abandoned && time < state.reply_time(location) {
            return;
        }
        let reply = ServiceReply {
            kind: location.kind,
            time,
            among: service.among,
            is_failed: failed,
        };
        state.reply(at, location, reply, is_abandoned);
        if !failed {
            state.served += 1;
            state.unpaid += u64::from(service.request.is_unpaid);
            state.waited += time;
        }
        if let Some(offer) = &service.request.offer {
            let delivery = if failed {
                Delivery::Failed
            } else {
                Delivery::Served(time)
            };
            state.monitor.record(at, offer, &service.client, delivery);
        }
    }

    /// Network priorities promised by the offer or quote that admitted the request. Naming an offer is not enough.
    pub(crate) fn priorities(&self) -> Option<&Priorities> {
        let admitted = &self.service.as_ref()?.request;
        match admitted.ground {
            AdmissionGround::Price(By::Offer | By::Quote) => admitted.priorities.as_deref(),
            AdmissionGround::Price(By::Free)
            | AdmissionGround::Plain
            | AdmissionGround::Unpaid
            | AdmissionGround::DryRun => None,
        }
    }

    /// Reason for which the policy would have rejected the request, if a dry run admitted it.
    pub(crate) fn would_reject(&self) -> Option<&'static str> {
        let admitted = &self.service.as_ref()?.request;
        admitted.would_reject.map(RejectionReason::name)
    }

    /// Adds the fields with the price and the quote to the reply.
    pub(crate) fn add_fields(&self, headers: &mut HeaderMap) {
        let services = self.service.iter();
        for (name, value) in services.flat_map(|service| &service.request.fields) {
            // Numbers, a base64 token and a currency are always valid.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(*name, value);
            }
        }
        if let Some(price) = self.payment().and_then(Payment::corrected_price)
            && let Ok(value) = HeaderValue::from_str(&price_text(price))
        {
            headers.insert("price", value);
        }
    }
}

impl Drop for AdmissionGuard<'_> {
    fn drop(&mut self) {
        let Some(service) = &mut self.service else {
            return;
        };
        let mut state = self.admission.state();
        state.limits.leave(&mut service.held);
        if !self.is_paused.get() {
            state.leave(&service.ticket, now());
        }
    }
}
