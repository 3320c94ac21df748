//! Simulation of transactions: one loop over push, pop and wake in virtual time.
//!
//! Four kinds of events occur: a packet leaves the link up or down, or a timer of the client or the server is due, in
//! its TCP or its program. The loop handles the earliest event; events of the same nanosecond in this order. Memory is
//! kept between transactions: after the first few nothing is allocated.

use posthaste_link::{Direction, Fate, Link, seed_of};
use posthaste_tcp::{ConnectionEnd, Endpoint, TcpState};
use posthaste_units::{Instant, Seed, Span};

use crate::simulation::application::{ClientProgram, ServerProgram};
use crate::simulation::start::{DrawnStart, drawn_start};
use crate::simulation::stopwatch::Stopwatch;
use crate::simulation::witness::{Nobody, OfferedSegment, Witness};
use crate::{Carried, Ending, Scenario, ScenarioError, Transaction, simulation::carried};

/// Events at one instant after which a transaction is given up. Far more than any packet needs.
const STANDSTILL: u64 = 1 << 16;

/// Bytes of requests and replies per additional event in the limit: on links without delay all of them pass in one
/// instant.
const BYTES_AN_EVENT: u64 = 64;

/// Additional events in the limit per exchange, however short: its segments and their acknowledgements.
const EVENTS_AN_EXCHANGE: u64 = 16;

/// Simulator of the transactions of a scenario.
pub struct Simulator {
    scenario: Scenario,
    seed: Seed,
    links: [Link<Carried>; 2],
    /// The segments on the links.
    sent: [carried::SegmentsOnLink; 2],
    ends: [Endpoint; 2],
    client: ClientProgram,
    server: ServerProgram,
    stopwatch: Stopwatch,
    /// Duplicate segments that arrived because a link had copied them.
    by_copies: u64,
    /// Next event of each link and end: link up, link down, client, server.
    wakes: [Instant; 4],
    now: Instant,
}

/// Number of links, and the index of the first end in `wakes`.
const LINKS: usize = 2;

impl Simulator {
    /// Duration after which a transaction is [given up](Ending::Unfinished).
    pub const PATIENCE: Span = Span::from_secs(3 * 3600);

    /// Creates a simulator for the transactions of `scenario` with the random streams of `seed`.
    pub fn new(scenario: Scenario, seed: Seed) -> Result<Self, ScenarioError> {
        scenario.check()?;
        let [up, down] = &scenario.plans;
        Ok(Self {
            links: [Link::new(up, seed), Link::new(down, seed)],
            sent: Default::default(),
            ends: [
                Endpoint::connect(&scenario.client, 0, Instant::ORIGIN),
                Endpoint::listen(&scenario.server, 0),
            ],
            client: ClientProgram::default(),
            server: ServerProgram::default(),
            stopwatch: Stopwatch::default(),
            by_copies: 0,
            wakes: [Instant::FAR_FUTURE; 4],
            now: Instant::ORIGIN,
            scenario,
            seed,
        })
    }

    /// The simulated scenario.
    pub const fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Simulates transaction `number`, from 1. Its links draw the same random numbers as those of an emulated
    /// connection with this number.
    pub fn play(&mut self, number: u64) -> Transaction<'_> {
        self.play_before(number, &mut Nobody)
    }

    /// Like [`play`](Self::play), and reports every packet to a witness.
    pub fn play_before(&mut self, number: u64, witness: &mut impl Witness) -> Transaction<'_> {
        self.play_from(None, number, witness)
    }

    /// Like [`play_before`](Self::play_before), from the given instant instead of a random one. The instant sets the
    /// phase of coarse clocks.
    pub fn play_from(
        &mut self,
        began: Option<Instant>,
        number: u64,
        witness: &mut impl Witness,
    ) -> Transaction<'_> {
        let began = self.begin(began, number);
        self.run_end(Direction::Up, witness);
        let ending = self.run(began, witness);
        self.assert_conserved();
        let [client, server] = &self.ends;
        Transaction {
            number,
            began,
            ended: self.now,
            responses: self.stopwatch.responses(),
            ending,
            client: client.counters(),
            server: server.counters(),
            links: [self.links[0].counters(), self.links[1].counters()],
            by_copies: self.by_copies,
        }
    }

    fn begin(&mut self, began: Option<Instant>, number: u64) -> Instant {
        let seed = seed_of(self.seed, number);
        for (link, direction) in self.links.iter_mut().zip(Direction::BOTH) {
            link.restart(seed.child(direction.name()));
            self.sent[direction as usize].clear();
        }
        let DrawnStart { at, chance } = drawn_start(seed);
        self.now = began.unwrap_or(at);
        let isns = [chance as u32, (chance >> 16) as u32];
        let Scenario { client, server, .. } = &self.scenario;
        self.ends[0].reconnect(client, isns[0], self.now);
        self.ends[1].relisten(server, isns[1]);
        self.client = ClientProgram::default();
        self.server = ServerProgram::default();
        self.stopwatch.start(self.now);
        self.by_copies = 0;
        self.wakes = [Instant::FAR_FUTURE; 4];
        self.now
    }

    fn run(&mut self, began: Instant, witness: &mut impl Witness) -> Ending {
        let service = &self.scenario.service;
        let most_standing = STANDSTILL
            + service.bytes() / BYTES_AN_EVENT
            + service.exchanges.len() as u64 * EVENTS_AN_EXCHANGE;
        let mut standing = 0;
        loop {
            if self.is_over() {
                return self.ending();
            }
            let (next, at) = self.next();
            if at == Instant::FAR_FUTURE {
                return self.ending();
            }
            debug_assert!(
                next >= LINKS || at >= self.now,
                "a packet leaves a link in the past"
            );
            // An end that may send at once wakes at the origin of time.
            let at = at.max(self.now);
            standing = if at > self.now { 0 } else { standing + 1 };
            if at.since(began) > Self::PATIENCE || standing > most_standing {
                return Ending::Unfinished;
            }
            self.now = at;
            let direction = Direction::BOTH[next % LINKS];
            if next < LINKS {
                self.arrive(direction, witness);
            } else {
                self.run_end(direction, witness);
            }
        }
    }

    /// Panics unless every segment that an end has sent is accounted for. Checked in debug builds.
    fn assert_conserved(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        for direction in Direction::BOTH {
            let way = direction as usize;
            let (link, sender) = (self.links[way].counters(), &self.ends[way]);
            let receiver = self.ends[1 - way].counters();
            assert_eq!(
                link.pushed.packets,
                sender.counters().segments_out,
                "{direction}: the link was offered other segments than were sent"
            );
            assert_eq!(
                receiver.segments_in,
                link.delivered.packets - link.corrupted.packets,
                "{direction}: an end received other segments than were delivered intact"
            );
            let empty = self.sent[way].is_empty();
            assert_eq!(
                link.inside() == 0,
                empty,
                "{direction}: segments without a packet"
            );
        }
    }

    /// Index and time of the next event.
    fn next(&self) -> (usize, Instant) {
        let mut next = (0, self.wakes[0]);
        for (index, at) in self.wakes.into_iter().enumerate().skip(1) {
            if at < next.1 {
                next = (index, at);
            }
        }
        next
    }

    /// Returns true if both ends are done and no packet is on a link.
    fn is_over(&self) -> bool {
        let [up, down, ..] = self.wakes;
        let done = |end: &Endpoint| matches!(end.state(), TcpState::Closed(_) | TcpState::TimeWait);
        up == Instant::FAR_FUTURE && down == Instant::FAR_FUTURE && self.ends.iter().all(done)
    }

    fn ending(&self) -> Ending {
        let broken = self.ends.iter().find_map(|end| match end.state() {
            TcpState::Closed(ConnectionEnd::Finished) => None,
            TcpState::Closed(end) => Some(end),
            _ => None,
        });
        let answered = self.stopwatch.responses().len() == self.scenario.service.exchanges.len();
        match broken {
            Some(end) => Ending::Broken(end),
            None if answered && self.is_over() => Ending::Complete,
            None => Ending::Unfinished,
        }
    }

    /// Delivers the packet that leaves a link now.
    fn arrive(&mut self, direction: Direction, witness: &mut impl Witness) {
        let (now, way) = (self.now, direction as usize);
        let departure = self.links[way].pop(now);
        self.wakes[way] = self.links[way].wake().unwrap_or(Instant::FAR_FUTURE);
        let Some(departure) = departure else {
            return;
        };
        witness.left(direction, &departure);
        let sent = &mut self.sent[way];
        let arrives = matches!(departure.fate, Fate::Delivered(_)) && !departure.packet.damaged;
        if arrives && let Some((segment, again)) = sent.at(departure.position) {
            let receiver = &mut self.ends[1 - way];
            let before = receiver.counters().duplicate_data;
            receiver.push(now, segment);
            if again {
                self.by_copies += receiver.counters().duplicate_data - before;
            }
            let service = &self.scenario.service;
            self.stopwatch
                .delivered(now, direction, segment, receiver, service);
        }
        sent.left(departure.position, arrives);
        if arrives {
            self.run_end(direction.reverse(), witness);
        }
    }

    /// Runs the end that sends in this direction: its TCP, its program, its TCP again. Closing is a separate call.
    fn run_end(&mut self, direction: Direction, witness: &mut impl Witness) {
        self.send(direction, witness);
        let (now, way) = (self.now, direction as usize);
        let (end, service) = (&mut self.ends[way], &self.scenario.service);
        let program = match direction {
            Direction::Up => {
                self.client.act(now, end, service);
                self.client.wake()
            }
            Direction::Down => {
                self.server.act(now, end, service);
                self.server.wake()
            }
        };
        self.send(direction, witness);
        self.close(direction, witness);
        let timer = self.ends[way].wake().unwrap_or(Instant::FAR_FUTURE);
        let program = program.unwrap_or(Instant::FAR_FUTURE);
        self.wakes[LINKS + way] = timer.min(program);
    }

    /// Closes a program that is done, after its written data has left.
    fn close(&mut self, direction: Direction, witness: &mut impl Witness) {
        let (end, service) = (&mut self.ends[direction as usize], &self.scenario.service);
        let closes = match direction {
            Direction::Up => self.client.closes(end, service),
            Direction::Down => self.server.closes(end, service),
        };
        if closes {
            end.leave(self.now);
            self.send(direction, witness);
        }
    }

    /// Sends everything that an end has to send onto its link.
    #[inline]
    fn send(&mut self, direction: Direction, witness: &mut impl Witness) {
        if self.ends[direction as usize].is_due(self.now) {
            self.send_all(direction, witness);
        }
    }

    #[inline(never)]
    fn send_all(&mut self, direction: Direction, witness: &mut impl Witness) {
        let (now, way) = (self.now, direction as usize);
        while let Some(segment) = self.ends[way].pop(now) {
            let end = &self.ends[way];
            self.stopwatch.sent(now, direction, &segment, end);
            witness.sent(OfferedSegment {
                at: now,
                direction,
                segment: &segment,
                counters: end.counters(),
            });
            let link = &mut self.links[way];
            let copied = link.counters().copied.packets;
            link.push(now, Carried::new(&segment));
            let copies = link.counters().copied.packets - copied;
            self.sent[way].push(segment, copies);
        }
        self.wakes[way] = self.links[way].wake().unwrap_or(Instant::FAR_FUTURE);
    }
}
