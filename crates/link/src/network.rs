//! Both directions for any number of connections: links of their own for each, or one for all.

use std::cmp::Reverse;
use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BinaryHeap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use posthaste_units::{Dscp, Instant, Seed, Span};

use crate::record::Input;
use crate::{BackgroundCounters, ClassCounters, Counters, Direction, Link, Packet, Passage, Plan};

/// After so long without a packet, and with nothing on its way, a connection that was not
/// [opened](Network::open) is over: the next packet of the same key begins a new one.
pub const IDLE: Span = Span::from_secs(120);

/// The memory of an [opened](Network::open) connection is given back after so long without a packet:
/// as long as TCP waits until it asks whether the other end is still there (RFC 9293, section 3.8.4).
pub const FORGOTTEN: Span = Span::from_secs(2 * 3600);

/// Who shares a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Each connection has links of its own, with positions and randomness of its own.
    #[default]
    PerConnection,
    /// All connections share one link in each direction.
    Whole,
}

/// The seed of connection `number`, from 1, where each has links of its own: they draw from its
/// children `up` and `down`. So a simulation draws what the emulated connection of that number does.
pub fn seed_of(seed: Seed, number: u64) -> Seed {
    seed.numbered("connection", number)
}

/// Links for connections that callers tell apart by `K`.
///
/// Connections are numbered from 1 in the order of their first packets. The links of connection
/// `n` draw from the children `up` and `down` of [`seed_of`] it, shared links from those of the
/// network's own seed.
pub struct Network<K, P> {
    plans: Plans<K>,
    seed: Seed,
    sharing: Sharing,
    connections: HashMap<K, Connection>,
    /// Every connection whose memory has not been given back, in no order: looked through a
    /// little whenever a new one comes.
    rounds: VecDeque<Known<K>>,
    pairs: Vec<Option<Pair<K, P>>>,
    empty: Vec<usize>,
    wakes: BinaryHeap<Reverse<Wake>>,
    count: u64,
    forgotten: [Counters; 2],
}

/// What the links of connections do, up and down.
enum Plans<K> {
    /// The same for all.
    Same([Arc<Plan>; 2]),
    /// What this says when a connection's first packet comes.
    Chosen(Choose<K>),
}

type Choose<K> = Box<dyn Fn(&K) -> [Arc<Plan>; 2] + Send>;

struct Connection {
    number: u64,
    last: Instant,
    slot: usize,
    opening: Option<Opening>,
}

/// What opened a connection: the direction, and the number that tells one opening from another.
type Opening = (Direction, u32);

struct Known<K> {
    key: K,
    number: u64,
    slot: usize,
}

/// The two links of a connection, or of all.
struct Pair<K, P> {
    number: u64,
    links: [Link<Tagged<K, P>>; 2],
    /// For when each is on the heap.
    wakes: [Option<Instant>; 2],
}

/// When a link wants to be popped, in the order in which packets come out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wake {
    at: Instant,
    number: u64,
    direction: Direction,
    slot: usize,
}

/// A packet that knows its connection.
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
}

/// What comes out: the direction, the connection's number and key, and the packet.
pub type Arrived<K, P> = (Direction, u64, K, Passage<P>);

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

    /// A network in which each connection has links of its own that do what `choose` says of its key,
    /// up and down: many experiments side by side. Asked once, when the first packet comes.
    pub fn choosing(choose: impl Fn(&K) -> [Arc<Plan>; 2] + Send + 'static, seed: Seed) -> Self {
        let plans = Plans::Chosen(Box::new(choose));
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
            forgotten: [Counters::default(); 2],
        }
    }

    /// A packet arrives; see [`Link::push`] for times that lie before those popped at. Returns
    /// what a [record](crate::record) has to say of it: with these values it replays.
    pub fn push(&mut self, now: Instant, direction: Direction, key: K, packet: P) -> Input {
        self.take(now, direction, key, packet, None)
    }

    /// The same of a packet that opens a connection: a TCP SYN, with its initial sequence number
    /// (RFC 9293, section 3.4.1). With another number than the one before in its direction it begins
    /// a new connection, however soon; with the same it was sent again. What was opened is not over
    /// for being quiet.
    pub fn open(
        &mut self,
        now: Instant,
        direction: Direction,
        key: K,
        packet: P,
        number: u32,
    ) -> Input {
        self.take(now, direction, key, packet, Some((direction, number)))
    }

    fn take(
        &mut self,
        now: Instant,
        direction: Direction,
        key: K,
        packet: P,
        opening: Option<Opening>,
    ) -> Input {
        let (number, slot) = self.connection(now, direction, &key, opening);
        let (bytes, dscp) = (packet.bytes(), packet.dscp());
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
        Input {
            at,
            direction,
            connection: number,
            bytes,
            dscp,
        }
    }

    /// The next packet whose time has come by `now`, in the order in which they leave; those of
    /// the same nanosecond by connection, up before down.
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
            let passage = pair.links[side].pop(wake.at);
            self.plan_wake(wake.slot, wake.direction);
            if let Some(passage) = passage {
                let (number, key) = (passage.packet.number, passage.packet.key.clone());
                let passage = passage.map(|tagged| tagged.packet);
                return Some((wake.direction, number, key, passage));
            }
        }
        None
    }

    /// When to pop next; `None` where nothing is on its way. Now and then nothing comes out then.
    pub fn wake(&self) -> Option<Instant> {
        self.wakes.peek().map(|Reverse(wake)| wake.at)
    }

    /// What one direction of all connections has done.
    pub fn counters(&self, direction: Direction) -> Counters {
        let mut sum = self.forgotten[direction as usize];
        for pair in self.pairs.iter().flatten() {
            sum += *pair.links[direction as usize].counters();
        }
        sum
    }

    /// What each class did in the link that all share; none where each connection has its own.
    pub fn class_counters(&self, direction: Direction) -> Vec<ClassCounters> {
        match (self.sharing, self.pairs.first()) {
            (Sharing::Whole, Some(Some(pair))) => pair.links[direction as usize].class_counters(),
            _ => Vec::new(),
        }
    }

    /// What became of the background in one direction of all links that there still are; `None`
    /// where there is none.
    pub fn background_counters(&self, direction: Direction) -> Option<BackgroundCounters> {
        let links = self.pairs.iter().flatten();
        let each = links.filter_map(|pair| pair.links[direction as usize].background_counters());
        each.reduce(|mut sum, more| {
            sum.sent += more.sent;
            sum.dropped += more.dropped;
            sum
        })
    }

    /// How many connections there have been.
    pub const fn connections(&self) -> u64 {
        self.count
    }

    /// The number and links of a connection, new or known.
    fn connection(
        &mut self,
        now: Instant,
        direction: Direction,
        key: &K,
        opening: Option<Opening>,
    ) -> (u64, usize) {
        if let Some(connection) = self.connections.get_mut(key) {
            let Connection {
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
                (None, None) => at.since(last) >= IDLE && self.is_quiet(slot, at),
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
                let plans = match &self.plans {
                    Plans::Same(plans) => plans.clone(),
                    Plans::Chosen(choose) => choose(key),
                };
                self.add_pair(number, seed_of(self.seed, number), &plans)
            }
        };
        self.rounds.push_back(Known {
            key: key.clone(),
            number,
            slot,
        });
        let connection = Connection {
            number,
            last: now,
            slot,
            opening,
        };
        self.connections.insert(key.clone(), connection);
        (number, slot)
    }

    fn add_pair(&mut self, number: u64, seed: Seed, [up, down]: &[Arc<Plan>; 2]) -> usize {
        let pair = Pair {
            number,
            links: [
                Link::new(up, seed.child(Direction::Up.name())),
                Link::new(down, seed.child(Direction::Down.name())),
            ],
            wakes: [None; 2],
        };
        match self.empty.pop() {
            Some(slot) => {
                self.pairs[slot] = Some(pair);
                slot
            }
            None => {
                self.pairs.push(Some(pair));
                self.pairs.len() - 1
            }
        }
    }

    /// Whether nothing leaves a connection's own links after `now`.
    fn is_quiet(&mut self, slot: usize, now: Instant) -> bool {
        self.sharing == Sharing::Whole
            || match &mut self.pairs[slot] {
                Some(pair) => pair.links.iter_mut().all(|link| link.is_quiet(now)),
                None => true,
            }
    }

    /// Looks at two connections and gives back their memory where they have long been over and
    /// everything has been popped: more than come, so that what is kept stays in proportion to
    /// what lives. Long, so that no packet stamped a little earlier finds them gone by accident.
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
                    now.since(last) >= patience && self.is_quiet(known.slot, now)
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
                *sum += *link.counters();
            }
            self.empty.push(slot);
        }
    }

    /// Puts a link on the heap where it wants to be popped earlier than it stands there.
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
