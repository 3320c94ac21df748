//! A shop that is asked for more than it can do, behind each kind of protection: how much is done, for whom, how quickly.
//!
//! Ten clients with budgets from 0.05 to 0.95 EUR, as many requests from each. Before prices can act, demand steps up; what is
//! judged begins one quote's life later.

use posthaste_load::{Arrivals, Outcomes, Pace, Plan, Run, Step};
use posthaste_stats::Histogram;
use posthaste_units::{Rate, Span};
use posthaste_wsqos::qos::Money;

use super::market::{Course, Market, Seen};
use crate::figure::{Conditions, Failure, Study};
use crate::records::{Records, Table, Value};

pub(super) static STUDY: Study = Study {
    name: "wsqos-prices",
    run: |conditions| study(conditions, &Case::of(conditions.full)),
};

/// Who is let in: its name, the keys of `[protection]`, and those of `[prices]`.
pub(super) struct Guard {
    pub(super) name: &'static str,
    protection: &'static str,
    prices: &'static str,
}

/// In the order in which they are drawn. The thesis's half minute is a second here, and its pause between two steps a sixth.
pub(super) const GUARDS: [Guard; 6] = [
    Guard {
        name: "none",
        protection: "policy = \"none\"",
        prices: "",
    },
    Guard {
        name: "rate",
        protection: "policy = \"rate\"\nrate = \"475/s\"",
        prices: "",
    },
    Guard {
        name: "limit",
        protection: "policy = \"limit\"",
        prices: "",
    },
    Guard {
        name: "steps",
        protection: "policy = \"prices\"",
        prices: "every = \"50ms\"\nlife = \"500ms\"\nrate = \"20/s\"\nmost_rate = \"20/s\"\ncontroller = { policy = \"steps\", window = \"1s\", period = \"167ms\" }",
    },
    Guard {
        name: "proportional-integral",
        // To fill the server rather than to spare it.
        protection: "policy = \"prices\"\nmost = 16",
        prices: "every = \"50ms\"\nlife = \"500ms\"\nrate = \"20/s\"\nmost_rate = \"20/s\"\ncontroller = { policy = \"proportional-integral\", target = \"97%\", band = \"1%\", delay = \"20ms\" }",
    },
    Guard {
        name: "rajomon",
        protection: "policy = \"prices\"",
        prices: "every = \"10ms\"\nlife = \"500ms\"\nrate = \"20/s\"\nmost_rate = \"20/s\"\ncontroller = { policy = \"rajomon\" }",
    },
];

/// One request: 500 a second can be done.
const SERVICE: Span = Span::from_millis(2);
/// What can be done in a second.
pub(super) const CAPACITY: f64 = 500.0;
/// What clients pay at most, in hundredths.
const BUDGETS: [u64; 10] = [5, 15, 25, 35, 45, 55, 65, 75, 85, 95];
/// Demand that can be served.
pub(super) const EASY: f64 = 0.8;
/// How often the price is looked at.
const LOOK: Span = Span::from_millis(20);

/// How much, and how long.
pub(super) struct Case {
    /// Demand as multiples of what can be done.
    pub(super) demands: &'static [f64],
    before: Span,
    /// A quote's life, and some more until the last reply that was let in before has come.
    life: Span,
    length: Span,
}

impl Case {
    const fn of(full: bool) -> Self {
        match full {
            true => Self {
                demands: &[1.4, 2.0, 5.0],
                before: Span::from_secs(2),
                life: Span::from_secs(1),
                length: Span::from_secs(8),
            },
            false => Self {
                demands: &[2.0, 5.0],
                before: Span::from_millis(500),
                life: Span::from_millis(750),
                length: Span::from_millis(1500),
            },
        }
    }
}

pub(super) fn study(conditions: &Conditions<'_>, case: &Case) -> Result<Records, Failure> {
    let mut records = Records::new();
    records.set_parameter("service", format!("md1:{SERVICE}"));
    records.set_parameter("clients", "10, with budgets from 0.05 to 0.95 EUR");
    records.set_parameter("arrivals", "Poisson");
    records.set_parameter("judged for", case.length);
    let mut table = Table::new([
        "guard",
        "demand",
        "goodput",
        "p99_ms",
        "revenue_per_s",
        "price",
        "price_deviation",
        "intended",
        "outcomes",
        "quoted",
        "quoted_refused",
    ]);
    let total = (GUARDS.len() * case.demands.len()) as u64 + 1;
    let overloaded = GUARDS
        .iter()
        .flat_map(|guard| case.demands.iter().map(move |demand| (guard, *demand)));
    let all = std::iter::once((&GUARDS[0], EASY)).chain(overloaded);
    for (done, (guard, demand)) in all.enumerate() {
        let words = format!("{}, {demand} times what can be done", guard.name);
        conditions.progress.step(done as u64, total, &words);
        match one(conditions, case, guard, demand)? {
            Some(row) => table.push(row),
            None => break,
        }
    }
    records.set_table("runs", table);
    Ok(records)
}

/// One guard at one demand; `None` when it was stopped.
fn one(
    conditions: &Conditions<'_>,
    case: &Case,
    guard: &Guard,
    demand: f64,
) -> Result<Option<Vec<Value>>, Failure> {
    let market = Market::open(
        conditions,
        &format!("md1:{SERVICE}"),
        guard.protection,
        guard.prices,
    )?;
    let has_price = !guard.prices.is_empty();
    let client = |(number, hundredths): (usize, &u64)| {
        let most = Money::from_micros(hundredths * 10_000, "EUR".parse()?);
        let most = most.filter(|_| has_price);
        Ok::<Plan, Failure>(market.client(
            number as u64,
            most,
            pace(case, demand)?,
            conditions.seed,
        ))
    };
    let clients = BUDGETS.iter().enumerate().map(client);
    let clients = clients.collect::<Result<Vec<_>, _>>()?;
    let Some(Course { runs, seen }) = market.run(&clients, LOOK, conditions.stop)? else {
        return Ok(None);
    };
    let judged = (case.before + case.life).as_secs_f64();
    let seen: Vec<Seen> = seen.into_iter().filter(|now| now.at >= judged).collect();
    Ok(Some(row(case, guard, demand, &runs, &seen)))
}

fn row(case: &Case, guard: &Guard, demand: f64, runs: &[Run], seen: &[Seen]) -> Vec<Value> {
    let mut good = Histogram::new();
    let (mut served, mut intended, mut outcomes) = (0, 0, Outcomes::default());
    let (mut quoted, mut quoted_refused) = (0, 0);
    for run in runs {
        intended += run.intended;
        outcomes += run.outcomes;
        quoted += run.quotes.used;
        quoted_refused += run.quotes.refused;
        // The last step is what is judged.
        if let Some(judged) = run.steps.last() {
            good.merge(&judged.part.ok);
            served += judged.part.served;
        }
    }
    let length = case.length.as_secs_f64();
    let paid: f64 = seen.windows(2).fold(0.0, |paid, pair| {
        paid + pair[1].price * (pair[1].entered - pair[0].entered)
    });
    let count = seen.len().max(1) as f64;
    let price = seen.iter().map(|now| now.price).sum::<f64>() / count;
    let variance = seen
        .iter()
        .map(|now| (now.price - price).powi(2))
        .sum::<f64>()
        / count;
    vec![
        guard.name.into(),
        demand.into(),
        (served as f64 / length / CAPACITY).into(),
        (good.summary().p99).into(),
        (paid / length).into(),
        price.into(),
        variance.sqrt().into(),
        intended.into(),
        outcomes.total().into(),
        quoted.into(),
        quoted_refused.into(),
    ]
}

/// A client's part of a demand that can be served, then of more, of which the first is not judged.
fn pace(case: &Case, demand: f64) -> Result<Pace, Failure> {
    let step = |demand: f64, length| {
        let rate = Rate::per_second(demand * CAPACITY / BUDGETS.len() as f64);
        rate.map(|rate| Step::steady(rate, length)).ok_or("no rate")
    };
    Ok(Pace::Open {
        arrivals: Arrivals::Poisson,
        steps: vec![
            step(EASY.min(demand), case.before)?,
            step(demand, case.life)?,
            step(demand, case.length)?,
        ],
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::lab::Lab;

    #[test]
    fn a_tiny_study_accounts_for_every_request_behind_every_guard() {
        let lab = Lab::Shared("a test".to_owned());
        let stop = AtomicBool::new(false);
        let case = Case {
            demands: &[3.0],
            before: Span::from_millis(100),
            life: Span::from_millis(100),
            length: Span::from_millis(200),
        };
        let records = study(&Conditions::of_a_test(&lab, &stop), &case).unwrap();
        let rows: Vec<_> = records.table("runs").rows().collect();
        assert_eq!(rows.len(), 1 + GUARDS.len());
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
