//! The path of packets between the two devices: classification, middleboxes, links and records.
//!
//! No system calls: time is an argument, and the caller receives and sends. The link makes all decisions.

use posthaste_link::change::{AppliedChange, Change};
use posthaste_link::record::Input;
use posthaste_link::{Departure, Direction, Mtu, Network};
use posthaste_units::Instant;

use crate::path::agent::DuplicateAcks;
use crate::path::device::ArrivedFrame;
use crate::path::edge::{self, EdgeRule};
use crate::path::flow::{ETHERNET, Flow, FrameRefusal, admit, opening};
use crate::path::outcome::{Bypassed, DirectionOutcome};
use crate::path::packet_record::{PacketRecord, TraceWriter};
use crate::path::relay::DestinationOpener;
use crate::path::stack::{SentPacket, StackSide, TcpStack};
use crate::path::too_big;

/// Spare buffers for packets: more than usually pass at one time, 1.5 MB.
const SPARE: usize = 1024;

/// The links of a run, for any number of connections.
pub(crate) type Links = Network<Flow, Vec<u8>>;

/// A packet that has left a link: direction, number of the connection, connection, and its departure.
pub(crate) type LeavingPacket = (Direction, u64, Flow, Departure<Vec<u8>>);

/// Optional middleboxes between the devices and the links.
pub(crate) struct Middleboxes {
    /// Sees the destinations of packets.
    pub(crate) opener: Option<DestinationOpener>,
    /// Rules that mark packets before they enter the links.
    pub(crate) edge: Vec<EdgeRule>,
    /// Agent between the links and the client's device.
    pub(crate) agent: Option<DuplicateAcks>,
    /// MTU behind the links, up and down.
    pub(crate) mtu: [Option<Mtu>; 2],
    /// TCP stacks in place of a kernel's, by the direction into which they send: the client's, the server's.
    pub(crate) stacks: [Option<TcpStack>; 2],
}

/// Writers of the records that others read while packets pass.
pub(crate) struct TraceWriters {
    pub(crate) packet_records: TraceWriter<PacketRecord>,
    pub(crate) inputs: TraceWriter<Input>,
}

/// Everything between the two devices.
pub(crate) struct PacketPath {
    pub(crate) middleboxes: Middleboxes,
    pub(crate) writers: TraceWriters,
    /// Changes of the links so far.
    pub(crate) changes: Vec<AppliedChange>,
    links: Links,
    /// Latest arrival of each direction. Time within a direction never decreases.
    latest: [Instant; 2],
    bypassed: [Bypassed; 2],
    /// Packets that have entered the links of each direction.
    entered: [u64; 2],
    /// Packets and copies that have left them, delivered or dropped.
    left: [u64; 2],
    spare: Vec<Vec<u8>>,
}

impl PacketPath {
    pub(crate) fn new(links: Links, middleboxes: Middleboxes, writers: TraceWriters) -> Self {
        Self {
            middleboxes,
            writers,
            changes: Vec::new(),
            links,
            latest: [Instant::ORIGIN; 2],
            bypassed: Default::default(),
            entered: [0; 2],
            left: [0; 2],
            spare: Vec::with_capacity(SPARE),
        }
    }

    /// Takes a frame that arrived at `stamp`: to a stack, to its link, or to the count of its refusal.
    pub(crate) fn accept(
        &mut self,
        stamp: Instant,
        direction: Direction,
        frame: &ArrivedFrame<'_>,
    ) {
        let (flow, bytes) = match classify(frame, direction) {
            Ok(classified) => classified,
            Err(refusal) => return self.bypassed[direction as usize].refuse(refusal),
        };
        if let (Direction::Up, Some(opener)) = (direction, &mut self.middleboxes.opener) {
            opener.observe(&flow);
        }
        if let Some(stack) = self.stack(direction, &flow) {
            return stack.push(stamp, StackSide::Host, bytes);
        }
        let mut packet = self.spare.pop().unwrap_or_default();
        packet.clear();
        packet.extend_from_slice(bytes);
        self.pass(stamp, direction, flow, packet);
    }

    /// The next segment sent by `now`, of the stack that sends in this direction.
    pub(crate) fn pop_segment(&mut self, now: Instant, direction: Direction) -> Option<SentPacket> {
        self.middleboxes.stacks[direction as usize]
            .as_mut()
            .and_then(|stack| stack.pop(now))
    }

    /// Moves packets that the agent has sent by `now` into the links, as if the client had sent them.
    pub(crate) fn take_duplicates(&mut self, now: Instant) {
        while let Some(ack) = self
            .middleboxes
            .agent
            .as_mut()
            .and_then(|agent| agent.pop(now))
        {
            self.enter_link(ack.due, Direction::Up, ack.flow, ack.packet);
        }
    }

    /// Passes a packet of a host or of its stack to the agent and to its link.
    pub(crate) fn pass(&mut self, at: Instant, direction: Direction, flow: Flow, packet: Vec<u8>) {
        let at = at.max(self.latest[direction as usize]);
        if let (Direction::Up, Some(agent)) = (direction, &mut self.middleboxes.agent) {
            agent.push(at, direction, &packet);
        }
        self.enter_link(at, direction, flow, packet);
    }

    /// Marks a packet, passes it to its link and records it. A packet that opens a connection gets a new link.
    fn enter_link(&mut self, at: Instant, direction: Direction, flow: Flow, mut packet: Vec<u8>) {
        let way = direction as usize;
        let at = at.max(self.latest[way]);
        self.latest[way] = at;
        self.entered[way] += 1;
        edge::mark(&self.middleboxes.edge, &flow, &mut packet);
        let links = &mut self.links;
        let input = match opening(&flow, &packet) {
            Some(number) => links.open(at, direction, flow, packet, number),
            None => links.push(at, direction, flow, packet),
        };
        self.writers.inputs.note(|| Input::Packet(input));
    }

    /// Sends the message about a packet that was too long through the link of the other direction, if its router sends
    /// any.
    pub(crate) fn answer_too_big(&mut self, leaving: &LeavingPacket) {
        let (direction, _, flow, departure) = leaving;
        let mtu = self.middleboxes.mtu[*direction as usize].filter(|mtu| !mtu.silent);
        let Some(packet) = mtu.and_then(|mtu| too_big::message(&departure.packet, mtu.bytes))
        else {
            return;
        };
        let flow = Flow::of_icmp(flow.client.ip(), flow.server.ip());
        self.enter_link(departure.left, direction.reverse(), flow, packet);
    }

    /// Changes the links. Returns the change with its time: `now`, or the latest arrival.
    pub(crate) fn change(&mut self, now: Instant, change: Change) -> AppliedChange {
        let now = self.latest.into_iter().fold(now, Instant::max);
        let applied = self.links.change(now, change);
        self.latest = [applied.at; 2];
        self.writers.inputs.note(|| Input::Change(applied.clone()));
        self.changes.push(applied.clone());
        applied
    }

    /// The next packet that leaves a link by `now`, delivered or dropped.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<LeavingPacket> {
        let leaving = self.links.pop(now)?;
        let (direction, _, _, departure) = &leaving;
        debug_assert!(
            departure.left <= now,
            "a packet left its link before it was due"
        );
        debug_assert!(
            departure.arrived <= departure.left,
            "a packet left its link before it arrived"
        );
        self.left[*direction as usize] += 1;
        Some(leaving)
    }

    /// Delivers a packet to the stack at the end of this direction. Returns false if it is for the host.
    pub(crate) fn deliver_to_stack(
        &mut self,
        direction: Direction,
        flow: &Flow,
        departure: &Departure<Vec<u8>>,
    ) -> bool {
        let stack = self.stack(direction.reverse(), flow);
        let is_for_stack = stack.is_some();
        if let Some(stack) = stack {
            stack.push(departure.left, StackSide::Link, &departure.packet);
        }
        is_for_stack
    }

    /// Shows a packet that was delivered to the client to the agent.
    pub(crate) fn show_delivered(&mut self, direction: Direction, departure: &Departure<Vec<u8>>) {
        if let (Direction::Down, Some(agent)) = (direction, &mut self.middleboxes.agent) {
            agent.push(departure.left, direction, &departure.packet);
        }
    }

    /// Records a packet that has left a link, and keeps its buffer for another.
    pub(crate) fn record(&mut self, leaving: LeavingPacket, sent: Instant) {
        let (direction, connection, flow, departure) = leaving;
        let packet_records = &mut self.writers.packet_records;
        packet_records.note(|| PacketRecord::new(direction, connection, flow, &departure, sent));
        if self.spare.len() < SPARE {
            self.spare.push(departure.packet);
        }
    }

    /// Next due time of the links, the agent and the stacks.
    pub(crate) fn wake(&self) -> Option<Instant> {
        let Middleboxes { agent, stacks, .. } = &self.middleboxes;
        let agent = agent.as_ref().and_then(DuplicateAcks::wake);
        let stacks = stacks.iter().flatten().filter_map(TcpStack::wake);
        self.links
            .wake()
            .into_iter()
            .chain(agent)
            .chain(stacks)
            .min()
    }

    /// Connections seen.
    pub(crate) fn connections(&self) -> u64 {
        self.links.connections()
    }

    /// Outcome of one direction, without the losses of the devices.
    ///
    /// # Panics
    ///
    /// If packets were lost or invented on the path. Checked in debug builds.
    pub(crate) fn outcome(&self, direction: Direction) -> DirectionOutcome {
        let (entered, left) = (
            self.entered[direction as usize],
            self.left[direction as usize],
        );
        let link = self.links.counters(direction);
        let held = link.inside();
        debug_assert_eq!(
            link.pushed.packets, entered,
            "every packet that entered the path is pushed into a link"
        );
        debug_assert_eq!(
            entered + link.copied.packets,
            left + held,
            "packets and copies have left the links or are still inside"
        );
        let mut bypassed = self.bypassed[direction as usize].clone();
        bypassed.held = held;
        DirectionOutcome {
            link,
            classes: self.links.class_counters(direction),
            background: self.links.background_counters(direction),
            bypassed,
        }
    }

    /// The stack that takes packets of this connection in place of the host that sends in this direction.
    fn stack(&mut self, direction: Direction, flow: &Flow) -> Option<&mut TcpStack> {
        let stack = self.middleboxes.stacks[direction as usize].as_mut();
        stack.filter(|_| TcpStack::takes(flow))
    }
}

/// Checks a frame. Returns its connection and its IP packet, or the reason for rejection.
fn classify<'a>(
    frame: &ArrivedFrame<'a>,
    direction: Direction,
) -> Result<(Flow, &'a [u8]), FrameRefusal> {
    let flags = frame.flags;
    if flags.tagged {
        Err(FrameRefusal::Vlan)
    } else if flags.cut || flags.segments {
        Err(FrameRefusal::Oversized)
    } else if flags.unsummed {
        Err(FrameRefusal::Unsummed)
    } else {
        let admitted = admit(frame.bytes, direction)?;
        let packet = &frame.bytes[ETHERNET..ETHERNET + admitted.length];
        Ok((admitted.flow, packet))
    }
}
