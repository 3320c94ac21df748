//! The thesis's adaptive offers: four clients with budgets, and a price that follows the load in steps.
//!
//! The thesis's twenty minutes run sixty times as fast: all times of the controller are a sixtieth, and one minute of
//! the thesis takes one second. Rates are ten times the thesis's, so that a second has enough requests for a mean.

use posthaste_load::{Arrivals, Pace, RateStep};
use posthaste_qos::Money;
use posthaste_study::{Conditions, Failure, Needs, RecordTable, Records, Study};
use posthaste_units::{Rate, Span};

use super::market::{Course, Market};

pub(super) static STUDY: Study = Study {
    name: "wsqos-adaptive",
    needs: Needs::Time,
    core: false,
    run: |conditions| study(conditions, &AdaptiveExtent::new(conditions.full)),
};

/// Seconds of the thesis per second here.
pub(super) const SCALE: f64 = 60.0;
/// Maximum price and start of each client, in the thesis's minutes.
pub(super) const CLIENTS: [(&str, f64); 4] = [
    ("0.10 EUR", 0.0),
    ("0.40 EUR", 0.5),
    ("0.50 EUR", 1.0),
    ("0.70 EUR", 1.5),
];
/// Rate of each client, ten times the thesis's 15 a second.
const RATE: f64 = 150.0;
/// Service time of a request. Four clients use 92 % of the capacity; the thesis's used more than 80 %.
const SERVICE: Span = Span::from_micros(1530);
/// Window of the mean load, in seconds: the thesis's 30 s.
pub(super) const WINDOW: f64 = 30.0 / SCALE;
/// Interval between samples of the price.
const LOOK: Span = Span::from_millis(25);

/// Times of the course, in the thesis's minutes.
pub(super) struct AdaptiveExtent {
    /// End of all clients but the last, the one with the highest budget.
    pub(super) falls: f64,
    pub(super) end: f64,
}

impl AdaptiveExtent {
    const fn new(full: bool) -> Self {
        if full {
            Self {
                falls: 20.0,
                end: 24.0,
            }
        } else {
            Self {
                falls: 9.0,
                end: 13.0,
            }
        }
    }
}

pub(super) fn study(
    conditions: &Conditions<'_>,
    extent: &AdaptiveExtent,
) -> Result<Records, Failure> {
    let mut records = Records::new();
    let controller = "{ policy = \"steps\", window = \"500ms\", period = \"83ms\" }";
    records.set_parameter("time", format!("{SCALE} times as fast as the thesis"));
    records.set_parameter("clients", CLIENTS.map(|(most, _)| most).join(", "));
    records.set_parameter("rate of a client", format!("{RATE}/s"));
    records.set_parameter("service", format!("md1:{SERVICE}"));
    records.set_parameter("controller", controller);
    records.set_number("falls", extent.falls);
    let mut table = RecordTable::new(["minute", "price", "load"]);
    let mut ends = RecordTable::new([
        "client",
        "intended",
        "ok",
        "declined",
        "status-error",
        "outcomes",
    ]);
    // The concurrency limit is out of reach. Only the price protects, as in the thesis.
    let protection = "policy = \"prices\"\nleast = 10000\nmost = 10000";
    let prices = format!("every = \"20ms\"\ncontroller = {controller}");
    let market = Market::open(conditions, &format!("md1:{SERVICE}"), protection, &prices)?;
    let clients = CLIENTS.iter().enumerate().map(|(number, (most, begins))| {
        let is_last = number + 1 == CLIENTS.len();
        let ends = if is_last { extent.end } else { extent.falls };
        let pace = pace(*begins, ends, extent.end)?;
        let most: Money = most.parse()?;
        Ok::<_, Failure>(market.client(number as u64, Some(most), pace, conditions.seed))
    });
    let clients = clients.collect::<Result<Vec<_>, _>>()?;
    conditions.progress.step(0, 1, "four clients, 13 s or 24");
    if let Some(Course { runs, samples }) = market.run(&clients, LOOK, conditions.stop)? {
        let busy = SERVICE.as_secs_f64();
        for now in &samples {
            // Mean load of the window that ends here.
            let Some(then) = samples.iter().find(|then| then.at >= now.at - WINDOW) else {
                continue;
            };
            let passed = now.at - then.at;
            if passed < WINDOW / 2.0 {
                continue;
            }
            let load = (now.entered - then.entered) * busy / passed;
            table.push([
                (now.at * SCALE / 60.0).into(),
                now.price.into(),
                load.into(),
            ]);
        }
        for ((most, _), run) in CLIENTS.iter().zip(&runs) {
            use posthaste_load::Outcome;
            let count = |outcome| run.outcomes[outcome];
            ends.push([
                (*most).into(),
                run.intended.into(),
                count(Outcome::Ok).into(),
                count(Outcome::Declined).into(),
                count(Outcome::StatusError).into(),
                run.outcomes.total().into(),
            ]);
        }
    }
    records.set_table("course", table);
    records.set_table("clients", ends);
    Ok(records)
}

/// Pace of a client: no requests until it begins, its rate until it ends, then none until the end of the run. In the
/// thesis's minutes.
fn pace(begins: f64, ends: f64, end: f64) -> Result<Pace, Failure> {
    let rate = Rate::per_second(RATE).ok_or("no rate")?;
    let stretch =
        |rate, minutes: f64| RateStep::steady(rate, Span::from_secs_f64(minutes * 60.0 / SCALE));
    let none = Rate::default();
    let steps = [(none, begins), (rate, ends - begins), (none, end - ends)];
    let steps = steps.into_iter().filter(|(_, minutes)| *minutes > 0.0);
    Ok(Pace::Open {
        arrivals: Arrivals::Poisson,
        steps: steps
            .map(|(rate, minutes)| stretch(rate, minutes))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pricing::adaptive_plots::accounted;
    use crate::test_study;

    #[test]
    fn a_tiny_study_accounts_for_every_request_and_every_step() {
        let extent = AdaptiveExtent {
            falls: 1.8,
            end: 2.0,
        };
        let records = test_study::run(None, |conditions| study(conditions, &extent));
        for check in accounted(&records) {
            assert!(check.holds || !check.fails_the_run(), "{}", check.sentence);
        }
    }
}
