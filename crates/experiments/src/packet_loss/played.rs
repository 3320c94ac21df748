//! Transactions played in virtual time, over all cores: the same jobs as the emulated ones, told alike.
//!
//! A transaction is known by a seed and a number, from which its links draw: that of an emulated one
//! brings the delays that its packets had. So results depend neither on threads nor on order.

use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use posthaste_link::{Direction, Fate, Reason};
use posthaste_sim::{Ending, Packet, Scenario, Service, Simulator, Trace, Transaction};
use posthaste_tcp::trace::Sending;
use posthaste_units::{Instant, Seed, Span};

use super::line::Drops;
use super::rig::{Job, PROCESSING};
use super::seen::{Dropped, Traced};
use super::stack::Cast;
use crate::figure::Failure;

/// A transaction to be played.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// What its links draw by.
    pub(super) seed: Seed,
    pub(super) number: u64,
    /// What it is.
    pub(super) job: Job,
    /// When it begins in the ticks of the ends' clocks; by chance where nothing is said.
    pub(super) began: Option<Instant>,
    /// What the client's program takes to ask, and the server's to make the reply.
    pub(super) programs: [Span; 2],
}

impl Part {
    /// One that begins by chance, between programs that take what they should.
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

/// What became of it.
#[derive(Clone, Debug)]
pub(super) struct Played {
    /// Answered whole, and closed by both ends.
    pub(super) well: bool,
    /// The links dropped nothing but what they were to drop.
    pub(super) planned: bool,
    pub(super) traced: Traced,
    /// The timers that ran out before the reply was complete, how long each was; nothing long where
    /// that cannot be seen: the one that waits for reordering.
    pub(super) timers: Vec<Span>,
    /// Segments of the server that came although the client had all of them.
    pub(super) for_nothing: u64,
    /// Bytes of IP packets, both ways.
    pub(super) bytes: u64,
}

/// Plays all of them on every core.
pub(super) fn all(cast: &Cast, parts: &[Part]) -> Result<Vec<Played>, Failure> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let share = parts.len().div_ceil(cores).max(1);
    thread::scope(|scope| {
        let run = |parts: &'_ [Part]| -> Result<Vec<Played>, Failure> {
            parts.iter().map(|part| one(cast, part)).collect()
        };
        let shares: Vec<_> = parts
            .chunks(share)
            .map(|parts| scope.spawn(move || run(parts)))
            .collect();
        let mut played = Vec::with_capacity(parts.len());
        for share in shares {
            let share = share.join().map_err(|_| "a simulation panicked")?;
            played.extend(share?);
        }
        Ok(played)
    })
}

/// Plays one.
pub(super) fn one(cast: &Cast, part: &Part) -> Result<Played, Failure> {
    traced(cast, part).map(|(played, _)| played)
}

/// Plays one, with everything that was sent.
pub(super) fn traced(cast: &Cast, part: &Part) -> Result<(Played, Trace), Failure> {
    let job = part.job;
    let plans = job.line.plans(job.drops, job.varies)?.map(|plan| {
        let mut plan = Arc::unwrap_or_clone(plan);
        plan.overhead = cast.overhead;
        Arc::new(plan)
    });
    let mut service = Service::single(
        u64::from(job.service.request),
        part.programs[1],
        u64::from(job.service.reply),
    );
    service.exchanges[0].pause = part.programs[0];
    (service.clock, service.closer) = (cast.clock, cast.closer);
    let scenario = Scenario {
        client: cast.profile.clone(),
        server: cast.profile.clone(),
        plans,
        service: Arc::new(service),
    };
    let mut trace = Trace::new();
    let mut simulator = Simulator::new(scenario, part.seed)?;
    let transaction = simulator.play_from(part.began, part.number, &mut trace);
    Ok((read(&transaction, &trace, job.drops), trace))
}

/// What the packets show.
fn read(transaction: &Transaction<'_>, trace: &Trace, drops: Drops) -> Played {
    let response = transaction.responses.first().copied();
    let end = response.map_or(Instant::FAR_FUTURE, |of| transaction.began + of.total());
    let packets = trace.packets();
    let before = || packets.iter().filter(move |packet| packet.sent < end);
    let timeouts = |direction| {
        let waited = move |packet: &&Packet| {
            packet.direction == direction && packet.sending == Sending::Timeout
        };
        packets.iter().filter(waited).map(|packet| packet.sent)
    };
    let again = |packet: &&Packet| packet.sending != Sending::First && packet.end > packet.start;
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
    let timer = |packet: &Packet| match packet.waited() {
        Some((wait, _)) => Some(wait),
        None => {
            (packet.sending == Sending::Fast && !answers(packet, packets)).then_some(Span::ZERO)
        }
    };
    Played {
        well: transaction.ending == Ending::Complete && response.is_some(),
        planned: traced.dropped.iter().all(|lost| is_planned(lost, drops)),
        traced,
        timers: before().filter_map(timer).collect(),
        for_nothing: transaction.client.duplicate_data,
        bytes: transaction.links.iter().map(|link| link.pushed.bytes).sum(),
    }
}

/// Whether something came to its sender in the instant in which it was sent.
fn answers(packet: &Packet, packets: &[Packet]) -> bool {
    packets.iter().any(|other| {
        other.direction != packet.direction
            && other.left == packet.sent
            && matches!(other.fate, Fate::Delivered(_))
    })
}

fn packets_down(packets: &[Packet]) -> usize {
    let down = packets.iter();
    down.filter(|packet| packet.direction == Direction::Down)
        .count()
}

fn is_planned(lost: &Dropped, drops: Drops) -> bool {
    let by_chance = matches!(drops, Drops::Percent(_)) && lost.reason == Reason::Random;
    let named = || drops.positions().any(|at| u64::from(at) == lost.position);
    lost.direction == Direction::Down && (by_chance || named())
}

fn dropped(packet: &Packet) -> Option<Dropped> {
    let Fate::Dropped(reason) = packet.fate else {
        return None;
    };
    let is_new = packet.segment.len > 0 && packet.sending == Sending::First;
    Some(Dropped {
        direction: packet.direction,
        position: packet.position,
        reason,
        place: is_new.then(|| packet.start.saturating_sub(1)),
    })
}
