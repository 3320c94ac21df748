//! Simulated runs in virtual time: the same jobs as the emulated ones, with the same columns.
//!
//! A transaction is identified by a seed and a number, and its links draw from these. Those of an emulated transaction
//! reproduce the delays of its packets. Results depend neither on threads nor on order.

use std::num::NonZero;
use std::sync::Arc;

use posthaste_link::{Direction, DropReason, Fate};
use posthaste_sim::{
    Ending, PacketTrace, Scenario, SimulatedService, Simulator, TracedPacket, Transaction,
};
use posthaste_study::Failure;
use posthaste_tcp::trace::Sending;
use posthaste_units::{Instant, Seed, Span};

use super::cores::on_threads;
use super::job::{Job, PROCESSING};
use super::line::PlannedDrops;
use super::observed::{Dropped, Traced};
use super::stack::SimulatedEnds;

/// A transaction to simulate.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimulationJob {
    /// Seed of the links' random numbers.
    pub(super) seed: Seed,
    pub(super) number: u64,
    /// Its parameters.
    pub(super) job: Job,
    /// Start, in the clocks of the ends. Random if `None`.
    pub(super) began: Option<Instant>,
    /// Time of the client's program before the request, and of the server's before the reply.
    pub(super) programs: [Span; 2],
}

impl SimulationJob {
    /// A transaction with a random start and programs that take their nominal time.
    pub(super) fn new(seed: Seed, number: u64, job: Job) -> Self {
        Self {
            seed,
            number,
            job,
            began: None,
            programs: [Span::ZERO, PROCESSING],
        }
    }
}

/// Result of a simulated transaction.
#[derive(Clone, Debug)]
pub(super) struct SimulatedRun {
    /// True if the reply was complete and both ends closed.
    pub(super) well: bool,
    /// True if the links dropped only the intended packets.
    pub(super) planned: bool,
    pub(super) traced: Traced,
    /// Lengths of the timers that expired before the reply was complete. Zero for the timer that waits for reordering,
    /// because packets do not show its length.
    pub(super) timers: Vec<Span>,
    /// Needless segments of the server: the client had all their data.
    pub(super) for_nothing: u64,
    /// Bytes of IP packets in both directions.
    pub(super) bytes: u64,
}

/// Simulates all of `parts` on this number of threads.
pub(super) fn all(
    threads: NonZero<usize>,
    ends: &SimulatedEnds,
    parts: &[SimulationJob],
) -> Result<Vec<SimulatedRun>, Failure> {
    on_threads(threads, parts, |part| one(ends, part))
}

/// Simulates one transaction.
pub(super) fn one(ends: &SimulatedEnds, part: &SimulationJob) -> Result<SimulatedRun, Failure> {
    traced(ends, part).map(|(simulated, _)| simulated)
}

/// Simulates one transaction and returns its packets, too.
pub(super) fn traced(
    ends: &SimulatedEnds,
    part: &SimulationJob,
) -> Result<(SimulatedRun, PacketTrace), Failure> {
    let job = part.job;
    let plans = job.line.plans(job.drops, job.varies)?.map(|plan| {
        let mut plan = Arc::unwrap_or_clone(plan);
        plan.overhead = ends.overhead;
        Arc::new(plan)
    });
    let mut service = SimulatedService::single(
        u64::from(job.service.request),
        part.programs[1],
        u64::from(job.service.reply),
    );
    service.exchanges[0].pause = part.programs[0];
    (service.clock, service.closer) = (ends.clock, ends.closer);
    let scenario = Scenario {
        client: ends.profile.clone(),
        server: ends.profile.clone(),
        plans,
        service: Arc::new(service),
    };
    let mut trace = PacketTrace::new();
    let mut simulator = Simulator::new(scenario, part.seed)?;
    let transaction = simulator.play_from(part.began, part.number, &mut trace);
    Ok((read(&transaction, &trace, job.drops), trace))
}

/// Reads the result from the packets.
fn read(transaction: &Transaction<'_>, trace: &PacketTrace, drops: PlannedDrops) -> SimulatedRun {
    let response = transaction.responses.first().copied();
    let end = response.map_or(Instant::FAR_FUTURE, |response| {
        transaction.began + response.total()
    });
    let packets = trace.packets();
    let before = || packets.iter().filter(move |packet| packet.sent < end);
    let timeouts = |direction| {
        let waited = move |packet: &&TracedPacket| {
            packet.direction == direction && packet.sending == Sending::Timeout
        };
        packets.iter().filter(waited).map(|packet| packet.sent)
    };
    let again =
        |packet: &&TracedPacket| packet.sending != Sending::First && packet.end > packet.start;
    let traced = Traced {
        number: transaction.number,
        began: transaction.began,
        response,
        again: before().filter(again).count() as u32,
        dropped: packets.iter().filter_map(dropped).collect(),
        packets: packets_down(packets) as u32,
        timeouts: Direction::BOTH.map(|direction| timeouts(direction).collect()),
        kept: Vec::new(),
    };
    let timer = |packet: &TracedPacket| match packet.waited() {
        Some((wait, _)) => Some(wait),
        None => {
            (packet.sending == Sending::Fast && !answers(packet, packets)).then_some(Span::ZERO)
        }
    };
    SimulatedRun {
        well: transaction.ending == Ending::Complete && response.is_some(),
        planned: traced.dropped.iter().all(|lost| is_planned(lost, drops)),
        traced,
        timers: before().filter_map(timer).collect(),
        for_nothing: transaction.client.duplicate_data,
        bytes: transaction.links.iter().map(|link| link.pushed.bytes).sum(),
    }
}

/// True if a packet reached its sender at the moment when it was sent.
fn answers(packet: &TracedPacket, packets: &[TracedPacket]) -> bool {
    packets.iter().any(|other| {
        other.direction != packet.direction
            && other.left == packet.sent
            && matches!(other.fate, Fate::Delivered(_))
    })
}

fn packets_down(packets: &[TracedPacket]) -> usize {
    let down = packets.iter();
    down.filter(|packet| packet.direction == Direction::Down)
        .count()
}

fn is_planned(lost: &Dropped, drops: PlannedDrops) -> bool {
    let by_chance = matches!(drops, PlannedDrops::Percent(_)) && lost.reason == DropReason::Random;
    let named = || drops.positions().any(|at| u64::from(at) == lost.position);
    lost.direction == Direction::Down && (by_chance || named())
}

fn dropped(packet: &TracedPacket) -> Option<Dropped> {
    let Fate::Dropped(reason) = packet.fate else {
        return None;
    };
    let is_new = packet.segment.len > 0 && packet.sending == Sending::First;
    Some(Dropped {
        direction: packet.direction,
        position: packet.position,
        reason,
        offset: is_new.then(|| packet.start.saturating_sub(1)),
    })
}
