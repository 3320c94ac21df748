//! A request that waits for a slot of the limit.

use std::collections::HashMap;

use posthaste_admission::Ticket;
use posthaste_units::{Instant, Span};
use tokio::sync::oneshot::{Receiver, Sender};
use tokio::time::timeout;

use super::Admission;
use super::held_limits::HeldLimits;
use super::route_location::PlacedTicket;
use crate::clock::now;

/// The results for all requests that wait, by their ticket. Each is sent once: the number of requests that it may have to
/// queue with if the request is admitted.
pub(super) type Waiters = HashMap<Ticket, Sender<Option<u32>>>;

/// The result for one request.
pub(super) type SlotResult = Receiver<Option<u32>>;

/// A slot that a waiting request got.
pub(super) struct GrantedSlot {
    pub(super) at: Instant,
    pub(super) ticket: PlacedTicket,
    pub(super) held: HeldLimits,
    /// Requests in service that it may have to queue with, including this one.
    pub(super) among: u32,
}

/// A waiting request. If it is dropped, it leaves its place and its limits.
pub(super) struct WaitingRequest<'p> {
    admission: &'p Admission,
    ticket: PlacedTicket,
    held: HeldLimits,
    result: SlotResult,
    /// The result is known.
    is_over: bool,
}

impl<'p> WaitingRequest<'p> {
    /// Waits for this result.
    pub(super) fn new(
        admission: &'p Admission,
        ticket: PlacedTicket,
        held: HeldLimits,
        result: SlotResult,
    ) -> Self {
        Self {
            admission,
            ticket,
            held,
            result,
            is_over: false,
        }
    }

    pub(super) const fn ticket(&self) -> &PlacedTicket {
        &self.ticket
    }

    /// Waits until the request gets a slot, at most this long.
    pub(super) async fn wait(mut self, longest: Span) -> Option<GrantedSlot> {
        let among = match timeout(longest.into(), &mut self.result).await {
            Ok(result) => {
                self.is_over = true;
                result.ok().flatten()?
            }
            Err(_) => self.give_up()?,
        };
        Some(GrantedSlot {
            at: now(),
            ticket: self.ticket,
            held: std::mem::take(&mut self.held),
            among,
        })
    }

    /// Stops to wait. Returns the number for a slot that the request has got nevertheless.
    fn give_up(&mut self) -> Option<u32> {
        self.is_over = true;
        let waited = self.admission.state().cancel(&self.ticket);
        if waited {
            None
        } else {
            self.result.try_recv().ok().flatten()
        }
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        let has_slot = !self.is_over && self.give_up().is_some();
        let mut state = self.admission.state();
        if has_slot {
            state.leave(&self.ticket, now());
        }
        state.limits.leave(&mut self.held);
    }
}
