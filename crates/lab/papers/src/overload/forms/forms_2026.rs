//! overload/forms-2026: bytes, CPU time and capacity of one service in five forms.

use posthaste_draw::{Axis, Bar, Bars, Group, Role, Unit};
use posthaste_study::{Check, Figure, MEDIANS, NOISE, Plot, RecordRow, Records, least, most};
use posthaste_units::Span;

use super::service_form::ServiceForm;
use super::study::{self, BELOW};
use super::traffic::{CONNECTIONS, Traffic};
use crate::overload::facts::FACTS;
use crate::overload::testbed::SLOWDOWN;
use crate::overload::{PAPER, paper};
use crate::testbed::curves::reservations;
use crate::testbed::instrument;

pub(crate) static FIGURE: Figure = Figure {
    id: "overload/forms-2026",
    title: "beyond the paper: the same service as SOAP, page, JSON and gRPC",
    claim: "Beyond the paper: its question for the forms of today. The paper's Web service sends more than 3,900 bytes and its page about 1,200 for the same content, and the page's capacity is more than 25 % higher.",
    paper: PAPER,
    budget: Span::from_secs(60),
    study: &study::STUDY,
    plot,
    checks,
    differs: include_str!("forms_2026.md").trim_ascii(),
};

/// The row of a kind of traffic.
fn row<'r>(records: &'r Records, table: &str, traffic: Traffic) -> Option<RecordRow<'r>> {
    let key = traffic.key();
    let mut rows = records.table(table).rows();
    rows.find(|row| row.text("traffic") == key)
}

/// A number of a kind of traffic, or NaN.
fn number(records: &Records, table: &str, traffic: Traffic, column: &str) -> f64 {
    row(records, table, traffic).map_or(f64::NAN, |row| row.number(column))
}

fn plot(records: &Records) -> Vec<Plot> {
    [bytes(records), cpu_time(records), capacity(records)]
        .map(Plot::Bars)
        .into()
}

/// The variants of a form: name of the bar, and the kind of traffic.
fn variants(form: ServiceForm) -> Vec<(&'static str, Traffic)> {
    let all = [
        ("plain", Some(Traffic::plain(form))),
        ("gzip", Traffic::gzip(form)),
        ("one connection", Traffic::shared(form)),
    ];
    let variant = |(name, traffic): (_, Option<Traffic>)| traffic.map(|traffic| (name, traffic));
    all.into_iter().filter_map(variant).collect()
}

fn group(form: ServiceForm, bars: Vec<Bar>) -> Group {
    Group {
        label: form.name().to_owned(),
        bars,
    }
}

fn of_paper(part: &str, value: f64) -> Bar {
    Bar {
        label: "paper".to_owned(),
        role: Role::Paper,
        parts: vec![(part.to_owned(), value)],
        interval: None,
    }
}

/// The paper's number for a form that it had.
fn theirs(form: ServiceForm, service: f64, page: f64) -> Option<f64> {
    match form {
        ServiceForm::Soap => Some(service),
        ServiceForm::Page => Some(page),
        _ => None,
    }
}

fn bytes(records: &Records) -> Bars {
    let bars = |form: ServiceForm| {
        let counted = variants(form)
            .into_iter()
            .filter(|(_, traffic)| !traffic.shared);
        let bar = |(name, traffic): (&str, Traffic)| Bar {
            label: name.to_owned(),
            parts: ["request", "reply"]
                .map(|part| (part.to_owned(), number(records, "bytes", traffic, part)))
                .into(),
            ..Bar::default()
        };
        let paper = theirs(form, paper::SERVICE_BYTES, paper::PAGE_BYTES);
        let paper = paper.map(|bytes| of_paper("request and reply", bytes));
        group(form, counted.map(bar).chain(paper).collect())
    };
    Bars {
        title: "Bytes of one request and its reply".to_owned(),
        value: Axis::linear("request and reply", Unit::Bytes),
        groups: ServiceForm::ALL.map(bars).into(),
        notes: notes_on_bytes(records),
    }
}

fn notes_on_bytes(records: &Records) -> Vec<String> {
    let bytes = |form, column| number(records, "bytes", Traffic::plain(form), column);
    let first = |form| bytes(form, "first_request") + bytes(form, "first_reply");
    let [json, grpc] = [ServiceForm::JsonHttp2, ServiceForm::Grpc];
    vec![
        format!(
            "The content, which is the ISBN and the values of the book, has {:.0} bytes (paper: {:.0}).",
            bytes(json, "content"),
            paper::CONTENT
        ),
        format!(
            "Over HTTP/2 the first exchange of a connection has {:.0} bytes (JSON) and {:.0} (gRPC), and the connection itself {:.0} and {:.0}.",
            first(json),
            first(grpc),
            bytes(json, "connection"),
            bytes(grpc, "connection")
        ),
        "The shop compresses no messages of gRPC.".to_owned(),
    ]
}

/// A bar of one number with its interval.
fn measured(name: &str, value: f64, low: f64, high: f64) -> Bar {
    Bar {
        interval: Some((low, high)),
        ..Bar::single(name, value)
    }
}

fn cpu_time(records: &Records) -> Bars {
    let bars = |form: ServiceForm| {
        let bar = |(name, traffic): (&str, Traffic)| {
            let [middle, low, high] = ["cpu_us", "low", "high"]
                .map(|column| number(records, "costs", traffic, column) / 1e6);
            measured(name, middle, low, high)
        };
        group(form, variants(form).into_iter().map(bar).collect())
    };
    Bars {
        title: "CPU time of the server for one reply".to_owned(),
        value: Axis::linear("CPU time", Unit::Seconds),
        groups: ServiceForm::ALL.map(bars).into(),
        notes: vec![MEDIANS.to_owned()],
    }
}

fn capacity(records: &Records) -> Bars {
    let page = number(
        records,
        "capacities",
        Traffic::plain(ServiceForm::Page),
        "capacity_per_s",
    );
    let bars = |form: ServiceForm| {
        let searched = variants(form)
            .into_iter()
            .filter(|(_, traffic)| !traffic.gzip);
        let bar = |(name, traffic): (&str, Traffic)| {
            let [middle, low, high] = ["capacity_per_s", "low", "high"]
                .map(|column| number(records, "capacities", traffic, column));
            measured(name, middle, low, high)
        };
        let share = paper::SERVICE_CAPACITY / paper::PAGE_CAPACITY;
        let paper = theirs(form, share, 1.0).map(|share| of_paper("paper", share * page));
        group(form, searched.map(bar).chain(paper).collect())
    };
    let mut notes = vec![
        format!(
            "The throughput at twice the rate that the server can answer, {SLOWDOWN} times slower than this machine. The paper's two are scaled: its page has the capacity of ours."
        ),
        MEDIANS.to_owned(),
    ];
    notes.extend(reservations(records));
    Bars {
        title: "Capacity".to_owned(),
        value: Axis::linear("capacity", Unit::PerSecond),
        groups: ServiceForm::ALL.map(bars).into(),
        notes,
    }
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = vec![
        instrument::identity(records),
        tapped(records),
        same_facts(records),
        decoded(records),
        counted_by_the_shop(records),
        connections(records),
    ];
    checks.extend(goals(records));
    checks
}

/// Names the kinds of traffic for which `holds` is false, at the end of a sentence.
fn exceptions(kinds: &[Traffic], holds: impl Fn(Traffic) -> bool) -> (bool, String) {
    let not: Vec<String> = kinds
        .iter()
        .filter(|traffic| !holds(**traffic))
        .map(|traffic| traffic.key())
        .collect();
    match not.as_slice() {
        [] => (true, String::new()),
        some => (false, format!(" Not so: {}.", some.join(", "))),
    }
}

/// Bytes that passed the tap are those that the generator counts.
fn tapped(records: &Records) -> Check {
    let kinds = Traffic::on_the_wire();
    let count = |traffic: Traffic, column: &str| number(records, "bytes", traffic, column);
    let (holds, not) = exceptions(&kinds, |traffic| {
        let count = |column| count(traffic, column);
        count("tapped_sent") == count("sent")
            && count("tapped_received") == count("received")
            && count("exchanges") == count("good")
            && count("exchanges") >= 3.0
    });
    let sum = |column: &str| {
        kinds
            .iter()
            .map(|traffic| count(*traffic, column))
            .sum::<f64>()
    };
    Check::instrument(
        holds,
        format!(
            "The generator counts the bytes and the good replies that pass the tap: {:.0} bytes sent and {:.0} received in {:.0} exchanges, of {} kinds.{not}",
            sum("tapped_sent"),
            sum("tapped_received"),
            sum("exchanges"),
            kinds.len()
        ),
    )
}

/// A sample of each form states all facts of the book.
fn same_facts(records: &Records) -> Check {
    let rows: Vec<RecordRow<'_>> = records.table("answers").rows().collect();
    let right = rows
        .iter()
        .filter(|row| row.number("facts") == FACTS as f64);
    let holds = right.count() == ServiceForm::ALL.len();
    let stated: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {:.0}", row.text("form"), row.number("facts")))
        .collect();
    Check::instrument(
        holds,
        format!(
            "Requested by another client, each form states the same {FACTS} facts of the book, and the call of gRPC ends with status 0: {}.",
            stated.join(", ")
        ),
    )
}

/// A decoded reply has the length of the plain one.
fn decoded(records: &Records) -> Check {
    let plain = |form: ServiceForm| {
        let mut rows = records.table("answers").rows();
        let row = rows.find(|row| row.text("form") == form.key());
        row.map_or(f64::NAN, |row| row.number("body"))
    };
    let forms = ServiceForm::ALL.into_iter();
    let kinds: Vec<Traffic> = forms.filter_map(Traffic::gzip).collect();
    let (holds, not) = exceptions(&kinds, |traffic| {
        number(records, "bytes", traffic, "decoded") == plain(traffic.form)
    });
    let sentence = format!(
        "Compressed replies, decoded, are as long as plain ones: {} kinds.{not}",
        kinds.len()
    );
    Check::instrument(holds, sentence)
}

/// The shop counts as many good answers as the generator counts good replies, and no others. For gRPC these are calls
/// with status 0.
fn counted_by_the_shop(records: &Records) -> Check {
    let rows: Vec<RecordRow<'_>> = records.table("runs").rows().collect();
    let agrees = |row: &&RecordRow<'_>| {
        // The generator does not count the outcomes of its warm-up.
        let [ok, warm_up] = ["ok", "warm_up"].map(|column| row.number(column));
        (ok..=ok + warm_up).contains(&row.number("shop_good")) && row.number("shop_other") == 0.0
    };
    let agree = rows.iter().filter(agrees).count();
    let good: f64 = rows.iter().map(|row| row.number("shop_good")).sum();
    Check::instrument(
        agree == rows.len() && !rows.is_empty(),
        format!(
            "The shop's own counters agree with the generator's in {agree} of {} runs: {good:.0} good answers, those of gRPC with status 0, and no others.",
            rows.len()
        ),
    )
}

/// Share of the requests due that a server answers in time below its limit.
const KEEPS_UP: f64 = 0.95;

/// Closed loops and overloads use the same number of connections. Below the limit, HTTP/1.1 needs fewer.
fn connections(records: &Records) -> Check {
    let rows: Vec<RecordRow<'_>> = records.table("runs").rows().collect();
    let agrees = |row: &&RecordRow<'_>| {
        let planned = if row.text("traffic").ends_with(" shared") {
            1.0
        } else {
            CONNECTIONS as f64
        };
        // The limit is a first estimate: on a noisy machine a run may be planned past it and still be answered in time.
        let keeps_up = row.number("throughput_per_s") >= KEEPS_UP * row.number("offered_per_s");
        let is_closed = row.number("load") == 0.0;
        let used = row.number("connections");
        used == planned || !is_closed && keeps_up && (1.0..planned).contains(&used)
    };
    let agree = rows.iter().filter(agrees).count();
    Check::instrument(
        agree == rows.len() && !rows.is_empty(),
        format!(
            "Every run in a closed loop or past the limit has {CONNECTIONS} connections, or one if it is shared, and none has more: so in {agree} of {} runs.",
            rows.len()
        ),
    )
}

fn goals(records: &Records) -> Vec<Check> {
    vec![
        bytes_in_order(records),
        page_before_soap(records),
        fewest_bytes(records),
        shared_connection(records),
        follows_below(records),
        capacity_by_cpu_time(records),
    ]
}

/// Bytes of request and reply, plain.
fn total(records: &Records, form: ServiceForm) -> f64 {
    let bytes = |part| number(records, "bytes", Traffic::plain(form), part);
    bytes("request") + bytes("reply")
}

/// CPU time of the server for a reply, in microseconds.
fn cpu_us(records: &Records, traffic: Traffic) -> f64 {
    number(records, "costs", traffic, "cpu_us")
}

/// Each form sends fewer bytes than the one before.
fn bytes_in_order(records: &Records) -> Check {
    let totals = ServiceForm::ALL.map(|form| total(records, form));
    let parts: Vec<String> = ServiceForm::ALL
        .into_iter()
        .zip(totals)
        .map(|(form, bytes)| format!("{} {bytes:.0}", form.name()))
        .collect();
    let holds = totals.is_sorted_by(|before, after| before > after);
    let sentence = format!(
        "Each form sends fewer bytes than the one before it, in request and reply: {}.",
        parts.join(", ")
    );
    Check::goal(holds, sentence)
}

/// The paper's comparison, over persistent connections.
fn page_before_soap(records: &Records) -> Check {
    let capacity = |form| {
        number(
            records,
            "capacities",
            Traffic::plain(form),
            "capacity_per_s",
        )
    };
    let (soap, page) = (capacity(ServiceForm::Soap), capacity(ServiceForm::Page));
    Check::goal(
        page > 1.1 * soap,
        format!(
            "The page's capacity is higher than SOAP's by more than 10 %: {:+.0} %, {page:.0} against {soap:.0}/s (paper: {:.0} against {:.0}/s).",
            100.0 * (page / soap - 1.0),
            paper::PAGE_CAPACITY,
            paper::SERVICE_CAPACITY
        ),
    )
    .because(NOISE)
}

/// The form with the fewest bytes against one with more.
fn fewest_bytes(records: &Records) -> Check {
    let cpu = |form| cpu_us(records, Traffic::plain(form));
    let (json, grpc) = (cpu(ServiceForm::Json), cpu(ServiceForm::Grpc));
    Check::goal(
        grpc > 1.1 * json,
        format!(
            "Fewer bytes are not less work: with one request at a time on a connection, gRPC costs the server more CPU time than JSON over HTTP/1.1, by more than 10 %: {grpc:.1} against {json:.1} µs, {:+.0} %.",
            100.0 * (grpc / json - 1.0)
        ),
    )
    .because(NOISE)
}

/// The same requests on one connection of HTTP/2.
fn shared_connection(records: &Records) -> Check {
    let forms = ServiceForm::ALL.into_iter();
    let pairs: Vec<(f64, f64, String)> = forms
        .filter_map(|form| {
            let shared = cpu_us(records, Traffic::shared(form)?);
            let own = cpu_us(records, Traffic::plain(form));
            let sentence = format!("{} {shared:.1} against {own:.1} µs", form.name());
            Some((shared, own, sentence))
        })
        .collect();
    let sentences: Vec<&str> = pairs.iter().map(|pair| pair.2.as_str()).collect();
    Check::goal(
        pairs.iter().all(|(shared, own, _)| *shared < 0.8 * own),
        format!(
            "On one shared connection a reply costs at least a fifth less than on {CONNECTIONS}: {}.",
            sentences.join(", ")
        ),
    )
    .because(NOISE)
}

/// Below the limit, the throughput is the rate.
fn follows_below(records: &Records) -> Check {
    let kinds = Traffic::overloaded();
    let rate = |traffic: &Traffic, column| number(records, "capacities", *traffic, column);
    let share =
        |traffic: &Traffic| rate(traffic, "below_served_per_s") / rate(traffic, "below_rate_per_s");
    let worst = least(kinds.iter().map(share));
    Check::goal(
        worst > 0.98,
        format!("Below the limit ({BELOW} of a first estimate) the throughput follows the rate: {worst:.3} of it at least, of {} kinds.", kinds.len()),
    )
    .because(NOISE)
}

/// A server past its limit is busy all the time.
fn capacity_by_cpu_time(records: &Records) -> Check {
    let kinds = Traffic::overloaded();
    let busy = |traffic: &Traffic| {
        let [capacity, cpu] = ["capacity_per_s", "cpu_us"]
            .map(|column| number(records, "capacities", *traffic, column));
        capacity * cpu * f64::from(SLOWDOWN) / 1e6
    };
    let (low, high) = (least(kinds.iter().map(busy)), most(kinds.iter().map(busy)));
    Check::goal(
        low > 0.8 && high < 1.2,
        format!("Past the limit the server is the limit: {low:.2} to {high:.2} of the time is CPU time of the slower server."),
    )
    .because(NOISE)
}
