//! Gallery of everything that `draw` makes, as an HTML page on stdout, for a visual check after changes.
//!
//! `cargo run -p posthaste-draw --example gallery > gallery.html`

use posthaste_draw::{
    Along, Axis, Bar, Bars, Block, Card, Cell, Chart, Group, Mark, Page, Point, Role, Section,
    Series, Shape, State, Table, TopAxis, Unit, Verdict,
};

fn main() {
    let mut curves = Section::new("Curves");
    curves.state = Some(State::Pass("all checks hold"));
    curves.sections = vec![overload(), percentiles(), many()];
    let mut others = Section::new("Other charts");
    others.sections = vec![bars(), odd()];
    let page = Page {
        title: "posthaste: a gallery".into(),
        lead: "Every kind of chart and of block, with made-up numbers.".into(),
        opening: vec![Block::Cards(vec![
            card("Capacity", "1,240/s", "95 %: 1,210/s to 1,262/s"),
            card("p99 at half load", "2.5 ms", "15 ms for the paper"),
            card("Intended", "120,000", "equals the sum of outcomes"),
            card("Lateness p99", "42 µs", ""),
        ])],
        sections: vec![curves, others],
        filter: None,
        footer: "Made by the gallery example.".into(),
    };
    println!("{}", page.html());
}

fn card(label: &str, value: &str, remark: &str) -> Card {
    Card {
        label: label.into(),
        value: value.into(),
        remark: remark.into(),
    }
}

fn hockey(capacity: f64, scale: f64) -> Vec<Point> {
    (1..=14)
        .map(|step| {
            let x = f64::from(step) * 0.125;
            let over = (x - capacity).max(0.0);
            let y = scale * (12.0 + 900.0 * (1.0 - (-over * 6.0).exp()) + 3.0 * x);
            Point::new(x, y).with_interval(y * 0.92, y * 1.1)
        })
        .collect()
}

fn overload() -> Section {
    let mut chart = Chart::new(
        "Mean response time against request rate",
        Axis::linear("request rate / capacity of the page", Unit::Count),
        Axis::linear("mean response time", Unit::Millis),
    );
    chart.top = Some(TopAxis {
        label: "the paper's request rate".into(),
        unit: Unit::PerSecond,
        factor: 180.0,
        offset: 0.0,
    });
    chart.series = vec![
        Series::line("Web service", hockey(0.86, 1.3)),
        Series::line("server page", hockey(1.0, 1.0)),
        Series::line("Web service", hockey(0.8, 1.5)).of_paper(),
        Series::line("server page", hockey(1.0, 1.2)).of_paper(),
    ];
    let mark = |at, label: &str, role| Mark {
        along: Along::X,
        at,
        label: label.into(),
        role,
    };
    chart.marks = vec![
        mark(0.86, "Web service full", Role::Ours),
        mark(1.0, "page full", Role::Ours),
        mark(0.8, "145/s", Role::Paper),
    ];
    chart.notes = vec!["Bars are 95 % intervals over three runs.".into()];
    let mut section = Section::new("overload/fig-08: response time past the limit");
    section.state = Some(State::Note("claim differs"));
    section.blocks = vec![
        Block::Text("The response time of a Web service rises sharply at a lower rate than that of a plain page with the same content.".into()),
        Block::Chart(Box::new(chart)),
        Block::Verdicts(vec![
            Verdict { state: State::Pass("holds"), sentence: "Attempts equal intended: 36,000 of 36,000.".into(), reason: "".into() },
            Verdict { state: State::Note("claim differs"), sentence: "Under overload the Web service is 12 % slower than the page; the paper states more than 30 %.".into(), reason: "Noise: runs of a quarter of a second.".into() },
            Verdict { state: State::Fail("does not hold"), sentence: "No SYN was sent twice: 3 were, which means that the connect timeout is longer than the kernel's first retransmission on this machine.".into(), reason: "Noise: runs of a quarter of a second.".into() },
        ]),
        Block::Labelled("What differs.".into(), "Our server is a thousand times faster, so the axis is scaled to its capacity.".into()),
        Block::Code("posthaste reproduce overload/fig-08 --seed 2003".into()),
        Block::Links(vec![("records.csv".into(), "records.csv".into()), ("manifest.json".into(), "manifest.json".into())]),
    ];
    section
}

fn percentiles() -> Section {
    let curve = |scale: f64| {
        let quantiles = [
            0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999,
        ];
        quantiles.map(|q: f64| {
            let y = scale * (1.0 - (1.0 - q).ln()).powf(1.7);
            Point::new(q, y).with_interval(y * 0.9, y * 1.15)
        })
    };
    let mut chart = Chart::percentiles("Latency by percentile", Axis::log("latency", Unit::Millis));
    chart.series = vec![
        Series::line("response time", curve(0.4)),
        Series::line("service time", curve(0.15)),
        Series::line("send lateness", curve(0.01)),
    ];
    chart.marks = vec![Mark {
        along: Along::Y,
        at: 20.0,
        label: "objective: p99 < 20 ms".into(),
        role: Role::Ours,
    }];
    let mut section = Section::new("Percentiles");
    section.blocks = vec![Block::Chart(Box::new(chart))];
    section
}

fn many() -> Section {
    let mut chart = Chart::new(
        "Rates over time",
        Axis::linear("time", Unit::Seconds),
        Axis::linear("rate", Unit::PerSecond),
    );
    let wave = |phase: f64, height: f64| {
        (0..600).map(move |n| {
            let x = f64::from(n) * 0.1;
            let y = height * (1.0 + 0.2 * (x / 5.0 + phase).sin() + 0.04 * (x * 7.0).sin());
            Point::new(x, y).with_interval(y * 0.93, y * 1.06)
        })
    };
    chart.series = vec![
        Series::line("offered", wave(0.0, 14_000.0)).shape(Shape::Steps),
        Series::line("achieved", wave(0.4, 11_000.0)),
        Series::line("aborted", wave(0.9, 4_000.0)),
        Series::line("aborted", wave(0.5, 6_000.0)).of_paper(),
    ];
    let mut scatter = Chart::new(
        "Six kinds of points",
        Axis::log("reply size", Unit::Bytes),
        Axis::linear("share of transactions", Unit::Share),
    );
    scatter.series = (0..7)
        .map(|kind| {
            let point = move |n: u32| {
                Point::new(
                    200.0 * 1.4f64.powi(n as i32),
                    0.06 * f64::from(n) + 0.04 * f64::from(kind),
                )
            };
            Series::line(format!("kind {kind}"), (0..12).map(point)).shape(Shape::Points)
        })
        .collect();
    let mut section = Section::new("Many points");
    section.blocks = vec![
        Block::Chart(Box::new(chart)),
        Block::Chart(Box::new(scatter)),
    ];
    section
}

fn bars() -> Section {
    let bar = |label: &str, role, content: f64, overhead: f64| Bar {
        label: label.into(),
        role,
        parts: vec![("content".into(), content), ("overhead".into(), overhead)],
        interval: None,
    };
    let group = |label: &str, ours: (f64, f64), paper: (f64, f64)| Group {
        label: label.into(),
        bars: vec![
            bar("ours", Role::Ours, ours.0, ours.1),
            bar("paper", Role::Paper, paper.0, paper.1),
        ],
    };
    let chart = Bars {
        title: "Bytes on the wire for the same content".into(),
        value: Axis::linear("request and reply", Unit::Bytes),
        groups: vec![
            group("Web service", (589.0, 2912.0), (589.0, 3311.0)),
            group("server page", (589.0, 704.0), (589.0, 611.0)),
            group("JSON", (589.0, 402.0), (589.0, 0.0)),
        ],
        notes: vec![],
    };
    let mut table = Table::new(["kind", "bytes", "state"]);
    table.rows = vec![
        vec![
            Cell::text("Web service").link("#"),
            Cell::number("3,501"),
            Cell::state(State::Pass("ok")),
        ],
        vec![
            Cell::text("server page"),
            Cell::number("1,293"),
            Cell::state(State::Pending("comes with the simulator")),
        ],
    ];
    let mut section = Section::new("Bars and tables");
    section.blocks = vec![
        Block::Bars(Box::new(chart)),
        Block::Table(table),
        Block::Details("More".into(), vec![Block::Text("Inside.".into())]),
    ];
    section
}

fn odd() -> Section {
    let mut empty = Chart::new("No data at all", Axis::default(), Axis::default());
    empty.series = vec![Series::line("nothing", [])];
    let mut lost = Chart::new(
        "A title that is so long that it cannot stand on one line and has to be broken into two of them",
        Axis::linear("x", Unit::Count),
        Axis::log("zero has no place here", Unit::Seconds),
    );
    let ys = [0.0, 0.5, f64::NAN, 2.0, f64::INFINITY, 90.0, 80.0];
    let points = ys.into_iter().enumerate();
    lost.series = vec![Series::line(
        "some are lost",
        points.map(|(x, y)| Point::new(x as f64, y)),
    )];
    let mut section = Section::new("Odd data");
    section.blocks = vec![Block::Chart(Box::new(empty)), Block::Chart(Box::new(lost))];
    section
}
