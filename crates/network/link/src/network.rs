//! Both directions for any number of connections: separate links for each, or one for all.

mod replay;

use std::cmp::Reverse;
use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BinaryHeap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use posthaste_units::{Dscp, Instant, Seed, Span};

use crate::change::{AppliedChange, Change};
use crate::record::PacketInput;
use crate::{
    BackgroundCounters, ClassCounters, Departure, Direction, Ecn, Link, LinkCounters, Packet, Plan,
    Sharing,
};

/// Idle time after which a connection that was not [opened](Network::open) is over, if nothing is inside. The next
/// packet of the same key begins a new one.
pub const IDLE: Span = Span::from_secs(120);

/// Idle time after which the memory of an [opened](Network::open) connection is freed. Equals the time after which
/// TCP's keep-alive probes the other end (RFC 9293, section 3.8.4).
pub const FORGOTTEN: Span = Span::from_secs(2 * 3600);

/// Seed of connection `number`, from 1, if each has its own links. They draw from its children `up` and `down`, so that
/// a simulation draws the same as the emulated connection of that number.
pub fn seed_of(seed: Seed, number: u64) -> Seed {
    seed.numbered("connection", number)
}

/// Links for connections identified by `K`.
///
/// Connections are numbered from 1 in the order of their first packets. The links of connection `n` draw from the
/// children `up` and `down` of its [`seed_of`], and shared links from those of the network's own seed.
pub struct Network<K, P> {
    plans: Plans<K>,
    seed: Seed,
    sharing: Sharing,
    connections: HashMap<K, NetworkConnection>,
    /// All connections whose memory has not been freed, in no order. Some are checked for each new one.
    rounds: VecDeque<RegisteredConnection<K>>,
    pairs: Vec<Option<LinkPair<K, P>>>,
    empty: Vec<usize>,
    wakes: BinaryHeap<Reverse<Wake>>,
    count: u64,
    forgotten: [LinkCounters; 2],
}

/// Plans of the links of connections, up and down.
enum Plans<K> {
    /// The same for all connections.
    Same([Arc<Plan>; 2]),
    /// Chosen by a function at the first packet of a connection.
    Chosen {
        choose: Choose<K>,
        /// Changes so far, which hold for later connections, too.
        changes: Vec<AppliedChange>,
    },
}

impl<K> Plans<K> {
    /// Plans of a new connection, up and down.
    fn of_connection(&self, key: &K) -> [Arc<Plan>; 2] {
        match self {
            Self::Same(plans) => plans.clone(),
            Self::Chosen { choose, changes } => {
                let mut plans = choose(key);
                for applied in changes {
                    change_both(&mut plans, applied.at, &applied.change);
                }
                plans
            }
        }
    }

    fn change(&mut self, at: Instant, change: &Change) {
        match self {
            Self::Same(plans) => change_both(plans, at, change),
            Self::Chosen { changes, .. } => changes.push(AppliedChange {
                at,
                change: change.clone(),
            }),
        }
    }
}

/// Changes the plans up and down. A plan without a new value stays the same.
fn change_both(plans: &mut [Arc<Plan>; 2], now: Instant, change: &Change) {
    for (direction, plan) in Direction::BOTH.into_iter().zip(plans) {
        if let Some(next) = change.apply(direction, plan, now) {
            *plan = Arc::new(next);
        }
    }
}

type Choose<K> = Box<dyn Fn(&K) -> [Arc<Plan>; 2] + Send>;

struct NetworkConnection {
    number: u64,
    last: Instant,
    slot: usize,
    opening: Option<Opening>,
}

/// Opening of a connection: its direction, and a number that distinguishes it from others.
type Opening = (Direction, u32);

struct RegisteredConnection<K> {
    key: K,
    number: u64,
    slot: usize,
}

/// The two links of a connection, or of all.
struct LinkPair<K, P> {
    number: u64,
    links: [Link<Tagged<K, P>>; 2],
    /// Scheduled time of each link on the heap.
    wakes: [Option<Instant>; 2],
}

/// Scheduled `pop` of a link, in the order in which packets come out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wake {
    at: Instant,
    number: u64,
    direction: Direction,
    slot: usize,
}

/// A packet with its connection.
#[derive(Clone)]
struct Tagged<K, P> {
    number: u64,
    key: K,
    packet: P,
}

impl<K: Clone, P: Packet> Packet for Tagged<K, P> {
    fn bytes(&self) -> u32 {
        self.packet.bytes()
    }
    fn flip(&mut self, bit: u32) {
        self.packet.flip(bit);
    }
    fn dscp(&self) -> Dscp {
        self.packet.dscp()
    }
    fn ecn(&self) -> Ecn {
        self.packet.ecn()
    }
    fn mark_congestion(&mut self) {
        self.packet.mark_congestion();
    }
    fn may_be_fragmented(&self) -> bool {
        self.packet.may_be_fragmented()
    }
}

/// A departure: direction, number and key of the connection, and the packet.
pub type Arrived<K, P> = (Direction, u64, K, Departure<P>);

impl<K: Hash + Eq + Clone, P: Packet> Network<K, P> {
    /// A network without connections. Plans should have been [checked](Plan::check).
    pub fn new(up: &Arc<Plan>, down: &Arc<Plan>, sharing: Sharing, seed: Seed) -> Self {
        let plans = [up.clone(), down.clone()];
        let mut network = Self::empty(Plans::Same(plans.clone()), sharing, seed);
        if sharing == Sharing::Whole {
            network.add_pair(0, seed, &plans);
        }
        network
    }

    /// A network with separate links for each connection. `choose` returns its plans, up and down, for its key. It is
    /// called once, at the first packet. Allows many experiments in parallel.
    pub fn choosing(choose: impl Fn(&K) -> [Arc<Plan>; 2] + Send + 'static, seed: Seed) -> Self {
        let plans = Plans::Chosen {
            choose: Box::new(choose),
            changes: Vec::new(),
        };
        Self::empty(plans, Sharing::PerConnection, seed)
    }

    fn empty(plans: Plans<K>, sharing: Sharing, seed: Seed) -> Self {
        Self {
            plans,
            seed,
            sharing,
            connections: HashMap::new(),
            rounds: VecDeque::new(),
            pairs: Vec::new(),
            empty: Vec::new(),
            wakes: BinaryHeap::new(),
            count: 0,
            forgotten: [LinkCounters::default(); 2],
        }
    }

    /// Adds an arriving packet; see [`Link::push`] for times before an earlier `pop`. Returns the values for a
    /// [record](crate::record) that replays.
    pub fn push(&mut self, now: Instant, direction: Direction, key: K, packet: P) -> PacketInput {
        self.take(now, direction, key, packet, None)
    }

    /// Adds a packet that opens a connection: a TCP SYN with its initial sequence number (RFC 9293, section 3.4.1).
    ///
    /// If the number differs from the previous one in its direction, it begins a new connection, however soon; if not,
    /// it is a retransmission. An opened connection is not over because it is idle.
    pub fn open(
        &mut self,
        now: Instant,
        direction: Direction,
        key: K,
        packet: P,
        number: u32,
    ) -> PacketInput {
        self.take(now, direction, key, packet, Some((direction, number)))
    }

    fn take(
        &mut self,
        now: Instant,
        direction: Direction,
        key: K,
        packet: P,
        opening: Option<Opening>,
    ) -> PacketInput {
        let (number, slot) = self.connection(now, direction, &key, opening);
        let (bytes, dscp, ecn) = (packet.bytes(), packet.dscp(), packet.ecn());
        let df = !packet.may_be_fragmented();
        let mut at = now;
        if let Some(pair) = &mut self.pairs[slot] {
            let tagged = Tagged {
                number,
                key: key.clone(),
                packet,
            };
            at = pair.links[direction as usize].push(now, tagged);
        }
        self.plan_wake(slot, direction);
        PacketInput {
            at,
            direction,
            connection: number,
            bytes,
            dscp,
            ecn,
            df,
        }
    }

    /// Changes the links of all connections, present and later ones; see [`change`](crate::change). The change should
    /// have been [checked](Change::check).
    ///
    /// Its time is `now`, or that of a later decision of a link. Returns it, for a [record](crate::record) that replays.
    pub fn change(&mut self, now: Instant, change: Change) -> AppliedChange {
        let links = self.pairs.iter().flatten().flat_map(|pair| &pair.links);
        let now = links.fold(now, |latest, link| link.arrival(latest));
        self.plans.change(now, &change);
        for slot in 0..self.pairs.len() {
            for direction in Direction::BOTH {
                let Some(pair) = &mut self.pairs[slot] else {
                    continue;
                };
                let link = &mut pair.links[direction as usize];
                let next = match &self.plans {
                    Plans::Same(plans) => Some(plans[direction as usize].clone()),
                    Plans::Chosen { .. } => change.apply(direction, link.plan(), now).map(Arc::new),
                };
                if let Some(plan) = next {
                    link.change(now, &plan);
                    self.plan_wake(slot, direction);
                }
            }
        }
        AppliedChange { at: now, change }
    }

    /// The next packet that has left by `now`, in order of departure. Equal times are ordered by connection, up before
    /// down.
    pub fn pop(&mut self, now: Instant) -> Option<Arrived<K, P>> {
        while let Some(Reverse(wake)) = self.wakes.peek().copied().filter(|next| next.0.at <= now) {
            self.wakes.pop();
            let side = wake.direction as usize;
            let pair = self.pairs[wake.slot].as_mut();
            let Some(pair) = pair.filter(|pair| pair.number == wake.number) else {
                continue;
            };
            if pair.wakes[side] != Some(wake.at) {
                continue;
            }
            pair.wakes[side] = None;
            let departure = pair.links[side].pop(wake.at);
            self.plan_wake(wake.slot, wake.direction);
            if let Some(departure) = departure {
                let (number, key) = (departure.packet.number, departure.packet.key.clone());
                debug_assert!(number <= self.count, "connection {number} does not exist");
                let departure = departure.map(|tagged| tagged.packet);
                return Some((wake.direction, number, key, departure));
            }
        }
        None
    }

    /// Time of the next call of `pop`; `None` if nothing is inside. Occasionally no packet comes out then.
    pub fn wake(&self) -> Option<Instant> {
        self.wakes.peek().map(|Reverse(wake)| wake.at)
    }

    /// Counters of one direction of all connections.
    pub fn counters(&self, direction: Direction) -> LinkCounters {
        let mut sum = self.forgotten[direction as usize];
        for pair in self.pairs.iter().flatten() {
            sum += *pair.links[direction as usize].counters();
        }
        sum
    }

    /// Counters of each class in the link that all share; empty if each connection has its own.
    pub fn class_counters(&self, direction: Direction) -> Vec<ClassCounters> {
        match (self.sharing, self.pairs.first()) {
            (Sharing::Whole, Some(Some(pair))) => pair.links[direction as usize].class_counters(),
            _ => Vec::new(),
        }
    }

    /// Counters of the cross traffic in one direction of all existing links; `None` without cross traffic.
    pub fn background_counters(&self, direction: Direction) -> Option<BackgroundCounters> {
        let links = self.pairs.iter().flatten();
        let each = links.filter_map(|pair| pair.links[direction as usize].background_counters());
        each.reduce(|mut sum, more| {
            sum.sent += more.sent;
            sum.dropped += more.dropped;
            sum
        })
    }

    /// Connections so far.
    pub const fn connections(&self) -> u64 {
        self.count
    }

    /// Number and links of a connection, new or known.
    fn connection(
        &mut self,
        now: Instant,
        direction: Direction,
        key: &K,
        opening: Option<Opening>,
    ) -> (u64, usize) {
        if let Some(connection) = self.connections.get_mut(key) {
            let NetworkConnection {
                number,
                last,
                slot,
                opening: known,
            } = *connection;
            let at = match &self.pairs[slot] {
                Some(pair) => pair.links[direction as usize].arrival(now),
                None => now,
            };
            connection.last = last.max(at);
            let is_over = match (known, opening) {
                (Some((way, _)), Some((new, _))) if way == new => known != opening,
                (Some(_), _) => false,
                (None, Some(_)) => true,
                // The two directions are stamped separately.
                (None, None) => at.saturating_since(last) >= IDLE && self.is_quiet(slot, at),
            };
            if !is_over {
                return (number, slot);
            }
            self.connections.remove(key);
        }
        self.give_back(now);
        self.count += 1;
        let number = self.count;
        let slot = match self.sharing {
            Sharing::Whole => 0,
            Sharing::PerConnection => {
                let plans = self.plans.of_connection(key);
                self.add_pair(number, seed_of(self.seed, number), &plans)
            }
        };
        self.rounds.push_back(RegisteredConnection {
            key: key.clone(),
            number,
            slot,
        });
        let connection = NetworkConnection {
            number,
            last: now,
            slot,
            opening,
        };
        self.connections.insert(key.clone(), connection);
        debug_assert!(
            self.connections.len() <= self.rounds.len(),
            "a connection's memory would never be freed"
        );
        (number, slot)
    }

    fn add_pair(&mut self, number: u64, seed: Seed, [up, down]: &[Arc<Plan>; 2]) -> usize {
        let pair = LinkPair {
            number,
            links: [
                Link::new(up, seed.child(Direction::Up.name())),
                Link::new(down, seed.child(Direction::Down.name())),
            ],
            wakes: [None; 2],
        };
        match self.empty.pop() {
            Some(slot) => {
                assert!(self.pairs[slot].is_none(), "slot {slot} is in use");
                self.pairs[slot] = Some(pair);
                slot
            }
            None => {
                self.pairs.push(Some(pair));
                self.pairs.len() - 1
            }
        }
    }

    /// True if nothing leaves a connection's own links after `now`.
    fn is_quiet(&mut self, slot: usize, now: Instant) -> bool {
        self.sharing == Sharing::Whole
            || match &mut self.pairs[slot] {
                Some(pair) => pair.links.iter_mut().all(|link| link.is_quiet(now)),
                None => true,
            }
    }

    /// Checks two connections and frees those that have long been over and are drained. Two for each new one, so that
    /// the memory stays in proportion to the connections in use. Long, so that no packet with a slightly earlier stamp
    /// finds them gone by accident.
    fn give_back(&mut self, now: Instant) {
        for _ in 0..2.min(self.rounds.len()) {
            let Some(known) = self.rounds.pop_front() else {
                return;
            };
            let current = match self.connections.get(&known.key) {
                Some(connection) if connection.number == known.number => {
                    let patience = match connection.opening {
                        Some(_) => FORGOTTEN,
                        None => IDLE * 2,
                    };
                    Some((connection.last, patience))
                }
                _ => None,
            };
            let over = match current {
                Some((last, patience)) => {
                    // The two directions are stamped separately.
                    now.saturating_since(last) >= patience && self.is_quiet(known.slot, now)
                }
                None => true,
            };
            if !over || !self.is_drained(known.slot) {
                self.rounds.push_back(known);
                continue;
            }
            if let (Some(_), Entry::Occupied(entry)) = (current, self.connections.entry(known.key))
            {
                entry.remove();
            }
            self.remove_pair(known.slot);
        }
    }

    fn is_drained(&self, slot: usize) -> bool {
        self.sharing == Sharing::Whole
            || match &self.pairs[slot] {
                Some(pair) => pair.links.iter().all(|link| link.counters().inside() == 0),
                None => true,
            }
    }

    fn remove_pair(&mut self, slot: usize) {
        if self.sharing == Sharing::Whole {
            return;
        }
        if let Some(pair) = self.pairs[slot].take() {
            for (sum, link) in self.forgotten.iter_mut().zip(&pair.links) {
                let inside = link.counters().inside();
                assert_eq!(inside, 0, "a connection with packets inside is forgotten");
                *sum += *link.counters();
            }
            self.empty.push(slot);
        }
    }

    /// Schedules a link if it must be popped earlier than already scheduled.
    fn plan_wake(&mut self, slot: usize, direction: Direction) {
        let Some(pair) = &mut self.pairs[slot] else {
            return;
        };
        let side = direction as usize;
        let Some(at) = pair.links[side].wake() else {
            return;
        };
        if pair.wakes[side].is_none_or(|planned| at < planned) {
            pair.wakes[side] = Some(at);
            self.wakes.push(Reverse(Wake {
                at,
                number: pair.number,
                direction,
                slot,
            }));
        }
    }
}
