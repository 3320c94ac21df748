//! Many transactions at a time, each on a line of its own, between two ends set as one kernel.
//!
//! A transaction's line is known by the client's port. Times are read from what the emulator saw
//! of the packets at both ends, so that what the programs at the ends take does not count.

use std::collections::HashMap;
use std::time::Duration;

use posthaste_emulator::response::{Response, Responses};
use posthaste_emulator::transaction::{Client, Course, Ended, Server, Transaction};
use posthaste_emulator::{Emulation, Flow, Outcome, SERVER, Sighting, trace};
use posthaste_link::{Direction, Fate, Reason};
use posthaste_units::{Seed, Span};

use super::kernel::Kernel;
use super::line::Line;
use super::service::Service;
use crate::figure::{Conditions, Failure};

/// What the server takes to make a reply.
pub(super) const PROCESSING: Span = Span::from_millis(200);

/// The first transaction's port.
const FIRST_PORT: u16 = 10_000;

/// Transactions in one emulation at most: their ports.
pub(super) const MOST: usize = 50_000;

/// As many at a time as the emulator carries with a deviation below a millisecond.
const COURSE: Course = Course {
    at_once: 256,
    spacing: Span::from_micros(500),
    timeout: Span::from_secs(60),
};

/// How often is looked at how far it is.
const GLANCE: Duration = Duration::from_millis(20);

/// One transaction that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) service: &'static Service,
    pub(super) line: Line,
    /// The position of the server's packet that is lost, or 0.
    pub(super) lost: u32,
    /// Whether the line's delays vary as in the paper.
    pub(super) varies: bool,
}

/// What became of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) ended: Ended,
    /// Its response time, if it is whole.
    pub(super) response: Option<Response>,
    /// Whether the link dropped what it was to drop, and nothing else.
    pub(super) exact: bool,
}

/// All of them, in their order, and how far the emulator can be believed.
pub(super) struct Run {
    pub(super) measured: Vec<Measured>,
    pub(super) outcome: Outcome,
}

/// Makes the transactions and tells how many are over; `None` when stopped.
pub(super) fn run(
    kernel: &Kernel,
    jobs: &[Job],
    seed: Seed,
    conditions: &Conditions<'_>,
    told: impl Fn(usize),
) -> Result<Option<Run>, Failure> {
    let plans = jobs.iter().map(|job| job.line.plans(job.lost, job.varies));
    let plans = plans.collect::<Result<Vec<_>, _>>()?;
    let choose = move |flow: &Flow| {
        let job = flow.client.port().checked_sub(FIRST_PORT);
        let plans = job.and_then(|job| plans.get(usize::from(job)));
        plans.cloned().unwrap_or_default()
    };
    let mut running = Emulation::choosing(choose)
        .client(kernel.setup()?)
        .server(kernel.setup()?)
        .seed(seed)
        .real_time(true)
        .sightings(trace::BUFFER)
        .start()?;
    let sightings = running.sightings.take().ok_or("there are no sightings")?;
    let server = Server::start(&running.server)?;
    let transactions = (FIRST_PORT..).zip(jobs).map(|(port, job)| Transaction {
        port,
        request: job.service.request,
        reply: job.service.reply,
        processing: PROCESSING,
        fin_on_data: false,
    });
    let client = Client::start(&running.client, SERVER, transactions.collect(), COURSE);
    let (mut seen, mut twentieths) = (Seen::default(), 0);
    while !client.is_finished() {
        if conditions.stopped() {
            return Ok(None);
        }
        std::thread::sleep(GLANCE);
        sightings.drain().for_each(|sighting| seen.note(sighting));
        let now = client.over() * 20 / jobs.len();
        if std::mem::replace(&mut twentieths, now) != now {
            told(client.over());
        }
    }
    let ended = client.finish()?;
    drop(server);
    let outcome = running.finish()?;
    sightings.drain().for_each(|sighting| seen.note(sighting));
    let measured = seen.measured(jobs, &ended);
    Ok(Some(Run { measured, outcome }))
}

/// What was seen of all transactions.
#[derive(Default)]
struct Seen {
    responses: Responses,
    /// What the links dropped, by port: direction, position, and why.
    dropped: HashMap<u16, Vec<(Direction, u64, Reason)>>,
}

impl Seen {
    fn note(&mut self, sighting: Sighting) {
        if let Fate::Dropped(reason) = sighting.fate {
            let what = (sighting.direction, sighting.position, reason);
            let port = sighting.flow.client.port();
            self.dropped.entry(port).or_default().push(what);
        }
        self.responses.note(sighting);
    }

    fn measured(self, jobs: &[Job], ended: &[Ended]) -> Vec<Measured> {
        let responses = self.responses.finish().responses;
        let responses: HashMap<u16, Response> = responses
            .into_iter()
            .map(|response| (response.flow.client.port(), response))
            .collect();
        let jobs = (FIRST_PORT..).zip(jobs).zip(ended);
        jobs.map(|((port, job), ended)| {
            let dropped = self.dropped.get(&port).map_or(&[][..], Vec::as_slice);
            let exact = match (job.lost, dropped) {
                (0, []) => true,
                (lost, [(Direction::Down, position, Reason::Pattern)]) => {
                    u64::from(lost) == *position
                }
                _ => false,
            };
            Measured {
                ended: *ended,
                response: responses.get(&port).copied(),
                exact,
            }
        })
        .collect()
    }
}
