//! packet-loss/quic-remedies-2026: what shortens the costs of a lost packet over QUIC.

use posthaste_draw::{Axis, Bar, Bars, Group, Unit};
use posthaste_study::{Check, Figure, Plot, Records};
use posthaste_units::Span;

use super::super::PAPER;
use super::super::cells::quantile;
use super::super::line::all;
use super::cells::{LineCells, QuicCells};
use super::role::PacketRole;
use super::variants::{self, QuicVariant, VARIANTS};

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/quic-remedies-2026",
    title: "beyond the paper: remedies for lost packets over HTTP/3",
    claim: "The paper proposes that a receiver repeats its acknowledgement so that the sender finds the loss of one of the last packets. Over QUIC a sender declares a packet lost only when a later one is acknowledged, or after its timer.",
    paper: PAPER,
    budget: Span::from_secs(60),
    study: &variants::STUDY,
    plot,
    checks,
    differs: include_str!("quic_remedies_2026.md").trim_ascii(),
};

/// A lost packet in words, and its role among the cells of a line.
type LostOne = (&'static str, fn(&LineCells<'_>) -> PacketRole);

const LOST: [LostOne; 5] = [
    ("client's 1st", |_| PacketRole::Client(1)),
    ("server's 1st", |_| PacketRole::Server(1)),
    ("client's 2nd", |_| PacketRole::Client(2)),
    ("reply, last but one", |on| on.reply(1)),
    ("reply, last", |on| on.reply(0)),
];

/// Packets behind the content of the reply.
const PADDED: &str = "padding";

/// The server's first packet is an acknowledgement, and its handshake is the second.
const ACKNOWLEDGED: &str = "instant-ack";

/// The change with which the server's handshake is longer than it may send at once.
const LONG: &str = "certificate";

/// The packet of a variant with the same content: of the reply the one without the padding behind it. `None` if it has
/// none: after a part of a long handshake the client's second packet is an acknowledgement.
fn role(variant: &QuicVariant, lost: &LostOne, on: &LineCells<'_>) -> Option<PacketRole> {
    match (lost.1)(on) {
        PacketRole::Reply(number) if variant.key == PADDED => {
            Some(PacketRole::Reply(number.saturating_sub(3)))
        }
        PacketRole::Server(number) if variant.key == ACKNOWLEDGED => {
            Some(PacketRole::Server(number + 1))
        }
        PacketRole::Client(2) if variant.key == LONG => None,
        role => Some(role),
    }
}

/// Costs of a loss on all lines in ms, ascending. None if the variant has no such packet.
fn costs(records: &Records, variant: &QuicVariant, lost: &LostOne) -> Vec<f64> {
    let cells = QuicCells::new(records, variant.kind());
    on_all_lines(&cells, |on| {
        role(variant, lost, on).map_or(f64::NAN, |role| on.cost(role))
    })
}

fn on_all_lines(cells: &QuicCells<'_>, value: impl Fn(&LineCells<'_>) -> f64) -> Vec<f64> {
    let mut values: Vec<f64> = all().map(|line| value(&cells.on(line))).collect();
    // Those without a reply are infinite, and stay.
    values.retain(|value| !value.is_nan());
    values.sort_by(f64::total_cmp);
    values
}

/// Response times without a loss on all lines in ms, ascending.
fn lossless(records: &Records, variant: &QuicVariant) -> Vec<f64> {
    let cells = QuicCells::new(records, variant.kind());
    on_all_lines(&cells, |on| on.ms(PacketRole::None))
}

fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

fn plot(records: &Records) -> Vec<Plot> {
    let bars = |title: String, values: &dyn Fn(&QuicVariant) -> Vec<f64>| {
        let group = |variant: &QuicVariant| {
            let values = values(variant);
            let [low, middle, high] = [0.25, 0.5, 0.75].map(|share| quantile(&values, share));
            let bar = Bar {
                parts: vec![("median of the lines".to_owned(), middle.round())],
                interval: Some((low, high)),
                ..Bar::default()
            };
            (!values.is_empty()).then(|| Group {
                label: variant.name.to_owned(),
                bars: vec![bar],
            })
        };
        Plot::Bars(Bars {
            title,
            value: Axis::linear("time", Unit::Millis),
            groups: VARIANTS.iter().filter_map(group).collect(),
            notes: vec!["Whiskers reach from quartile to quartile of 56 lines. A change without such a packet has no bar.".to_owned()],
        })
    };
    let none = bars("Response time without a loss".to_owned(), &|variant| {
        lossless(records, variant)
    });
    let lost = LOST.iter().map(|lost| {
        bars(format!("Cost of a loss: {}", lost.0), &|variant| {
            costs(records, variant, lost)
        })
    });
    [none].into_iter().chain(lost).collect()
}

fn checks(records: &Records) -> Vec<Check> {
    let is_remedy =
        |variant: &&QuicVariant| VARIANTS.iter().all(|other| other.against != variant.key);
    let remedies = VARIANTS.iter().filter(is_remedy);
    remedies
        .map(|variant| {
            let mut all = VARIANTS.iter();
            let usual = all.find(|other| other.key == variant.against);
            gain(records, usual.expect("a variant has this key"), variant)
        })
        .collect()
}

/// States what a change does to the time without a loss and to each cost.
fn gain(records: &Records, usual: &QuicVariant, variant: &QuicVariant) -> Check {
    let before_after = [usual, variant].map(|services| median(&lossless(records, services)));
    let mut sentences = vec![format!(
        "no loss {:.0} instead of {:.0} ms",
        before_after[1], before_after[0]
    )];
    let mut gains = before_after[1] < before_after[0] - 1.0;
    for lost in &LOST {
        let [before, after] =
            [usual, variant].map(|services| median(&costs(records, services, lost)));
        gains |= after < before - 5.0;
        sentences.push(if after.is_nan() {
            format!("{}: another packet", lost.0)
        } else {
            format!("{} {after:.0} instead of {before:.0} ms", lost.0)
        });
    }
    Check::goal(
        gains,
        format!(
            "{}: {}. Costs are medians of 56 lines, simulated quinn.",
            capital(variant.name),
            sentences.join(", ")
        ),
    )
    .because("it gives the sender no acknowledgement of a later packet, and shortens no timer.")
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
