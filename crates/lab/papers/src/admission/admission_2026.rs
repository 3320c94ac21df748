//! wsqos/admission-2026: the same overload against several protections.

use posthaste_draw::{Axis, Bar, Bars, Group, Unit};
use posthaste_study::{
    Check, Figure, MEDIANS, MedianEstimate, NOISE, Plot, RecordRow, Records, estimate,
};
use posthaste_units::Span;

use super::competitors::{BELIEVED, BUDGETS, COMPETITORS, Competitor, NOTHING, TIERS};
use super::study::STUDY;
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/admission-2026",
    title: "what protects the important half of an overload, compared with other proxies",
    claim: "Beyond the thesis: with a protection that knows the important requests, they are served in time whatever the others send.",
    paper: THESIS,
    budget: Span::from_secs(165),
    study: &STUDY,
    plot,
    checks,
    differs: include_str!("admission_2026.md").trim_ascii(),
};

/// The competitor that the goals are about.
const PROTECTED: &str = TIERS;
/// Scenario of the goals about overload.
const OVERLOAD: &str = "5 times";
/// Scenarios of the goals about storms start with this word.
const STORM: &str = "storm";
const HOSTILE: &str = "hostile client";

/// A quantity of the pictures.
struct Quantity {
    column: &'static str,
    /// Its name at the start of a title.
    name: &'static str,
    axis: &'static str,
    unit: Unit,
    /// True if more is better.
    more: bool,
    /// True for the scenarios that it describes.
    scenarios: fn(&str) -> bool,
}

const QUANTITIES: [Quantity; 6] = [
    Quantity {
        column: "important",
        name: "Important requests answered within 200 ms",
        axis: "of the important requests",
        unit: Unit::Share,
        more: true,
        scenarios: |_| true,
    },
    Quantity {
        column: "goodput",
        name: "Requests answered within 200 ms",
        axis: "of what the shop can serve",
        unit: Unit::Share,
        more: true,
        scenarios: |_| true,
    },
    Quantity {
        column: "p99_ms",
        name: "p99 of the good replies",
        axis: "response time",
        unit: Unit::Millis,
        more: false,
        scenarios: |scenario| !is_storm(scenario),
    },
    Quantity {
        column: "others",
        name: "Requests of the other clients answered within 200 ms",
        axis: "of their requests",
        unit: Unit::Share,
        more: true,
        scenarios: |scenario| scenario == HOSTILE,
    },
    Quantity {
        column: "fairness",
        name: "Fairness of good replies to the clients",
        axis: "Jain's index",
        unit: Unit::Share,
        more: true,
        scenarios: |scenario| !is_storm(scenario),
    },
    Quantity {
        column: "recovery_s",
        name: "Time to recover after a storm",
        axis: "seconds",
        unit: Unit::Count,
        more: false,
        scenarios: is_storm,
    },
];

fn is_storm(scenario: &str) -> bool {
    scenario.starts_with(STORM)
}

fn plot(records: &Records) -> Vec<Plot> {
    let bars = QUANTITIES.iter().map(|quantity| bars(records, quantity));
    bars.chain([rejections(records)]).map(Plot::Bars).collect()
}

/// Rows that are not void.
fn valid(records: &Records) -> impl Iterator<Item = RecordRow<'_>> {
    let rows = records.table("runs").rows();
    rows.filter(|row| row.number("void") == 0.0)
}

/// Names of the scenarios of the records, in their order.
fn scenarios(records: &Records) -> Vec<&str> {
    let mut names = Vec::new();
    for row in records.table("runs").rows() {
        if !names.contains(&row.text("scenario")) {
            names.push(row.text("scenario"));
        }
    }
    names
}

/// The median of a column over the repetitions of a competitor in a scenario. NaN if it was not measured.
fn cell(records: &Records, who: &str, scenario: &str, column: &str) -> MedianEstimate {
    let rows = valid(records);
    let rows = rows.filter(|row| row.text("who") == who && row.text("scenario") == scenario);
    estimate(&rows.map(|row| row.number(column)).collect::<Vec<_>>())
}

fn bars(records: &Records, quantity: &Quantity) -> Bars {
    let all = scenarios(records);
    let shown = all.iter().filter(|scenario| (quantity.scenarios)(scenario));
    let shown: Vec<&str> = shown.copied().collect();
    let groups = shown.iter().map(|scenario| Group {
        label: (*scenario).to_owned(),
        bars: COMPETITORS
            .iter()
            .filter_map(|competitor| {
                bar(
                    competitor,
                    cell(records, competitor.name, scenario, quantity.column),
                )
            })
            .collect(),
    });
    let mut notes = vec![MEDIANS.to_owned()];
    notes.extend(absent(records));
    notes.extend(unknown(records, quantity, &shown));
    Bars {
        title: title(records, quantity, &shown),
        value: Axis::linear(quantity.axis, quantity.unit),
        groups: groups.collect(),
        notes,
    }
}

fn bar(competitor: &Competitor, value: MedianEstimate) -> Option<Bar> {
    value.median.is_finite().then(|| Bar {
        interval: value.high.is_finite().then_some((value.low, value.high)),
        ..Bar::single(competitor.name, value.median)
    })
}

/// The finding of a picture: the best competitor and the gateway in the scenario that decides.
fn title(records: &Records, quantity: &Quantity, shown: &[&str]) -> String {
    let decides = [OVERLOAD, HOSTILE];
    let scenario = decides.iter().find(|name| shown.contains(name));
    let Some(scenario) = scenario.copied().or(shown.first().copied()) else {
        return quantity.name.to_owned();
    };
    let value = |who: &str| cell(records, who, scenario, quantity.column).median;
    let all = best(records, quantity, scenario);
    let Some(first) = all.first() else {
        return format!("{}: not measured", quantity.name);
    };
    // Of several with the same value, the gateway is named.
    let best = if all.contains(&PROTECTED) {
        PROTECTED
    } else {
        first
    };
    let alike = match all.len() {
        1 => String::new(),
        count => format!(", like {} more,", count - 1),
    };
    let labels = |who: &str| format!("{who} {}", in_words(quantity, value(who)));
    let [first, ours, none] = [best, PROTECTED, NOTHING].map(labels);
    let ours = if best == PROTECTED {
        String::new()
    } else {
        format!("{ours}, ")
    };
    format!(
        "{}, {scenario}: {first}{alike} is best, {ours}{none}",
        quantity.name
    )
}

/// Names of the competitors with the best value. Empty if nothing is known.
fn best(records: &Records, quantity: &Quantity, scenario: &str) -> Vec<&'static str> {
    let values = COMPETITORS.iter().map(|competitor| {
        let value = cell(records, competitor.name, scenario, quantity.column).median;
        (competitor.name, if quantity.more { value } else { -value })
    });
    let known: Vec<(&str, f64)> = values.filter(|(_, value)| value.is_finite()).collect();
    let best = known.iter().map(|(_, value)| *value).reduce(f64::max);
    let is_best = |(_, value): &&(&str, f64)| Some(*value) == best;
    known
        .iter()
        .filter(is_best)
        .map(|(name, _)| *name)
        .collect()
}

fn in_words(quantity: &Quantity, value: f64) -> String {
    match quantity.unit {
        _ if value.is_nan() => "was not measured".to_owned(),
        _ if value.is_infinite() => "without an end in the time observed".to_owned(),
        Unit::Share if quantity.column == "fairness" => format!("{value:.3}"),
        Unit::Share => format!("{:.1} %", 100.0 * value),
        Unit::Millis => format!("{value:.0} ms"),
        _ => format!("{value:.2} s"),
    }
}

/// Note about competitors that are not installed.
fn absent(records: &Records) -> Option<String> {
    let absent = records.parameters().get("not installed")?;
    (absent != "none").then(|| format!("Not installed and not measured: {absent}."))
}

/// Note about competitors with a value that no bar can show.
fn unknown(records: &Records, quantity: &Quantity, shown: &[&str]) -> Option<String> {
    let names: Vec<String> = shown
        .iter()
        .flat_map(|scenario| {
            let competitors = COMPETITORS.iter();
            let endless = competitors.filter(|competitor| {
                cell(records, competitor.name, scenario, quantity.column)
                    .median
                    .is_infinite()
            });
            endless.map(move |competitor| format!("{} ({scenario})", competitor.name))
        })
        .collect();
    (!names.is_empty()).then(|| format!("No end in the time observed: {}.", names.join("; ")))
}

/// Scenarios of constant load, by load.
fn constant(records: &Records) -> Vec<(&str, f64)> {
    let mut loads: Vec<(&str, f64)> = Vec::new();
    for row in records.table("runs").rows() {
        let scenario = row.text("scenario");
        let is_known = loads.iter().any(|(name, _)| *name == scenario);
        if scenario.ends_with(" times") && !scenario.starts_with("sine") && !is_known {
            loads.push((scenario, row.number("load")));
        }
    }
    loads.sort_by(|a, b| a.1.total_cmp(&b.1));
    loads
}

/// Microseconds of the proxy's CPU time for a rejection: the difference between the lowest and the highest load.
fn rejection_us(records: &Records, who: &str) -> f64 {
    let loads = constant(records);
    let (Some((low, _)), Some((high, _))) = (loads.first(), loads.last()) else {
        return f64::NAN;
    };
    let difference = |column| {
        let [low, high] = [low, high].map(|scenario| cell(records, who, scenario, column).median);
        high - low
    };
    let rejections = difference("rejected");
    if rejections > 0.0 {
        1e6 * difference("cpu_s") / rejections
    } else {
        f64::NAN
    }
}

fn rejections(records: &Records) -> Bars {
    let costs: Vec<(&str, f64)> = COMPETITORS
        .iter()
        .map(|competitor| (competitor.name, rejection_us(records, competitor.name)))
        .filter(|(_, cost)| cost.is_finite())
        .collect();
    let least = costs.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let ours = rejection_us(records, PROTECTED);
    let title = match least {
        Some((name, cost)) => format!(
            "CPU time of a rejection: {name} {cost:.0} µs is best, {PROTECTED} {ours:.0} µs"
        ),
        None => "CPU time of a rejection: not measured".to_owned(),
    };
    let group = Group {
        label: "each further rejection".to_owned(),
        bars: costs
            .iter()
            .map(|(name, cost)| Bar::single(*name, *cost))
            .collect(),
    };
    Bars {
        title,
        value: Axis::linear("CPU time of the proxy in µs", Unit::Count),
        groups: vec![group],
        notes: absent(records).into_iter().collect(),
    }
}

fn checks(records: &Records) -> Vec<Check> {
    let rows: Vec<RecordRow<'_>> = records.table("runs").rows().collect();
    let sum = |column: &str| rows.iter().map(|row| row.number(column)).sum::<f64>();
    let intended = sum("intended");
    let identical = rows
        .iter()
        .all(|row| row.number("intended") == row.number("outcomes"));
    let mut checks = vec![
        Check::instrument(
            intended > 0.0 && identical,
            format!("Each of {intended:.0} intended requests has one outcome."),
        ),
        void(records, &rows),
    ];
    let all = scenarios(records);
    if all.contains(&OVERLOAD) {
        checks.extend(overloaded(records));
    }
    let storms = all.iter().filter(|scenario| is_storm(scenario));
    checks.extend(storms.map(|scenario| recovered(records, scenario)));
    if all.contains(&HOSTILE) {
        checks.extend([shared(records), paid(records)]);
    }
    checks
}

/// Check that something remains of each competitor in each scenario without the void runs.
fn void(records: &Records, rows: &[RecordRow<'_>]) -> Check {
    let void = rows.iter().filter(|row| row.number("void") != 0.0).count();
    let remains = rows.iter().all(|row| {
        cell(records, row.text("who"), row.text("scenario"), "goodput")
            .median
            .is_finite()
    });
    Check::instrument(
        remains && !rows.is_empty(),
        format!(
            "Of {} runs {void} are void, because a generator was the limit; each competitor has another one in each scenario.",
            rows.len()
        ),
    )
}

/// A share in words.
fn percent(share: f64) -> String {
    if share.is_nan() {
        return "an unknown share".to_owned();
    }
    format!("{:.1} %", 100.0 * share)
}

/// The reason of a goal that is not reached: `reason`, unless nothing is known.
fn because(value: f64, reason: &'static str) -> &'static str {
    if value.is_nan() {
        return "every run is void or absent.";
    }
    reason
}

/// Goals at five times the capacity.
fn overloaded(records: &Records) -> [Check; 3] {
    let value = |who: &str, column: &str| cell(records, who, OVERLOAD, column);
    let [important, goodput] = ["important", "goodput"].map(|column| value(PROTECTED, column));
    let peers = COMPETITORS
        .iter()
        .filter(|competitor| !competitor.is_ours());
    let peers = peers.map(|peer| (peer.name, value(peer.name, "important")));
    let known = peers.filter(|(_, value)| value.median.is_finite());
    let best = known.max_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let beside = match best {
        Some((name, best)) => Check::goal(
            important.high >= best.low,
            format!(
                "Of the important requests {PROTECTED} answers {} within 200 ms, the best other proxy, {name}, {} (required: no less, but for the scatter of the runs).",
                percent(important.median),
                percent(best.median)
            ),
        )
        .because(because(important.median, UNSERVED)),
        None => Check::goal(false, "No other proxy was measured.")
            .because("each is absent, or its runs are void."),
    };
    [
        Check::goal(
            important.median >= 0.98,
            format!(
                "At {OVERLOAD} the capacity, {PROTECTED} answers {} of the important requests within 200 ms (required: 98 %).",
                percent(important.median)
            ),
        )
        .because(because(important.median, UNSERVED)),
        beside,
        Check::goal(
            goodput.median >= 0.95,
            format!(
                "At {OVERLOAD} the capacity, {PROTECTED} lets {} of it be answered within 200 ms (required: 95 %).",
                percent(goodput.median)
            ),
        )
        .because(because(goodput.median, NOISE)),
    ]
}

/// Reason for goals that are not reached although the important requests are known.
const UNSERVED: &str = "others were served in their place.";

fn recovered(records: &Records, scenario: &str) -> Check {
    let [ours, none] =
        [PROTECTED, NOTHING].map(|who| cell(records, who, scenario, "recovery_s").median);
    let duration = |seconds: f64| match seconds {
        seconds if seconds.is_nan() => "an unknown time".to_owned(),
        seconds if seconds.is_finite() => format!("{seconds:.2} s"),
        _ => "more than the time observed".to_owned(),
    };
    Check::goal(
        ours <= 5.0,
        format!(
            "After a {scenario}, 99 % of the requests meet 200 ms again after {} with {PROTECTED} (required: 5 s), and {} with {NOTHING}.",
            duration(ours),
            duration(none)
        ),
    )
    .because(because(ours, NOISE))
}

/// Reason for requests of the other clients that are lost next to a hostile one. Within a tier, clients take turns.
const BURSTS: &str = "a burst of requests of one client waits for the turns of that client.";

fn shared(records: &Records) -> Check {
    let [ours, none] = [PROTECTED, NOTHING].map(|who| cell(records, who, HOSTILE, "others").median);
    Check::goal(
        ours >= 0.97,
        format!(
            "Next to a client with ten times their load, {} of the requests of the other clients are answered within 200 ms with {PROTECTED} (required: 97 %), {} with {NOTHING}.",
            percent(ours),
            percent(none)
        ),
    )
    .because(because(ours, BURSTS))
}

/// Goal of the budgets: a client that states any price takes less from the others if it has to pay.
fn paid(records: &Records) -> Check {
    let [paid, believed] = [BUDGETS, BELIEVED].map(|who| cell(records, who, HOSTILE, "others"));
    Check::goal(
        paid.low > believed.high,
        format!(
            "Next to a client that states any price, {} of the requests of the other clients are answered within 200 ms with {BUDGETS}, {} with {BELIEVED} (required: more with budgets, beyond the scatter of the runs).",
            percent(paid.median),
            percent(believed.median)
        ),
    )
    .because(because(
        paid.median + believed.median,
        "a client that can pay is served in their place.",
    ))
}

#[cfg(test)]
mod tests {
    use posthaste_study::RecordTable;

    use super::*;

    /// Records of two competitors at two loads. The second repetition of the gateway is void.
    fn records() -> Records {
        let mut runs = RecordTable::new([
            "who",
            "scenario",
            "load",
            "void",
            "important",
            "goodput",
            "rejected",
            "cpu_s",
            "intended",
            "outcomes",
        ]);
        let haproxy = COMPETITORS[4].name;
        for (who, scenario, load, void, important, rejected, cpu) in [
            (TIERS, "2 times", 2.0, 0.0, 0.5, 200.0, 0.10),
            (TIERS, "5 times", 5.0, 0.0, 0.2, 800.0, 0.13),
            (TIERS, "5 times", 5.0, 1.0, 0.0, 800.0, 9.0),
            (haproxy, "2 times", 2.0, 0.0, 1.0, 200.0, 0.10),
            (haproxy, "5 times", 5.0, 0.0, 0.99, 800.0, 0.11),
        ] {
            let numbers = [load, void, important, 0.97, rejected, cpu, 10.0, 10.0];
            let numbers = numbers.into_iter().map(Into::into);
            runs.push([who.into(), scenario.into()].into_iter().chain(numbers));
        }
        let mut records = Records::new();
        records.set_table("runs", runs);
        records.set_parameter("not installed", "Envoy, admission control");
        records
    }

    #[test]
    fn titles_say_who_is_best_and_notes_who_is_absent() {
        let records = records();
        let plots = plot(&records);
        let Plot::Bars(important) = &plots[0] else {
            panic!("no bars");
        };
        assert_eq!(
            important.title,
            "Important requests answered within 200 ms, 5 times: HAProxy, maxconn and priority 99.0 % is best, gateway, tiers 20.0 %, nothing was not measured"
        );
        let absent = "Not installed and not measured: Envoy, admission control.";
        assert!(important.notes.iter().any(|note| note == absent));
        assert_eq!(important.groups.len(), 2);
        // The goodput of both is the same.
        let Plot::Bars(goodput) = &plots[1] else {
            panic!("no bars");
        };
        let alike =
            "5 times: gateway, tiers 97.0 %, like 1 more, is best, nothing was not measured";
        assert!(goodput.title.ends_with(alike), "{}", goodput.title);
    }

    #[test]
    fn a_rejection_costs_the_difference_between_two_loads() {
        let records = records();
        assert!((rejection_us(&records, TIERS) - 50.0).abs() < 1e-6);
        assert!(rejection_us(&records, NOTHING).is_nan());
    }

    #[test]
    fn a_better_peer_fails_the_goal_and_void_runs_do_not_count() {
        let checks = checks(&records());
        let find = |part: &str| {
            let found = checks.iter().find(|check| check.sentence.contains(part));
            found.unwrap_or_else(|| panic!("{part}: {checks:?}"))
        };
        assert!(find("Of 5 runs 1 are void").holds);
        let beside = find("the best other proxy, HAProxy");
        assert!(!beside.holds && beside.sentence.contains("answers 20.0 %"));
        assert!(find("(required: 95 %)").holds);
    }

    #[test]
    fn budgets_have_to_help_the_others_beyond_the_scatter() {
        let paid = |shares: [f64; 3]| {
            let mut runs = RecordTable::new(["who", "scenario", "void", "others"]);
            for share in shares {
                runs.push([BUDGETS.into(), HOSTILE.into(), 0.0.into(), share.into()]);
                runs.push([BELIEVED.into(), HOSTILE.into(), 0.0.into(), 0.4.into()]);
            }
            let mut records = Records::new();
            records.set_table("runs", runs);
            super::paid(&records)
        };
        assert!(paid([0.6, 0.7, 0.7]).sentence.contains("70.0 % of"));
        assert!(paid([0.6, 0.7, 0.7]).holds && !paid([0.3, 0.7, 0.7]).holds);
        let unknown = super::paid(&records());
        assert!(!unknown.holds && unknown.reason.contains("void"));
    }

    #[test]
    fn nothing_is_said_of_runs_that_are_all_void() {
        let records = records();
        let mut void =
            RecordTable::new(["who", "scenario", "load", "void", "intended", "outcomes"]);
        for row in records.table("runs").rows() {
            let cells = [row.text("who").into(), row.text("scenario").into()];
            void.push(
                cells
                    .into_iter()
                    .chain([row.number("load"), 1.0, 10.0, 10.0].map(Into::into)),
            );
        }
        let mut records = Records::new();
        records.set_table("runs", void);
        let checks = checks(&records);
        assert!(
            checks.iter().all(|check| !check.sentence.contains("NaN")),
            "{checks:?}"
        );
        let unknown = checks.iter().filter(|check| check.reason.contains("void"));
        assert_eq!(unknown.count(), 3);
        for plot in plot(&records) {
            let Plot::Bars(bars) = plot else {
                panic!("no bars");
            };
            assert!(
                bars.title.ends_with("not measured") || bars.groups.is_empty(),
                "{}",
                bars.title
            );
        }
    }
}
