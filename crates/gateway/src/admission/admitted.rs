//! The lifetime of an admitted request. It is in service until its reply's head arrives or it fails, except while the
//! gateway waits for the client.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;

use hyper::{HeaderMap, header::HeaderValue};
use posthaste_admission::{By, Delivery};
use posthaste_qos::Priorities;
use posthaste_units::{Instant, Span};

use super::Admission;
use super::counters::{AdmissionGround, RejectionReason};
use super::state::{AdmissionPolicy, AdmittedRequest};
use crate::clock::now;
use crate::request::progress::UploadProgress;

/// An admitted request. If it is dropped before [`AdmissionGuard::record`], only its time in service counts.
pub(crate) struct AdmissionGuard<'p> {
    admission: &'p Admission,
    /// `None` without an admission policy.
    admitted: Option<(Instant, AdmittedRequest, String)>,
    /// Requests in service at admission, including this one.
    in_service: u32,
    /// The request is temporarily not in service.
    is_paused: Cell<bool>,
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
            admitted: None,
            in_service: 0,
            is_paused: Cell::new(false),
        }
    }

    pub(super) fn new(
        admission: &'p Admission,
        at: Instant,
        in_service: u32,
        client: String,
        admitted: AdmittedRequest,
    ) -> Self {
        debug_assert!(in_service > 0, "an admitted request is not in service");
        Self {
            admission,
            admitted: Some((at, admitted, client)),
            in_service,
            is_paused: Cell::new(false),
        }
    }

    /// Runs `work`. The request is not in service while the gateway waits for its client, so it takes no capacity then.
    pub(crate) async fn run<T>(
        &self,
        mut work: Pin<&mut impl Future<Output = T>>,
        progress: Option<&UploadProgress>,
    ) -> T {
        poll_fn(|cx| {
            let polled = work.as_mut().poll(cx);
            let waits = progress.is_some_and(UploadProgress::waits_for_client);
            self.pause(polled.is_pending() && waits);
            polled
        })
        .await
    }

    /// Starts or ends a pause of the service.
    fn pause(&self, paused: bool) {
        if self.admitted.is_none() || self.is_paused.replace(paused) == paused {
            return;
        }
        let mut state = self.admission.state();
        match paused {
            true => state.leave(now()),
            false => state.resume(),
        }
    }

    /// Records the end. `upload` is subtracted, because time spent waiting for the client says nothing about the
    /// service.
    ///
    /// An abandoned request is a failure if it has left the service at least the mean time of a reply. With less time it
    /// does not count, so that clients cannot lower the limit by short deadlines. It never changes that mean.
    pub(crate) fn record(&self, end: ServiceEnd, upload: Span) {
        let Some((began, admitted, client)) = &self.admitted else {
            return;
        };
        let at = now();
        let time = at.since(*began).saturating_sub(upload);
        let failed = end != ServiceEnd::Served;
        let mut state = self.admission.state();
        match end {
            ServiceEnd::Abandoned if time < state.reply_time() => return,
            ServiceEnd::Abandoned => {}
            ServiceEnd::Served | ServiceEnd::Failed => state.rest.replied(time),
        }
        if !failed {
            state.served += 1;
            state.waited += time;
        }
        if let AdmissionPolicy::Limit(limit) | AdmissionPolicy::Prices(limit, _) = &mut state.policy
        {
            limit.push(time, self.in_service, failed);
        }
        if let Some(offer) = &admitted.offer {
            let delivery = if failed {
                Delivery::Failed
            } else {
                Delivery::Served(time)
            };
            state.monitor.record(at, offer, client, delivery);
        }
    }

    /// Network priorities promised by the offer or quote that admitted the request. Naming an offer is not enough.
    pub(crate) fn priorities(&self) -> Option<&Priorities> {
        let (_, admitted, _) = self.admitted.as_ref()?;
        match admitted.ground {
            AdmissionGround::Price(By::Offer | By::Quote) => admitted.priorities.as_deref(),
            AdmissionGround::Price(By::Free) | AdmissionGround::Plain | AdmissionGround::DryRun => {
                None
            }
        }
    }

    /// Reason for which the policy would have rejected the request, if a dry run admitted it.
    pub(crate) fn would_reject(&self) -> Option<&'static str> {
        let (_, admitted, _) = self.admitted.as_ref()?;
        admitted.would_reject.map(RejectionReason::name)
    }

    /// Adds the fields with the price and the quote to the reply.
    pub(crate) fn add_fields(&self, headers: &mut HeaderMap) {
        let admitted = self.admitted.iter();
        for (name, value) in admitted.flat_map(|(_, admitted, _)| &admitted.fields) {
            // Numbers, a base64 token and a currency are always valid.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(*name, value);
            }
        }
    }
}

impl Drop for AdmissionGuard<'_> {
    fn drop(&mut self) {
        if self.admitted.is_some() && !self.is_paused.get() {
            self.admission.state().leave(now());
        }
    }
}
