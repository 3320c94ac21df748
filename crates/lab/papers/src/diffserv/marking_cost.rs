//! Cost of the proxy: the same requests without a gateway, through the gateway, and through the gateway that marks
//! every reply on request, at increasing rates. Also the cost of a reply in the two gateways, loaded side by side.
//!
//! On a shared machine, the speed of a core changes by a third from one second to the next. The two gateways therefore
//! run at the same time on the same core, and each one's CPU time is counted separately.

use posthaste_load::{Pace, Plan};
use posthaste_study::{
    Conditions, Failure, Needs, RecordTable, RecordValue, Records, Study, estimate,
};
use posthaste_units::{Seed, Span};

use super::qos_proxy::{message, request};
use crate::testbed::measured::runs;
use crate::testbed::proxy::{ProxyUnderTest, side_by_side};
use crate::testbed::{SLOWDOWN, Testbed, describe_slowdown, plan_of, sweep};

pub(super) static STUDY: Study = Study {
    name: "wsqos-marking-cost",
    needs: Needs::Processor,
    core: false,
    run: |conditions| study(conditions, &MarkingCostExtent::new(conditions.full)),
};

/// Names of the three paths of a request.
pub(super) const NOTHING: &str = "no gateway";
pub(super) const PLAIN: &str = "gateway";
pub(super) const MARKING: &str = "gateway that marks";
pub(super) const WHOS: [&str; 3] = [NOTHING, PLAIN, MARKING];

/// Clients of the closed loop.
const CLIENTS: u32 = 32;
/// Number of runs. The best one gives the capacity.
const BEST_OF: u32 = 5;

/// A short queue. Past its limit, a gateway leaves connections beyond it unanswered.
const GATEWAY: &str = "backlog = 128\nconnections = 32\n";

struct MarkingCostExtent {
    /// Rates as multiples of the capacity of the gateway without marks: the thesis's 20 to 70 a second, divided by the
    /// 50 up to which its proxy cost nothing.
    rates: &'static [f64],
    repetitions: u64,
    length: Span,
    /// Number and length of the runs of both gateways side by side.
    pairs: u64,
    closed: Span,
}

impl MarkingCostExtent {
    const fn new(full: bool) -> Self {
        Self {
            rates: if full {
                &[0.4, 0.6, 0.8, 0.9, 1.0, 1.2, 1.4]
            } else {
                &[0.5, 0.9, 1.2]
            },
            repetitions: 3,
            length: Span::from_millis(if full { 3000 } else { 500 }),
            pairs: if full { 100 } else { 20 },
            closed: Span::from_millis(if full { 1000 } else { 400 }),
        }
    }
}

fn study(conditions: &Conditions<'_>, extent: &MarkingCostExtent) -> Result<Records, Failure> {
    let mut records = Records::new();
    let testbed = Testbed::with_message(&message())?;
    testbed.describe(&mut records, conditions);
    records.set_parameter("reply", format!("{} bytes of SOAP", testbed.length));
    records.set_parameter("gateway", GATEWAY.trim_end().replace('\n', "; "));
    describe_slowdown(&mut records, SLOWDOWN);
    records.set_parameter("connection", "a new one for each request");
    records.set_parameter("length of a run", extent.length);
    records.set_parameter("runs of each point", extent.repetitions);
    let gateway = |policy: &str| {
        let before = format!("{GATEWAY}[marking]\npolicy = \"{policy}\"");
        testbed.gateway(SLOWDOWN, &before, "")
    };
    let proxies = [testbed.nothing(), gateway("never")?, gateway("asked")?];
    let mut pairs = RecordTable::new(["plain_us", "marking_us", "cost_ratio"]);
    let mut table = runs();
    beside(conditions, extent, &testbed, &proxies, &mut pairs)?;
    if let Some(capacity) = fastest(conditions, extent, &testbed, &proxies[1])? {
        records.set_number("capacity", capacity);
        at_rates(conditions, extent, &testbed, &proxies, capacity, &mut table)?;
    }
    let ratios: Vec<f64> = pairs.rows().map(|row| row.number("cost_ratio")).collect();
    let found = estimate(&ratios);
    for (end, value) in [
        ("", found.median),
        (" low", found.low),
        (" high", found.high),
    ] {
        records.set_number(&format!("cost with marks over without{end}"), value);
    }
    records.set_table("pairs", pairs);
    records.set_table("runs", table);
    let capacity = records.number("capacity");
    let quantities = ["throughput_per_s", "response_ms", "busy"];
    sweep::points(&mut records, &WHOS, &quantities, capacity);
    Ok(records)
}

/// A plan for `proxy`.
fn plan(testbed: &Testbed, proxy: &ProxyUnderTest, pace: Pace) -> Plan {
    plan_of(request(proxy.address), pace, testbed.cores)
}

/// A closed loop.
fn closed(extent: &MarkingCostExtent) -> Pace {
    Pace::Closed {
        clients: CLIENTS,
        length: extent.closed,
    }
}

/// Runs both gateways side by side. Each request goes to either.
fn beside(
    conditions: &Conditions<'_>,
    extent: &MarkingCostExtent,
    testbed: &Testbed,
    [_, plain, marking]: &[ProxyUnderTest; 3],
    pairs: &mut RecordTable,
) -> Result<(), Failure> {
    let mut both = plan(testbed, plain, closed(extent));
    both.requests.push(request(marking.address));
    for number in 0..extent.pairs {
        conditions
            .progress
            .step(number, extent.pairs, "side by side");
        both.seed = Seed(conditions.seed.0.wrapping_add(number));
        let parts = side_by_side([plain, marking], &both, conditions.stop)?;
        let Some([plain, marking]) = parts.map(|parts| parts.map(|part| part.reply_us)) else {
            break;
        };
        pairs.push([plain, marking, marking / plain].map(RecordValue::from));
    }
    Ok(())
}

/// Capacity of a gateway: the best of several runs. `None` if stopped.
fn fastest(
    conditions: &Conditions<'_>,
    extent: &MarkingCostExtent,
    testbed: &Testbed,
    proxy: &ProxyUnderTest,
) -> Result<Option<f64>, Failure> {
    let mut best = 0.0f64;
    for _ in 0..BEST_OF {
        let measured = proxy.measure(&plan(testbed, proxy, closed(extent)), conditions.stop)?;
        let Some(measured) = measured else {
            return Ok(None);
        };
        best = best.max(measured.throughput());
    }
    Ok(Some(conditions.capacity(best)))
}

fn at_rates(
    conditions: &Conditions<'_>,
    extent: &MarkingCostExtent,
    testbed: &Testbed,
    proxies: &[ProxyUnderTest; 3],
    capacity: f64,
    table: &mut RecordTable,
) -> Result<(), Failure> {
    for (done, &load) in (0..).zip(extent.rates) {
        let message = format!("{load} x {capacity:.0}/s");
        conditions
            .progress
            .step(done, extent.rates.len() as u64, &message);
        for repetition in 1..=extent.repetitions {
            for (who, proxy) in WHOS.iter().zip(proxies) {
                let pace = sweep::load(load * capacity, capacity, extent.length)?;
                let mut plan = plan(testbed, proxy, pace);
                plan.seed = Seed(conditions.seed.0.wrapping_add(repetition));
                let Some(measured) = proxy.measure(&plan, conditions.stop)? else {
                    return Ok(());
                };
                table.push(measured.row(who, load, repetition, f64::NAN));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_study;
    use crate::testbed::instrument;

    #[test]
    fn a_tiny_study_asks_all_three() {
        let extent = MarkingCostExtent {
            rates: &[0.3],
            repetitions: 1,
            length: Span::from_millis(100),
            pairs: 1,
            closed: Span::from_millis(200),
        };
        let records = test_study::run(Some(1000.0), |conditions| study(conditions, &extent));
        assert_eq!(
            (records.table("runs").len(), records.table("pairs").len()),
            (3, 1)
        );
        assert!(records.number("cost with marks over without") > 0.0);
        let identity = instrument::identity(&records);
        assert!(identity.holds, "{}", identity.sentence);
        for who in WHOS {
            let answered = sweep::places(&records, who, "throughput_per_s");
            assert!(answered[0].1 > 0.0, "{who}: {answered:?}");
        }
    }
}
