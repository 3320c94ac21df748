//! Runs of a study: emulated transactions with the accuracy of the emulator, and simulated ones on all cores.

use posthaste_emulator::EmulationOutcome;
use posthaste_sim::Closer;
use posthaste_stats::Histogram;
use posthaste_study::{Conditions, Failure, Records};
use posthaste_units::Seed;

use super::super::cores::on_all_cores;
use super::super::job::PROCESSING;
use super::super::line::NetworkLine;
use super::super::service::PaperService;
use super::cells::{CellKind, CellTimes};
use super::server::{OfferedService, ServerStack};
use super::simulated::{ExchangeSimulator, QuicEnds, usual};
use super::testbed::{self, EmulatedExchange};
use super::transport::{LostPacket, QuicJob};
use crate::testbed::describe_real_time;

/// The emulated runs of a study.
pub(super) struct QuicCampaign<'a> {
    conditions: &'a Conditions<'a>,
    runs: u64,
    lateness: Histogram,
    real_time: bool,
    transactions: u64,
    /// Transactions without a complete reply, random losses excepted.
    failed: u64,
    /// Transactions in which the links dropped other packets than planned.
    other: u64,
    missing: Vec<ServerStack>,
}

impl<'a> QuicCampaign<'a> {
    pub(super) fn new(conditions: &'a Conditions<'a>) -> Self {
        Self {
            conditions,
            runs: 0,
            lateness: Histogram::new(),
            real_time: true,
            transactions: 0,
            failed: 0,
            other: 0,
            missing: Vec::new(),
        }
    }

    /// Notes a stack that this machine does not have.
    pub(super) fn note_missing(&mut self, stack: ServerStack) {
        if !self.missing.contains(&stack) {
            self.missing.push(stack);
        }
    }

    /// Runs transactions with one server. Returns `None` if stopped.
    pub(super) fn run(
        &mut self,
        offered: &OfferedService,
        jobs: &[QuicJob],
    ) -> Result<Option<Vec<EmulatedExchange>>, Failure> {
        let name = format!(
            "{}, {}, {}, {} transactions",
            offered.stack.name(),
            offered.transport_name(),
            offered.service.name,
            jobs.len()
        );
        let progress = self.conditions.progress;
        let report = |over: usize| progress.step(over as u64, jobs.len() as u64, &name);
        let seed = self.conditions.seed.numbered("emulated", self.runs);
        self.runs += 1;
        let run = testbed::run(offered, jobs, seed, self.conditions, report)?;
        if run.stopped {
            return Ok(None);
        }
        self.note(&run.outcome);
        for (job, exchange) in jobs.iter().zip(&run.exchanges) {
            self.transactions += 1;
            let by_chance = matches!(job.lost, LostPacket::Percent(_));
            self.failed += u64::from(exchange.response.is_none() && !by_chance);
            self.other += u64::from(!exchange.lost_as_planned(job.lost));
        }
        Ok(Some(run.exchanges))
    }

    fn note(&mut self, outcome: &EmulationOutcome) {
        self.lateness.merge(&outcome.lateness);
        self.real_time &= outcome.real_time;
        for way in [&outcome.up, &outcome.down] {
            self.other += way.bypassed.overrun + way.bypassed.unsent;
        }
    }

    /// The accuracy of the runs.
    pub(super) fn records(self) -> Records {
        let mut records = Records::new();
        records.set_parameter("processing", PROCESSING);
        records.set_parameter("delays", "steady");
        for (name, share) in [("lateness p50 us", 0.5), ("lateness p99 us", 0.99)] {
            records.set_number(name, self.lateness.quantile(share).as_micros_f64());
        }
        let counts = [
            ("transactions", self.transactions),
            ("failed", self.failed),
            ("other losses", self.other),
        ];
        for (name, count) in counts {
            records.set_number(name, count as f64);
        }
        let missing: Vec<&str> = self.missing.iter().map(|stack| stack.name()).collect();
        records.set_parameter("stacks that are not installed", missing.join(", "));
        describe_real_time(&mut records, self.real_time);
        records
    }
}

/// Simulated transactions of a cell. TCP has clocks that tick, so that timers depend on the moment at which a
/// transaction begins: the timers of a SYN and of its SYN-ACK end in either order. quinn skips a packet number now and
/// then, at random (RFC 9000, section 21.4), and the receiver acknowledges the packet after the gap at once.
pub(super) const DRAWS: u64 = 31;

/// The ends of these cells.
pub(super) fn ends_of(kind: &CellKind) -> QuicEnds {
    QuicEnds {
        closer: if kind.is_kept() {
            Closer::Client
        } else {
            Closer::Server
        },
        ..usual()
    }
}

/// Simulates a loss at every position on these lines. Delays do not vary.
pub(super) fn simulate_positions(
    seed: Seed,
    kind: &CellKind,
    service: &'static PaperService,
    lines: &[NetworkLine],
    draws: u64,
) -> Result<CellTimes, Failure> {
    let ends = ends_of(kind);
    let simulate = |line: &NetworkLine| simulate_with(seed, kind, &ends, service, *line, draws);
    let mut all = CellTimes::default();
    for cells in on_all_cores(lines, simulate)? {
        all.merge(cells);
    }
    Ok(all)
}

/// The same with these ends on one line.
pub(super) fn simulate_with(
    seed: Seed,
    kind: &CellKind,
    ends: &QuicEnds,
    service: &'static PaperService,
    line: NetworkLine,
    draws: u64,
) -> Result<CellTimes, Failure> {
    let mut cells = CellTimes::default();
    let mut add = |lost| -> Result<[u32; 2], Failure> {
        let job = QuicJob {
            transport: kind.transport,
            service,
            line,
            lost,
        };
        let mut simulator = ExchangeSimulator::new(&job, ends, kind.processing, false, seed)?;
        let mut lengths = [0; 2];
        for number in 1..=draws {
            let played = simulator.play(number);
            cells.add(kind, &job, &played.packets, played.response);
            lengths = played.packets.map(|packets| packets.len() as u32);
        }
        Ok(lengths)
    };
    let lengths = add(LostPacket::None)?;
    for lost in LostPacket::each(lengths).skip(1) {
        add(lost)?;
    }
    Ok(cells)
}
