//! wsqos/table-4: the replies, and their compression costs.

use posthaste_bookshop::Size;
use posthaste_draw::{Axis, Bar, Bars, Chart, Group, Point, Role, Series, Unit};
use posthaste_study::{Check, Figure, MEDIANS, NOISE, Plot, Records};
use posthaste_units::Span;

use super::paper;
use super::replies::{self, estimate_of};
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/table-4",
    title: "replies: sizes, and the cost of compression",
    claim: "Compression makes a reply of 3 kB or more two to three times smaller and a greeting larger. Compression costs the server 1 to 89 ms. Decompression costs the handheld 41 to 1,122 ms.",
    paper: THESIS,
    budget: Span::from_secs(8),
    study: &replies::STUDY,
    plot,
    checks,
    differs: include_str!("table_4.md").trim_ascii(),
};

fn plot(records: &Records) -> Vec<Plot> {
    vec![Plot::Bars(sizes(records)), Plot::Chart(times(records))]
}

fn sizes(records: &Records) -> Bars {
    let single = |label: &str, name: &str, role, bytes: f64| Bar {
        label: label.to_owned(),
        role,
        parts: vec![(name.to_owned(), bytes)],
        interval: None,
    };
    let group = |size: Size| {
        let ours = |column| estimate_of(records, size, column).median;
        let theirs = paper::reply(size);
        Group {
            label: size.name().to_owned(),
            bars: vec![
                single("", "plain", Role::Ours, ours("message_bytes")),
                single("", "plain", Role::Paper, theirs.bytes),
                single("", "compressed", Role::Ours, ours("compressed_bytes")),
                single("", "compressed", Role::Paper, theirs.compressed),
            ],
        }
    };
    Bars {
        title: "Bytes of each reply".to_owned(),
        value: Axis::linear("reply", Unit::Bytes),
        groups: Size::ALL.map(group).into(),
        notes: vec!["In each pair ours is on the left and the paper's on the right, dashed. Ours are whole SOAP messages, the paper's the Body alone.".to_owned()],
    }
}

fn times(records: &Records) -> Chart {
    let slowdown = records.number("slowdown");
    let x = Axis::log("SOAP Body", Unit::Bytes);
    let mut chart = Chart::new(
        "Processor time for each reply",
        x,
        Axis::log("time", Unit::Millis),
    );
    let ours = |name: &str, column: &str, factor: f64| {
        let points = Size::ALL.map(|size| {
            let time = estimate_of(records, size, column);
            let bytes = estimate_of(records, size, "body_bytes").median;
            let [median, low, high] = [time.median, time.low, time.high].map(|ms| ms * factor);
            Point::new(bytes, median).with_interval(low, high)
        });
        Series::line(name, points)
    };
    let theirs = |name: &str, ms: fn(paper::PaperReply) -> f64| {
        let points = Size::ALL.map(|size| {
            let bytes = paper::reply(size).bytes;
            Point::new(bytes, ms(paper::reply(size)))
        });
        Series::line(name, points).of_paper()
    };
    let scaled = "decompression, handheld";
    chart.series = vec![
        ours("compression", "compression_ms", 1.0),
        ours("decompression", "decompression_ms", 1.0),
        ours(scaled, "decompression_ms", slowdown),
        theirs("compression", |reply| reply.compression),
        theirs(scaled, |reply| reply.decompression),
    ];
    chart.notes = vec![
        format!("The handheld is this machine {slowdown:.0} times slower."),
        MEDIANS.to_owned(),
    ];
    chart
}

fn checks(records: &Records) -> Vec<Check> {
    let rows = || records.table("replies").rows();
    let sum = |column: &str| {
        rows()
            .map(|row| row.number(column))
            .fold(0.0, |all, one| all + one)
    };
    let (intended, ok) = (sum("intended"), sum("ok"));
    let runs = rows().count();
    let whole = rows().filter(|row| row.number("decoded_bytes") == row.number("message_bytes"));
    let whole = whole.count();
    let mut checks = vec![
        Check::instrument(
            ok == intended && intended > 0.0,
            format!("{ok} of {intended} replies were complete and could be decoded."),
        ),
        Check::instrument(
            whole == runs && runs > 0,
            format!(
                "In {whole} of {runs} runs every reply was decoded to as many bytes as the shop sends."
            ),
        ),
    ];
    checks.extend(sized(records));
    checks.extend(timed(records));
    checks
}

/// Relative difference of two numbers.
fn apart(ours: f64, theirs: f64) -> f64 {
    (ours / theirs - 1.0).abs()
}

/// The reply with the largest value, and this value.
fn worst(value: impl Fn(Size) -> f64) -> (Size, f64) {
    let all = Size::ALL.map(|size| (size, value(size)));
    let worst = all.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    worst.unwrap_or((Size::Hello, f64::NAN))
}

fn sized(records: &Records) -> [Check; 4] {
    let ours = |size, column| estimate_of(records, size, column).median;
    let (size, most) = worst(|size| apart(ours(size, "body_bytes"), paper::reply(size).bytes));
    let packed_apart = |size| match size {
        Size::Hello => 0.0,
        _ => apart(
            ours(size, "compressed_bytes"),
            paper::reply(size).compressed,
        ),
    };
    let (packed_size, packed_most) = worst(packed_apart);
    let [plain, packed] =
        ["message_bytes", "compressed_bytes"].map(|column| ours(Size::Hello, column));
    let times = |size| ours(size, "message_bytes") / ours(size, "compressed_bytes");
    let others = &Size::ALL[1..];
    let smaller: Vec<String> = others
        .iter()
        .map(|size| {
            let theirs = paper::reply(*size);
            let theirs = theirs.bytes / theirs.compressed;
            format!("{} {:.2} ({theirs:.2})", size.name(), times(*size))
        })
        .collect();
    [
        Check::claim(
            most <= 0.05,
            format!(
                "The Bodies are those of the paper within 5 %: {} is the farthest off, {:.1} %.",
                size.name(),
                100.0 * most
            ),
        ),
        Check::claim(
            packed_most <= 0.05,
            format!(
                "From 3 kB on they are compressed to as many bytes within 5 %: {} is the farthest off, {:.1} %.",
                packed_size.name(),
                100.0 * packed_most
            ),
        ),
        Check::claim(
            others.iter().all(|size| (2.0..3.5).contains(&times(*size))),
            format!(
                "Two to three and a half times smaller from 3 kB on: {} (with the paper's Body for each).",
                smaller.join(", ")
            ),
        ),
        Check::claim(
            packed > plain,
            format!(
                "A greeting gets larger (209 to 256 bytes): here {plain:.0} bytes become {packed:.0}."
            ),
        ).because("our greeting's envelope has namespaces that repeat, so that gzip saves more than its own header costs.").better_if(packed <= plain),
    ]
}

fn timed(records: &Records) -> [Check; 2] {
    let ours = |size, column| estimate_of(records, size, column).median;
    let [first, last] = [Size::Lite, Size::Heavy5];
    let growth = ours(last, "compression_ms") / ours(first, "compression_ms");
    let theirs = paper::reply(last).compression / paper::reply(first).compression;
    let slowdown = records.number("slowdown");
    let scaled = |size| slowdown * ours(size, "decompression_ms");
    let (size, most) = worst(|size| apart(scaled(size), paper::reply(size).decompression));
    [
        Check::claim(
            growth > 1.0,
            format!(
                "Compressing takes longer the longer the reply: {:.0} µs for {}, {:.0} µs for {}, {growth:.1} times as long; the paper's server 12 and 89 ms, {theirs:.1} times.",
                1e3 * ours(first, "compression_ms"),
                first.name(),
                1e3 * ours(last, "compression_ms"),
                last.name()
            ),
        ).because(NOISE),
        Check::claim(
            most <= 0.5,
            format!(
                "One factor makes a handheld of this machine: {slowdown:.0} times slower, the largest reply takes {:.0} ms (1,122); {} is the farthest off, {:.0} ms for {:.0}.",
                scaled(last),
                size.name(),
                scaled(size),
                paper::reply(size).decompression
            ),
        ).because("one factor cannot give both a fixed time for each reply, which the paper's handheld needed, and a time for each byte."),
    ]
}
