//! Protection of one service: which requests are in service, which wait, and how many may be in service at once.
//!
//! Requests of several kinds share the slots of the service's limit. Three rules keep one kind from taking them all:
//!
//! 1. **Requests that hang leave the count**: those older than ten times the 99th percentile of their kind and than 1 s, at
//!    most half of the limit. They say nothing about the queue.
//! 2. **A kind does not wait for slow ones of other kinds.** Requests of others do not count for it that are older than ten
//!    times its own 99th percentile and than 100 ms, or than three times that of this kind.
//! 3. **Each kind has an equal share**: while it has fewer requests in service than that, its requests are admitted beyond
//!    the limit, unless a more important one waits. During a probe of the limit this holds only for kinds that do not
//!    queue beside one that does.
//!
//! A service that is overloaded as a whole answers all kinds slowly, and the limit holds for all of them. The shares make
//! at most twice the limit. Kinds that hang do not count for each other, so that a service whose kinds all hang has at
//! most one and a half limits of each in service.

use std::collections::VecDeque;

use posthaste_units::{Instant, Span};

use crate::limit::{Kind, Limit, ServiceReply};
use crate::present::{KeptCount, Present};
use crate::rest::Rest;
use crate::tiers::{Arrival, Next, Slots, Ticket, TierTerms, Tiers};

/// Multiple of the 99th percentile of a kind after which a request takes too long.
const LONG: f64 = 10.0;
/// Multiple of its own 99th percentile after which a kind no longer counts requests of others.
const OTHERS: f64 = 3.0;
/// Minimum age of a request that does not count for other kinds.
const SLOW: Span = Span::from_millis(100);
/// Minimum age of a request that hangs.
const HANGING: Span = Span::from_secs(1);

/// A protected service.
#[derive(Debug)]
pub struct ProtectedService {
    limit: Option<Limit>,
    /// The limit is computed and not applied.
    is_dry: bool,
    tiers: Tiers,
    kinds: Vec<KindState>,
    hanging: KeptCount,
    rest: Rest,
}

#[derive(Debug, Default)]
struct KindState {
    present: Present,
    /// Requests of other kinds that take too long for this one.
    slow_others: KeptCount,
    /// Requests that wait, in order of arrival. Some no longer do.
    waiting: VecDeque<(Instant, Ticket)>,
}

impl ProtectedService {
    /// A service without a request. Without a limit all are admitted.
    pub fn new(limit: Option<Limit>, tiers: TierTerms, now: Instant) -> Self {
        Self {
            limit,
            is_dry: false,
            tiers: Tiers::new(tiers),
            kinds: Vec::new(),
            hanging: KeptCount::default(),
            rest: Rest::new(now),
        }
    }

    /// Starts or ends a dry run: the limit follows the replies, and stops no request.
    pub const fn set_dry(&mut self, is_dry: bool) {
        self.is_dry = is_dry;
    }

    /// Changes the terms ([`Limit::continuing`], [`Tiers::change`]).
    pub fn change(&mut self, limit: Option<Limit>, tiers: TierTerms) {
        self.limit = match (limit, self.limit.take()) {
            (Some(new), Some(before)) => Some(new.continuing(before)),
            (new, _) => new,
        };
        self.tiers.change(tiers);
    }

    /// A request of a kind arrives. Call [`pop`](Self::pop) afterwards: it may have displaced another one.
    pub fn arrive(&mut self, now: Instant, kind: Kind, tier: usize, client: u64) -> Arrival {
        self.settle(now);
        let slots = self.applied(now, kind);
        let arrival = self.tiers.push(now, slots, tier, client, kind);
        match arrival {
            Arrival::Admitted(ticket) => self.entered(&ticket, now),
            Arrival::Waits(ticket) => self.waits(ticket, now),
            Arrival::Rejected => {}
        }
        arrival
    }

    /// A request that the limit does not stop is in service.
    pub fn enter(&mut self, now: Instant, kind: Kind, tier: usize, client: u64) -> Ticket {
        let ticket = self.tiers.unlimited(tier, client, kind);
        self.tiers.enter(&ticket);
        self.entered(&ticket, now);
        ticket
    }

    /// Returns the next request that no longer waits. Call it until it returns `None`, after each change.
    pub fn pop(&mut self, now: Instant) -> Option<Next> {
        let slots = if self.is_dry {
            u32::MAX
        } else {
            self.common(now)
        };
        let next = self.tiers.pop(now, slots);
        let next = next.or_else(|| self.pop_below_share(now).map(Next::Admitted))?;
        if let Next::Admitted(ticket) = next {
            self.entered(&ticket, now);
        }
        Some(next)
    }

    /// Admits a waiting request of a kind with fewer requests in service than its share: the first that may pass the
    /// others.
    fn pop_below_share(&mut self, now: Instant) -> Option<Ticket> {
        (0..self.kinds.len()).find_map(|kind| self.pop_of_kind(now, kind))
    }

    fn pop_of_kind(&mut self, now: Instant, kind: Kind) -> Option<Ticket> {
        if self.kinds[kind].waiting.is_empty() {
            return None;
        }
        let slots = self.slots(now, kind);
        if !slots.admits_fairly() {
            return None;
        }
        let waiting = &mut self.kinds[kind].waiting;
        let tiers = &mut self.tiers;
        loop {
            let index = waiting
                .iter()
                .position(|(_, ticket)| tiers.may_pass(ticket, slots.fair))?;
            let (_, ticket) = waiting.remove(index)?;
            if tiers.serve(&ticket) {
                return Some(ticket);
            }
        }
    }

    /// A request waits. Those that have waited longer than they may are forgotten.
    fn waits(&mut self, ticket: Ticket, now: Instant) {
        let longest = self.tiers.wait();
        let waiting = &mut self.kind(ticket.kind()).waiting;
        let is_over = |(since, _): &(Instant, Ticket)| now.saturating_since(*since) > longest;
        while waiting.front().is_some_and(is_over) {
            waiting.pop_front();
        }
        waiting.push_back((now, ticket));
    }

    /// Removes a waiting request. Returns false if it does not wait any more.
    pub fn cancel(&mut self, ticket: &Ticket) -> bool {
        self.tiers.cancel(ticket)
    }

    /// A request in service has ended or pauses.
    pub fn leave(&mut self, ticket: &Ticket, now: Instant) {
        self.tiers.leave(ticket);
        self.kind(ticket.kind()).present.leave(ticket.number());
        self.assert_sum();
        if self.in_service() == 0 {
            self.rest.leave(now);
        }
    }

    /// A request is in service again.
    pub fn resume(&mut self, ticket: &Ticket, now: Instant) {
        self.tiers.enter(ticket);
        self.entered(ticket, now);
    }

    /// Learns from a reply. Its request is still in service.
    pub fn reply(&mut self, reply: ServiceReply) {
        self.rest.replied(reply.time);
        self.abandoned(reply);
    }

    /// Learns from a request whose client has given up. It says nothing about the mean time of a reply.
    pub fn abandoned(&mut self, reply: ServiceReply) {
        if let Some(limit) = &mut self.limit {
            limit.push(reply);
        }
    }

    /// A request was rejected that would have been admitted without the load.
    pub fn rejected(&mut self, now: Instant) {
        self.rest.rejected(now);
    }

    /// Raises a limit that an earlier load has lowered, if the service has come to rest since.
    pub fn settle(&mut self, now: Instant) {
        if let Some(limit) = &mut self.limit
            && self.tiers.in_service() == 0
            && self.rest.at(now).get() >= 1.0
        {
            limit.rest();
        }
    }

    /// True if a request of this kind would be in service at once.
    pub fn has_slot(&mut self, now: Instant, kind: Kind) -> bool {
        self.settle(now);
        let Slots { fair, own, .. } = self.slots(now, kind);
        self.in_service() < own.max(fair)
    }

    /// The current limit.
    pub fn limit(&self) -> Option<u32> {
        self.limit.as_ref().map(Limit::now)
    }

    /// Requests in service.
    pub const fn in_service(&self) -> u32 {
        self.tiers.in_service()
    }

    /// Requests in service that a request of this kind may have to queue with.
    pub fn among(&mut self, now: Instant, kind: Kind) -> u32 {
        let in_service = self.in_service();
        let is_half_full = self.limit().is_some_and(|limit| in_service >= limit / 2);
        if is_half_full {
            in_service - self.slow_others(now, kind).min(in_service)
        } else {
            in_service
        }
    }

    /// Requests that hang.
    pub fn hanging(&mut self, now: Instant) -> u32 {
        let (limit, kinds) = (&self.limit, &self.kinds);
        self.hanging.get(now, || {
            let of_kind = |(kind, state): (Kind, &KindState)| {
                let age = times(LONG, limit.as_ref(), kind).unwrap_or(HANGING);
                state.present.older(now, age.max(HANGING))
            };
            kinds.iter().enumerate().map(of_kind).sum()
        })
    }

    /// Requests in service and waiting ones of each tier.
    pub fn tiers(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        self.tiers.counts()
    }

    /// Number of tiers.
    pub const fn tier_count(&self) -> usize {
        self.tiers.count()
    }

    /// Longest wait of a request.
    pub const fn wait(&self) -> Span {
        self.tiers.wait()
    }

    /// Mean time of a reply. `None` before the first.
    pub fn reply_time(&self) -> Option<Span> {
        self.rest.mean()
    }

    fn entered(&mut self, ticket: &Ticket, now: Instant) {
        self.rest.enter();
        self.kind(ticket.kind()).present.enter(ticket.number(), now);
        self.assert_sum();
    }

    fn assert_sum(&self) {
        debug_assert_eq!(
            self.kinds
                .iter()
                .map(|state| state.present.count())
                .sum::<u32>(),
            self.in_service(),
            "requests in service that have no kind"
        );
    }

    fn kind(&mut self, kind: Kind) -> &mut KindState {
        if kind >= self.kinds.len() {
            self.kinds.resize_with(kind + 1, KindState::default);
        }
        &mut self.kinds[kind]
    }

    /// Slots for all kinds: the limit, and those of requests that hang, at most half of it.
    fn common(&mut self, now: Instant) -> u32 {
        match self.limit() {
            None => u32::MAX,
            Some(limit) if self.in_service() < limit => limit,
            Some(limit) => limit + self.hanging(now).min(limit / 2),
        }
    }

    /// Slots for a request of a kind, any number in a dry run.
    fn applied(&mut self, now: Instant, kind: Kind) -> Slots {
        if self.is_dry {
            return Slots::equal(u32::MAX);
        }
        self.slots(now, kind)
    }

    /// Slots for a request of a kind.
    fn slots(&mut self, now: Instant, kind: Kind) -> Slots {
        let common = self.common(now);
        match &self.limit {
            Some(limit) if self.in_service() >= common => {
                let now_limit = limit.now();
                let own = common.max(now_limit + self.slow_others(now, kind));
                let fair = if self.is_below_share(kind) {
                    self.in_service() + 1
                } else {
                    common
                };
                Slots { common, fair, own }
            }
            _ => Slots::equal(common),
        }
    }

    /// True if a kind has fewer requests in service than an equal share of the limit. During a probe only if it does not
    /// queue beside one that does: the probe is about the other.
    fn is_below_share(&self, kind: Kind) -> bool {
        let Some(limit) = &self.limit else {
            return true;
        };
        let present = |kind: Kind| {
            self.kinds
                .get(kind)
                .map_or(0, |state| state.present.count())
        };
        let others = || (0..self.kinds.len()).filter(|other| *other != kind && present(*other) > 0);
        let count = others().count() as u32;
        let is_beside = || !limit.queues(kind) && others().any(|other| limit.queues(other));
        count > 0
            && present(kind) < limit.now() / (count + 1)
            && (!limit.is_probing() || is_beside())
    }

    /// Requests of other kinds that take too long for this one.
    fn slow_others(&mut self, now: Instant, kind: Kind) -> u32 {
        self.kind(kind);
        let limit = self.limit.as_ref();
        let for_this = times(OTHERS, limit, kind).map_or(HANGING, |age| age.max(SLOW));
        let own = |other| times(LONG, limit, other).map_or(HANGING, |age| age.max(SLOW));
        let mut kept = self.kinds[kind].slow_others;
        let count = kept.get(now, || {
            let others = self.kinds.iter().enumerate();
            let others = others.filter(|(other, _)| *other != kind);
            let older =
                others.map(|(other, state)| state.present.older(now, own(other).min(for_this)));
            older.sum()
        });
        self.kinds[kind].slow_others = kept;
        count
    }
}

/// A multiple of the 99th percentile of a kind. `None` before its first reply.
fn times(factor: f64, limit: Option<&Limit>, kind: Kind) -> Option<Span> {
    let slow = limit?.slow(kind)?.as_secs_f64();
    Some(Span::from_secs_f64(factor * slow))
}
