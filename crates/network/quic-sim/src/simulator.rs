//! Simulation of transactions: one loop over the links and the timers of both ends, in virtual time.
//!
//! Four kinds of events occur: a datagram leaves the link up or down, or a timer of the client or the server is due, in
//! its QUIC or its program. The loop handles the earliest event; events of the same nanosecond in this order.

use std::sync::Arc;

use posthaste_link::{Direction, Fate, Link, seed_of};
use posthaste_sim::{Ending, ResponseClock, ScenarioError, drawn_start};
use posthaste_tcp::ConnectionEnd;
use posthaste_units::{Instant, Seed, Span};
use quinn_proto::{ClientConfig, ConnectionError, EndpointConfig, ServerConfig};

use crate::datagram::CarriedDatagram;
use crate::end::QuicEnd;
use crate::epoch::Epoch;
use crate::late::{IsReady, LateTls, Preparation};
use crate::programs::{ClientProgram, Present, ServerProgram};
use crate::tls::TlsConfigs;
use crate::witness::{DatagramWitness, Nobody, OfferedDatagram};
use crate::{LateHandshake, QuicScenario, QuicTransaction};

/// Events at one instant after which a transaction is given up. Far more than any datagram needs.
const STANDSTILL: u64 = 1 << 16;
/// Bytes of requests and replies per additional event in the limit: on links without delay all of them pass in one
/// instant.
const BYTES_AN_EVENT: u64 = 64;
/// Additional events in the limit per exchange, however short.
const EVENTS_AN_EXCHANGE: u64 = 16;
/// Number of links, and the index of the first end in `wakes`.
const LINKS: usize = 2;
/// Default maximum payload of received datagrams in quinn-proto.
const USUAL_PAYLOAD: u16 = 1472;

/// Simulator of the transactions of a scenario over QUIC.
pub struct QuicSimulator {
    scenario: QuicScenario,
    seed: Seed,
    configs: Configs,
    epoch: Epoch,
    links: [Link<CarriedDatagram>; 2],
    ends: [QuicEnd; 2],
    client: ClientProgram,
    server: ServerProgram,
    clock: ResponseClock,
    /// Next event of each link and end: link up, link down, client, server.
    wakes: [Instant; 4],
    now: Instant,
}

/// Configurations that all transactions share.
struct Configs {
    /// The server issues connection identifiers late.
    late_identifiers: bool,
    late_handshake: Option<LateHandshake>,
    is_ready: IsReady,
    endpoint: Arc<EndpointConfig>,
    client: ClientConfig,
    server: Arc<ServerConfig>,
}

impl Configs {
    fn new(scenario: &QuicScenario) -> Result<Self, ScenarioError> {
        let failed = |reason: String| ScenarioError::Transport { reason };
        let options = &scenario.options;
        let tls =
            TlsConfigs::new(options.certificate).map_err(|error| failed(error.to_string()))?;
        let transport = Arc::new(options.transport(scenario.silence()));
        let mut endpoint = EndpointConfig::default();
        endpoint
            // Without it (RFC 9287), traces can read the types of all packets.
            .grease_quic_bit(false)
            .max_udp_payload_size(options.datagram.max(USUAL_PAYLOAD))
            .map_err(|error| failed(error.to_string()))?;
        let mut client = ClientConfig::new(tls.client);
        client.transport_config(transport.clone());
        let is_ready = IsReady::new(true.into());
        let mut server = ServerConfig::with_crypto(Arc::new(LateTls {
            tls: tls.server,
            is_ready: is_ready.clone(),
        }));
        server.transport_config(transport);
        let behaviour = scenario.behaviour;
        Ok(Self {
            late_identifiers: behaviour.is_some(),
            late_handshake: behaviour.and_then(|behaviour| behaviour.late_handshake),
            is_ready,
            endpoint: Arc::new(endpoint),
            client,
            server: Arc::new(server),
        })
    }

    /// Both ends at the start of the transaction with this seed.
    fn ends(&self, seed: Seed, now: crate::epoch::StdInstant) -> [QuicEnd; 2] {
        let client = self.client.clone();
        let late = self.late_handshake;
        let preparation = late.map(|late| Preparation::new(late, self.is_ready.clone()));
        [
            QuicEnd::connect(&self.endpoint, client, bytes(seed.child("client")), now),
            QuicEnd::listen(
                &self.endpoint,
                &self.server,
                bytes(seed.child("server")),
                self.late_identifiers,
                preparation,
            ),
        ]
    }
}

/// A seed in the form of quinn-proto.
fn bytes(seed: Seed) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (number, part) in (0..).zip(bytes.chunks_exact_mut(8)) {
        part.copy_from_slice(&seed.numbered("part", number).0.to_le_bytes());
    }
    bytes
}

impl QuicSimulator {
    /// Duration after which a transaction is given up as unfinished, as over TCP.
    pub const PATIENCE: Span = posthaste_sim::Simulator::PATIENCE;

    /// Creates a simulator for the transactions of `scenario` with the random streams of `seed`.
    pub fn new(scenario: QuicScenario, seed: Seed) -> Result<Self, ScenarioError> {
        scenario.check()?;
        let configs = Configs::new(&scenario)?;
        let epoch = Epoch::new();
        let [up, down] = &scenario.plans;
        Ok(Self {
            links: [Link::new(up, seed), Link::new(down, seed)],
            ends: configs.ends(seed, epoch.instant(Instant::ORIGIN)),
            configs,
            epoch,
            client: ClientProgram::default(),
            server: ServerProgram::default(),
            clock: ResponseClock::default(),
            wakes: [Instant::FAR_FUTURE; 4],
            now: Instant::ORIGIN,
            scenario,
            seed,
        })
    }

    /// The simulated scenario.
    pub const fn scenario(&self) -> &QuicScenario {
        &self.scenario
    }

    /// Simulates transaction `number`, from 1. Its links draw the same random numbers as those of a simulated or
    /// emulated TCP connection with this number.
    pub fn play(&mut self, number: u64) -> QuicTransaction<'_> {
        self.play_before(number, &mut Nobody)
    }

    /// Like [`play`](Self::play), and reports every datagram to a witness.
    pub fn play_before(
        &mut self,
        number: u64,
        witness: &mut impl DatagramWitness,
    ) -> QuicTransaction<'_> {
        let began = self.begin(number);
        self.run_end(Direction::Up, witness);
        let ending = self.run(began, witness);
        self.assert_conserved();
        let [client, server] = &self.ends;
        QuicTransaction {
            number,
            began,
            ended: self.now,
            responses: self.clock.responses(),
            ending,
            client: client.counts(),
            server: server.counts(),
            links: [self.links[0].counters(), self.links[1].counters()],
        }
    }

    fn begin(&mut self, number: u64) -> Instant {
        let seed = seed_of(self.seed, number);
        for (link, direction) in self.links.iter_mut().zip(Direction::BOTH) {
            link.restart(seed.child(direction.name()));
        }
        self.now = drawn_start(seed).at;
        self.ends = self.configs.ends(seed, self.epoch.instant(self.now));
        let behaviour = self.scenario.behaviour.unwrap_or_default();
        self.client = ClientProgram::new(behaviour);
        self.server = ServerProgram::new(behaviour);
        self.clock.start(self.now);
        self.wakes = [Instant::FAR_FUTURE; 4];
        self.now
    }

    fn run(&mut self, began: Instant, witness: &mut impl DatagramWitness) -> Ending {
        let most_standing = STANDSTILL
            + self.scenario.bytes() / BYTES_AN_EVENT
            + self.scenario.exchanges.len() as u64 * EVENTS_AN_EXCHANGE;
        let mut standing = 0;
        loop {
            let (next, at) = self.next();
            if at == Instant::FAR_FUTURE {
                return self.ending();
            }
            debug_assert!(
                next >= LINKS || at >= self.now,
                "a datagram leaves a link in the past"
            );
            // A timer can be due in the past.
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

    fn ending(&self) -> Ending {
        if self.clock.responses().len() == self.scenario.exchanges.len() {
            return Ending::Complete;
        }
        match self.ends[0].lost() {
            Some(ConnectionError::TimedOut) => Ending::Broken(ConnectionEnd::TimedOut),
            Some(ConnectionError::Reset) => Ending::Broken(ConnectionEnd::Reset),
            Some(_) => Ending::Broken(ConnectionEnd::Aborted),
            None => Ending::Unfinished,
        }
    }

    /// Delivers the datagram that leaves a link now.
    fn arrive(&mut self, direction: Direction, witness: &mut impl DatagramWitness) {
        let way = direction as usize;
        let departure = self.links[way].pop(self.now);
        self.wakes[way] = self.links[way].wake().unwrap_or(Instant::FAR_FUTURE);
        let Some(departure) = departure else {
            return;
        };
        witness.left(direction, &departure);
        let is_delivered = matches!(departure.fate, Fate::Delivered(_));
        if is_delivered && !departure.packet.damaged {
            let now = self.epoch.instant(self.now);
            self.ends[1 - way].receive(now, &departure.packet);
            self.run_end(direction.reverse(), witness);
        }
    }

    /// Runs the end that sends in this direction: its timers, its program, its datagrams.
    fn run_end(&mut self, direction: Direction, witness: &mut impl DatagramWitness) {
        let way = direction as usize;
        let now = Present {
            at: self.now,
            quinn: self.epoch.instant(self.now),
        };
        let probes = self.ends[way].counts().probes;
        self.ends[way].expire(now.quinn);
        loop {
            let end = &mut self.ends[way];
            end.update();
            let exchanges = &self.scenario.exchanges;
            match direction {
                Direction::Up => self.client.act(now, end, exchanges, &mut self.clock),
                Direction::Down => self.server.act(now, end, exchanges, &mut self.clock),
            }
            if !self.send(direction, now, witness) {
                break;
            }
        }
        let end = &mut self.ends[way];
        end.end_turn(probes);
        let timer = end.timeout().map(|at| self.epoch.virtual_time(at));
        let program = match direction {
            Direction::Up => self.client.wake(),
            Direction::Down => self.server.wake(),
        };
        let earliest = timer.into_iter().chain(program).min();
        self.wakes[LINKS + way] = earliest.unwrap_or(Instant::FAR_FUTURE);
    }

    /// Sends everything that an end has to send onto its link. Returns true if there was anything.
    fn send(
        &mut self,
        direction: Direction,
        now: Present,
        witness: &mut impl DatagramWitness,
    ) -> bool {
        let way = direction as usize;
        let mut has_sent = false;
        while let Some(outgoing) = self.ends[way].transmit(now.quinn) {
            has_sent = true;
            // A stream frame of an earlier exchange can be sent again at any time.
            let begun = match direction {
                Direction::Up => self.client.requests(),
                Direction::Down => self.server.answered(),
            };
            if outgoing.frames.has_stream() && begun > self.clock.responses().len() {
                self.clock.first_byte(now.at, direction);
            }
            witness.sent(OfferedDatagram {
                at: now.at,
                direction,
                datagram: &outgoing.datagram,
                frames: outgoing.frames,
                cause: outgoing.cause,
            });
            self.links[way].push(now.at, outgoing.datagram);
        }
        self.wakes[way] = self.links[way].wake().unwrap_or(Instant::FAR_FUTURE);
        has_sent
    }

    /// Panics unless every datagram that an end has sent is accounted for. Checked in debug builds.
    fn assert_conserved(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        for direction in Direction::BOTH {
            let way = direction as usize;
            let link = self.links[way].counters();
            assert_eq!(
                link.pushed.packets,
                self.ends[way].counts().sent,
                "{direction}: the link was offered other datagrams than were sent"
            );
            assert_eq!(
                self.ends[1 - way].counts().received,
                link.delivered.packets - link.corrupted.packets,
                "{direction}: an end received other datagrams than were delivered intact"
            );
            let is_over = self.ends.iter().all(QuicEnd::is_over);
            assert!(
                !is_over || link.inside() == 0,
                "{direction}: datagrams stay inside"
            );
        }
    }
}
