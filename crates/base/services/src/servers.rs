//! Servers with one queue, first come, first served: the recursion of Kiefer and Wolfowitz, and automatic scaling.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::misbehaviour::Autoscale;

/// Load above which a server is added.
const HIGH: f64 = 0.8;
/// Load of the others below which a server is removed.
const LOW: f64 = 0.6;

/// Times from which each server is free.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    /// Empty if unlimited.
    free: BinaryHeap<Reverse<u64>>,
    fewest: usize,
    scaling: Option<Scaling>,
}

#[derive(Clone, Debug)]
struct Scaling {
    most: usize,
    every: u64,
    /// Time of the next decision. `None` before the first arrival.
    next: Option<u64>,
    /// Work that arrived since the last one, in ns.
    work: f64,
}

impl Servers {
    /// Idle servers. `None` for any number.
    pub(crate) fn new(servers: Option<u32>, scale: Option<Autoscale>) -> Self {
        let fewest = servers.unwrap_or(0) as usize;
        Self {
            free: vec![Reverse(0); fewest].into(),
            fewest,
            scaling: scale.map(|scale| Scaling {
                most: scale.most as usize,
                every: scale.every.as_nanos(),
                next: None,
                work: 0.0,
            }),
        }
    }

    /// Occupies every server until a time.
    pub(crate) fn occupy_all(&mut self, until: u64) {
        self.free = vec![Reverse(until); self.free.len()].into();
    }

    /// The earliest start of a service for a request that arrives at `now`.
    pub(crate) fn begin(&self, now: u64) -> u64 {
        self.free.peek().map_or(now, |free| free.0.max(now))
    }

    /// Occupies the server that is free first until `departure`.
    pub(crate) fn occupy(&mut self, departure: u64, work: u64) {
        if let Some(mut first) = self.free.peek_mut() {
            first.0 = departure;
        }
        if let Some(scaling) = &mut self.scaling {
            scaling.work += work as f64;
        }
    }

    /// Mean share of the servers that were busy from `from` to `now`, without arrivals between. 0 for any number of
    /// servers. Takes time in proportion to their number.
    pub(crate) fn busy(&self, from: u64, now: u64) -> f64 {
        let busy = |free: &Reverse<u64>| free.0.clamp(from, now) - from;
        let sum: u64 = self.free.iter().map(busy).sum();
        let whole = (now - from) as f64 * self.free.len() as f64;
        if whole > 0.0 { sum as f64 / whole } else { 0.0 }
    }

    /// Number of servers.
    pub(crate) fn count(&self) -> usize {
        self.free.len()
    }

    /// Adds and removes servers by the decisions due until `now`.
    pub(crate) fn scale(&mut self, now: u64) {
        let Some(scaling) = &mut self.scaling else {
            return;
        };
        let mut at = *scaling
            .next
            .get_or_insert(now.saturating_add(scaling.every));
        while at <= now {
            let count = self.free.len();
            let load = scaling.work / scaling.every as f64;
            scaling.work = 0.0;
            if load > HIGH * count as f64 && count < scaling.most {
                self.free.push(Reverse(at));
            } else if count > self.fewest && load < LOW * (count - 1) as f64 {
                self.free.pop();
            } else if load == 0.0 {
                // Nothing has changed since: continue at the last decision before now.
                at += (now - at) / scaling.every * scaling.every;
            }
            at = at.saturating_add(scaling.every);
        }
        scaling.next = Some(at);
    }
}
