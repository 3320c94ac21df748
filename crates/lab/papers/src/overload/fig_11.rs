//! overload/fig-11: the Web service's reply compressed.

use posthaste_draw::{Axis, Unit};
use posthaste_study::{Check, Figure, NOISE, Plot, Records};
use posthaste_units::Span;

use super::curves::{Quantity, RESPONSE, THROUGHPUT, over_rate, places, series};
use super::open::OVERLOADED;
use super::testbed::RequestForm;
use super::{PAPER, early_rejection, open, paper};
use crate::testbed::curves::plateau;
use crate::testbed::instrument;

pub(crate) static FIGURE: Figure = Figure {
    id: "overload/fig-11",
    title: "open loop: the reply compressed",
    claim: "Compressed, the reply shrinks from more than 3 KB to 1,300 bytes, from three TCP segments to one. Under overload the response time is about 3 s higher and the throughput about 50/s lower.",
    paper: PAPER,
    budget: Span::from_secs(33),
    study: &open::STUDY,
    plot,
    checks,
    differs: include_str!("fig_11.md").trim_ascii(),
};

/// Bytes of data in a TCP segment on Ethernet with timestamps.
const SEGMENT: f64 = 1448.0;

const FORMS: [RequestForm; 2] = [RequestForm::Service, RequestForm::Compressed];

fn plot(records: &Records) -> Vec<Plot> {
    let chart = |title, label, unit, quantity: Quantity| {
        let mut chart = over_rate(records, title, Axis::linear(label, unit), &FORMS);
        chart.series = FORMS.map(|form| series(records, form, quantity)).into();
        Plot::Chart(chart)
    };
    vec![
        chart(
            "Compressed and not: mean response time of complete replies",
            "mean response time",
            Unit::Millis,
            RESPONSE,
        ),
        chart(
            "Compressed and not: throughput",
            "throughput",
            Unit::PerSecond,
            THROUGHPUT,
        ),
    ]
}

/// Bytes of one reply with its HTTP header.
fn reply_bytes(records: &Records, form: RequestForm) -> f64 {
    let rows = records.table("runs").rows();
    let (bytes, replies) = rows.filter(|row| row.text("form") == form.key()).fold(
        (0.0, 0.0),
        |(bytes, replies), row| {
            (
                bytes + row.number("bytes_received"),
                replies + row.number("ok"),
            )
        },
    );
    bytes / replies
}

/// The answer of this run: the cost of compression under overload.
pub(crate) fn answer(records: &Records) -> String {
    let more = |column| {
        let [plain, packed] = FORMS.map(|form| plateau(&places(records, form, column), OVERLOADED));
        100.0 * (packed / plain - 1.0)
    };
    let [throughput, response] = ["throughput_per_s", "response_ms"].map(more);
    let verdict = if throughput > 0.0 && response < 0.0 {
        "Yes"
    } else {
        "No"
    };
    format!(
        "{verdict}: with every reply compressed the throughput under overload changes by {throughput:+.0} % and the response time by {response:+.0} % (paper: about a third less, and 3 s more)."
    )
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::accounting(records);
    checks.extend(early_rejection::no_early_rejection(records));
    let [plain, packed] = FORMS.map(|form| reply_bytes(records, form));
    let segments = |bytes: f64| (bytes / SEGMENT).ceil();
    checks.push(Check::claim(
        segments(plain) == 3.0 && segments(packed) == 1.0,
        format!("The reply shrinks from {plain:.0} to {packed:.0} bytes, HTTP header included: from {:.0} TCP segments to {:.0} (paper: three to one).", segments(plain), segments(packed)),
    ).because("our message and its header are some 300 bytes longer after compression than the paper's 1,300 bytes."));
    let flat = |form, column| plateau(&places(records, form, column), OVERLOADED);
    let [plain, packed] = FORMS.map(|form| flat(form, "response_ms"));
    checks.push(Check::claim(
        packed > 1.1 * plain,
        format!("Under overload the response time is higher: {packed:.0} against {plain:.0} ms, {:+.0} % (paper: about 3 s more).", 100.0 * (packed / plain - 1.0)),
    ).because(NOISE));
    let [plain, packed] = FORMS.map(|form| flat(form, "throughput_per_s"));
    let cost = |form: RequestForm| records.number(&format!("cpu_us {}", form.key()));
    let lost = 100.0 * (1.0 - packed / plain);
    let theirs = 100.0 * paper::COMPRESSION_LOSS / paper::SERVICE_CAPACITY;
    checks.push(Check::claim(
        packed < 0.9 * plain,
        format!("Under overload the throughput is lower: {packed:.0} against {plain:.0}/s, {lost:.0} % less (paper: about 50/s less, {theirs:.0} % of the rate at which its Web service was full). A request costs this machine {:.1} µs of processor time compressed and {:.1} µs plain.", cost(RequestForm::Compressed), cost(RequestForm::Service)),
    ).because(NOISE));
    checks
}
