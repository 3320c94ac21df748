//! packet-loss/quic-sweep-2026: the 56 lines of the paper over QUIC, TCP, and TCP with TLS 1.3.

use posthaste_draw::{Axis, Bar, Bars, Chart, Group, Point, Series, Unit};
use posthaste_study::{Check, Figure, NOISE, Plot, Records};
use posthaste_units::Span;

use super::super::PAPER;
use super::super::cells::quantile;
use super::super::line::{BANDWIDTHS, DELAYS, NetworkLine, all};
use super::super::service::{AUTHOR, BOTH, PaperService};
use super::agreement::{agreement, told};
use super::cells::{CellKind, CellSource, LineCells, QuicCells};
use super::instrument;
use super::role::PacketRole;
use super::server::OfferedService;
use super::sweep::{self, VARIES};
use super::transport::Transport;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/quic-sweep-2026",
    title: "beyond the paper: lost packets over HTTP/3 on 56 lines",
    claim: "The paper compares a late loss with one in the middle of the reply on 56 lines. QUIC (quinn) saves a part of the round trip of TLS on most of them; whether a transaction with a loss is faster depends on the packet.",
    paper: PAPER,
    budget: Span::from_secs(300),
    study: &sweep::STUDY,
    plot,
    checks,
    differs: include_str!("quic_sweep_2026.md").trim_ascii(),
};

fn cells<'a>(
    records: &'a Records,
    source: CellSource,
    transport: Transport,
    service: &'static PaperService,
    variant: &'static str,
) -> QuicCells<'a> {
    let kind = CellKind {
        variant,
        ..CellKind::of(source, &OfferedService::ours(transport, service))
    };
    QuicCells::new(records, kind)
}

fn plot(records: &Records) -> Vec<Plot> {
    let mut plots = Vec::new();
    for service in BOTH {
        for transport in [Transport::Quic, Transport::Tls] {
            plots.push(Plot::Chart(increase(records, transport, service)));
        }
    }
    plots.push(Plot::Bars(wins(records)));
    plots
}

/// The paper's relative increase over the delay, one curve per bandwidth.
fn increase(records: &Records, transport: Transport, service: &'static PaperService) -> Chart {
    let title = format!(
        "{}: relative increase, {}, simulated",
        service.name,
        transport.name()
    );
    let x = Axis::linear("end-to-end delay", Unit::Millis);
    let mut chart = Chart::new(title, x, Axis::linear("increase", Unit::Share));
    let cells = cells(records, CellSource::Simulated, transport, service, VARIES);
    let series = |kbit: &u32| {
        let points = DELAYS.map(|ms| {
            let on = cells.on(NetworkLine { kbit: *kbit, ms });
            Point::new(f64::from(ms), on.increase())
        });
        Series::line(format!("{kbit} kbit/s"), points)
    };
    chart.series = BANDWIDTHS.iter().map(series).collect();
    chart.ordered = true;
    chart.notes.push("The mean of a loss of one of the last three packets of the reply over one of the packet with five behind it.".to_owned());
    chart
}

/// A packet in words, and its role among the cells of a line.
type LostOne = (&'static str, fn(&LineCells<'_>) -> PacketRole);

const LOST: [LostOne; 7] = [
    ("nothing", |_| PacketRole::None),
    ("client's 1st", |_| PacketRole::Client(1)),
    ("server's 1st", |_| PacketRole::Server(1)),
    ("client's 2nd", |_| PacketRole::Client(2)),
    ("reply, 5 behind", |on| on.reply(5)),
    ("reply, last but one", |on| on.reply(1)),
    ("reply, last", |on| on.reply(0)),
];

/// Response time over QUIC as a share of that over TCP with TLS, on every line with both, ascending.
fn relative(records: &Records, service: &'static PaperService, lost: LostOne) -> Vec<f64> {
    let of = |transport| cells(records, CellSource::Simulated, transport, service, "");
    let [quic, tls] = [Transport::Quic, Transport::Tls].map(of);
    let ratio = |line| {
        let [quic, tls] = [&quic, &tls].map(|cells| {
            let on = cells.on(line);
            on.ms((lost.1)(&on))
        });
        quic / tls
    };
    let mut ratios: Vec<f64> = all().map(ratio).collect();
    // Those without a reply are infinite, and stay.
    ratios.retain(|ratio| !ratio.is_nan());
    ratios.sort_by(f64::total_cmp);
    ratios
}

fn wins(records: &Records) -> Bars {
    let group = |lost: LostOne| Group {
        label: lost.0.to_owned(),
        bars: BOTH
            .map(|service| {
                let ratios = relative(records, service, lost);
                let [low, median, high] = [0.25, 0.5, 0.75].map(|share| quantile(&ratios, share));
                Bar {
                    parts: vec![(service.name.to_owned(), (100.0 * median).round() / 100.0)],
                    interval: Some((low, high)),
                    ..Bar::default()
                }
            })
            .into(),
    };
    Bars {
        title: "QUIC over TCP with TLS 1.3, by the lost packet, simulated".to_owned(),
        value: Axis::linear("response time as a share of that over TCP with TLS", Unit::Share),
        groups: LOST.map(group).into(),
        notes: vec!["Medians of 56 lines; whiskers reach from quartile to quartile. Below 100 % QUIC is faster.".to_owned()],
    }
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::checks(records);
    let lines: Vec<NetworkLine> = all().collect();
    let pairs = BOTH.map(|service| {
        [CellSource::Emulated, CellSource::Simulated]
            .map(|source| cells(records, source, Transport::Quic, service, ""))
    });
    let found = agreement(&pairs, &lines);
    checks.push(Check::goal(found.is_met(), told("On all lines", &found)).because(NOISE));
    checks.extend(LOST.map(|lost| faster(records, lost)));
    checks.push(late(records));
    checks
}

/// States on how many lines QUIC is faster with this loss.
fn faster(records: &Records, lost: LostOne) -> Check {
    let ratios = relative(records, &AUTHOR, lost);
    let faster = ratios.iter().filter(|ratio| **ratio < 1.0).count();
    let at = |share| 100.0 * (quantile(&ratios, share) - 1.0);
    Check::goal(
        2 * faster > ratios.len(),
        format!(
            "Lost: {}. QUIC (quinn) is faster than TCP with TLS 1.3 on {faster} of {} lines: {:+.0} % at the median ({:+.0} to {:+.0} %), Author, simulated.",
            lost.0,
            ratios.len(),
            at(0.5),
            at(0.0),
            at(1.0)
        ),
    )
    .because("the packet is one that QUIC repairs later than TCP.")
}

fn late(records: &Records) -> Check {
    let median = |transport| {
        let cells = cells(records, CellSource::Simulated, transport, &AUTHOR, VARIES);
        let mut values: Vec<f64> = all().map(|line| cells.on(line).increase()).collect();
        // Those without a reply are infinite, and stay.
        values.retain(|value| !value.is_nan());
        values.sort_by(f64::total_cmp);
        100.0 * quantile(&values, 0.5)
    };
    let [tcp, tls, quic] = Transport::ALL.map(median);
    Check::goal(
        quic > tcp,
        format!(
            "A loss among the last three packets takes {quic:.0} % longer than one in the middle over QUIC (quinn) at the median of all lines, {tcp:.0} % over TCP and {tls:.0} % over TCP with TLS 1.3: Author, simulated, delays as in the paper."
        ),
    )
}
