//! CPU time and capacity of each kind of traffic.
//!
//! CPU time is that of the serving thread for each reply, in a closed loop against a shop at this machine's own speed:
//! a load under which a server only serves. Capacity is the throughput in an open loop past the limit, as in the other
//! figures of this paper, against a slower shop, so that the shop and not the generator is the limit. Runs below the
//! limit show that the throughput follows the rate there. Sweeps run one after another, so that a disturbance of the
//! machine affects one run of each kind.

use posthaste_bookshop::Catalogue;
use posthaste_load::{Arrivals, Pace, Plan};
use posthaste_study::{
    Conditions, Failure, Needs, RecordRow, RecordTable, Records, Study, estimate,
};
use posthaste_units::{Seed, Span};

use super::traffic::{CONNECTIONS, FormsTestbed, Traffic};
use super::{answers, wire};
use crate::overload::testbed::{SLOWDOWN, cpu_us};
use crate::testbed::measured::{MeasuredRun, runs_with};
use crate::testbed::shop::fetch;
use crate::testbed::sweep::steady;

pub(crate) static STUDY: Study = Study {
    name: "overload-forms",
    needs: Needs::Processor,
    core: false,
    run: |conditions| study(conditions, &FormsExtent::new(conditions.full)),
};

/// Load of a run in a closed loop, in records.
pub(super) const CLOSED: f64 = 0.0;
/// Rate below the limit, as a multiple of a first estimate of the capacity.
pub(super) const BELOW: f64 = 0.7;
/// Rate past the limit.
pub(super) const PAST: f64 = 2.0;

/// Time from the start of an open loop in which nothing counts: connections are opened, and the server fills.
const WARM_UP: Span = Span::from_millis(100);

/// Length of the measurements.
pub(super) struct FormsExtent {
    repetitions: u64,
    /// Length of a run that measures CPU time or estimates a capacity.
    look: Span,
    /// Length of a run in an open loop.
    length: Span,
}

impl FormsExtent {
    fn new(full: bool) -> Self {
        if full {
            Self {
                repetitions: 9,
                look: Span::from_secs(2),
                length: Span::from_secs(4),
            }
        } else {
            Self {
                repetitions: 3,
                look: Span::from_millis(350),
                length: Span::from_millis(500),
            }
        }
    }
}

/// Answers of the shop to one form so far.
#[derive(Clone, Copy, Debug, Default)]
struct ShopCount {
    good: f64,
    other: f64,
}

fn study(conditions: &Conditions<'_>, extent: &FormsExtent) -> Result<Records, Failure> {
    let mut records = Records::new();
    let testbed = FormsTestbed::open(conditions.seed, 1)?;
    let book = Catalogue::new(1, conditions.seed).books()[0].clone();
    records.set_table("bytes", wire::count_all(&testbed, conditions)?);
    records.set_table("answers", answers::ask_all(&testbed, &book)?);
    let mut runs = runs_with("traffic", &OWN);
    closed_loops(&testbed, conditions, extent, &mut runs)?;
    drop(testbed);
    let slow = FormsTestbed::open(conditions.seed, SLOWDOWN)?;
    slow.describe(&mut records, conditions);
    open_loops(&slow, conditions, extent, &mut runs)?;
    summarise(&mut records, &runs);
    records.set_table("runs", runs);
    records.set_parameter("length of a run, closed loop", extent.look);
    records.set_parameter("length of a run, open loop", extent.length);
    records.set_parameter("runs of each kind", extent.repetitions);
    records.set_parameter("arrivals", "constant");
    Ok(records)
}

/// The study's own columns of the table of runs.
const OWN: [&str; 8] = [
    "server_cpu_us",
    "shop_good",
    "shop_other",
    "connections",
    "warm_up",
    "bytes_sent",
    "bytes_received",
    "rate_per_s",
];

/// Runs a plan and adds its row, with the shop's own counts of the answers to the form. `None` if stopped.
fn measure(
    testbed: &FormsTestbed,
    traffic: Traffic,
    plan: &Plan,
    conditions: &Conditions<'_>,
) -> Result<Option<(MeasuredRun, [f64; OWN.len()])>, Failure> {
    let before = shop_count(testbed, traffic)?;
    let Some(measured) = testbed.measure(plan, conditions.stop)? else {
        return Ok(None);
    };
    let after = shop_count(testbed, traffic)?;
    let rate = match &plan.pace {
        Pace::Open { steps, .. } => steps.first().map(|step| step.from.as_per_second()),
        Pace::Closed { .. } => None,
    };
    let own = [
        cpu_us(&measured),
        after.good - before.good,
        after.other - before.other,
        measured.run.connections as f64,
        measured.run.warm_up as f64,
        measured.run.bytes_sent as f64,
        measured.run.bytes_received as f64,
        rate.unwrap_or(f64::NAN),
    ];
    Ok(Some((measured, own)))
}

/// Runs the closed loops of all kinds, several times. Omits stopped runs.
fn closed_loops(
    testbed: &FormsTestbed,
    conditions: &Conditions<'_>,
    extent: &FormsExtent,
    runs: &mut RecordTable,
) -> Result<(), Failure> {
    let kinds = Traffic::all();
    let total = extent.repetitions * kinds.len() as u64;
    for done in 0..total {
        let traffic = kinds[(done % kinds.len() as u64) as usize];
        let repetition = 1 + done / kinds.len() as u64;
        let message = format!("CPU time of {}, sweep {repetition}", traffic.key());
        conditions.progress.step(done, total, &message);
        let mut plan = closed(testbed, traffic, extent.look)?;
        plan.seed = Seed(conditions.seed.0.wrapping_add(repetition));
        match measure(testbed, traffic, &plan, conditions)? {
            Some((run, own)) => runs.push(run.row_with(&traffic.key(), CLOSED, repetition, &own)),
            None => break,
        }
    }
    Ok(())
}

fn closed(testbed: &FormsTestbed, traffic: Traffic, length: Span) -> Result<Plan, Failure> {
    let clients = CONNECTIONS as u32;
    let pace = Pace::Closed { clients, length };
    testbed.plan(traffic, testbed.shop.address(), pace)
}

/// Runs the open loops below and past the limit of each kind, several times. Omits stopped runs.
fn open_loops(
    testbed: &FormsTestbed,
    conditions: &Conditions<'_>,
    extent: &FormsExtent,
    runs: &mut RecordTable,
) -> Result<(), Failure> {
    let mut kinds = Vec::new();
    for traffic in Traffic::overloaded() {
        let plan = closed(testbed, traffic, extent.look)?;
        match testbed.measure(&plan, conditions.stop)? {
            Some(run) => kinds.push((traffic, conditions.capacity(run.throughput()))),
            None => return Ok(()),
        }
    }
    let loads = [BELOW, PAST];
    let total = extent.repetitions * (kinds.len() * loads.len()) as u64;
    let sweeps = (1..=extent.repetitions).flat_map(|repetition| {
        let kinds = kinds.iter();
        kinds.flat_map(move |kind| loads.map(|load| (repetition, *kind, load)))
    });
    for (done, (repetition, (traffic, capacity), load)) in sweeps.enumerate() {
        let message = format!("capacity of {}, sweep {repetition}", traffic.key());
        conditions.progress.step(done as u64, total, &message);
        let pace = Pace::Open {
            arrivals: Arrivals::Constant,
            steps: vec![steady(load * capacity, extent.length)?],
        };
        let mut plan = testbed.plan(traffic, testbed.shop.address(), pace)?;
        plan.warm_up = WARM_UP;
        plan.seed = Seed(conditions.seed.0.wrapping_add(repetition));
        match measure(testbed, traffic, &plan, conditions)? {
            Some((run, own)) => runs.push(run.row_with(&traffic.key(), load, repetition, &own)),
            None => break,
        }
    }
    Ok(())
}

/// The shop's own counts of the answers to a form.
fn shop_count(testbed: &FormsTestbed, traffic: Traffic) -> Result<ShopCount, Failure> {
    let text = fetch(testbed.shop.address(), "/metrics")?;
    let form = traffic.form.metric();
    let answers = |answer: &str| {
        let series = format!("bookshop_requests_total{{form=\"{form}\",answer=\"{answer}\"}} ");
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(&*series));
        let value = value.ok_or_else(|| format!("the shop has no metric {series}"))?;
        Ok::<f64, Failure>(value.parse()?)
    };
    Ok(ShopCount {
        good: answers("ok")?,
        other: answers("refused")? + answers("failed")?,
    })
}

/// Computes CPU time and capacity of each kind from its runs.
fn summarise(records: &mut Records, runs: &RecordTable) {
    let each = |traffic: &Traffic, load: f64, value: &dyn Fn(&RecordRow<'_>) -> f64| {
        let key = traffic.key();
        let own = runs
            .rows()
            .filter(|row| row.text("traffic") == key && row.number("load") == load);
        estimate(&own.map(|row| value(&row)).collect::<Vec<_>>())
    };
    let estimate_of =
        |traffic: &Traffic, load: f64, column: &str| each(traffic, load, &|row| row.number(column));
    // The warm-up costs CPU time, and its replies are not among the generator's.
    let of_all = |row: &RecordRow<'_>| {
        row.number("server_cpu_us") * row.number("ok") / row.number("shop_good")
    };
    let mut costs = RecordTable::new(["traffic", "cpu_us", "low", "high"]);
    for traffic in Traffic::all() {
        let cost = estimate_of(&traffic, CLOSED, "server_cpu_us");
        let numbers = [cost.median, cost.low, cost.high].map(Into::into);
        costs.push([traffic.key().into()].into_iter().chain(numbers));
    }
    records.set_table("costs", costs);
    let mut capacities = RecordTable::new([
        "traffic",
        "capacity_per_s",
        "low",
        "high",
        "cpu_us",
        "below_rate_per_s",
        "below_served_per_s",
    ]);
    for traffic in Traffic::overloaded() {
        let capacity = estimate_of(&traffic, PAST, "served_per_s");
        let numbers = [
            capacity.median,
            capacity.low,
            capacity.high,
            each(&traffic, PAST, &of_all).median,
            estimate_of(&traffic, BELOW, "rate_per_s").median,
            estimate_of(&traffic, BELOW, "served_per_s").median,
        ];
        let numbers = numbers.map(Into::into);
        capacities.push([traffic.key().into()].into_iter().chain(numbers));
    }
    records.set_table("capacities", capacities);
}

#[cfg(test)]
mod tests {
    use posthaste_study::CheckKind;

    use super::super::forms_2026::FIGURE;
    use super::*;
    use crate::test_study;

    const TINY: FormsExtent = FormsExtent {
        repetitions: 1,
        look: Span::from_millis(50),
        length: Span::from_millis(100),
    };

    #[test]
    fn a_tiny_study_counts_alike_in_all_places() {
        let records = test_study::run(Some(4000.0), |conditions| study(conditions, &TINY));
        let (all, open) = (Traffic::all().len(), Traffic::overloaded().len());
        assert_eq!(records.table("runs").len(), all + 2 * open);
        let checks = (FIGURE.checks)(&records);
        let instrument = checks
            .iter()
            .filter(|check| check.kind == CheckKind::Instrument);
        for check in instrument {
            assert!(check.holds, "{}", check.sentence);
        }
        // The order of the bytes is exact in every run.
        let bytes = checks
            .iter()
            .find(|check| check.sentence.contains("fewer bytes"));
        assert!(bytes.is_some_and(|check| check.holds), "{bytes:?}");
    }
}
