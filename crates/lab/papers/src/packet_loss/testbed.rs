//! The testbed: many concurrent transactions between two ends, each on a line of its own.
//!
//! The client's port selects the transaction's line. Results come from the emulator's records of the packets, so that
//! the time of the programs at the ends does not count.

use std::time::Duration;

use posthaste_emulator::transaction::{
    Course, Transaction, TransactionClient, TransactionEnd, TransactionServer,
};
use posthaste_emulator::{
    Emulation, EmulationOutcome, Flow, SERVER, Setup, TcpCounters, agent, trace,
};
use posthaste_study::{Conditions, Failure};
use posthaste_units::{Seed, Span};

use super::job::{Job, PROCESSING};
use super::observed::{Observations, Traced};

/// Port of the first transaction.
const FIRST_PORT: u16 = 10_000;

/// Maximum number of transactions in one emulation, limited by their ports.
pub(super) const MOST: usize = 50_000;

/// The concurrency that the emulator carries with a deviation below a millisecond.
const COURSE: Course = Course {
    at_once: 256,
    spacing: Span::from_micros(500),
    timeout: Span::from_secs(60),
};

/// Interval between checks of the progress.
const GLANCE: Duration = Duration::from_millis(20);

/// Configuration of both ends of the lines.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// Settings of the client's kernel.
    pub(super) client: Setup,
    /// Settings of the server's kernel.
    pub(super) server: Setup,
    /// Bytes of data in a full segment of the server.
    pub(super) segment: u32,
    /// True if the FIN is on the last segment, regardless of the window.
    pub(super) fin_on_data: bool,
    /// The agent in front of the client, if any.
    pub(super) agent: Option<agent::Settings>,
    /// True if every packet is kept for display.
    pub(super) kept: bool,
}

/// Result of a transaction.
#[derive(Clone, Debug)]
pub(super) struct EmulatedRun {
    pub(super) ended: TransactionEnd,
    /// Observations of its packets.
    pub(super) traced: Traced,
}

/// Results of all transactions in their order, with the accuracy of the emulator.
pub(super) struct EmulatedRuns {
    /// True if the run was stopped. Unfinished transactions have ended as stopped.
    pub(super) stopped: bool,
    pub(super) measured: Vec<EmulatedRun>,
    pub(super) outcome: EmulationOutcome,
    /// Counters of the server's kernel.
    pub(super) kernel: TcpCounters,
}

/// Runs the transactions and reports the number of finished ones.
pub(super) fn run(
    ends: &Ends,
    jobs: &[Job],
    seed: Seed,
    conditions: &Conditions<'_>,
    report: impl Fn(usize),
) -> Result<EmulatedRuns, Failure> {
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
        .packet_records(trace::BUFFER)
        .start()?;
    let packet_records = running
        .packet_records
        .take()
        .ok_or("there are no packet records")?;
    let server = TransactionServer::start(&running.server)?;
    let transactions = (FIRST_PORT..).zip(jobs).map(|(port, job)| Transaction {
        port,
        request: job.service.request,
        reply: job.service.reply,
        processing: PROCESSING,
        fin_on_data: ends.fin_on_data,
    });
    let client = TransactionClient::start(&running.client, SERVER, transactions.collect(), COURSE);
    let (mut observations, mut twentieths) = (Observations::keeping(ends.kept), 0);
    let mut stopped = false;
    while !client.is_finished() {
        if conditions.stopped() {
            client.stop();
            stopped = true;
        }
        std::thread::sleep(GLANCE);
        packet_records
            .drain()
            .for_each(|packet_record| observations.note(packet_record));
        let now = client.over() * 20 / jobs.len();
        if std::mem::replace(&mut twentieths, now) != now {
            report(client.over());
        }
    }
    let ended = client.finish()?;
    drop(server);
    let kernel = running.server.run(TcpCounters::read)?;
    let outcome = running.finish()?;
    packet_records
        .drain()
        .for_each(|packet_record| observations.note(packet_record));
    let mut traced = observations.finish();
    let measured = (FIRST_PORT..).zip(ended).map(|(port, ended)| EmulatedRun {
        ended,
        traced: traced.remove(&port).unwrap_or_default(),
    });
    Ok(EmulatedRuns {
        stopped,
        measured: measured.collect(),
        outcome,
        kernel,
    })
}
