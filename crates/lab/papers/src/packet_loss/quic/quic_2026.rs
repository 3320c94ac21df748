//! packet-loss/quic-2026: the cost of one lost packet over HTTP/3, beside TCP and TCP with TLS 1.3.

use posthaste_draw::{Axis, Bar, Bars, Chart, Group, Point, Series, Unit};
use posthaste_study::{Check, Figure, MEDIANS, NOISE, Plot, Records};
use posthaste_units::Span;

use super::super::PAPER;
use super::super::cells::quantile;
use super::super::line::NetworkLine;
use super::super::service::{AUTHOR, BOTH, PaperService};
use super::agreement::{agreement, sentence};
use super::cells::{CellKind, CellSource, LineCells, QuicCells};
use super::instrument;
use super::positions::{self, CHANCE, LINES, prompt};
use super::role::PacketRole;
use super::server::{OfferedService, ServerStack};
use super::transport::Transport;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/quic-2026",
    title: "beyond the paper: one lost packet over HTTP/3",
    claim: "The paper measured what a single lost packet costs over TCP, position by position. Over QUIC the packets of the handshake and the last packet of the reply wait for timers, and how long depends on the implementation.",
    paper: PAPER,
    budget: Span::from_secs(220),
    study: &positions::STUDY,
    plot,
    checks,
    differs: include_str!("quic_2026.md").trim_ascii(),
};

/// A curve or a bar: its name and its cells.
type NamedCells<'a> = (String, QuicCells<'a>);

/// Selects the curves of a picture.
type Shown = for<'a> fn(&'a Records, &'static PaperService) -> Vec<NamedCells<'a>>;

/// Packets before the reply, in words.
const EARLY: [(&str, PacketRole); 6] = [
    ("client's 1st", PacketRole::Client(1)),
    ("server's 1st", PacketRole::Server(1)),
    ("server's 2nd", PacketRole::Server(2)),
    ("server's 3rd", PacketRole::Server(3)),
    ("client's 2nd", PacketRole::Client(2)),
    ("client's 3rd", PacketRole::Client(3)),
];

/// Difference of costs up to which two stacks agree, in ms: the maximum delay of an acknowledgement, which some stacks
/// add to a timer and others do not.
const ALIKE_MS: f64 = 25.0;
/// The same as a share of the larger cost.
const ALIKE_SHARE: f64 = 0.1;

/// The cells of our server with the processing time of the paper.
fn ours<'a>(
    records: &'a Records,
    source: CellSource,
    transport: Transport,
    service: &'static PaperService,
) -> QuicCells<'a> {
    let kind = CellKind::new(source, &OfferedService::ours(transport, service));
    QuicCells::new(records, kind)
}

/// The emulated cells of a stack over QUIC without a processing time, which one of them lacks.
fn without_processing<'a>(
    records: &'a Records,
    stack: ServerStack,
    service: &'static PaperService,
) -> QuicCells<'a> {
    let kind = CellKind::new(CellSource::Emulated, &prompt(stack, service));
    QuicCells::new(records, kind)
}

/// The transports with our server, and the same over QUIC in the simulation.
fn transports<'a>(records: &'a Records, service: &'static PaperService) -> Vec<NamedCells<'a>> {
    let emulated = OfferedService::all_of_ours(service).map(|offered| {
        let kind = CellKind::new(CellSource::Emulated, &offered);
        (offered.transport_name(), QuicCells::new(records, kind))
    });
    let simulated = ours(records, CellSource::Simulated, Transport::Quic, service);
    let simulated = ("QUIC, simulated".to_owned(), simulated);
    emulated.into_iter().chain([simulated]).collect()
}

/// The stacks of which there are measurements.
fn stacks<'a>(records: &'a Records, service: &'static PaperService) -> Vec<NamedCells<'a>> {
    let offered = |stack: ServerStack| {
        let cells = without_processing(records, stack, service);
        (stack.name().to_owned(), cells)
    };
    let all = ServerStack::ALL.into_iter().map(offered);
    all.filter(|(_, cells)| !cells.is_empty()).collect()
}

fn plot(records: &Records) -> Vec<Plot> {
    let mut plots = Vec::new();
    for (shown, title) in [
        (transports as Shown, ""),
        (stacks, ", three stacks, no processing time"),
    ] {
        for line in LINES {
            for service in BOTH {
                let shown = shown(records, service);
                plots.push(Plot::Chart(by_packet(service, line, title, &shown)));
            }
            let mut shown = shown(records, &AUTHOR);
            // Kept connections do not differ before the reply.
            shown.retain(|(_, cells)| !cells.is_kept());
            plots.push(Plot::Bars(early(line, title, &shown)));
        }
    }
    plots.push(Plot::Chart(by_chance(records)));
    plots
}

/// Response time by the lost packet of the reply, counted from its last packet.
fn by_packet(
    service: &PaperService,
    line: NetworkLine,
    title: &str,
    shown: &[NamedCells<'_>],
) -> Chart {
    let title = format!(
        "{}: {} kbit/s, {} ms{title}",
        service.name, line.kbit, line.ms
    );
    let x = Axis::linear(
        "the lost packet of the reply, counted from the last one",
        Unit::Count,
    );
    let mut chart = Chart::new(title, x, Axis::linear("response time", Unit::Millis));
    let series = |(name, cells): &NamedCells<'_>| {
        let on = cells.on(line);
        let points = (0..on.reply_packets()).rev().filter_map(|behind| {
            let row = on.row(on.reply(behind))?;
            let point = Point::new(-f64::from(behind), row.number("median_ms"));
            Some(point.with_interval(row.number("low_ms"), row.number("high_ms")))
        });
        Series::line(name.clone(), points)
    };
    chart.series = shown.iter().map(series).collect();
    chart.notes.push(without_loss(line, shown));
    chart.notes.push(MEDIANS.to_owned());
    chart
}

fn without_loss(line: NetworkLine, shown: &[NamedCells<'_>]) -> String {
    let none = shown.iter().map(|(name, cells)| {
        let ms = cells.on(line).ms(PacketRole::None);
        format!("{name} {ms:.0} ms")
    });
    let none: Vec<String> = none.collect();
    format!("Without a loss: {}.", none.join(", "))
}

/// Cost of the loss of each packet before the reply.
fn early(line: NetworkLine, title: &str, shown: &[NamedCells<'_>]) -> Bars {
    let group = |(label, role): (&str, PacketRole)| {
        let bars = shown.iter().filter_map(|(name, cells)| {
            let cost = cells.on(line).cost(role);
            let parts = vec![(name.clone(), cost.round())];
            cost.is_finite().then(|| Bar {
                parts,
                ..Bar::default()
            })
        });
        Group {
            label: label.to_owned(),
            bars: bars.collect(),
        }
    };
    let groups = EARLY.map(group).into_iter();
    Bars {
        title: format!(
            "Packets before the reply: {} kbit/s, {} ms{title}, Author",
            line.kbit, line.ms
        ),
        value: Axis::linear("response time over that without a loss", Unit::Millis),
        groups: groups.filter(|group| !group.bars.is_empty()).collect(),
        notes: vec!["Packets with acknowledgements alone are not counted. Over TCP the first ones are SYN and SYN-ACK, over QUIC Initial packets.".to_owned()],
    }
}

/// Response times with random losses, as a whole distribution.
fn by_chance(records: &Records) -> Chart {
    let (percent, line) = CHANCE;
    let title = format!(
        "Author at {percent} % loss in both directions, {} kbit/s, {} ms",
        line.kbit, line.ms
    );
    let mut chart = Chart::percentiles(title, Axis::log("response time", Unit::Millis));
    let series = |transport: Transport| {
        let mut times = chance(records, transport);
        times.sort_by(f64::total_cmp);
        let count = times.len() as f64;
        // The slowest have no percentile of their own.
        let points = (0..).zip(times).filter(|(_, ms)| ms.is_finite());
        let points = points
            .map(|(packet, ms)| Point::new((f64::from(packet) + 0.5) / count, ms))
            .collect::<Vec<_>>();
        Series::line(transport.name(), points)
    };
    chart.series = Transport::ALL.map(series).into();
    chart.notes.push(format!(
        "{} transactions with each transport.",
        chance(records, Transport::Quic).len()
    ));
    chart
}

fn chance(records: &Records, transport: Transport) -> Vec<f64> {
    let rows = records.table("chance").rows();
    rows.filter(|row| row.text("transport") == transport.key())
        .map(|row| row.number("response_ms"))
        .collect()
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::checks(records);
    checks.push(as_simulated(records));
    checks.extend(first_packets(records));
    checks.push(last_packet(records));
    checks.extend(
        ServerStack::ALL
            .into_iter()
            .skip(1)
            .map(|stack| alike(records, stack)),
    );
    checks.push(distribution(records));
    checks
}

fn as_simulated(records: &Records) -> Check {
    let both = |service| {
        [CellSource::Emulated, CellSource::Simulated]
            .map(|source| ours(records, source, Transport::Quic, service))
    };
    let pairs = BOTH.map(both);
    let found = agreement(&pairs, &LINES);
    Check::goal(found.is_met(), sentence("On these lines", &found))
        .because("packets in the second half of the reply differ on the fastest of these lines, where the reply just fills the window; repeated runs show the same.")
}

/// A cost on each of the lines with one of our transports, Author.
fn costs(
    records: &Records,
    transport: Transport,
    role: impl Fn(&LineCells<'_>) -> PacketRole,
) -> [f64; 3] {
    let cells = ours(records, CellSource::Emulated, transport, &AUTHOR);
    LINES.map(|line| {
        let on = cells.on(line);
        on.cost(role(&on))
    })
}

/// Formats the costs on the three lines.
fn on_lines(costs: [f64; 3]) -> String {
    let [first, second, third] = costs.map(|cost| format!("{cost:.0}"));
    format!("{first}, {second} and {third} ms")
}

fn first_packets(records: &Records) -> [Check; 2] {
    let costs_of =
        |role: PacketRole| Transport::ALL.map(|transport| costs(records, transport, |_| role));
    let [tcp, tls, quic] = costs_of(PacketRole::Client(1));
    let each = quic
        .iter()
        .zip(tls)
        .all(|(quic, tls)| (quic - tls).abs() < 100.0);
    let first = Check::goal(
        each,
        format!(
            "The client's first packet costs the same second with every transport: TCP {}, TCP with TLS {}, QUIC (quinn) {} on the three lines.",
            on_lines(tcp),
            on_lines(tls),
            on_lines(quic)
        ),
    );
    let [_, tls, quic] = costs_of(PacketRole::Client(2));
    let dearer = quic.iter().zip(tls).all(|(quic, tls)| *quic > tls);
    let second = Check::goal(
        dearer,
        format!(
            "The client's second flight costs more over QUIC (quinn), {}, than the ClientHello over TCP with TLS, {}: the timer repeats the handshake, and the lost part of the request later.",
            on_lines(quic),
            on_lines(tls)
        ),
    );
    [first.because(NOISE), second.because(NOISE)]
}

fn last_packet(records: &Records) -> Check {
    let points_of = |offered: OfferedService| {
        let kind = CellKind::new(CellSource::Emulated, &offered);
        let cells = QuicCells::new(records, kind);
        LINES.map(|line| {
            let on = cells.on(line);
            on.cost(on.reply(0))
        })
    };
    let all = OfferedService::all_of_ours(&AUTHOR).map(points_of);
    let [_, _, tls, _, quic] = all;
    let dearer = quic.iter().zip(tls).all(|(quic, tls)| *quic > tls);
    let [tcp, kept_tcp, tls, kept_tls, quic] = all.map(on_lines);
    Check::goal(
        dearer,
        format!(
            "The last packet of the reply costs more over QUIC (quinn), {quic}, than over TCP, {tcp}, and TCP with TLS, {tls}, where the server's FIN and its alert follow the data. On kept connections, where nothing follows, it costs {kept_tcp} over TCP and {kept_tls} over TCP with TLS."
        ),
    )
    .because(NOISE)
}

/// True if two costs in ms agree. One without a reply is infinite, and agrees with none.
fn is_alike(one: f64, other: f64) -> bool {
    let within = ALIKE_MS.max(ALIKE_SHARE * one.max(other));
    within.is_finite() && (one - other).abs() <= within
}

/// Packets for which another stack costs as much as quinn, without a processing time.
fn alike(records: &Records, stack: ServerStack) -> Check {
    let without = |stack| without_processing(records, stack, &AUTHOR);
    let [other, quinn] = [stack, ServerStack::Ours].map(without);
    let (mut same, mut all, mut apart) = (0, 0, Vec::new());
    for line in LINES {
        let [other, quinn] = [&other, &quinn].map(|cells| cells.on(line));
        let early = EARLY.map(|(label, role)| (label.to_owned(), role, role));
        let reply = (0..6).map(|behind| {
            let label = format!("{behind} behind");
            (label, other.reply(behind), quinn.reply(behind))
        });
        for (label, theirs, ours) in early.into_iter().chain(reply) {
            let [theirs, ours] = [other.cost(theirs), quinn.cost(ours)];
            if theirs.is_nan() || ours.is_nan() {
                continue;
            }
            all += 1;
            if is_alike(theirs, ours) {
                same += 1;
            } else {
                apart.push(format!(
                    "{label} at {} kbit/s {theirs:.0} instead of {ours:.0} ms",
                    line.kbit
                ));
            }
        }
    }
    let name = stack.name();
    let list = if apart.is_empty() {
        String::new()
    } else {
        format!(" Apart: {}.", apart.join("; "))
    };
    Check::goal(
        all > 0 && same == all,
        match all {
            0 => format!("{name} is not installed here: nothing is known about it."),
            _ => format!("{name} costs what quinn costs, within {ALIKE_MS} ms or a tenth, for {same} of {all} packets.{list}"),
        },
    )
    .because("stacks start with other timers and windows; docs/papers/quic.md has the reasons, as far as they are known.")
}

fn distribution(records: &Records) -> Check {
    let at = |transport, share: f64| {
        let mut times = chance(records, transport);
        times.sort_by(f64::total_cmp);
        quantile(&times, share)
    };
    let parts = Transport::ALL.map(|transport| {
        let [median, p90, p99] = [0.5, 0.9, 0.99].map(|share| at(transport, share));
        format!("{} {median:.0}, {p90:.0} and {p99:.0} ms", transport.name())
    });
    Check::goal(
        at(Transport::Quic, 0.9) < at(Transport::Tls, 0.9),
        format!(
            "At {} % loss in both directions, median, 90th and 99th percentile: {}.",
            CHANCE.0,
            parts.join("; ")
        ),
    )
    .because("a lost last packet waits for a timer over QUIC, a lost second flight of the client for two, and each padded Initial packet occupies this line for 33 ms.")
}

#[cfg(test)]
mod tests {
    use super::is_alike;

    #[test]
    fn costs_without_a_reply_agree_with_none() {
        assert!(is_alike(20.0, 44.0) && is_alike(1000.0, 1090.0));
        assert!(!is_alike(20.0, 46.0) && !is_alike(1000.0, 1120.0));
        let never = f64::INFINITY;
        assert!(!is_alike(never, 20.0) && !is_alike(never, never));
    }
}
