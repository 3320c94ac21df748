//! The real-time loop: receives frames with the kernel's stamp, passes them through the links, and sends them when due.
//!
//! One thread. One iteration reads top to bottom in [`EmulatorEngine::run`]. The time of a packet is its arrival in the kernel,
//! not the moment when the loop sees it. A late wake-up therefore has no effect if it precedes the packet's departure.
//! The link makes all decisions.

use posthaste_link::record::Input;
use posthaste_link::{Direction, Fate, Network, Passage};
use posthaste_stats::Histogram;
use posthaste_units::Instant;
use rustix::io::Errno;
use thiserror::Error;

use crate::address::Addresses;
use crate::agent::DuplicateAcks;
use crate::clock::{EmulatorClock, Stamps};
use crate::device::{ArrivedFrame, Device};
use crate::edge::{self, EdgeRule};
use crate::flow::{ETHERNET, Flow, FrameRefusal, admit, opening};
use crate::netlink::{Netlink, NetlinkError};
use crate::outcome::{Bypassed, DirectionOutcome, EmulationOutcome};
use crate::packet_record::{PacketRecord, TraceWriter};
use crate::relay::DestinationOpener;
use crate::stack::{StackSide, TcpStack};
use crate::wait::{Stop, Waiter};

/// Error that ended the loop early, or that prevents its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EngineError {
    /// Failure while waiting, or of a device.
    #[error("the kernel refused to go on: {0}")]
    Kernel(#[from] Errno),
    /// Failure to read the devices' counters.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// Frames received or sent before other work is checked again.
const BATCH: usize = 64;
/// Spare buffers for packets: more than usually pass at one time, 1.5 MB.
const SPARE: usize = 1024;

/// The links of a run, for any number of connections.
pub(crate) type Links = Network<Flow, Vec<u8>>;

/// The loop and its state.
pub(crate) struct EmulatorEngine {
    clock: EmulatorClock,
    links: Links,
    ports: Ports,
    waiter: Waiter,
    /// Latest arrival of each direction. Time within a direction never decreases.
    latest: [Instant; 2],
    bypassed: [Bypassed; 2],
    /// Packets that a device rejected with ENOBUFS.
    no_room: [u64; 2],
    lateness: Histogram,
    spare: Vec<Vec<u8>>,
    writers: TraceWriters,
    middleboxes: Middleboxes,
    real_time: bool,
}

/// Optional middleboxes between the devices and the links.
pub(crate) struct Middleboxes {
    /// Sees the destinations of packets.
    pub(crate) opener: Option<DestinationOpener>,
    /// Rules that mark packets before they enter the links.
    pub(crate) edge: Vec<EdgeRule>,
    /// Agent between the links and the client's device.
    pub(crate) agent: Option<DuplicateAcks>,
    /// TCP stacks in place of a kernel's, by the direction into which they send: the client's, the server's.
    pub(crate) stacks: [Option<TcpStack>; 2],
}

/// Writers of the records that others read while packets pass.
pub(crate) struct TraceWriters {
    pub(crate) packet_records: TraceWriter<PacketRecord>,
    pub(crate) inputs: TraceWriter<Input>,
}

/// The two devices, by the host that they connect.
pub(crate) struct Ports {
    /// The client's, then the server's. Packets that go up enter at the first.
    devices: [Device; 2],
    /// Frame headers for IPv4 and for IPv6, for each direction.
    heads: [[[u8; ETHERNET]; 2]; 2],
}

impl Ports {
    pub(crate) fn new(devices: [Device; 2], client: Addresses, server: Addresses) -> Self {
        let head = |to: Addresses, from: Addresses, kind: [u8; 2]| {
            let mut head = [0; ETHERNET];
            head[..6].copy_from_slice(&to.mac);
            head[6..12].copy_from_slice(&from.mac);
            head[12..].copy_from_slice(&kind);
            head
        };
        let heads = [(server, client), (client, server)]
            .map(|(to, from)| [[0x08, 0x00], [0x86, 0xdd]].map(|kind| head(to, from, kind)));
        Self { devices, heads }
    }

    fn entrance(&mut self, direction: Direction) -> &mut Device {
        &mut self.devices[direction as usize]
    }

    fn exit(&self, direction: Direction) -> &Device {
        &self.devices[direction.reverse() as usize]
    }

    fn send(&self, direction: Direction, flow: &Flow, packet: &[u8]) -> Result<(), Errno> {
        let head = &self.heads[direction as usize][usize::from(flow.client.is_ipv6())];
        self.exit(direction).send(head, packet)
    }
}

impl EmulatorEngine {
    pub(crate) fn new(
        clock: EmulatorClock,
        links: Links,
        ports: Ports,
        writers: TraceWriters,
        middleboxes: Middleboxes,
        real_time: bool,
    ) -> Self {
        Self {
            clock,
            links,
            ports,
            waiter: Waiter::new(clock, real_time),
            latest: [Instant::ORIGIN; 2],
            bypassed: Default::default(),
            no_room: [0; 2],
            lateness: Histogram::new(),
            spare: Vec::with_capacity(SPARE),
            writers,
            middleboxes,
            real_time,
        }
    }

    /// Runs until a stop is requested. Packets in the links are then counted and discarded.
    pub(crate) fn run(mut self, stop: &Stop) -> Result<EmulationOutcome, EngineError> {
        while !stop.is_asked() {
            let all_taken = self.take_arrivals();
            let all_sent = self.send_due();
            let due = if all_taken && all_sent {
                self.wake()
            } else {
                Some(Instant::ORIGIN)
            };
            self.waiter.wait(due, &self.ports.devices, stop)?;
        }
        self.outcome()
    }

    /// Moves received frames into the links. Returns false if there may be more.
    fn take_arrivals(&mut self) -> bool {
        let mut all = true;
        for direction in Direction::BOTH {
            if !self.ports.entrance(direction).has_arrival() {
                continue;
            }
            let stamps = self.clock.stamps();
            let more = (0..BATCH).all(|_| self.take_arrival(direction, stamps));
            all &= !more;
        }
        all
    }

    /// Moves one frame into its link. Returns false if there is none.
    fn take_arrival(&mut self, direction: Direction, stamps: Stamps) -> bool {
        let Self {
            links,
            ports,
            latest,
            bypassed,
            spare,
            writers,
            middleboxes,
            ..
        } = self;
        let way = direction as usize;
        ports
            .entrance(direction)
            .receive(|arrival| match look(&arrival, direction) {
                Ok((flow, bytes)) => {
                    if let (Direction::Up, Some(opener)) = (direction, &mut middleboxes.opener) {
                        opener.observe(&flow);
                    }
                    let stamp = stamps.read(arrival.stamp);
                    if let Some(stack) = middleboxes.stacks[way]
                        .as_mut()
                        .filter(|_| TcpStack::takes(&flow))
                    {
                        return stack.push(stamp, StackSide::Host, bytes);
                    }
                    latest[way] = latest[way].max(stamp);
                    if let (Direction::Up, Some(agent)) = (direction, &mut middleboxes.agent) {
                        agent.push(latest[way], direction, bytes);
                    }
                    let mut packet = spare.pop().unwrap_or_default();
                    packet.clear();
                    packet.extend_from_slice(bytes);
                    edge::mark(&middleboxes.edge, &flow, &mut packet);
                    let input = enter(links, latest[way], direction, flow, packet);
                    writers.inputs.note(|| input);
                }
                Err(refusal) => bypassed[way].refuse(refusal),
            })
    }

    /// Next due time of the links, the agent and the stacks.
    fn wake(&self) -> Option<Instant> {
        let agent = self
            .middleboxes
            .agent
            .as_ref()
            .and_then(DuplicateAcks::wake);
        let stacks = self
            .middleboxes
            .stacks
            .iter()
            .flatten()
            .filter_map(TcpStack::wake);
        self.links
            .wake()
            .into_iter()
            .chain(agent)
            .chain(stacks)
            .min()
    }

    /// Moves segments that the stacks have sent by now into the links and to the hosts.
    fn take_segments(&mut self, now: Instant) {
        for direction in Direction::BOTH {
            let way = direction as usize;
            while let Some(mut sent) = self.middleboxes.stacks[way]
                .as_mut()
                .and_then(|stack| stack.pop(now))
            {
                if sent.side == StackSide::Host {
                    self.send(direction.reverse(), &sent.flow, &sent.packet);
                    continue;
                }
                self.latest[way] = self.latest[way].max(sent.at);
                if let (Direction::Up, Some(agent)) = (direction, &mut self.middleboxes.agent) {
                    agent.push(self.latest[way], direction, &sent.packet);
                }
                edge::mark(&self.middleboxes.edge, &sent.flow, &mut sent.packet);
                let at = self.latest[way];
                let input = enter(&mut self.links, at, direction, sent.flow, sent.packet);
                self.writers.inputs.note(|| input);
            }
        }
    }

    /// Moves packets that the agent has sent by now into the links, as if the client had sent them.
    fn take_duplicates(&mut self, now: Instant) {
        let Some(agent) = &mut self.middleboxes.agent else {
            return;
        };
        let latest = &mut self.latest[Direction::Up as usize];
        while let Some(mut ack) = agent.pop(now) {
            *latest = ack.due.max(*latest);
            edge::mark(&self.middleboxes.edge, &ack.flow, &mut ack.packet);
            let input = self
                .links
                .push(*latest, Direction::Up, ack.flow, ack.packet);
            self.writers.inputs.note(|| input);
        }
    }

    /// Sends packets that are due. Returns false if there may be more.
    fn send_due(&mut self) -> bool {
        let now = self.clock.now();
        self.take_segments(now);
        self.take_duplicates(now);
        for _ in 0..BATCH {
            let Some((direction, connection, flow, passage)) = self.links.pop(now) else {
                return true;
            };
            self.leave((direction, connection, flow), passage);
        }
        false
    }

    /// Sends a packet to a host. Counts a rejection by the kernel.
    fn send(&mut self, direction: Direction, flow: &Flow, packet: &[u8]) {
        match self.ports.send(direction, flow, packet) {
            Ok(()) => {}
            Err(Errno::NOBUFS) => self.no_room[direction as usize] += 1,
            Err(_) => self.bypassed[direction as usize].unsent += 1,
        }
    }

    fn leave(&mut self, whose: (Direction, u64, Flow), passage: Passage<Vec<u8>>) {
        let (direction, _, flow) = whose;
        let mut sent = passage.left;
        if let Fate::Delivered(_) = passage.fate {
            sent = self.clock.now();
            self.lateness.record(sent.since(passage.left));
            let there = &mut self.middleboxes.stacks[direction.reverse() as usize];
            if let Some(stack) = there.as_mut().filter(|_| TcpStack::takes(&flow)) {
                stack.push(passage.left, StackSide::Link, &passage.packet);
            } else {
                self.send(direction, &flow, &passage.packet);
            }
            if let (Direction::Down, Some(agent)) = (direction, &mut self.middleboxes.agent) {
                agent.push(passage.left, direction, &passage.packet);
            }
        }
        let packet_records = &mut self.writers.packet_records;
        packet_records.note(|| PacketRecord::new(whose, &passage, sent));
        if self.spare.len() < SPARE {
            self.spare.push(passage.packet);
        }
    }

    fn outcome(mut self) -> Result<EmulationOutcome, EngineError> {
        let mut netlink = Netlink::open()?;
        let mut ways = [DirectionOutcome::default(), DirectionOutcome::default()];
        for (direction, way) in Direction::BOTH.into_iter().zip(&mut ways) {
            way.link = self.links.counters(direction);
            way.classes = self.links.class_counters(direction);
            way.background = self.links.background_counters(direction);
            way.bypassed = std::mem::take(&mut self.bypassed[direction as usize]);
            way.bypassed.held = way.link.inside();
            way.bypassed.overrun = self.ports.entrance(direction).take_overruns()?;
            let exit = self.ports.exit(direction).index;
            // Depending on the kernel, a full device counts drops, reports them, or both.
            let counted = netlink.lost_in_sending(exit)?;
            way.bypassed.unsent += counted.max(self.no_room[direction as usize]);
        }
        let [up, down] = ways;
        Ok(EmulationOutcome {
            up,
            down,
            lateness: self.lateness,
            connections: self.links.connections(),
            origin: self.clock.origin(),
            real_time: self.real_time,
            pauses: self.waiter.pauses(),
            unseen: self.writers.packet_records.missed(),
            unrecorded: self.writers.inputs.missed(),
            duplicate_acks: self.middleboxes.agent.map(|agent| *agent.counters()),
            stacks: self
                .middleboxes
                .stacks
                .map(|stack| stack.map(|stack| stack.counters())),
        })
    }
}

/// Passes a packet to its link. A packet that opens a connection gets a new link.
fn enter(
    links: &mut Links,
    at: Instant,
    direction: Direction,
    flow: Flow,
    packet: Vec<u8>,
) -> Input {
    match opening(&flow, &packet) {
        Some(number) => links.open(at, direction, flow, packet, number),
        None => links.push(at, direction, flow, packet),
    }
}

/// Checks a frame. Returns its connection and its IP packet, or the reason for rejection.
fn look<'a>(
    arrival: &ArrivedFrame<'a>,
    direction: Direction,
) -> Result<(Flow, &'a [u8]), FrameRefusal> {
    let flags = arrival.flags;
    if flags.tagged {
        Err(FrameRefusal::Vlan)
    } else if flags.cut || flags.segments {
        Err(FrameRefusal::Oversized)
    } else if flags.unsummed {
        Err(FrameRefusal::Unsummed)
    } else {
        let admitted = admit(arrival.bytes, direction)?;
        let packet = &arrival.bytes[ETHERNET..ETHERNET + admitted.length];
        Ok((admitted.flow, packet))
    }
}
