//! sclient loads the gateway: replies compressed for all clients, for none, and by load for clients without a
//! preference.
//!
//! One gateway serves all three. They differ in the preferences of the clients. Rates are multiples of the measured
//! capacity without compression. If the gateway decides, each rate is held for a while before the measurement, because
//! the gateway needs a second to learn its load. A run past capacity begins with a burst that fills the queue and
//! therefore measures lasting overload.

use posthaste_compression::Wish;
use posthaste_load::{Connections, Pace, Plan};
use posthaste_study::{Conditions, Failure, Needs, RecordTable, Records, Study};
use posthaste_units::{Seed, Span};

use crate::testbed::measured::{MeasuredRun, runs};
use crate::testbed::proxy::ProxyUnderTest;
use crate::testbed::{REPLY, SLOWDOWN, Testbed, describe_slowdown, sweep};

pub(super) static STUDY: Study = Study {
    name: "wsqos-sclient",
    needs: Needs::Processor,
    core: true,
    run: |conditions| study(conditions, &SclientExtent::new(conditions.full)),
};

/// Preferences of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mix {
    /// All ask for compression.
    All,
    /// All refuse it.
    None,
    /// Half refuse it, half state nothing.
    Dynamic,
}

impl Mix {
    pub(super) const EVERY: [Self; 3] = [Self::All, Self::None, Self::Dynamic];

    /// Name in pictures, sentences and records.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::All => "all compressed",
            Self::None => "none compressed",
            Self::Dynamic => "dynamic",
        }
    }

    const fn wishes(self) -> &'static [(Wish, f64)] {
        match self {
            Self::All => &[(Wish::Always, 1.0)],
            Self::None => &[(Wish::Never, 1.0)],
            Self::Dynamic => &[(Wish::Never, 0.5), (Wish::Unstated, 0.5)],
        }
    }
}

/// Length and density of the measurements.
struct SclientExtent {
    /// Rates as multiples of the capacity without compression.
    rates: &'static [f64],
    repetitions: u64,
    /// Time at a rate before the measurement.
    settle: Span,
    length: Span,
}

impl SclientExtent {
    fn new(full: bool) -> Self {
        if full {
            Self {
                rates: &[
                    0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2,
                    1.4, 1.8,
                ],
                repetitions: 5,
                settle: Span::from_secs(4),
                length: Span::from_secs(2),
            }
        } else {
            Self {
                rates: &[0.3, 0.6, 0.8, 0.9, 1.2, 1.6],
                repetitions: 3,
                settle: Span::from_millis(1200),
                length: Span::from_millis(800),
            }
        }
    }
}

/// Multiple of the capacity from which the gateway is overloaded, with or without compression.
pub(super) const OVERLOADED: f64 = 1.2;

/// Configuration of the gateway. The first compression step has nearly the paper's sizes and the paper's share of a
/// request's cost.
pub(super) const GATEWAY: &str = "backlog = 128\n\
    connections = 32\n\
    [compression]\n\
    policy = \"threshold\"\n\
    steps = [\"gzip-1\"]\n";

fn study(conditions: &Conditions<'_>, extent: &SclientExtent) -> Result<Records, Failure> {
    let mut records = Records::new();
    let testbed = Testbed::open(conditions, REPLY, "gzip")?;
    testbed.describe(&mut records, conditions);
    let proxy = testbed.gateway(SLOWDOWN, GATEWAY, "")?;
    records.set_parameter("gateway", GATEWAY.replace('\n', "; "));
    describe_slowdown(&mut records, SLOWDOWN);
    records.set_parameter("reply", format!("{}, made beforehand", REPLY.name()));
    records.set_parameter("connection", "a new one for each request");
    records.set_parameter("arrivals", "constant");
    records.set_parameter("length of a run", extent.length);
    records.set_parameter("before it, where the gateway decides", extent.settle);
    records.set_parameter("runs of each point", extent.repetitions);
    let sclient = Sclient {
        conditions,
        testbed: &testbed,
        proxy: &proxy,
        extent,
    };
    let mut table = runs();
    if let Some(capacities) = sclient.first_capacities()? {
        sclient.sweeps(capacities, &mut table)?;
    }
    records.set_table("runs", table);
    summarise(&mut records);
    Ok(records)
}

struct Sclient<'a> {
    conditions: &'a Conditions<'a>,
    testbed: &'a Testbed,
    proxy: &'a ProxyUnderTest,
    extent: &'a SclientExtent,
}

impl Sclient<'_> {
    fn measure(&self, plan: &Plan) -> Result<Option<MeasuredRun>, Failure> {
        self.proxy.measure(plan, self.conditions.stop)
    }

    fn plan(&self, mix: Mix, pace: Pace) -> Plan {
        let new = Connections::New;
        self.testbed.plan(self.proxy, mix.wishes(), new, pace)
    }

    /// Estimates the capacities with all and with no replies compressed, by a closed loop. `None` if stopped.
    fn first_capacities(&self) -> Result<Option<[f64; 2]>, Failure> {
        let mut capacities = [0.0; 2];
        for mix in [Mix::All, Mix::None] {
            let pace = Pace::Closed {
                clients: 64,
                length: self.extent.length + self.extent.length,
            };
            let Some(measured) = self.measure(&self.plan(mix, pace))? else {
                return Ok(None);
            };
            capacities[mix as usize] = self.conditions.capacity(measured.throughput());
        }
        Ok(Some(capacities))
    }

    /// Runs every rate for every mix, several times. Omits stopped runs.
    fn sweeps(&self, [all, none]: [f64; 2], table: &mut RecordTable) -> Result<(), Failure> {
        let (done, total) = (&mut 0, self.extent.rates.len() as u64 * 3);
        for &load in self.extent.rates {
            for mix in Mix::EVERY {
                let message = format!("{}, {load} x {none:.0}/s", mix.name());
                self.conditions.progress.step(*done, total, &message);
                *done += 1;
                let own = if mix == Mix::All { all } else { none };
                if mix == Mix::Dynamic {
                    let settle = self.load(mix, load * none, own, self.extent.settle)?;
                    if self.measure(&settle)?.is_none() {
                        return Ok(());
                    }
                }
                for repetition in 1..=self.extent.repetitions {
                    let mut plan = self.load(mix, load * none, own, self.extent.length)?;
                    plan.seed = Seed(self.conditions.seed.0.wrapping_add(repetition));
                    let Some(measured) = self.measure(&plan)? else {
                        return Ok(());
                    };
                    let packed = measured.packed();
                    table.push(measured.row(mix.name(), load, repetition, packed));
                }
            }
        }
        Ok(())
    }

    /// A plan of `rate` for `length`. If `rate` exceeds the capacity `own`, a burst that fills gateway and queue comes
    /// first.
    fn load(&self, mix: Mix, rate: f64, own: f64, length: Span) -> Result<Plan, Failure> {
        Ok(self.plan(mix, sweep::load(rate, own, length)?))
    }
}

/// Columns of the runs in the pictures. The points have a median and an interval of each.
pub(super) const QUANTITIES: [&str; 4] = [
    "response_ms",
    "throughput_per_s",
    "rejected_per_s",
    "packed",
];

/// Computes the capacities from all overloaded runs, and the points at multiples of the capacity without compression.
fn summarise(records: &mut Records) {
    let mixes = Mix::EVERY.map(Mix::name);
    sweep::capacities(records, &mixes, OVERLOADED);
    let none = records.number(&format!("capacity {}", Mix::None.name()));
    sweep::points(records, &mixes, &QUANTITIES, none);
}

/// Points of the curve of `mix`: (rate / capacity without compression, value).
pub(super) fn places(records: &Records, mix: Mix, column: &str) -> Vec<(f64, f64)> {
    sweep::places(records, mix.name(), column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_study;
    use crate::testbed::instrument;

    #[test]
    fn a_tiny_study_accounts_for_overload_and_for_every_asker() {
        let extent = SclientExtent {
            rates: &[0.3, 1.5],
            repetitions: 1,
            settle: Span::from_millis(300),
            length: Span::from_millis(150),
        };
        // More than the capacity of the slow gateway on any machine.
        // A generator without CPU time for half a second does not send all due requests, and the check fails.
        let accounted = |number: &u32| {
            let records = test_study::run(Some(10_000.0), |conditions| study(conditions, &extent));
            assert_eq!(records.table("runs").len(), 6);
            let missed = instrument::accounting(&records).into_iter();
            let missed: Vec<_> = missed.filter(|check| !check.holds).collect();
            missed
                .iter()
                .for_each(|check| println!("try {number}: {}", check.sentence));
            missed.is_empty().then_some(records)
        };
        let records = (1..=5).find_map(|number| accounted(&number));
        let records = records.expect("one of five studies is accounted for");
        let packed = |mix| places(&records, mix, "packed");
        assert!(packed(Mix::All).iter().all(|point| point.1 == 1.0));
        assert!(packed(Mix::None).iter().all(|point| point.1.is_nan()));
        let rejected = places(&records, Mix::None, "rejected_per_s");
        assert!(rejected.last().unwrap().1 > 0.0, "{rejected:?}");
    }
}
