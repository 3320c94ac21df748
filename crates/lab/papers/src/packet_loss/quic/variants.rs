//! The study of remedies: what shortens the costs over QUIC, in virtual time on all lines.

use posthaste_quic_sim::{EndBehaviour, LateHandshake, QuicOptions};
use posthaste_study::{Conditions, Failure, Needs, Records, Study};
use posthaste_units::Span;

use super::super::cores::on_threads;
use super::super::job::PROCESSING;
use super::super::line::{NetworkLine, all};
use super::super::service::AUTHOR;
use super::campaign::simulate_with;
use super::cells::{CellKind, CellSource, CellTimes};
use super::server::OfferedService;
use super::simulated::{QuicEnds, usual};
use super::transport::Transport;

pub(in super::super) static STUDY: Study = Study {
    name: "packet-loss-quic-remedies",
    needs: Needs::Nothing,
    core: false,
    run: |conditions| {
        let lines: Vec<NetworkLine> = all().collect();
        study(conditions, &lines)
    },
};

/// A change of the ends.
pub(in super::super) struct QuicVariant {
    /// Key in records.
    pub(in super::super) key: &'static str,
    /// Name in pictures and sentences.
    pub(in super::super) name: &'static str,
    /// Key of the variant with which it is compared.
    pub(in super::super) against: &'static str,
    change: fn(QuicEnds) -> QuicEnds,
}

/// Bytes of padding behind a reply: three datagrams, which are enough for the packet threshold (RFC 9002, section 6.1.1).
const PADDING: u32 = 3 * 1200;

/// Key of our ends without a change.
pub(in super::super) const USUAL: &str = "usual";
/// Key of our ends with a late handshake.
const LATE: &str = "late-handshake";
/// Time until a late handshake is ready.
const LATENESS: Span = Span::from_millis(100);

/// Our ends, and then each change alone, except for the instant ACK, which is of use with a late handshake only.
pub(in super::super) static VARIANTS: [QuicVariant; 12] = [
    QuicVariant {
        key: USUAL,
        name: "unchanged",
        against: USUAL,
        change: |ends| ends,
    },
    QuicVariant {
        key: "initial-rtt",
        name: "initial RTT of 100 ms",
        against: USUAL,
        change: |ends| {
            with(ends, |options| {
                options.initial_rtt = Span::from_millis(100);
            })
        },
    },
    QuicVariant {
        key: "window",
        name: "initial window of 20 datagrams",
        against: USUAL,
        change: |ends| with(ends, |options| options.initial_window = 24_000),
    },
    QuicVariant {
        key: "datagram",
        name: "datagrams of 1,452 bytes, window of 14,720",
        against: USUAL,
        change: |ends| {
            with(ends, |options| {
                (options.datagram, options.initial_window) = (1452, 14_720);
            })
        },
    },
    QuicVariant {
        key: "certificate",
        name: "certificate of 3,480 bytes",
        against: USUAL,
        change: |ends| with(ends, |options| options.certificate = 3480),
    },
    QuicVariant {
        key: "ack-delay",
        name: "acknowledgements within 1 ms",
        against: USUAL,
        change: |ends| {
            with(ends, |options| {
                options.ack_delay = Some(Span::from_millis(1));
            })
        },
    },
    QuicVariant {
        key: "ack-each",
        name: "an acknowledgement for each packet",
        against: USUAL,
        change: |ends| with(ends, |options| options.ack_frequency = Some(1)),
    },
    QuicVariant {
        key: "ack-tenth",
        name: "an acknowledgement for ten packets",
        against: USUAL,
        change: |ends| with(ends, |options| options.ack_frequency = Some(10)),
    },
    QuicVariant {
        key: "padding",
        name: "three datagrams of padding behind the reply",
        against: USUAL,
        change: |ends| {
            behaving(ends, |behaviour| {
                behaviour.padding = PADDING;
            })
        },
    },
    QuicVariant {
        key: "receiver-probe",
        name: "PINGs of the receiver after each 25 ms of silence",
        against: USUAL,
        change: |ends| {
            behaving(ends, |behaviour| {
                behaviour.receiver_probe = Some(Span::from_millis(25));
            })
        },
    },
    QuicVariant {
        key: LATE,
        name: "late handshake (100 ms)",
        against: USUAL,
        change: |ends| late(ends, false),
    },
    QuicVariant {
        key: "instant-ack",
        name: "late handshake with an instant ACK",
        against: LATE,
        change: |ends| late(ends, true),
    },
];

fn with(mut ends: QuicEnds, change: impl FnOnce(&mut QuicOptions)) -> QuicEnds {
    change(&mut ends.options);
    ends
}

fn behaving(mut ends: QuicEnds, change: impl FnOnce(&mut EndBehaviour)) -> QuicEnds {
    change(&mut ends.behaviour);
    ends
}

fn late(ends: QuicEnds, acknowledges: bool) -> QuicEnds {
    behaving(ends, |behaviour| {
        behaviour.late_handshake = Some(LateHandshake {
            after: LATENESS,
            acknowledges,
        });
    })
}

impl QuicVariant {
    /// The kind of its cells.
    pub(in super::super) const fn kind(&self) -> CellKind {
        CellKind {
            variant: self.key,
            ..CellKind::new(
                CellSource::Simulated,
                &OfferedService::ours(Transport::Quic, &AUTHOR),
            )
        }
    }
}

fn study(conditions: &Conditions<'_>, lines: &[NetworkLine]) -> Result<Records, Failure> {
    let mut cells = CellTimes::default();
    for (done, variant) in (0..).zip(&VARIANTS) {
        if conditions.stopped() {
            break;
        }
        let total = VARIANTS.len() as u64;
        conditions.progress.step(done, total, variant.name);
        let (kind, ends) = (variant.kind(), (variant.change)(usual()));
        let simulate =
            |line: &NetworkLine| simulate_with(conditions.seed, &kind, &ends, &AUTHOR, *line, 1);
        for of_line in on_threads(conditions.threads, lines, simulate)? {
            cells.merge(of_line);
        }
    }
    let mut records = Records::new();
    records.set_parameter("processing", PROCESSING);
    records.set_parameter("delays", "steady");
    records.set_parameter("lines", lines.len());
    records.set_table("cells", cells.table());
    Ok(records)
}
