//! packet-loss/quic-sweep-2026: the 56 lines of the paper over QUIC, TCP, and TCP with TLS 1.3.

use posthaste_draw::{Axis, Bar, Bars, Chart, Group, Point, Series, Unit};
use posthaste_study::{Check, Figure, NOISE, Plot, Records};
use posthaste_units::Span;

use super::super::PAPER;
use super::super::cells::quantile;
use super::super::line::{BANDWIDTHS, DELAYS, NetworkLine, all};
use super::super::service::{AUTHOR, BOTH, PaperService};
use super::agreement::{agreement, sentence};
use super::cells::{CellKind, CellSource, LineCells, QuicCells};
use super::instrument;
use super::role::PacketRole;
use super::server::OfferedService;
use super::sweep;
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

/// The cells of our server with steady delays.
fn cells<'a>(records: &'a Records, source: CellSource, offered: &OfferedService) -> QuicCells<'a> {
    QuicCells::new(records, CellKind::new(source, offered))
}

/// The simulated cells with delays that vary.
fn varying<'a>(records: &'a Records, offered: &OfferedService) -> QuicCells<'a> {
    let kind = CellKind::new(CellSource::Simulated, offered);
    QuicCells::new(records, kind.varying())
}

fn plot(records: &Records) -> Vec<Plot> {
    let mut plots = Vec::new();
    for service in BOTH {
        for transport in [Transport::Quic, Transport::Tls] {
            let offered = OfferedService::ours(transport, service);
            plots.push(Plot::Chart(increase(records, &offered)));
        }
    }
    plots.push(Plot::Bars(wins(records)));
    plots
}

/// The paper's relative increase over the delay, one curve per bandwidth.
fn increase(records: &Records, offered: &OfferedService) -> Chart {
    let title = format!(
        "{}: relative increase, {}, simulated",
        offered.service.name,
        offered.transport_name()
    );
    let x = Axis::linear("end-to-end delay", Unit::Millis);
    let mut chart = Chart::new(title, x, Axis::linear("increase", Unit::Share));
    let cells = varying(records, offered);
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

/// A lost packet, and what QUIC is compared with.
struct LostOne {
    name: &'static str,
    role: fn(&LineCells<'_>) -> PacketRole,
    /// The TCP connections are kept, so that no FIN follows the reply.
    against_kept: bool,
}

const fn lost(name: &'static str, role: fn(&LineCells<'_>) -> PacketRole) -> LostOne {
    LostOne {
        name,
        role,
        against_kept: false,
    }
}

const LOST: [LostOne; 9] = [
    lost("nothing", |_| PacketRole::None),
    lost("client's 1st", |_| PacketRole::Client(1)),
    lost("server's 1st", |_| PacketRole::Server(1)),
    lost("client's 2nd", |_| PacketRole::Client(2)),
    lost("reply, 5 behind", |on| on.reply(5)),
    lost(LAST_BUT_ONE, |on| on.reply(1)),
    lost(LAST, |on| on.reply(0)),
    LostOne {
        against_kept: true,
        ..lost(LAST_BUT_ONE, |on| on.reply(1))
    },
    LostOne {
        against_kept: true,
        ..lost(LAST, |on| on.reply(0))
    },
];
const LAST_BUT_ONE: &str = "reply, last but one";
const LAST: &str = "reply, last";

impl LostOne {
    /// The services to compare: QUIC, and TCP with TLS.
    fn pair(&self, service: &'static PaperService) -> [OfferedService; 2] {
        let [quic, tls] = [Transport::Quic, Transport::Tls]
            .map(|transport| OfferedService::ours(transport, service));
        let is_kept = self.against_kept;
        [quic, OfferedService { is_kept, ..tls }]
    }
}

/// Response time over QUIC as a share of that over TCP with TLS, on every line with both, ascending.
fn relative(records: &Records, service: &'static PaperService, lost: &LostOne) -> Vec<f64> {
    let pair = lost.pair(service);
    let [quic, tls] = pair.map(|offered| cells(records, CellSource::Simulated, &offered));
    let ratio = |line| {
        let [quic, tls] = [&quic, &tls].map(|cells| {
            let on = cells.on(line);
            on.ms((lost.role)(&on))
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
        label: if lost.against_kept {
            format!("{}, TCP kept", lost.name)
        } else {
            lost.name.to_owned()
        },
        bars: BOTH
            .map(|service| {
                let ratios = relative(records, service, &lost);
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
        notes: vec!["Medians of 56 lines; whiskers reach from quartile to quartile. Below 100 % QUIC is faster. The last two groups compare with kept connections, on which no FIN follows the reply.".to_owned()],
    }
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::checks(records);
    let lines: Vec<NetworkLine> = all().collect();
    let pairs = BOTH.map(|service| {
        [CellSource::Emulated, CellSource::Simulated].map(|source| {
            cells(
                records,
                source,
                &OfferedService::ours(Transport::Quic, service),
            )
        })
    });
    let found = agreement(&pairs, &lines);
    checks.push(Check::goal(found.is_met(), sentence("On all lines", &found)).because(NOISE));
    checks.extend(LOST.iter().map(|lost| faster(records, lost)));
    checks.push(late(records));
    checks
}

/// States on how many lines QUIC is faster with this loss.
fn faster(records: &Records, lost: &LostOne) -> Check {
    let ratios = relative(records, &AUTHOR, lost);
    let faster = ratios.iter().filter(|ratio| **ratio < 1.0).count();
    let at = |share| 100.0 * (quantile(&ratios, share) - 1.0);
    let [_, tls] = lost.pair(&AUTHOR);
    Check::goal(
        2 * faster > ratios.len(),
        format!(
            "Lost: {}. QUIC (quinn) is faster than {} on {faster} of {} lines: {:+.0} % at the median ({:+.0} to {:+.0} %), Author, simulated.",
            lost.name,
            tls.transport_name(),
            ratios.len(),
            at(0.5),
            at(0.0),
            at(1.0)
        ),
    )
    .because("the packet is one that QUIC repairs later than TCP.")
}

fn late(records: &Records) -> Check {
    let median = |offered: OfferedService| {
        let cells = varying(records, &offered);
        let mut values: Vec<f64> = all().map(|line| cells.on(line).increase()).collect();
        // Those without a reply are infinite, and stay.
        values.retain(|value| !value.is_nan());
        values.sort_by(f64::total_cmp);
        100.0 * quantile(&values, 0.5)
    };
    let [tcp, kept_tcp, tls, kept_tls, quic] = OfferedService::all_of_ours(&AUTHOR).map(median);
    Check::goal(
        quic > tcp,
        format!(
            "A loss among the last three packets takes {quic:.0} % longer than one in the middle over QUIC (quinn) at the median of all lines, {tcp:.0} % over TCP and {tls:.0} % over TCP with TLS 1.3, and {kept_tcp:.0} and {kept_tls:.0} % on kept connections: Author, simulated, delays as in the paper."
        ),
    )
}
