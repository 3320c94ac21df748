//! Tests of charts and pages through the public interface: complete results, and unusual data that must not panic.

use posthaste_draw::{
    Along, Arrow, Axis, Bar, Bars, Block, Chart, Format, Group, Ladder, Line, Mark, Page, Point,
    Role, Scale, Section, Series, Shape, Side, TopAxis, Unit, Wait,
};

fn rates() -> Chart {
    let mut chart = Chart::new(
        "Mean response time",
        Axis::linear("rate / capacity", Unit::Count),
        Axis::linear("mean response time", Unit::Millis),
    );
    chart.top = Some(TopAxis {
        label: "the paper's rate".into(),
        unit: Unit::PerSecond,
        factor: 145.0,
        offset: 0.0,
    });
    let ours = [(0.5, 2.0), (1.0, 2.5), (1.5, 90.0)];
    let points = |scale: f64| ours.map(|(x, y)| Point::new(x, y * scale));
    chart.series = vec![
        Series::line(
            "page",
            points(1.0).map(|p| p.clone().with_interval(p.y * 0.9, p.y * 1.1)),
        ),
        Series::line("page", points(1.3)).of_paper(),
    ];
    chart.marks = vec![Mark {
        along: Along::X,
        at: 1.0,
        label: "capacity".into(),
        role: Role::Ours,
    }];
    chart
}

fn bytes() -> Bars {
    let bar = |label: &str, role, overhead| Bar {
        label: label.into(),
        role,
        parts: vec![("content".into(), 589.0), ("overhead".into(), overhead)],
        interval: None,
    };
    Bars {
        title: "Bytes on the wire".into(),
        value: Axis::linear("bytes", Unit::Bytes),
        groups: vec![Group {
            label: "Web service".into(),
            bars: vec![
                bar("ours", Role::Ours, 2912.0),
                bar("paper", Role::Paper, 3311.0),
            ],
        }],
        notes: vec!["Headers included.".into()],
    }
}

#[test]
fn a_chart_with_two_x_axes() {
    insta::assert_snapshot!(rates().inline().into_string());
}

#[test]
fn stacked_bars() {
    insta::assert_snapshot!(bytes().inline().into_string());
}

#[test]
fn crowded_bars_find_room_for_their_words() {
    let group = || Group {
        label: "early-retransmit".to_owned(),
        bars: ["mean", "p50", "p90", "p99"]
            .map(|name| Bar::single(name, 1.0))
            .into(),
    };
    let bars = |count| Bars {
        groups: (0..count).map(|_| group()).collect(),
        ..Bars::default()
    };
    let found = |count, text: &str| bars(count).svg().matches(text).count();
    // The legend also contains a bar's name.
    assert_eq!(found(2, ">p50</text>"), 3);
    assert_eq!(found(11, ">p50</text>"), 1);
    assert_eq!(found(2, ">early-retransmit</text>"), 2);
    assert_eq!(found(10, ">retransmit</text>"), 10);
    assert_eq!(
        found(
            40,
            "rotate(-90)\" text-anchor=\"end\">early-retransmit</text>"
        ),
        40
    );
}

/// One bar on an axis that ends at 10 ms.
fn one_bar_of_ten(value: f64) -> Bars {
    Bars {
        value: Axis::linear("time", Unit::Millis).range(0.0, 10.0),
        groups: vec![Group {
            label: "all".to_owned(),
            bars: vec![Bar::single("one", value)],
        }],
        ..Bars::default()
    }
}

#[test]
fn a_bar_that_is_longer_than_the_axis_ends_where_the_axis_does() {
    let rectangle = |value| {
        let svg = one_bar_of_ten(value).inline().into_string();
        let (_, rectangle) = svg.split_once("ph-hit").unwrap();
        rectangle.split_once('>').unwrap().0.to_owned()
    };
    assert_eq!(rectangle(1e3), rectangle(10.0));
    assert_ne!(rectangle(1e3), rectangle(5.0));
}

#[test]
fn a_bar_that_is_cut_carries_a_mark_and_its_number() {
    let drawn = |value| one_bar_of_ten(value).svg();
    let gap = "class=\"ph-surface\"><g";
    assert!(drawn(1e3).contains(gap) && !drawn(10.0).contains(gap));
    let note = "Cut at the end of the axis: all one, 1 s.";
    assert!(drawn(1e3).contains(note), "{}", drawn(1e3));
}

#[test]
fn a_small_drawing_leaves_title_and_notes_to_the_page() {
    let chart = Chart {
        notes: vec!["A remark.".to_owned()],
        ..rates()
    };
    let title = "\"ph-text ph-title\"";
    let [wide, narrow, small] =
        [Format::Wide, Format::Narrow, Format::Small].map(|size| chart.svg_in(size));
    for whole in [wide, narrow] {
        assert!(whole.contains(title) && whole.contains("A remark."));
    }
    assert!(!small.contains(title) && !small.contains("A remark."));
}

#[test]
fn a_percentile_curve() {
    let mut chart = Chart::percentiles("Latency", Axis::log("latency", Unit::Millis));
    let quantiles = [
        (0.5, 0.2),
        (0.9, 0.8),
        (0.99, 4.0),
        (0.999, 30.0),
        (1.0, 31.0),
    ];
    chart.series = vec![Series::line(
        "all",
        quantiles.map(|(q, ms)| Point::new(q, ms)),
    )];
    insta::assert_snapshot!(chart.inline().into_string());
}

#[test]
fn the_same_data_make_the_same_bytes_and_stand_alone() {
    let svg = rates().svg();
    assert_eq!(svg, rates().svg());
    assert!(svg.starts_with("<svg") && svg.contains("role=\"img\"") && svg.contains("<desc>"));
    assert!(svg.contains("page, paper\nrate / capacity: 1.5\nmean response time: 117 ms"));
    assert!(!svg.contains(" id="), "ids would clash in a page");
}

#[test]
fn twenty_charts_share_one_page_and_one_style() {
    let mut section = Section::new("Charts");
    for _ in 0..20 {
        section.blocks.push(Block::Chart(Box::new(rates())));
        section.blocks.push(Block::Bars(Box::new(bytes())));
    }
    let page = Page {
        sections: vec![section],
        ..Page::default()
    };
    let html = page.html();
    let sizes = 2;
    assert_eq!(html.matches("<svg class=\"ph-chart\"").count(), 40 * sizes);
    assert_eq!(html.matches("<style").count(), 1);
    assert_eq!(html.matches("id=\"s-charts\"").count(), 1);
}

#[test]
fn odd_data_are_drawn_or_counted() {
    let odd = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        -1.0,
        1.0,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        1e-300,
        1e140,
    ];
    let all: Vec<Point> = odd
        .iter()
        .flat_map(|x| odd.iter().map(|y| Point::new(*x, *y).with_interval(*x, *y)))
        .collect();
    let zeros = vec![Point::new(0.0, 0.0); 3];
    let sets = [vec![], vec![Point::new(3.0, 4.0)], zeros, all];
    for points in sets {
        for (scale, shape) in [Scale::Linear, Scale::Log, Scale::Percentile]
            .into_iter()
            .flat_map(|scale| [Shape::Line, Shape::Points, Shape::Steps].map(|s| (scale, s)))
        {
            let axis = |range| Axis {
                scale,
                range,
                ..Axis::linear("axis", Unit::Seconds)
            };
            for range in [
                None,
                Some((1.0, 0.5)),
                Some((f64::NAN, 1.0)),
                Some((0.1, 0.9)),
            ] {
                let mut chart = Chart::new("odd", axis(range), axis(range));
                chart.series = vec![Series::line("s", points.clone()).shape(shape)];
                chart.marks = odd
                    .map(|at| Mark {
                        along: Along::Y,
                        at,
                        label: "m".into(),
                        role: Role::Paper,
                    })
                    .to_vec();
                let svg = chart.svg();
                for word in ["NaN", "inf"] {
                    assert!(!svg.contains(word), "{svg}");
                }
                chart.numbers();
            }
        }
    }
    let mut bars = bytes();
    bars.groups[0].bars = odd.map(|value| Bar::single("b", value)).to_vec();
    assert!(
        bars.svg()
            .contains("Omitted, not a number or below zero: 8."),
        "{}",
        bars.svg()
    );
    bars.groups.clear();
    bars.svg();
}

#[test]
fn ten_thousand_points_stay_small() {
    let mut chart = rates();
    let wave =
        |n: u32| Point::new(f64::from(n), f64::from(n * 7919 % 1000)).with_interval(0.0, 1e3);
    for shape in [Shape::Line, Shape::Points, Shape::Steps] {
        chart.series = vec![Series::line("many", (0..10_000).map(wave)).shape(shape)];
        let length = chart.svg().len();
        assert!(length < 1_600_000, "{shape:?}: {length}");
    }
}

/// A transaction whose last data segment is lost and retransmitted after a timeout.
fn late_loss() -> Ladder {
    use Line::{Acknowledgement, Again, Control, Data};
    use Side::{Left, Right};
    let arrow = |from, line, departed, ended, label: &str| Arrow {
        from,
        line,
        departed,
        ended,
        lost: None,
        label: label.into(),
        hint: String::new(),
    };
    let mut lost = arrow(Right, Data, 260.4, 260.4, "4 data 1449:2049 FIN");
    lost.lost = Some("pattern".into());
    lost.hint = "652 bytes".into();
    Ladder {
        title: "One transaction at 300 kbit/s and 10 ms".into(),
        ends: ["client 10.0.0.1:40000".into(), "server 10.0.0.2:80".into()],
        arrows: vec![
            arrow(Left, Control, 0.0, 12.0, "1 SYN"),
            arrow(Right, Control, 12.1, 24.1, "1 SYN-ACK"),
            arrow(Left, Acknowledgement, 24.2, 35.9, "2 ack 1"),
            arrow(Left, Data, 24.3, 46.0, "3 data 1:301"),
            arrow(Right, Acknowledgement, 46.1, 57.9, "2 ack 301"),
            arrow(Right, Data, 260.2, 310.6, "3 data 1:1449"),
            lost,
            arrow(Left, Acknowledgement, 310.7, 322.5, "4 ack 1449"),
            arrow(Right, Again, 684.4, 711.8, "5 data 1449:2049 rto"),
            arrow(Left, Acknowledgement, 711.9, 723.7, "5 ack 2050"),
        ],
        waits: vec![Wait {
            side: Right,
            since: 260.4,
            until: 684.4,
            label: "timeout, 424 ms".into(),
        }],
        notes: vec!["Sequence numbers count from the SYN.".into()],
    }
}

#[test]
fn a_packet_ladder() {
    insta::assert_snapshot!(late_loss().inline().into_string());
}

#[test]
fn a_packet_ladder_for_a_terminal() {
    let text = late_loss().text();
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn odd_ladders_are_drawn_or_counted() {
    let odd = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -1.0,
        0.0,
        0.0,
        1e-9,
        1.0,
        1e15,
    ];
    let mut ladder = late_loss();
    ladder.title = "long ".repeat(100);
    ladder.ends = ["e".repeat(200), String::new()];
    ladder.waits.push(Wait {
        side: Side::Left,
        since: 5.0,
        until: -5.0,
        label: "w".repeat(300),
    });
    let pairs = odd
        .iter()
        .flat_map(|from| odd.iter().map(move |to| (*from, *to)));
    ladder.arrows = pairs
        .enumerate()
        .map(|(index, (departed, ended))| Arrow {
            from: if index % 2 == 0 {
                Side::Left
            } else {
                Side::Right
            },
            line: Line::Data,
            departed,
            ended,
            lost: (index % 3 == 0).then(|| "reason ".repeat(20)),
            label: "label ".repeat(index),
            hint: "<&\"".into(),
        })
        .collect();
    let (svg, text) = (ladder.svg(), ladder.text());
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(
        text.contains("Omitted, without a position in time: 59."),
        "{text}"
    );
    ladder.arrows.clear();
    assert!(!ladder.svg().contains("NaN"));
    ladder.text();
}
