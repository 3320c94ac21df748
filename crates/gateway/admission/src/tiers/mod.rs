//! Tiers of importance: which requests get the slots of a limit when more arrive than it allows.
//!
//! A tier has a share of the limit, and may have a reserve, which no other tier gets. A request waits if no slot is free.
//! A free slot goes to
//!
//! 1. the most important tier that has fewer requests in service than its share, or else
//! 2. the most important tier with a waiting request.
//!
//! So a tier may use what the others leave, and the least important tier is shed first. Within a tier the order is fair
//! by client ([`fair_queue`]).
//!
//! A request waits at most [`TierTerms::wait`]. After a client has had waiting requests for that time without a break,
//! they wait at most a quarter of it: a queue that does not drain adds time and no service (as the "controlled delay"
//! of Maurer, Fail at Scale, ACM Queue 2015, after CoDel, RFC 8289). They are removed when they would be served; the
//! caller removes those whose whole time is over.

mod fair_queue;

use std::collections::VecDeque;

use posthaste_units::{Instant, Ratio, Span};

use self::fair_queue::{ClientHash, FairQueue, Waiting};

/// Divisor of the longest wait while a queue does not drain.
const STANDING: u64 = 4;

/// Configuration of the tiers.
#[derive(Clone, Debug, PartialEq)]
pub struct TierTerms {
    /// Shares of the limit, the most important tier first. At least one.
    pub shares: Vec<TierShare>,
    /// Longest wait of a request. 0 rejects at once.
    pub wait: Span,
    /// Maximum number of waiting requests of all tiers.
    pub most_waiting: usize,
}

/// Share of the limit of one tier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TierShare {
    /// The tier gets it if it needs it. The sum of all tiers is at most 1.
    pub share: Ratio,
    /// Part of it that no other tier gets, even while it is not needed. At most `share`.
    pub reserve: Ratio,
}

/// The requests in service and those that wait, by tier.
#[derive(Debug)]
pub struct Tiers {
    terms: TierTerms,
    tiers: Vec<Tier>,
    /// Requests in service of all tiers.
    in_service: u32,
    /// Requests in service that entered before the last change of the number of tiers.
    earlier: u32,
    /// Number of such changes.
    generation: u32,
    /// Number of the next request.
    next: u64,
    /// Requests that were removed and of which the caller has not heard.
    removed: VecDeque<Ticket>,
}

#[derive(Debug, Default)]
struct Tier {
    in_service: u32,
    queue: FairQueue,
}

/// A request in service or waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    number: u64,
    tier: usize,
    client: ClientHash,
    kind: usize,
    generation: u32,
}

/// Slots for a request that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Slots for all requests, in the order of their importance.
    pub common: u32,
    /// Slots for this one, which may be more, if no more important request waits.
    pub fair: u32,
    /// Slots for this one, which may be more.
    pub own: u32,
}

/// Result for a request that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is in service.
    Admitted(Ticket),
    /// It waits for a slot.
    Waits(Ticket),
    /// No slot is free, and it may not wait.
    Rejected,
}

/// Result for a request that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is in service.
    Admitted(Ticket),
    /// It has waited too long, or had to leave its place to a more important one.
    Rejected(Ticket),
}

impl TierShare {
    /// A share without a reserve: other tiers use what the tier leaves.
    pub fn lent(share: Ratio) -> Self {
        Self {
            share,
            reserve: Ratio::default(),
        }
    }
}

impl TierTerms {
    /// One tier.
    pub fn single(wait: Span, most_waiting: usize) -> Self {
        Self {
            shares: vec![TierShare::lent(Ratio::new(1.0).expect("a share"))],
            wait,
            most_waiting,
        }
    }
}

impl Slots {
    /// True if a request may pass others that wait.
    pub const fn admits_fairly(&self) -> bool {
        self.fair > self.common
    }

    /// The same number for all requests.
    pub const fn equal(slots: u32) -> Self {
        Self {
            common: slots,
            fair: slots,
            own: slots,
        }
    }
}

impl Ticket {
    /// Index of its tier.
    pub const fn tier(&self) -> usize {
        self.tier
    }

    /// Its kind.
    pub const fn kind(&self) -> usize {
        self.kind
    }

    /// Number of the request.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }
}

impl Tiers {
    /// Starts without a request.
    pub fn new(terms: TierTerms) -> Self {
        debug_assert!(!terms.shares.is_empty(), "no tier");
        Self {
            tiers: terms.shares.iter().map(|_| Tier::default()).collect(),
            terms,
            in_service: 0,
            earlier: 0,
            generation: 0,
            next: 0,
            removed: VecDeque::new(),
        }
    }

    /// Changes the terms. Requests in service keep their slots, and waiting ones their longest wait. If the number of
    /// tiers changes, waiting requests are rejected ([`pop`](Self::pop)), and those in service belong to no tier.
    pub fn change(&mut self, terms: TierTerms) {
        if terms.shares.len() != self.terms.shares.len() {
            for tier in 0..self.tiers.len() {
                while let Some(waiting) = self.tiers[tier].queue.discard_first() {
                    self.removed.push_back(self.ticket(tier, &waiting));
                }
            }
            self.generation += 1;
            self.earlier = self.in_service;
            self.tiers = terms.shares.iter().map(|_| Tier::default()).collect();
        }
        self.terms = terms;
    }

    /// Number of tiers.
    pub const fn count(&self) -> usize {
        self.tiers.len()
    }

    /// Longest wait of a request.
    pub const fn wait(&self) -> Span {
        self.terms.wait
    }

    /// Requests in service.
    pub const fn in_service(&self) -> u32 {
        self.in_service
    }

    /// Requests in service and waiting requests of each tier.
    pub fn counts(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        let counts = |tier: &Tier| (tier.in_service, tier.queue.len());
        self.tiers.iter().map(counts)
    }

    /// A request of a client arrives. Call [`pop`](Self::pop) afterwards: it may have displaced another one.
    pub fn push(
        &mut self,
        now: Instant,
        slots: Slots,
        tier: usize,
        client: u64,
        kind: usize,
    ) -> Arrival {
        let waiting = Waiting {
            number: self.next,
            client,
            kind,
            since: now,
            wait: self.terms.wait,
        };
        self.next += 1;
        let ticket = self.ticket(tier, &waiting);
        let Slots { common, fair, own } = slots;
        let is_next = self.has_room(common, tier) && self.first_tier(common).is_none();
        let is_fair = || slots.admits_fairly() && self.may_have(tier, fair);
        if is_next || own > common && self.has_room(own, tier) || is_fair() {
            if self.tiers[tier].queue.is_empty() {
                self.tiers[tier].queue.pass(client);
            }
            self.enter(&ticket);
            return Arrival::Admitted(ticket);
        }
        if self.terms.wait.is_zero() || self.terms.most_waiting == 0 {
            return Arrival::Rejected;
        }
        if self.waiting() >= self.terms.most_waiting {
            match self.displace(tier, client) {
                Some(displaced) => self.removed.push_back(displaced),
                None => return Arrival::Rejected,
            }
        }
        self.tiers[tier].queue.push(waiting);
        Arrival::Waits(ticket)
    }

    /// Returns the next request that no longer waits. Call it until it returns `None`, after each change of the
    /// requests in service and of the limit.
    pub fn pop(&mut self, now: Instant, limit: u32) -> Option<Next> {
        if let Some(ticket) = self.removed.pop_front() {
            return Some(Next::Rejected(ticket));
        }
        let tier = self.first_tier(limit)?;
        let queue = &mut self.tiers[tier].queue;
        let (first, standing) = queue.first()?;
        let longest = if now.saturating_since(standing) > first.wait {
            first.wait / STANDING
        } else {
            first.wait
        };
        if now.saturating_since(first.since) > longest {
            let discarded = queue.discard_first()?;
            return Some(Next::Rejected(self.ticket(tier, &discarded)));
        }
        let served = queue.pop()?;
        let ticket = self.ticket(tier, &served);
        self.enter(&ticket);
        Some(Next::Admitted(ticket))
    }

    /// Removes a waiting request. Returns false if it does not wait any more.
    pub fn cancel(&mut self, ticket: &Ticket) -> bool {
        if ticket.generation != self.generation {
            return false;
        }
        let queue = &mut self.tiers[ticket.tier].queue;
        queue.remove(ticket.client, ticket.number)
    }

    /// A request in service has ended or pauses.
    pub fn leave(&mut self, ticket: &Ticket) {
        debug_assert!(self.in_service > 0, "a request leaves that did not enter");
        self.in_service -= 1;
        if ticket.generation == self.generation {
            self.tiers[ticket.tier].in_service -= 1;
        } else {
            self.earlier -= 1;
        }
        self.assert_sum();
    }

    /// A request is in service, whatever the limit is: it was admitted by another rule, or its pause ends.
    pub fn enter(&mut self, ticket: &Ticket) {
        self.in_service += 1;
        if ticket.generation == self.generation {
            self.tiers[ticket.tier].in_service += 1;
        } else {
            self.earlier += 1;
        }
        self.assert_sum();
    }

    /// A ticket for a request that does not wait and is not limited here. Pass it to [`enter`](Self::enter).
    pub const fn unlimited(&mut self, tier: usize, client: u64, kind: usize) -> Ticket {
        let number = self.next;
        self.next += 1;
        Ticket {
            number,
            tier,
            client,
            kind,
            generation: self.generation,
        }
    }

    /// The tier that gets the next slot. `None` if there is none, or if nothing waits for it.
    fn first_tier(&self, limit: u32) -> Option<usize> {
        if self.in_service >= limit {
            return None;
        }
        let waits =
            |index: &usize| !self.tiers[*index].queue.is_empty() && self.has_room(limit, *index);
        let is_below = |index: &usize| {
            let share = guaranteed(limit, self.terms.shares[*index].share);
            waits(index) && self.tiers[*index].in_service < share
        };
        let mut all = 0..self.tiers.len();
        all.clone().find(is_below).or_else(|| all.find(waits))
    }

    /// True if a waiting request may have one of so many slots before those that came earlier: no more important one
    /// waits, and the slot is in no reserve.
    pub(crate) fn may_pass(&self, ticket: &Ticket, fair: u32) -> bool {
        ticket.generation == self.generation && self.may_have(ticket.tier, fair)
    }

    /// Takes a waiting request into service before those that came earlier. Returns false if it does not wait any more.
    pub(crate) fn serve(&mut self, ticket: &Ticket) -> bool {
        debug_assert_eq!(ticket.generation, self.generation, "an earlier request");
        let is_served = self.tiers[ticket.tier]
            .queue
            .serve(ticket.client, ticket.number);
        if is_served {
            self.enter(ticket);
        }
        is_served
    }

    fn may_have(&self, tier: usize, fair: u32) -> bool {
        self.has_room(fair, tier) && !self.is_behind(tier)
    }

    /// True if a request of a more important tier waits.
    fn is_behind(&self, tier: usize) -> bool {
        let before = self.tiers[..tier].iter();
        before.into_iter().any(|tier| !tier.queue.is_empty())
    }

    /// True if a tier may use one more of so many slots: all but those that others have in reserve.
    fn has_room(&self, limit: u32, tier: usize) -> bool {
        let mut reserved = 0;
        for (other, state) in self.tiers.iter().enumerate() {
            if other != tier {
                let reserve = guaranteed(limit, self.terms.shares[other].reserve);
                reserved += reserve.saturating_sub(state.in_service);
            }
        }
        self.in_service.saturating_add(reserved) < limit
    }

    /// Removes the waiting request that would be served last, for one of this tier and client. Returns `None` if that
    /// one would be served later.
    fn displace(&mut self, tier: usize, client: ClientHash) -> Option<Ticket> {
        let last = self.tiers.iter().rposition(|tier| !tier.queue.is_empty())?;
        let queue = &mut self.tiers[last].queue;
        if tier > last || tier == last && queue.would_be_last(client) {
            return None;
        }
        let discarded = queue.discard_last()?;
        Some(self.ticket(last, &discarded))
    }

    fn waiting(&self) -> usize {
        self.tiers.iter().map(|tier| tier.queue.len()).sum()
    }

    const fn ticket(&self, tier: usize, waiting: &Waiting) -> Ticket {
        Ticket {
            number: waiting.number,
            tier,
            client: waiting.client,
            kind: waiting.kind,
            generation: self.generation,
        }
    }

    fn assert_sum(&self) {
        debug_assert_eq!(
            self.in_service,
            self.earlier + self.tiers.iter().map(|tier| tier.in_service).sum::<u32>(),
            "requests in service that belong nowhere"
        );
    }
}

/// Slots of a share. A tier with a share has at least one.
fn guaranteed(limit: u32, share: Ratio) -> u32 {
    if share.get() > 0.0 {
        ((f64::from(limit) * share.get()) as u32).max(1)
    } else {
        0
    }
}
