//! packet-loss/remedies: the gain of each remedy for a late loss, and its effect without one.

use posthaste_draw::{Axis, Bar, Bars, Chart, Group, Point, Series, Unit};
use posthaste_study::{Check, Figure, Plot, RecordRow, Records};
use posthaste_tcp::remedy::Remedy;

use super::cells::quantile;
use super::stack::{FREEBSD, LINUX, LINUX_6, SimulatedStack};
use super::trials::{self, NOTHING, ON, PERCENT, SHOWN};
use super::{PAPER, SIMULATED};

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/remedies",
    title: "beyond the paper: its remedies and later ones, simulated on 56 lines",
    claim: "The paper discusses remedies for the loss of one of the last packets and measures none: a shorter timer, smart framing, early retransmit, and its own, a receiver that repeats its acknowledgement from the FIN on. It expects two advantages of its own remedy: fewer unnecessary segments than with a shorter timer and early retransmit, and no header cost as with smart framing.",
    paper: PAPER,
    budget: SIMULATED,
    study: &trials::STUDY,
    plot,
    checks,
    differs: include_str!("remedies_compared.md").trim_ascii(),
};

/// The remedies in the picture by position.
const IN_FRONT: [Option<Remedy>; 6] = [
    None,
    Some(Remedy::AdaptiveAcks),
    Some(Remedy::AdaptiveAcksOwnFin),
    Some(Remedy::ShortTimeout),
    Some(Remedy::EarlyRetransmit),
    Some(Remedy::TailProbe),
];

/// Results by stack and remedy.
struct RemedyResults<'a> {
    records: &'a Records,
}

impl<'a> RemedyResults<'a> {
    fn rows(&self, stack: &SimulatedStack, remedy: &'a str) -> impl Iterator<Item = RecordRow<'a>> {
        let key = stack.key;
        let rows = self.records.table("trials").rows();
        rows.filter(move |row| row.text("stack") == key && row.text("remedy") == remedy)
    }

    /// Mean of a column over all lines.
    fn mean(&self, stack: &SimulatedStack, remedy: &'a str, column: &str) -> f64 {
        let values = self.rows(stack, remedy).map(|row| row.number(column));
        let (sum, count) =
            values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
        sum / count
    }

    /// Response time of a late loss minus that without loss, in ms. The median of all lines.
    fn penalty(&self, stack: &SimulatedStack, remedy: &'a str) -> f64 {
        let rows = self.rows(stack, remedy);
        median(rows.map(|row| row.number("late_ms") - row.number("none_ms")))
    }

    /// Relative difference of a column to that without a remedy, in percent. The median of all lines.
    fn change(&self, stack: &SimulatedStack, remedy: &'a str, column: &str) -> f64 {
        let pairs = self.rows(stack, remedy).zip(self.rows(stack, NOTHING));
        median(
            pairs.map(|(with, without)| {
                100.0 * (with.number(column) / without.number(column) - 1.0)
            }),
        )
    }

    /// Needless segments per hundred transactions in which packets were only late.
    fn for_nothing(&self, stack: &SimulatedStack, remedy: &'a str) -> f64 {
        100.0 * self.mean(stack, remedy, "held_for_nothing")
    }

    /// Position, median response time and share that waited, on the line of the picture.
    fn by_position(&self, stack: &SimulatedStack, remedy: &'a str) -> Vec<(f64, f64, f64)> {
        let key = stack.key;
        let rows = self.records.table("positions").rows();
        rows.filter(move |row| row.text("stack") == key && row.text("remedy") == remedy)
            .map(|row| {
                let numbers = ["position", "median_ms", "waits"].map(|column| row.number(column));
                (numbers[0], numbers[1], numbers[2])
            })
            .collect()
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

fn plot(records: &Records) -> Vec<Plot> {
    let found = RemedyResults { records };
    vec![
        Plot::Chart(positions(&found)),
        Plot::Bars(compared(
            "What a late loss takes over none",
            Axis::linear("milliseconds more, median of the lines", Unit::Millis),
            |stack, remedy| found.penalty(stack, remedy),
        )),
        Plot::Bars(compared(
            "Packets that only come late: what is sent for nothing",
            Axis::linear("segments in a hundred transactions", Unit::Count),
            |stack, remedy| found.for_nothing(stack, remedy),
        )),
        Plot::Bars(compared(
            &format!("{PERCENT} % of loss by chance"),
            Axis::linear("mean response time", Unit::Millis),
            |stack, remedy| found.mean(stack, remedy, "chance_ms"),
        )),
        Plot::Bars(compared(
            "Bytes on the line without loss",
            Axis::linear("bytes of a transaction, both ways", Unit::Count),
            |stack, remedy| found.mean(stack, remedy, "bytes"),
        )),
    ]
}

/// The selected remedies on the paper's FreeBSD, by position.
fn positions(found: &RemedyResults<'_>) -> Chart {
    let title = format!("{}: {} kbit/s, {} ms", FREEBSD.name, SHOWN.kbit, SHOWN.ms);
    let time = Axis::linear("response time", Unit::Millis);
    let mut chart = Chart::new(title, super::curves::positions(), time);
    let series = |remedy: Option<Remedy>| {
        let name = trials::name(remedy);
        let points = found.by_position(&FREEBSD, name);
        let points = points.into_iter().map(|(position, ms, waits)| {
            let mut point = Point::new(position, ms);
            point.hint = format!("{:.0} % wait for a timeout", 100.0 * waits);
            point
        });
        Series::line(name, points)
    };
    chart.series = IN_FRONT.map(series).into();
    chart
}

/// One group per remedy, one bar per stack.
fn compared(
    title: &str,
    value: Axis,
    value_of: impl Fn(&SimulatedStack, &'static str) -> f64,
) -> Bars {
    let group = |remedy: Option<Remedy>| {
        let name = trials::name(remedy);
        let bar = |stack: &'static SimulatedStack| Bar {
            parts: vec![(
                stack.name.to_owned(),
                (10.0 * value_of(stack, name)).round() / 10.0,
            )],
            ..Bar::default()
        };
        Group {
            label: name.to_owned(),
            bars: ON.map(bar).into_iter().filter(is_known).collect(),
        }
    };
    Bars {
        title: title.to_owned(),
        value,
        groups: trials::remedies().map(group).collect(),
        notes: vec!["A bar that is missing: the stack has it already.".to_owned()],
    }
}

fn is_known(bar: &Bar) -> bool {
    bar.parts.iter().all(|(_, amount)| amount.is_finite())
}

/// The answer of this run: the gain of the paper's proposal, and the rest of the problem.
pub(crate) fn answer(records: &Records) -> String {
    let found = RemedyResults { records };
    let [plain, adaptive, own] =
        [NOTHING, ADAPTIVE, OWN_FIN].map(|remedy| found.penalty(&FREEBSD, remedy));
    let today = found.penalty(&LINUX_6, NOTHING);
    format!(
        "A late loss costs FreeBSD 6.0, a sender without SACK, {plain:.0} ms at the median of 56 lines, with the proposal {adaptive:.0} ms, with it and the FIN in a packet of its own {own:.0} ms. Today's Linux without it: {today:.0} ms."
    )
}

fn checks(records: &Records) -> Vec<Check> {
    let found = RemedyResults { records };
    let mut checks = vec![instrument(records)];
    checks.push(by_position(&found));
    checks.push(gain(&found));
    checks.extend(for_nothing(&found));
    checks.push(headers(&found));
    checks.push(sack(&found));
    checks.push(superfluous(&found));
    checks.push(chance(&found));
    checks
}

fn instrument(records: &Records) -> Check {
    let total = |column: &str| -> f64 {
        let rows = records.table("trials").rows();
        rows.map(|row| row.number(column)).sum()
    };
    let [all, well, planned] = ["transactions", "well", "planned"].map(total);
    Check::instrument(
        well == all && planned == all && all > 0.0,
        format!(
            "{well} of {all} simulated transactions ended with the whole reply and both ends closed; in {planned} the link dropped nothing but what it was to drop."
        ),
    )
}

const ADAPTIVE: &str = Remedy::AdaptiveAcks.name();
const OWN_FIN: &str = Remedy::AdaptiveAcksOwnFin.name();
const TIMER: &str = Remedy::ShortTimeout.name();
const EARLY: &str = Remedy::EarlyRetransmit.name();
const FRAMING: &str = Remedy::SmartFraming.name();
const PROBE: &str = Remedy::TailProbe.name();

/// Checks the proposal on the sender that it was designed for.
fn by_position(found: &RemedyResults<'_>) -> Check {
    let at = |remedy| {
        let all = found.by_position(&FREEBSD, remedy);
        [8.0, 9.0, 10.0, 11.0].map(|wanted| {
            let row = all.iter().find(|(position, ..)| *position == wanted);
            row.map_or(f64::NAN, |(_, ms, _)| *ms)
        })
    };
    let [plain, adaptive, own] = [NOTHING, ADAPTIVE, OWN_FIN].map(at);
    let listed = |times: [f64; 4]| times.map(|ms| format!("{ms:.0}")).join(", ");
    let works = (0..3).all(|index| adaptive[index] < 0.8 * plain[index]);
    Check::goal(
        works && adaptive[3] > 0.9 * plain[3] && own[3] < 0.8 * plain[3],
        format!(
            "FreeBSD 6.0 at {} kbit/s and {} ms, a loss at position 8, 9, 10 and 11: {} ms; with adaptive duplicate ACKs {} ms: they help at 8 to 10 and not at 11, where the FIN is lost with the data; with the FIN in a packet of its own {} ms.",
            SHOWN.kbit,
            SHOWN.ms,
            listed(plain),
            listed(adaptive),
            listed(own)
        ),
    )
}

/// Penalty of a late loss with each remedy.
fn gain(found: &RemedyResults<'_>) -> Check {
    let penalty = |remedy| found.penalty(&FREEBSD, remedy);
    let [plain, adaptive, own] = [NOTHING, ADAPTIVE, OWN_FIN].map(penalty);
    let [timer, early, framing, probe] = [TIMER, EARLY, FRAMING, PROBE].map(penalty);
    Check::goal(
        adaptive < 0.8 * plain,
        format!(
            "FreeBSD 6.0, all lines: a late loss takes {plain:.0} ms over none at the median; with adaptive duplicate ACKs {adaptive:.0}, with them and the FIN apart {own:.0}, with a timeout of 50 ms {timer:.0}, with early retransmit {early:.0}, with smart framing {framing:.0}, with a tail loss probe {probe:.0} ms."
        ),
    )
}

/// The paper's expectation about needless segments.
fn for_nothing(found: &RemedyResults<'_>) -> [Check; 2] {
    [&FREEBSD, &LINUX].map(|stack: &SimulatedStack| {
        let count = |remedy| found.for_nothing(stack, remedy);
        let [plain, adaptive, own] = [NOTHING, ADAPTIVE, OWN_FIN].map(count);
        let [timer, early, probe] = [TIMER, EARLY, PROBE].map(count);
        Check::goal(
            adaptive <= timer && adaptive <= early,
            format!("{}: where packets only come late, {plain:.1} segments in a hundred transactions are sent for nothing; with adaptive duplicate ACKs {adaptive:.1} (the FIN apart: {own:.1}), with a timeout of 50 ms {timer:.1}, with early retransmit {early:.1}, with a tail loss probe {probe:.1}.", stack.name),
        )
    })
}

/// The paper's expectation about header cost.
fn headers(found: &RemedyResults<'_>) -> Check {
    let more = |remedy| found.change(&FREEBSD, remedy, "bytes");
    let [adaptive, own, framing] = [ADAPTIVE, OWN_FIN, FRAMING].map(more);
    let slower = found.change(&FREEBSD, FRAMING, "none_ms");
    Check::goal(
        adaptive.abs() < 0.1 && framing > 1.0,
        format!(
            "FreeBSD 6.0 without loss: adaptive duplicate ACKs put {adaptive:+.1} % of bytes on the line, the FIN apart {own:+.1} %, smart framing {framing:+.1} %, which changes the response time by {slower:+.1} %."
        ),
    )
}

/// Checks that the proposal has no effect on senders with SACK.
fn sack(found: &RemedyResults<'_>) -> Check {
    let both = [&LINUX, &LINUX_6].map(|stack: &SimulatedStack| {
        [NOTHING, ADAPTIVE].map(|remedy| found.penalty(stack, remedy))
    });
    let [[then, then_with], [today, today_with]] = both;
    Check::goal(
        then_with > 0.95 * then && today_with > 0.95 * today,
        format!(
            "A sender with SACK takes nothing from a duplicate without a new block: a late loss takes {then_with:.0} instead of {then:.0} ms over none with Linux 2.6.15, {today_with:.0} instead of {today:.0} ms with today's."
        ),
    )
}

/// Checks the development since then.
fn superfluous(found: &RemedyResults<'_>) -> Check {
    let [then, with] = [NOTHING, OWN_FIN].map(|remedy| found.penalty(&FREEBSD, remedy));
    let today = found.penalty(&LINUX_6, NOTHING);
    let waits = |stack: &SimulatedStack| 100.0 * found.mean(stack, NOTHING, "late_waits");
    Check::goal(
        today < then / 2.0,
        format!(
            "Today's Linux as it is: a late loss takes {today:.0} ms over none, FreeBSD 6.0 took {then:.0} and would have taken {with:.0} with the idea at its best; {:.0} % of today's transactions with a late loss wait for a timeout, {:.0} % of FreeBSD's did.",
            waits(&LINUX_6),
            waits(&FREEBSD)
        ),
    )
}

/// All effects together, with random losses.
fn chance(found: &RemedyResults<'_>) -> Check {
    let mean = |stack, remedy| found.mean(stack, remedy, "chance_ms");
    let times = |stack: &'static SimulatedStack| {
        let [plain, adaptive, own, timer, probe] =
            [NOTHING, ADAPTIVE, OWN_FIN, TIMER, PROBE].map(|remedy| mean(stack, remedy));
        let probe = if probe.is_finite() {
            format!(", with a tail loss probe {probe:.0}")
        } else {
            String::new()
        };
        format!(
            "{}: {plain:.0} ms, with adaptive duplicate ACKs {adaptive:.0} (the FIN apart: {own:.0}), with a timeout of 50 ms {timer:.0}{probe}",
            stack.name
        )
    };
    Check::goal(
        mean(&FREEBSD, OWN_FIN) < mean(&FREEBSD, NOTHING),
        format!(
            "{PERCENT} % of loss by chance, mean response time over all lines. {}.",
            ON.map(times).join(". ")
        ),
    )
}
