//! The last fifteen minutes on the status page and in the status document: rates, percentiles, and charts.

use maud::{Markup, html};
use posthaste_draw::{Axis, Chart, Format, Point, Series, Unit};
use posthaste_units::{Instant, Span};
use serde::Serialize;

use crate::admin::history::{History, LENGTH, Percentiles, Rates, SLOT, Slot};
use crate::admin::reading::Reading;
use crate::record::fine_histogram::Percentile;
use crate::record::outcomes::Outcomes;

/// Times of the rates, and of the percentiles.
const RATES: [Span; 2] = [Span::from_secs(10), Span::from_secs(60)];
const PERCENTILES: [Span; 2] = [Span::from_secs(60), LENGTH];
/// The percentiles shown.
const PERCENTS: [u64; 3] = [50, 90, 99];

/// Requests by class: label, class of the style sheet, and count.
type Class = (&'static str, &'static str, fn(&Outcomes) -> u64);

/// All classes, in the order of the page.
const CLASSES: [Class; 5] = [
    ("2xx, 3xx", "succeeded", |outcomes| outcomes.succeeded),
    ("4xx", "client-errors", |outcomes| outcomes.client_errors),
    ("Refused", "refused", |outcomes| outcomes.refused),
    ("5xx", "server-errors", |outcomes| outcomes.server_errors),
    ("No reply", "cancelled", |outcomes| outcomes.cancelled),
];

/// Population and error of the percentiles, for the reader.
const POPULATION: &str = "Times are from the head of a request to the head of its reply, for requests that an \
    upstream answered with a status below 500. Admitted requests with 5xx or without a reply have failed. They \
    count as slower than all others: a percentile among them is at least the slowest time. Requests that were refused, that \
    the gateway answered itself, or that opened a tunnel are not included. \
    Each time is an upper bound, at most 6.25 % or 1 µs too high.";

/// Reason of a gap in the response times.
const GAPS: &str = "Gaps: no request was answered, or the percentile is among the failed requests.";

/// The part of the status document about the last fifteen minutes. Times are in seconds, rates per second.
#[derive(Serialize)]
pub(super) struct RecentDocument {
    rates: Vec<RateDocument>,
    percentiles: Vec<PercentileDocument>,
    history: HistoryDocument,
}

/// Rates over the last `seconds`. `None` before any time has passed.
#[derive(Serialize)]
struct RateDocument {
    seconds: f64,
    requests: Option<f64>,
    succeeded: Option<f64>,
    client_errors: Option<f64>,
    refused: Option<f64>,
    server_errors: Option<f64>,
    cancelled: Option<f64>,
}

/// Percentiles over the last `seconds`. `None` without data, or if the percentile lies among the failed requests.
#[derive(Serialize)]
struct PercentileDocument {
    seconds: f64,
    answered: u64,
    failed: u64,
    refused: u64,
    cancelled: u64,
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
}

/// Slots of the history, oldest first.
#[derive(Serialize)]
struct HistoryDocument {
    slot_seconds: f64,
    slots: Vec<SlotDocument>,
}

/// Counts and times of one slot, which ended `ago` seconds ago.
#[derive(Serialize)]
struct SlotDocument {
    ago: f64,
    seconds: f64,
    succeeded: u64,
    client_errors: u64,
    refused: u64,
    server_errors: u64,
    cancelled: u64,
    answered: u64,
    failed: u64,
    p50: Option<f64>,
    p99: Option<f64>,
    busy: Option<f64>,
}

impl RecentDocument {
    pub(super) fn new(history: &History, now: &Reading) -> Self {
        let rates = RATES.map(|over| RateDocument::new(&history.rates(now, over)));
        let percentiles = PERCENTILES.map(|over| history.percentiles(now, over));
        Self {
            rates: rates.into(),
            percentiles: percentiles.iter().map(PercentileDocument::new).collect(),
            history: HistoryDocument {
                slot_seconds: SLOT.as_secs_f64(),
                slots: history
                    .slots()
                    .map(|slot| SlotDocument::new(slot, now.at))
                    .collect(),
            },
        }
    }
}

impl RateDocument {
    fn new(rates: &Rates) -> Self {
        let counts = &rates.outcomes;
        Self {
            seconds: rates.over.as_secs_f64(),
            requests: rates.per_second(counts.requests()),
            succeeded: rates.per_second(counts.succeeded),
            client_errors: rates.per_second(counts.client_errors),
            refused: rates.per_second(counts.refused),
            server_errors: rates.per_second(counts.server_errors),
            cancelled: rates.per_second(counts.cancelled),
        }
    }
}

impl PercentileDocument {
    fn new(shown: &Percentiles) -> Self {
        let [p50, p90, p99] = PERCENTS.map(|percent| seconds(shown.percentile(percent)));
        Self {
            seconds: shown.over.as_secs_f64(),
            answered: shown.times.total(),
            failed: shown.outcomes.failed,
            refused: shown.outcomes.refused,
            cancelled: shown.outcomes.cancelled,
            p50,
            p90,
            p99,
        }
    }
}

impl SlotDocument {
    fn new(slot: &Slot, now: Instant) -> Self {
        let counts = &slot.outcomes;
        Self {
            ago: now.saturating_since(slot.until).as_secs_f64(),
            seconds: slot.until.saturating_since(slot.from).as_secs_f64(),
            succeeded: counts.succeeded,
            client_errors: counts.client_errors,
            refused: counts.refused,
            server_errors: counts.server_errors,
            cancelled: counts.cancelled,
            answered: slot.times.total(),
            failed: counts.failed,
            p50: seconds(slot.percentile(50)),
            p99: seconds(slot.percentile(99)),
            busy: slot.busy,
        }
    }
}

fn seconds(percentile: Percentile) -> Option<f64> {
    match percentile {
        Percentile::Below(time) => Some(time.as_secs_f64()),
        Percentile::NoData | Percentile::Failed { .. } | Percentile::Beyond => None,
    }
}

/// Renders rates, percentiles and charts.
pub(super) fn section(history: &History, now: &Reading) -> Markup {
    let rates = RATES.map(|over| history.rates(now, over));
    let percentiles = PERCENTILES.map(|over| history.percentiles(now, over));
    html! {
        h2 { "Requests per second" }
        div.wide.fit { table {
            tr {
                th { "In the last" } th.n { "All" }
                @for (label, class, _) in CLASSES { th.n { span.key.(class) {} (label) } }
            }
            @for rates in distinct(&rates, |rates| rates.over) {
                tr {
                    td { (covered(rates.over)) }
                    td.n { (rate(rates, rates.outcomes.requests())) }
                    @for (_, _, count) in CLASSES { td.n { (rate(rates, count(&rates.outcomes))) } }
                }
            }
        } }
        (bars(&rates))
        h2 { "Response times" }
        div.wide.fit { table {
            tr {
                th { "In the last" } th.n { "Answered" } th.n { "Failed" } th.n { "Refused" }
                @for percent in PERCENTS { th.n { "p" (percent) } }
            }
            @for shown in distinct(&percentiles, |shown| shown.over) {
                tr {
                    td { (covered(shown.over)) }
                    td.n { (shown.times.total()) }
                    td.n { (shown.outcomes.failed) }
                    td.n { (shown.outcomes.refused) }
                    @for percent in PERCENTS { td.n { (time(shown.percentile(percent))) } }
                }
            }
        } }
        p.note { (POPULATION) }
        h2 { "The last fifteen minutes" }
        @for chart in charts(history, now.at) {
            div.chart-wide { (chart.inline_in(Format::Wide)) }
            div.chart-narrow { (chart.inline_in(Format::Narrow)) }
        }
    }
}

/// The rows without those that cover the same time as the one before, as after a start.
fn distinct<T>(rows: &[T], over: impl Fn(&T) -> Span) -> impl Iterator<Item = &T> {
    let is_new = move |(index, row): &(usize, &T)| {
        let before = index.checked_sub(1).map(|before| &rows[before]);
        before.is_none_or(|before| over(before) != over(row))
    };
    rows.iter().enumerate().filter(is_new).map(|(_, row)| row)
}

/// Renders the shares of the classes, one bar for each time. Empty without requests.
fn bars(rates: &[Rates]) -> Markup {
    html! {
        @for rates in distinct(rates, |rates| rates.over).filter(|rates| rates.outcomes.requests() > 0) {
            @let all = rates.outcomes.requests() as f64;
            @let percent = |count: u64| count as f64 / all * 100.0;
            div.bar role="img" aria-label=(format!("Shares in the last {}", covered(rates.over))) {
                @for (label, class, count) in CLASSES {
                    @let share = percent(count(&rates.outcomes));
                    @if share > 0.0 {
                        span.(class) style=(format!("width:{share:.3}%")) title=(format!("{label}: {share:.1} %")) {}
                    }
                }
            }
        }
    }
}

fn rate(rates: &Rates, count: u64) -> String {
    match rates.per_second(count) {
        None => String::new(),
        Some(0.0) => "0".to_owned(),
        Some(rate) if rate < 100.0 => format!("{rate:.1}"),
        Some(rate) => format!("{rate:.0}"),
    }
}

/// Formats a time that is covered.
fn covered(over: Span) -> String {
    let seconds = over.as_secs_f64();
    if seconds < 120.0 {
        format!("{seconds:.0} s")
    } else {
        format!("{:.0} min", seconds / 60.0)
    }
}

fn time(percentile: Percentile) -> String {
    match percentile {
        Percentile::NoData => "no data".to_owned(),
        Percentile::Failed { at_least } if at_least.is_zero() => "failed".to_owned(),
        Percentile::Failed { at_least } => {
            format!("at least {}", Unit::Seconds.exact(at_least.as_secs_f64()))
        }
        Percentile::Beyond => "more than 4 min".to_owned(),
        Percentile::Below(time) => Unit::Seconds.exact(time.as_secs_f64()),
    }
}

/// Draws requests, response times and the busy share over time. Slots without data leave gaps.
fn charts(history: &History, now: Instant) -> [Chart; 3] {
    let minutes = || Axis::linear("minutes from now", Unit::Count).range(-15.0, 0.0);
    let at = |slot: &Slot| {
        let middle = slot.until.saturating_since(slot.from).as_secs_f64() / 2.0;
        -(now.saturating_since(slot.until).as_secs_f64() + middle) / 60.0
    };
    let line = |name: &str, value: &dyn Fn(&Slot) -> f64| {
        let points = history
            .slots()
            .map(|slot| Point::new(at(slot), value(slot)));
        Series::line(name, points)
    };
    let per_second = Axis::linear("requests per second", Unit::PerSecond);
    let mut requests = Chart::new("Requests per second by class", minutes(), per_second);
    requests.series = CLASSES
        .iter()
        .map(|(label, _, count)| line(label, &|slot| slot.rate(count(&slot.outcomes))))
        .collect();
    let of_slot = |slot: &Slot, percent| seconds(slot.percentile(percent)).unwrap_or(f64::NAN);
    let times = Axis::log("response time", Unit::Seconds);
    let mut times = Chart::new("Response times of answered requests", minutes(), times);
    times.series = vec![
        line("p50", &|slot| of_slot(slot, 50)),
        line("p99", &|slot| of_slot(slot, 99)),
    ];
    times.notes = vec![GAPS.to_owned()];
    let busy = Axis::linear("busy share", Unit::Share).range(0.0, 1.0);
    let mut busy = Chart::new("Busy share", minutes(), busy);
    busy.series = vec![line("busy share", &|slot| slot.busy.unwrap_or(f64::NAN))];
    [requests, times, busy]
}
