//! The QoSProxy on a DiffServ network: a reply uses the class with a guarantee while cross traffic fills the line.
//!
//! Compares the gateway that marks on request with the same gateway without marks and with an ideal: the router's edge
//! marks by address all packets from the gateway. Every run has networks of its own ([`qos_proxy`](super::qos_proxy)),
//! so that many run side by side.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use posthaste_emulator::{EmulationOutcome as Emulated, EmulationVerdict};
use posthaste_load::{Outcome, Run};
use posthaste_study::{Conditions, Failure, Needs, RecordTable, RecordValue, Records, Study};
use posthaste_units::{Seed, Span};

use super::qos_proxy::{BACKGROUNDS, CONNECTIONS, LINE, MarkedRun, MarkingPoint, REPLY, play};

pub(super) static STUDY: Study = Study {
    name: "wsqos-diffserv",
    needs: Needs::Processor,
    core: false,
    run: |conditions| study(conditions, &SelectionExtent::new(conditions.full)),
};

/// The thesis's request rates.
pub(super) const RATES: [f64; 6] = [20.0, 30.0, 40.0, 50.0, 60.0, 70.0];

/// Extent of the measurements.
struct SelectionExtent {
    rates: &'static [f64],
    repetitions: u64,
    warm_up: Span,
    length: Span,
}

impl SelectionExtent {
    const fn new(full: bool) -> Self {
        Self {
            rates: &RATES,
            repetitions: if full { 3 } else { 1 },
            warm_up: Span::from_secs(1),
            length: Span::from_secs(if full { 30 } else { 5 }),
        }
    }
}

fn study(conditions: &Conditions<'_>, extent: &SelectionExtent) -> Result<Records, Failure> {
    let mut records = Records::new();
    let rate = |bytes: u64| format!("{} kB/s", bytes / 1000);
    records.set_parameter("line", rate(LINE));
    records.set_parameter("guaranteed to AF11, and to the rest", "30 % and 70 %");
    records.set_parameter("ceiling of both", "100 %");
    records.set_parameter("what others send", "best effort, 1,500 bytes a packet");
    records.set_parameter("reply", format!("{REPLY} bytes of SOAP"));
    records.set_parameter("connections", format!("{CONNECTIONS}, kept open"));
    records.set_parameter("length of a run", extent.length);
    records.set_parameter("runs of each point", extent.repetitions);
    let outcomes = Outcome::ALL.map(Outcome::name);
    let first = ["marks", "background", "rate", "repetition", "intended"];
    let last = [
        "replies_per_s",
        "response_ms",
        "af_bytes",
        "rest_bytes",
        "late_p99_ms",
        "witness_ms",
        "lost",
    ];
    let mut table = RecordTable::with(first.iter().chain(&outcomes).chain(&last).copied());
    // Two rates at a time. More would take CPU time from each other.
    let turns = (1..=extent.repetitions)
        .flat_map(|round| extent.rates.chunks(2).map(move |rates| (round, rates)));
    let all = extent.repetitions * extent.rates.len().div_ceil(2) as u64;
    for (done, (repetition, rates)) in (0..).zip(turns) {
        let rates_in_words: Vec<String> = rates.iter().map(f64::to_string).collect();
        let message = format!("{} requests a second", rates_in_words.join(" and "));
        conditions.progress.step(done, all, &message);
        let seed = conditions.seed.numbered("turn", repetition);
        let (finished, witness) = match side_by_side(conditions, extent, rates, seed) {
            Ok(Some(finished)) => finished,
            Ok(None) => break,
            Err(error) => {
                records.cut_short(&error);
                break;
            }
        };
        for one in &finished {
            table.push(row(one, repetition, witness));
        }
    }
    records.set_table("runs", table);
    Ok(records)
}

type FinishedRun = (MarkedRun, Run, Emulated);

/// Interval between checks for the end of the runs. The checking thread is woken late if others hold the processors,
/// and so are gateways and generators. Its lateness is a witness of that.
const GLANCE: Duration = Duration::from_millis(5);

/// Runs every marking and every background at these rates. Also returns the maximum lateness of the witness. `None` if
/// stopped.
fn side_by_side(
    conditions: &Conditions<'_>,
    extent: &SelectionExtent,
    rates: &[f64],
    seed: Seed,
) -> Result<Option<(Vec<FinishedRun>, Span)>, Failure> {
    let stop = Arc::<AtomicBool>::default();
    let cells = rates.iter().flat_map(|rate| {
        let points = move |marks| {
            BACKGROUNDS.map(|background| MarkedRun {
                marks,
                background,
                rate: *rate,
                seed,
                warm_up: extent.warm_up,
                length: extent.length,
            })
        };
        MarkingPoint::ALL.into_iter().flat_map(points)
    });
    let mut witness = Duration::ZERO;
    let finished = std::thread::scope(|scope| {
        let play = |cell: MarkedRun| {
            let stop = stop.clone();
            scope.spawn(move || play(cell, stop).map(|(run, outcome)| (cell, run, outcome)))
        };
        let running: Vec<_> = cells.map(play).collect();
        while !running.iter().all(|one| one.is_finished()) {
            stop.fetch_or(conditions.stopped(), Ordering::Relaxed);
            let before = Instant::now();
            std::thread::sleep(GLANCE);
            witness = witness.max(before.elapsed().saturating_sub(GLANCE));
        }
        let ended = running
            .into_iter()
            .map(|one| one.join().map_err(|_| "a run panicked")?);
        ended.collect::<Result<Vec<FinishedRun>, Failure>>()
    })?;
    let stopped = finished.iter().any(|(_, run, _)| run.stopped);
    Ok((!stopped).then_some((finished, witness.into())))
}

fn row(finished: &FinishedRun, repetition: u64, witness: Span) -> Vec<RecordValue> {
    let (cell, run, outcome) = finished;
    let mut row: Vec<RecordValue> = vec![cell.marks.name().into()];
    row.extend([cell.background as f64, cell.rate].map(RecordValue::from));
    row.extend([repetition, run.intended].map(RecordValue::from));
    row.extend(
        run.outcomes
            .iter()
            .map(|(_, count)| RecordValue::from(count)),
    );
    let lost = match outcome.verdict() {
        EmulationVerdict::Lost { packets } => packets,
        EmulationVerdict::OnTime | EmulationVerdict::Late { .. } => 0,
    };
    let bytes = |class_index: usize| {
        let class = outcome.down.classes.get(class_index);
        class.map_or(f64::NAN, |class| {
            (class.guaranteed.bytes + class.borrowed.bytes) as f64
        })
    };
    let others = outcome
        .down
        .background
        .map_or(0.0, |others| others.sent.bytes as f64);
    let ok = run.outcomes[Outcome::Ok] as f64;
    row.extend([
        RecordValue::from(ok / run.duration.as_secs_f64()),
        run.response
            .histogram()
            .quantile(0.5)
            .as_millis_f64()
            .into(),
        bytes(0).into(),
        (bytes(1) - others).into(),
        outcome.lateness.quantile(0.99).as_millis_f64().into(),
        witness.as_millis_f64().into(),
        lost.into(),
    ]);
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_study;
    use crate::testbed::instrument;

    #[test]
    fn a_tiny_study_has_every_mark_and_both_backgrounds() {
        let extent = SelectionExtent {
            rates: &[40.0],
            repetitions: 1,
            warm_up: Span::from_millis(100),
            length: Span::from_millis(900),
        };
        let Some(records) = test_study::on_links(|conditions| study(conditions, &extent)) else {
            return;
        };
        assert_eq!(records.table("runs").len(), 6);
        let identity = instrument::identity(&records);
        assert!(identity.holds, "{}", identity.sentence);
        for row in records.table("runs").rows() {
            let [af, rest] = ["af_bytes", "rest_bytes"].map(|column| row.number(column));
            let share = af / (af + rest);
            let marks = row.text("marks");
            let expected = match marks {
                name if name == MarkingPoint::Nobody.name() => share == 0.0,
                // Handshakes belong to no reply.
                name if name == MarkingPoint::Gateway.name() => share > 0.98 && share < 1.0,
                _ => share == 1.0,
            };
            assert!(expected, "{marks}: {share}");
        }
    }
}
