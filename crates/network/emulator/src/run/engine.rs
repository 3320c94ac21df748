//! The real-time loop: receives frames with the kernel's stamp, passes them through the links, and sends them when due.
//!
//! One thread. [`EmulatorEngine::run`] lists the stages of an iteration. The time of a packet is its arrival in the
//! kernel, not the moment when the loop sees it. A late wake-up therefore has no effect if it precedes the packet's
//! departure. [`PacketPath`] has everything between the two devices.

use posthaste_link::{Departure, Direction, DropReason, Fate};
use posthaste_stats::Histogram;
use posthaste_units::Instant;
use rustix::io::Errno;
use thiserror::Error;

use crate::clock::EmulatorClock;
use crate::control::ChangeRequests;
use crate::namespaces::netlink::{Netlink, NetlinkError};
use crate::path::flow::Flow;
use crate::path::outcome::{DirectionOutcome, EmulationOutcome};
use crate::path::packet_path::PacketPath;
use crate::path::ports::Ports;
use crate::path::stack::StackSide;
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
/// The loop and its state.
pub(crate) struct EmulatorEngine {
    clock: EmulatorClock,
    ports: Ports,
    path: PacketPath,
    waiter: Waiter,
    /// Requested changes of the links, if there can be any.
    changes: Option<ChangeRequests>,
    lateness: Histogram,
    /// Packets that a device rejected with ENOBUFS, by direction.
    no_buffers: [u64; 2],
    /// Packets that a device rejected for another reason, by direction.
    unsent: [u64; 2],
    real_time: bool,
}

impl EmulatorEngine {
    pub(crate) fn new(
        clock: EmulatorClock,
        ports: Ports,
        path: PacketPath,
        changes: Option<ChangeRequests>,
        real_time: bool,
    ) -> Self {
        Self {
            clock,
            ports,
            path,
            waiter: Waiter::new(clock, real_time),
            changes,
            lateness: Histogram::new(),
            no_buffers: [0; 2],
            unsent: [0; 2],
            real_time,
        }
    }

    /// Runs until a stop is requested. Packets in the links are then counted and discarded.
    pub(crate) fn run(mut self, stop: &Stop) -> Result<EmulationOutcome, EngineError> {
        while !stop.is_asked() {
            let all_received = self.receive();
            let now = self.clock.now();
            if stop.take_wake() {
                self.take_changes(now);
            }
            self.take_segments(now);
            self.path.take_duplicates(now);
            let all_released = self.release_due(now);
            let due = if all_received && all_released {
                self.path.wake()
            } else {
                Some(Instant::ORIGIN)
            };
            self.waiter.wait(due, self.ports.devices(), stop)?;
        }
        self.outcome()
    }

    /// Moves received frames into the links and the stacks. Returns false if there may be more.
    fn receive(&mut self) -> bool {
        let Self {
            clock, ports, path, ..
        } = self;
        let mut all = true;
        for direction in Direction::BOTH {
            let entrance = ports.entrance(direction);
            if !entrance.has_arrival() {
                continue;
            }
            let stamps = clock.stamps();
            let mut receive_one = || {
                entrance.receive(|frame| path.accept(stamps.read(frame.stamp), direction, &frame))
            };
            let more = (0..BATCH).all(|_| receive_one());
            all &= !more;
        }
        all
    }

    /// Makes the requested changes of the links.
    #[cold]
    fn take_changes(&mut self, now: Instant) {
        for request in self.changes.iter().flat_map(ChangeRequests::try_iter) {
            let applied = self.path.change(now, request.change);
            // Its capacity is one reply; the requester may have given up.
            let _ = request.reply.try_send(applied);
        }
    }

    /// Moves segments that the stacks have sent by now into the links and to the hosts.
    fn take_segments(&mut self, now: Instant) {
        for direction in Direction::BOTH {
            while let Some(sent) = self.path.pop_segment(now, direction) {
                match sent.side {
                    StackSide::Host => self.send(direction.reverse(), &sent.flow, &sent.packet),
                    StackSide::Link => self.path.pass(sent.at, direction, sent.flow, sent.packet),
                }
            }
        }
    }

    /// Delivers and records packets that leave the links by now. Returns false if there may be more.
    fn release_due(&mut self, now: Instant) -> bool {
        for _ in 0..BATCH {
            let Some(leaving) = self.path.pop(now) else {
                return true;
            };
            let (direction, _, flow, departure) = &leaving;
            let sent = match departure.fate {
                Fate::Delivered(_) => self.deliver(*direction, flow, departure),
                Fate::Dropped(_) => departure.left,
            };
            if departure.fate == Fate::Dropped(DropReason::TooBig) {
                self.path.answer_too_big(&leaving);
            }
            self.path.record(leaving, sent);
        }
        false
    }

    /// Delivers a packet to a stack or a host, and shows it to the agent. Returns the time of sending.
    fn deliver(
        &mut self,
        direction: Direction,
        flow: &Flow,
        departure: &Departure<Vec<u8>>,
    ) -> Instant {
        let sent = self.clock.now();
        debug_assert!(
            sent >= departure.left,
            "a packet was sent before it was due"
        );
        self.lateness.record(sent.since(departure.left));
        if !self.path.deliver_to_stack(direction, flow, departure) {
            self.send(direction, flow, &departure.packet);
        }
        self.path.show_delivered(direction, departure);
        sent
    }

    /// Sends a packet to a host. Counts a rejection by the kernel.
    fn send(&mut self, direction: Direction, flow: &Flow, packet: &[u8]) {
        match self.ports.send(direction, flow, packet) {
            Ok(()) => {}
            Err(Errno::NOBUFS) => self.no_buffers[direction as usize] += 1,
            Err(_) => self.unsent[direction as usize] += 1,
        }
    }

    fn outcome(mut self) -> Result<EmulationOutcome, EngineError> {
        let mut netlink = Netlink::open()?;
        let up = self.direction_outcome(&mut netlink, Direction::Up)?;
        let down = self.direction_outcome(&mut netlink, Direction::Down)?;
        let connections = self.path.connections();
        let PacketPath {
            writers,
            middleboxes,
            changes,
            ..
        } = self.path;
        Ok(EmulationOutcome {
            up,
            down,
            lateness: self.lateness,
            connections,
            unrouted: 0,
            changes,
            origin: self.clock.origin(),
            real_time: self.real_time,
            pauses: self.waiter.pauses(),
            unseen: writers.packet_records.missed(),
            unrecorded: writers.inputs.missed(),
            duplicate_acks: middleboxes.agent.map(|agent| *agent.counters()),
            stacks: middleboxes
                .stacks
                .map(|stack| stack.map(|stack| stack.counters())),
        })
    }

    /// Outcome of one direction, with the losses that the kernel counted at the devices.
    fn direction_outcome(
        &mut self,
        netlink: &mut Netlink,
        direction: Direction,
    ) -> Result<DirectionOutcome, EngineError> {
        let mut outcome = self.path.outcome(direction);
        outcome.bypassed.overrun = self.ports.entrance(direction).take_overruns()?;
        // Depending on the kernel, a full device counts drops, reports them, or both.
        let counted = netlink.lost_in_sending(self.ports.exit(direction).index)?;
        let way = direction as usize;
        outcome.bypassed.unsent = self.unsent[way] + counted.max(self.no_buffers[way]);
        Ok(outcome)
    }
}
