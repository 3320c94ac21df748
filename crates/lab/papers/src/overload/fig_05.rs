//! overload/fig-05: bytes on the wire, content against overhead.

use posthaste_draw::{Axis, Bar, Bars, Group, Role, Unit};
use posthaste_study::{Check, Figure, Plot, RecordRow, Records};
use posthaste_units::Span;

use super::testbed::RequestForm;
use super::{PAPER, paper, wire};

pub(crate) static FIGURE: Figure = Figure {
    id: "overload/fig-05",
    title: "bytes on the wire, content against overhead",
    claim: "For the same content, 589 bytes in request and reply together, the Web service sends more than 3,900 bytes and the page about 1,200. The paper calls that a factor of 3.3, four to five times, and over 500 %.",
    paper: PAPER,
    budget: Span::from_secs(2),
    study: &wire::STUDY,
    plot,
    checks,
    differs: include_str!("fig_05.md").trim_ascii(),
};

fn row(records: &Records, form: RequestForm) -> Option<RecordRow<'_>> {
    records
        .table("bytes")
        .rows()
        .find(|row| row.text("form") == form.key())
}

/// All bytes, and the overhead among them.
fn bytes(records: &Records, form: RequestForm) -> (f64, f64) {
    let Some(row) = row(records, form) else {
        return (f64::NAN, f64::NAN);
    };
    let overhead = row.number("markup") + row.number("headers");
    (row.number("content") + overhead, overhead)
}

fn plot(records: &Records) -> Vec<Plot> {
    let bar = |label: &str, role, parts: &[(&str, f64)]| Bar {
        label: label.to_owned(),
        role,
        parts: parts
            .iter()
            .map(|(name, bytes)| ((*name).to_owned(), *bytes))
            .collect(),
        interval: None,
    };
    let group = |form: RequestForm, theirs: f64| {
        let number = |column| row(records, form).map_or(f64::NAN, |row| row.number(column));
        let ours = [
            ("content", number("content")),
            ("markup", number("markup")),
            ("HTTP headers", number("headers")),
        ];
        let theirs = [
            ("content", paper::CONTENT),
            ("overhead, not split", theirs - paper::CONTENT),
        ];
        Group {
            label: form.name().to_owned(),
            bars: vec![
                bar("ours", Role::Ours, &ours),
                bar("paper", Role::Paper, &theirs),
            ],
        }
    };
    let bars = Bars {
        title: "Bytes of one request and its reply".to_owned(),
        value: Axis::linear("request and reply", Unit::Bytes),
        groups: vec![
            group(RequestForm::Service, paper::SERVICE_BYTES),
            group(RequestForm::Page, paper::PAGE_BYTES),
        ],
        notes: vec!["The paper states \"more than\" 3,900 and \"about\" 1,200 bytes.".to_owned()],
    };
    vec![Plot::Bars(bars)]
}

/// The answer of this run: the relative size of a Web service's messages.
pub(crate) fn answer(records: &Records) -> String {
    let [(service, _), (page, _)] = RequestForm::PAIR.map(|form| bytes(records, form));
    format!(
        "{:.1} times as many: {service:.0} against {page:.0} bytes for a request and its reply (paper: {:.1} times).",
        service / page,
        paper::SERVICE_BYTES / paper::PAGE_BYTES
    )
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = Vec::new();
    for form in RequestForm::PAIR {
        let number = |column| row(records, form).map_or(f64::NAN, |row| row.number(column));
        let [request, reply, sent, received] = ["request", "reply", "sent", "received"].map(number);
        checks.push(Check::instrument(
            request == sent && reply == received,
            format!("{}: {request:.0} + {reply:.0} bytes passed the tap; the generator counts {sent:.0} sent and {received:.0} received.", form.name()),
        ));
    }
    let ((service, overhead), (page, least)) = (
        bytes(records, RequestForm::Service),
        bytes(records, RequestForm::Page),
    );
    let (factor, theirs) = (service / page, paper::SERVICE_BYTES / paper::PAGE_BYTES);
    checks.push(Check::claim(
        (factor / theirs - 1.0).abs() < 0.2,
        format!("Factor 3.3 by all bytes: here {factor:.2}, {service:.0} against {page:.0} bytes (held to be the same within 20 %)."),
    ).because("the headers and the request of our client have other lengths than those of a .NET client of 2003."));
    checks.push(
        Check::claim(
            (4.0..=5.0).contains(&factor),
            format!("\"Four to five times\": all bytes here {factor:.2} times."),
        )
        .because("the paper's own bytes make it 3.3 times; it does not say how it counted."),
    );
    checks.push(Check::claim(
        overhead / least > 5.0,
        format!("\"Over 500 %\": overhead here {overhead:.0} against {least:.0} bytes, {:.0} % (the paper's bytes make it 540 %).", 100.0 * overhead / least),
    ).because("our request is shorter than that of a .NET client of 2003, so that less of it is overhead."));
    checks
}
