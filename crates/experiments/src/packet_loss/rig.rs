//! Many transactions at a time, each on a line of its own, between two ends.
//!
//! A transaction's line is known by the client's port. What became of each is read from what the
//! emulator saw of its packets, so that what the programs at the ends take does not count.

use std::time::Duration;

use posthaste_emulator::transaction::{Client, Course, Ended, Server, Transaction};
use posthaste_emulator::{Emulation, Flow, Outcome, SERVER, Setup, TcpCounters, agent, trace};
use posthaste_units::{Seed, Span};

use super::line::{Drops, Line};
use super::seen::{Seen, Traced};
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

/// What stands at both ends of the lines.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// How the client's kernel is set.
    pub(super) client: Setup,
    /// How the server's is.
    pub(super) server: Setup,
    /// Bytes of data in a full segment of the server.
    pub(super) segment: u32,
    /// Whether the FIN rides on the last of them whatever the window allows.
    pub(super) fin_on_data: bool,
    /// The agent before the client, or none.
    pub(super) agent: Option<agent::Settings>,
    /// Whether every packet is kept, to be shown.
    pub(super) kept: bool,
}

/// One transaction that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) service: &'static Service,
    pub(super) line: Line,
    pub(super) drops: Drops,
    /// Whether the line's delays vary as in the paper.
    pub(super) varies: bool,
}

/// What became of it.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) ended: Ended,
    /// What its packets show.
    pub(super) traced: Traced,
}

/// All of them, in their order, and how far the emulator can be believed.
pub(super) struct Run {
    /// Whether it was told to stop: those that were not over have ended so.
    pub(super) stopped: bool,
    pub(super) measured: Vec<Measured>,
    pub(super) outcome: Outcome,
    /// What the server's kernel has counted.
    pub(super) kernel: TcpCounters,
}

/// Makes the transactions and tells how many are over.
pub(super) fn run(
    ends: &Ends,
    jobs: &[Job],
    seed: Seed,
    conditions: &Conditions<'_>,
    told: impl Fn(usize),
) -> Result<Run, Failure> {
    let plans = jobs.iter().map(|job| job.line.plans(job.drops, job.varies));
    let plans = plans.collect::<Result<Vec<_>, _>>()?;
    let choose = move |flow: &Flow| {
        let job = flow.client.port().checked_sub(FIRST_PORT);
        let plans = job.and_then(|job| plans.get(usize::from(job)));
        plans.cloned().unwrap_or_default()
    };
    let mut running = Emulation::choosing(choose)
        .client(ends.client.clone())
        .server(ends.server.clone())
        .duplicate_acks(ends.agent)
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
        fin_on_data: ends.fin_on_data,
    });
    let client = Client::start(&running.client, SERVER, transactions.collect(), COURSE);
    let (mut seen, mut twentieths) = (Seen::keeping(ends.kept), 0);
    let mut stopped = false;
    while !client.is_finished() {
        if conditions.stopped() {
            client.stop();
            stopped = true;
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
    let kernel = running.server.run(TcpCounters::read)?;
    let outcome = running.finish()?;
    sightings.drain().for_each(|sighting| seen.note(sighting));
    let mut traced = seen.finish();
    let measured = (FIRST_PORT..).zip(ended).map(|(port, ended)| Measured {
        ended,
        traced: traced.remove(&port).unwrap_or_default(),
    });
    Ok(Run {
        stopped,
        measured: measured.collect(),
        outcome,
        kernel,
    })
}
