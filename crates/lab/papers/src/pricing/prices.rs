//! A shop with more demand than capacity, behind each kind of admission: useful work, its distribution over clients,
//! and response times.
//!
//! Ten clients with budgets from 0.05 to 0.95 EUR send equal numbers of requests. Before prices can react, demand
//! rises. The evaluation starts one lifetime of a quote later.

use posthaste_load::{Outcome, Outcomes, Plan, Run};
use posthaste_qos::Money;
use posthaste_stats::Histogram;
use posthaste_study::{Conditions, Failure, Needs, RecordTable, RecordValue, Records, Study};
use posthaste_units::Span;

use super::demand_course::{ClientBehaviour, DemandCourse, DemandScenario, EASY, PhaseLengths};
use super::market::{Course, Market, PriceSample};

pub(super) static STUDY: Study = Study {
    name: "wsqos-prices",
    needs: Needs::Time,
    core: false,
    run: |conditions| study(conditions, &PricesExtent::new(conditions.full)),
};

/// An admission policy: its name, the keys of `[protection]`, and those of `[prices]`.
pub(super) struct ComparedAdmission {
    pub(super) name: &'static str,
    protection: &'static str,
    prices: &'static str,
}

/// All policies, in the order of the pictures. The thesis's half minute is one second, its pause between steps a sixth.
pub(super) const ADMISSION_POLICIES: [ComparedAdmission; 6] = [
    ComparedAdmission {
        name: "none",
        protection: "policy = \"none\"",
        prices: "",
    },
    ComparedAdmission {
        name: "rate",
        protection: "policy = \"rate\"\nrate = \"475/s\"",
        prices: "",
    },
    ComparedAdmission {
        name: "limit",
        protection: "policy = \"limit\"",
        prices: "",
    },
    ComparedAdmission {
        name: "steps",
        protection: "policy = \"prices\"",
        prices: "every = \"50ms\"\nlife = \"500ms\"\nrate = \"20/s\"\nmost_rate = \"20/s\"\ncontroller = { policy = \"steps\", window = \"1s\", period = \"167ms\" }",
    },
    ComparedAdmission {
        name: "proportional-integral",
        // Chosen to fill the server.
        protection: "policy = \"prices\"\nmost = 16",
        prices: "every = \"50ms\"\nlife = \"500ms\"\nrate = \"20/s\"\nmost_rate = \"20/s\"\ncontroller = { policy = \"proportional-integral\", target = \"97%\", band = \"1%\", delay = \"20ms\" }",
    },
    ComparedAdmission {
        name: "rajomon",
        protection: "policy = \"prices\"",
        prices: "every = \"10ms\"\nlife = \"500ms\"\nrate = \"20/s\"\nmost_rate = \"20/s\"\ncontroller = { policy = \"rajomon\" }",
    },
];

/// Service time of a request. The capacity is 500 requests a second.
const SERVICE: Span = Span::from_millis(2);
/// Requests per second that can be served.
pub(super) const CAPACITY: f64 = 500.0;
/// Maximum useful response time: fifty times the service time of a request.
pub(super) const DEADLINE: Span = Span::from_millis(100);
/// Maximum prices of the clients, in hundredths.
const BUDGETS: [u64; 10] = [5, 15, 25, 35, 45, 55, 65, 75, 85, 95];
/// Interval between samples of the price.
const LOOK: Span = Span::from_millis(20);

/// Extent of the measurements.
pub(super) struct PricesExtent {
    /// Maximum demand of steps and of sines, as multiples of the capacity.
    steps: &'static [f64],
    sines: &'static [f64],
    /// Intervals of price requests in seconds for clients that do not follow prices, and the maximum demand then.
    asks: &'static [f64],
    old: &'static [f64],
    times: PhaseLengths,
    /// Length of the evaluated part of a course with old prices.
    old_length: Span,
}

impl PricesExtent {
    const fn new(full: bool) -> Self {
        if full {
            Self {
                steps: &[1.4, 2.0, 5.0],
                sines: &[1.4, 2.0, 5.0],
                asks: &[1.0, 5.0],
                old: &[1.4, 2.0, 5.0],
                times: PhaseLengths {
                    before: Span::from_secs(2),
                    life: Span::from_secs(1),
                    length: Span::from_secs(8),
                    period: Span::from_secs(4),
                },
                old_length: Span::from_secs(20),
            }
        } else {
            Self {
                steps: &[5.0],
                sines: &[5.0],
                asks: &[1.0],
                old: &[5.0],
                times: PhaseLengths {
                    before: Span::from_millis(500),
                    life: Span::from_millis(750),
                    length: Span::from_millis(1500),
                    period: Span::from_millis(1500),
                },
                old_length: Span::from_millis(2250),
            }
        }
    }

    /// All runs, in order: first demand that can be served. Old prices matter only to policies with a price.
    fn runs(&self) -> Vec<(&'static ComparedAdmission, DemandScenario)> {
        let scenario = |kind, most: &f64| DemandScenario { kind, most: *most };
        let old = self.asks.iter().flat_map(|every| {
            let kind = ClientBehaviour::Old(Span::from_secs_f64(*every));
            self.old.iter().map(move |most| scenario(kind, most))
        });
        let scenarios: Vec<DemandScenario> = (self
            .steps
            .iter()
            .map(|most| scenario(ClientBehaviour::Step, most)))
        .chain(
            self.sines
                .iter()
                .map(|most| scenario(ClientBehaviour::Sine, most)),
        )
        .chain(old)
        .collect();
        let each = ADMISSION_POLICIES.iter().flat_map(|policy| {
            let scenarios = scenarios.iter().map(move |scenario| (policy, *scenario));
            scenarios.filter(|(policy, scenario)| {
                policy.has_price() || scenario.kind.ask_every().is_none()
            })
        });
        let at_ease = (
            &ADMISSION_POLICIES[0],
            scenario(ClientBehaviour::Step, &EASY),
        );
        std::iter::once(at_ease).chain(each).collect()
    }

    fn times(&self, scenario: DemandScenario) -> PhaseLengths {
        let mut times = self.times;
        if scenario.kind.ask_every().is_some() {
            times.length = self.old_length;
        }
        times
    }
}

impl ComparedAdmission {
    pub(super) const fn has_price(&self) -> bool {
        !self.prices.is_empty()
    }
}

pub(super) fn study(
    conditions: &Conditions<'_>,
    extent: &PricesExtent,
) -> Result<Records, Failure> {
    let mut records = Records::new();
    describe(&mut records, extent);
    let mut runs = RecordTable::new([
        "guard",
        "kind",
        "demand",
        "ask_every_s",
        "goodput",
        "p99_ms",
        "revenue_per_s",
        "price",
        "price_deviation",
        "looks",
        "intended",
        "outcomes",
        "refused",
        "declined",
        "quoted",
        "quoted_refused",
    ]);
    let mut course = RecordTable::new(["guard", "demand", "second", "asked", "price"]);
    let all = extent.runs();
    for (done, (policy, scenario)) in all.iter().enumerate() {
        let message = format!(
            "{}, {} {}",
            policy.name,
            scenario.kind.name(),
            scenario.most
        );
        conditions
            .progress
            .step(done as u64, all.len() as u64, &message);
        let times = extent.times(*scenario);
        let demand = scenario.demand(&times);
        let Some(Course {
            runs: ended,
            samples,
        }) = one(conditions, policy, *scenario, &demand)?
        else {
            break;
        };
        let from = demand.judged_from();
        let judged = from..from + times.length.as_secs_f64();
        let samples: Vec<PriceSample> = samples
            .into_iter()
            .filter(|now| judged.contains(&now.at))
            .collect();
        runs.push(row(policy, *scenario, &times, &demand, &ended, &samples));
        if scenario.kind == ClientBehaviour::Sine && policy.has_price() {
            for now in &samples {
                course.push([
                    policy.name.into(),
                    scenario.most.into(),
                    (now.at - from).into(),
                    demand.at(now.at).into(),
                    now.price.into(),
                ]);
            }
        }
    }
    records.set_table("runs", runs);
    records.set_table("course", course);
    Ok(records)
}

/// Records the parameters of all runs.
fn describe(records: &mut Records, extent: &PricesExtent) {
    records.set_parameter("service", format!("md1:{SERVICE}"));
    records.set_parameter("clients", "10, with budgets from 0.05 to 0.95 EUR");
    records.set_parameter("arrivals", "Poisson");
    for policy in ADMISSION_POLICIES
        .iter()
        .filter(|policy| !policy.protection.is_empty())
    {
        let description = [policy.protection, policy.prices]
            .join("\n")
            .replace('\n', "; ");
        records.set_parameter(policy.name, description);
    }
    records.set_parameter("deadline of a reply", DEADLINE);
    records.set_parameter("judged for", extent.times.length);
    records.set_parameter("period of a sine", extent.times.period);
}

/// Runs one policy in one scenario. `None` if stopped.
fn one(
    conditions: &Conditions<'_>,
    policy: &ComparedAdmission,
    scenario: DemandScenario,
    demand: &DemandCourse,
) -> Result<Option<Course>, Failure> {
    let law = format!("md1:{SERVICE}");
    let market = Market::open(conditions, &law, policy.protection, policy.prices)?;
    let client = |(number, hundredths): (usize, &u64)| {
        let most = Money::from_micros(hundredths * 10_000, "EUR".parse()?);
        let most = most.filter(|_| policy.has_price());
        let pace = demand.pace(CAPACITY, BUDGETS.len())?;
        let mut plan = market.client(number as u64, most, pace, conditions.seed);
        if let Some(buying) = &mut plan.buying {
            buying.ask_every = scenario.kind.ask_every();
        }
        Ok::<Plan, Failure>(plan)
    };
    let clients = BUDGETS.iter().enumerate().map(client);
    let clients = clients.collect::<Result<Vec<_>, _>>()?;
    market.run(&clients, LOOK, conditions.stop)
}

fn row(
    policy: &ComparedAdmission,
    scenario: DemandScenario,
    times: &PhaseLengths,
    demand: &DemandCourse,
    runs: &[Run],
    samples: &[PriceSample],
) -> Vec<RecordValue> {
    let mut good = Histogram::new();
    let (mut served, mut intended, mut outcomes) = (0, 0, Outcomes::default());
    let (mut quoted, mut quoted_refused) = (0, 0);
    for run in runs {
        intended += run.intended;
        outcomes += run.outcomes;
        quoted += run.quotes.used;
        quoted_refused += run.quotes.refused;
        for judged in run.steps.iter().rev().take(demand.judged) {
            good.merge(judged.part.responses.ok());
            served += judged.part.served;
        }
    }
    let paid: f64 = samples.windows(2).fold(0.0, |paid, pair| {
        paid + pair[1].price * (pair[1].entered - pair[0].entered)
    });
    let late = good.count_above(DEADLINE) as f64 / good.count().max(1) as f64;
    let in_time = served as f64 * (1.0 - late);
    let count = samples.len().max(1) as f64;
    let price = samples.iter().map(|now| now.price).sum::<f64>() / count;
    let variance = samples
        .iter()
        .map(|now| (now.price - price).powi(2))
        .sum::<f64>()
        / count;
    let ask_every = scenario.kind.ask_every().unwrap_or_default();
    vec![
        policy.name.into(),
        scenario.kind.name().into(),
        scenario.most.into(),
        ask_every.as_secs_f64().into(),
        (in_time / demand.possible() / CAPACITY).into(),
        (good.summary().p99).into(),
        (paid / times.length.as_secs_f64()).into(),
        price.into(),
        variance.sqrt().into(),
        (samples.len() as u64).into(),
        intended.into(),
        outcomes.total().into(),
        outcomes[Outcome::StatusError].into(),
        outcomes[Outcome::Declined].into(),
        quoted.into(),
        quoted_refused.into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_study;

    #[test]
    fn a_tiny_study_accounts_for_every_request_behind_every_guard() {
        let extent = PricesExtent {
            steps: &[3.0],
            sines: &[3.0],
            asks: &[0.05],
            old: &[3.0],
            times: PhaseLengths {
                before: Span::from_millis(100),
                life: Span::from_millis(100),
                length: Span::from_millis(200),
                period: Span::from_millis(200),
            },
            old_length: Span::from_millis(200),
        };
        let records = test_study::run(None, |conditions| study(conditions, &extent));
        let rows: Vec<_> = records.table("runs").rows().collect();
        assert_eq!(rows.len(), 1 + 2 * ADMISSION_POLICIES.len() + 3);
        assert!(records.table("course").rows().count() >= 3);
        for row in rows {
            assert!(row.number("intended") > 0.0);
            assert_eq!(
                row.number("intended"),
                row.number("outcomes"),
                "{}",
                row.text("guard")
            );
        }
    }
}
