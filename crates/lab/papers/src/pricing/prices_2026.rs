//! wsqos/prices-2026: admission policies for a server with more demand than capacity.

use posthaste_draw::{Axis, Bar, Bars, Chart, Group, Point, Series, Shape, Unit};
use posthaste_study::{Check, Figure, NOISE, Plot, RecordRow, Records, least};
use posthaste_units::Span;

use super::demand_course::EASY;
use super::prices::{ADMISSION_POLICIES, CAPACITY, ComparedAdmission, STUDY};
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/prices-2026",
    title: "what protects a server that gets more requests than it can serve",
    claim: "Beyond the thesis: with prices that follow a fast signal, an overloaded server keeps working at its capacity. It serves the clients that value it most, and response times stay short.",
    paper: THESIS,
    budget: Span::from_secs(100),
    study: &STUDY,
    plot,
    checks,
    differs: include_str!("prices_2026.md").trim_ascii(),
};

/// A quantity of the pictures: column, title, axis and unit.
type Quantity = (&'static str, &'static str, &'static str, Unit);
const GOODPUT: Quantity = (
    "goodput",
    "Requests answered within 100 ms",
    "of what can be done",
    Unit::Share,
);
const P99: Quantity = (
    "p99_ms",
    "Response time of complete replies",
    "p99",
    Unit::Millis,
);
const REVENUE: Quantity = ("revenue_per_s", "Revenue", "EUR a second", Unit::Count);
const DEVIATION: Quantity = (
    "price_deviation",
    "How much the price varies",
    "standard deviation, EUR",
    Unit::Count,
);

/// Minimum number of samples of a price.
const LOOKS: f64 = 20.0;

/// A scenario: runs that differ by their admission policy alone.
struct ComparedScenario {
    label: String,
    kind: &'static str,
    most: f64,
    ask_every: f64,
}

fn plot(records: &Records) -> Vec<Plot> {
    let [step, sine] = ["step", "sine"].map(|kind| scenarios(records, kind));
    let mut old = scenarios(records, "old");
    let followed: Vec<ComparedScenario> = scenarios(records, "step")
        .into_iter()
        .filter(|step| old.iter().any(|old| old.most == step.most))
        .collect();
    old.extend(followed);
    old.sort_by(|a, b| {
        let ages = a.ask_every.total_cmp(&b.ask_every);
        a.most.total_cmp(&b.most).then(ages)
    });
    let bars = |quantity: &Quantity, suffix: &str, scenarios: &[ComparedScenario]| {
        bars(records, quantity, suffix, scenarios)
    };
    vec![
        bars(&GOODPUT, "", &step),
        bars(&P99, "", &step),
        bars(&REVENUE, "", &step),
        bars(&DEVIATION, "", &step),
        bars(&GOODPUT, ", demand swinging", &sine),
        bars(&P99, ", demand swinging", &sine),
        course(records),
        bars(&GOODPUT, ", prices being old", &old),
        bars(&DEVIATION, ", prices being old", &old),
    ]
}

/// One bar for each measured policy.
fn bars(
    records: &Records,
    quantity: &Quantity,
    suffix: &str,
    scenarios: &[ComparedScenario],
) -> Plot {
    let (column, title, axis, unit) = *quantity;
    let mut axis = Axis::linear(axis, unit);
    if column == P99.0 {
        // Without protection, waits are so long that they would hide the others.
        let protected = ADMISSION_POLICIES
            .iter()
            .filter(|policy| policy.name != "none");
        let worst = protected.flat_map(|policy| {
            scenarios
                .iter()
                .map(|scenario| value_of(records, policy.name, scenario, column))
        });
        axis = axis.range(0.0, 1.2 * worst.fold(1.0, f64::max));
    }
    let groups = scenarios.iter().map(|scenario| {
        let bar = |policy: &ComparedAdmission| {
            let value = value_of(records, policy.name, scenario, column);
            value.is_finite().then(|| Bar::single(policy.name, value))
        };
        Group {
            label: scenario.label.clone(),
            bars: ADMISSION_POLICIES.iter().filter_map(bar).collect(),
        }
    });
    Plot::Bars(Bars {
        title: format!("{title}{suffix}"),
        value: axis,
        groups: groups.collect(),
        ..Bars::default()
    })
}

/// Prices and demand while demand swings to the maximum.
fn course(records: &Records) -> Plot {
    let most = scenarios(records, "sine")
        .pop()
        .map_or(0.0, |scenario| scenario.most);
    let rows = |policy: &'static str| {
        let rows = records.table("course").rows();
        rows.filter(move |row| row.text("guard") == policy && row.number("demand") == most)
    };
    let line = |policy: &'static str, name: String, column: &'static str, part: f64| {
        let point =
            move |row: RecordRow<'_>| Point::new(row.number("second"), row.number(column) / part);
        Series::line(name, rows(policy).map(point).collect::<Vec<_>>())
    };
    let priced = ADMISSION_POLICIES
        .iter()
        .filter(|policy| policy.has_price());
    let mut series: Vec<Series> = priced
        .map(|policy| line(policy.name, policy.name.to_owned(), "price", 1.0).shape(Shape::Steps))
        .collect();
    let demand = format!("demand, 1 being {most} times what can be done");
    series.push(line(PRICED, demand, "asked", most));
    let x = Axis::linear("seconds", Unit::Count);
    let y = Axis::linear("price in EUR, demand as a share", Unit::Count).range(0.0, 1.1);
    let mut chart = Chart::new("Prices while demand swings", x, y);
    chart.series = series;
    Plot::Chart(chart)
}

/// Scenarios of a kind with more demand than capacity, by demand.
fn scenarios(records: &Records, kind: &'static str) -> Vec<ComparedScenario> {
    let mut scenarios: Vec<ComparedScenario> = Vec::new();
    for row in records.table("runs").rows() {
        let (most, ask_every) = (row.number("demand"), row.number("ask_every_s"));
        let is_known =
            |scenario: &ComparedScenario| scenario.most == most && scenario.ask_every == ask_every;
        if row.text("kind") != kind || most <= EASY || scenarios.iter().any(is_known) {
            continue;
        }
        let label = match kind {
            "sine" => format!("up to {most} times"),
            "old" => format!("{most} times, up to {ask_every} s old"),
            _ => format!("{most} times"),
        };
        scenarios.push(ComparedScenario {
            label,
            kind,
            most,
            ask_every,
        });
    }
    scenarios
}

fn value_of(records: &Records, policy: &str, scenario: &ComparedScenario, column: &str) -> f64 {
    let mut rows = records.table("runs").rows();
    let row = rows.find(|row| {
        row.text("guard") == policy
            && row.text("kind") == scenario.kind
            && row.number("demand") == scenario.most
            && row.number("ask_every_s") == scenario.ask_every
    });
    row.map_or(f64::NAN, |row| row.number(column))
}

/// The controller that the goals are about.
const PRICED: &str = "proportional-integral";

/// The answer of this run: the useful work of each policy at the highest demand.
pub(crate) fn answer(records: &Records) -> String {
    let Some(scenario) = scenarios(records, "step").pop() else {
        return String::new();
    };
    let [none, steps, limit, ours] = ["none", "steps", "limit", PRICED]
        .map(|policy| 100.0 * value_of(records, policy, &scenario, "goodput"));
    format!(
        "At {} times what can be done, prices as in the thesis let {steps:.0} % of what can be done be answered in time, prices that follow a fast signal {ours:.0} %, a plain limit {limit:.0} %, no protection {none:.0} %.",
        scenario.most
    )
}

fn checks(records: &Records) -> Vec<Check> {
    let rows: Vec<RecordRow<'_>> = records.table("runs").rows().collect();
    let sum = |column: &str| rows.iter().map(|row| row.number(column)).sum::<f64>();
    let intended = sum("intended");
    let mut checks = vec![
        Check::instrument(
            intended > 0.0 && intended == sum("outcomes"),
            format!("Each of {intended:.0} intended requests has one outcome."),
        ),
        Check::instrument(
            sum("quoted_refused") == 0.0 && sum("quoted") > 0.0,
            format!(
                "Of {:.0} requests with a quote {:.0} were refused.",
                sum("quoted"),
                sum("quoted_refused")
            ),
        ),
    ];
    let fewest = least(rows.iter().map(|row| row.number("looks")));
    checks.push(Check::instrument(
        fewest >= LOOKS,
        format!("The price was looked at {fewest:.0} times or more in what is judged of each run (bound: {LOOKS})."),
    ));
    let last = |kind| scenarios(records, kind).pop();
    if let Some(step) = last("step") {
        let easy = rows.iter().find(|row| row.number("demand") == EASY);
        let easy = easy.map_or(f64::NAN, |row| row.number("p99_ms"));
        checks.extend(stepped(records, &step, easy));
    }
    if let Some(sine) = last("sine") {
        checks.push(swung(records, &sine));
    }
    if let (Some(step), Some(old)) = (last("step"), last("old")) {
        checks.push(aged(records, &step, &old));
    }
    checks
}

/// Goals for a step of demand. `easy` is the p99 without protection for a demand that can be served.
fn stepped(records: &Records, scenario: &ComparedScenario, easy: f64) -> [Check; 3] {
    let [goodput, p99] =
        ["goodput", "p99_ms"].map(|column| value_of(records, PRICED, scenario, column));
    let [steps, ours] = ["steps", PRICED]
        .map(|policy| value_of(records, policy, scenario, "price_deviation").powi(2));
    let most = scenario.most;
    [
        Check::goal(
            goodput >= 0.95,
            format!(
                "At {most} times what can be done, {:.0} requests a second, {PRICED} prices let {:.1} % of it be answered within 100 ms (required: 95).",
                most * CAPACITY,
                goodput * 100.0
            ),
        ).because(NOISE),
        Check::goal(
            p99 <= 2.0 * easy,
            format!(
                "Who is served has a p99 of {p99:.0} ms; at {EASY} times what can be done it is {easy:.0} without protection (required: twice that at most)."
            ),
        ).because(NOISE),
        Check::goal(
            ours <= steps / 5.0,
            format!(
                "In a steady load its price varies {:.1} times less than that of steps (variance; required: 5).",
                steps / ours.max(1e-12)
            ),
        ),
    ]
}

fn swung(records: &Records, scenario: &ComparedScenario) -> Check {
    let [ours, steps, limit] = [PRICED, "steps", "limit"]
        .map(|policy| value_of(records, policy, scenario, "goodput") * 100.0);
    Check::goal(
        ours > steps,
        format!(
            "While demand swings between {EASY} and {} times what can be done, {PRICED} prices let {ours:.1} % of what can be done of it be answered within 100 ms, those of steps {steps:.1} (required: more than steps); a limit without prices {limit:.1}.",
            scenario.most
        ),
    ).because(NOISE)
}

/// Goal for old prices, compared with prices that clients follow.
fn aged(records: &Records, followed: &ComparedScenario, old: &ComparedScenario) -> Check {
    let [ours, steps] =
        [PRICED, "steps"].map(|policy| value_of(records, policy, old, "goodput") * 100.0);
    let refused = |scenario| {
        let [refused, intended] =
            ["refused", "intended"].map(|column| value_of(records, PRICED, scenario, column));
        refused / intended * 100.0
    };
    Check::goal(
        ours >= 95.0,
        format!(
            "With clients that ask for prices every {} s only, {PRICED} prices let {ours:.1} % of what can be done be answered within 100 ms, those of steps {steps:.1} (required: 95); {:.1} % of the requests are refused with the present offer, of those who follow prices {:.1}.",
            old.ask_every,
            refused(old),
            refused(followed)
        ),
    )
}
