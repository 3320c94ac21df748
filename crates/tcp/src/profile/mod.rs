//! What a stack does, as data: every choice and constant of an endpoint.
//!
//! One file per stack, each constant with its source. A profile is chosen by name; remedies on
//! top of it by theirs (`remedy`).

mod freebsd_14;
mod freebsd_6_0;
mod linux_2_6_15;
mod linux_6;
mod rfc;

use posthaste_units::Span;
use thiserror::Error;

use crate::Clock;
use crate::receive::ack::AckRule;
use crate::receive::duplicates::AdaptiveAcks;
use crate::receive::window::WindowRule;
use crate::send::congestion::Control;
use crate::send::reduction::ReductionRule;
use crate::send::rtt::{RttRule, TimeoutRule};

/// A stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The name on command lines.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// What timers run by.
    pub clock: Clock,
    /// What a SYN offers.
    pub offer: Offer,
    /// How connections begin and end.
    pub handshake: Handshake,
    /// Room for bytes written and not acknowledged.
    pub send_buffer: u64,
    /// Room for bytes received and not read.
    pub receive_buffer: u64,
    /// Round-trip times.
    pub rtt: RttRule,
    /// The retransmission timeout made of them.
    pub timeout: TimeoutRule,
    /// Where round-trip times come from.
    pub round_trips: RoundTrips,
    /// Looking whether a closed window has opened.
    pub persist: Persist,
    /// The first flight.
    pub initial_window: InitialWindow,
    /// Congestion control.
    pub control: Control,
    /// The window during recovery.
    pub reduction: ReductionRule,
    /// When something counts as lost, and what is sent then.
    pub recovery: Recovery,
    /// When small segments wait (RFC 9293, section 3.7.4), unless the application says no delay.
    pub nagle: Nagle,
    /// When acknowledgements are sent.
    pub ack: AckRule,
    /// When windows are opened.
    pub window: WindowRule,
    /// Which strange segments are believed.
    pub strictness: Strictness,
    /// Duplicate acknowledgements made by a timer of the receiver; a remedy.
    pub adaptive_acks: Option<AdaptiveAcks>,
}

/// The options of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Largest payload taken, and the largest sent: the MTU less 40.
    pub mss: u16,
    /// Shift of the windows offered.
    pub window_scale: Option<u8>,
    /// RFC 7323 timestamps.
    pub timestamps: bool,
    /// One tick of their clock.
    pub timestamp_tick: Span,
    /// RFC 2018.
    pub sack: bool,
}

/// Beginning and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Timer of the SYN.
    pub syn: Retries,
    /// Timer of the SYN-ACK.
    pub syn_ack: Retries,
    /// Data begins with a single segment where the timer of SYN or SYN-ACK ran out and it was sent
    /// again more often than this, answers to a SYN that came again included (RFC 5681, section
    /// 3.1); none where it never does.
    pub single_after: Option<u32>,
    /// Retransmissions of data before the connection is given up.
    pub retries: u32,
    /// How long TIME-WAIT is.
    pub time_wait: Span,
    /// How long FIN-WAIT-2 waits for the peer once the application is gone; none for ever.
    pub fin_wait_2: Option<Span>,
}

/// A timer that is set again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// The first timeout.
    pub initial: Span,
    /// Timeouts that follow it at the same length, before they double.
    pub linear: u32,
    /// Retransmissions before it is given up.
    pub count: u32,
}

/// Where round-trip times come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundTrips {
    /// The timestamp echoed, in ticks of its clock; without timestamps a segment sent once.
    ByEcho,
    /// A segment sent once, exactly; the timestamp where all were sent again.
    BySegment,
}

/// The timer of window probes: the retransmission timeout within bounds, doubling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Persist {
    /// At least.
    pub minimum: Span,
    /// At most.
    pub maximum: Span,
    /// A probe is one byte of new data (RFC 9293, section 3.8.6.1); else a place that the peer has
    /// already acknowledged, without data (Linux).
    pub with_data: bool,
}

/// The first flight of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// Full segments.
    Segments(u32),
    /// `min(4 mss, max(2 mss, 4380))` (RFC 3390).
    Rfc3390,
    /// RFC 2414 in segments, as Linux had it until 2.6.38: 2 above 1460 bytes, 3 above 1095, else
    /// 4 (`tcp_init_cwnd` in tcp_input.c).
    Rfc2414,
}

impl InitialWindow {
    /// In bytes, for segments of `mss` bytes of payload.
    pub fn bytes(self, mss: u32) -> u64 {
        let mss = u64::from(mss);
        match self {
            Self::Segments(count) => u64::from(count) * mss,
            Self::Rfc3390 => (4 * mss).min((2 * mss).max(4380)),
            Self::Rfc2414 if mss > 1460 => 2 * mss,
            Self::Rfc2414 if mss > 1095 => 3 * mss,
            Self::Rfc2414 => 4 * mss,
        }
    }
}

/// Small segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nagle {
    /// A small segment waits while anything is unacknowledged (RFC 9293, section 3.7.4), unless a
    /// FIN ends it.
    Any,
    /// Only while an earlier small segment is unacknowledged (Minshall; Linux tcp_nagle_check).
    Small,
}

/// Loss: seeing it and repairing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Which machine decides.
    pub engine: Engine,
    /// Duplicate acknowledgements after which a segment counts as lost.
    pub threshold: u32,
    /// New data on the first two duplicates (RFC 3042).
    pub limited_transmit: bool,
    /// Early retransmit (RFC 5827), with the delay of a quarter round trip where one is given; not
    /// where RACK acts.
    pub early_retransmit: Option<EarlyRetransmit>,
    /// Tail loss probe (RFC 8985, section 7).
    pub tail_probe: Option<TailProbe>,
    /// RACK (RFC 8985, section 6); needs SACK.
    pub rack: bool,
    /// F-RTO (RFC 5682).
    pub frto: bool,
    /// Undo by timestamps (Eifel, RFC 3522) and D-SACK (RFC 3708).
    pub undo: bool,
    /// What is not known to be lost is sent again where nothing else can be (RFC 6675, section 4,
    /// NextSeg, rules 3 and 4).
    pub rescue: bool,
    /// RTO restart (RFC 7765).
    pub rto_restart: bool,
    /// Copies of the last segments of a flight, sent at once; 0 for none. A remedy.
    pub tail_copies: u32,
    /// Segments at the end of a flight that one more covers with their parity; 0 for none. Both
    /// ends must have it. A remedy.
    pub tail_parity: u32,
    /// The FIN rides on the last data segment; else it travels alone. A remedy where it does not.
    pub fin_rides: bool,
    /// Smaller segments while the window is small. A remedy.
    pub framing: Option<Framing>,
}

impl Recovery {
    /// What all stacks share, with one of the engines: three duplicates, limited transmit and a FIN
    /// that rides on data (RFC 5681, section 3.2; RFC 3042), and nothing that only some of them have.
    pub(crate) const fn by(engine: Engine) -> Self {
        Self {
            engine,
            threshold: 3,
            limited_transmit: true,
            early_retransmit: None,
            tail_probe: None,
            rack: false,
            frto: false,
            undo: false,
            rescue: false,
            rto_restart: false,
            tail_copies: 0,
            tail_parity: 0,
            fin_rides: true,
            framing: None,
        }
    }
}

/// Smart framing (Mellia, Meo, Casetti 2005): the same bytes in more segments, so that a loss has
/// enough of them behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Pieces that a full segment is cut into.
    pub parts: u32,
    /// While the congestion window is less than so many bytes.
    pub below: u64,
}

/// The two families of senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// BSD: a place to send from that is pulled back; the window is inflated.
    Bsd {
        /// A duplicate counts only if its window equals the last one, also where it brings new
        /// SACK blocks.
        window_must_match: bool,
    },
    /// Linux and RFC 6675: marks on segments, and what is on its way counted.
    Pipe {
        /// FACK: everything below the highest SACKed less the threshold is lost.
        fack: bool,
        /// The last segment with its FIN is sent whatever the congestion window.
        free_fin: bool,
        /// Where the window leaves a single segment, it waits for the next acknowledgement.
        defers: bool,
    },
}

/// Early retransmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyRetransmit {
    /// Waits a quarter round-trip time before (Linux 3.5).
    pub delayed: bool,
}

/// Tail loss probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailProbe {
    /// Added to two round-trip times.
    pub extra: Span,
    /// Added where a single segment is out, for the peer's delayed ACK.
    pub delayed_ack: Span,
}

/// What is made of segments that attackers and accidents send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strictness {
    /// RFC 5961: a RST must hit exactly, a SYN is challenged, an old ACK too.
    pub rfc5961: bool,
    /// How what is refused is answered.
    pub answers: Answers,
    /// Once the connection stands a RST must hit exactly, and what does not is silently refused.
    pub exact_reset: bool,
    /// A segment without the timestamp agreed on is dropped (RFC 7323, section 3.2).
    pub every_timestamp: bool,
    /// A window counts also where it shrinks and nothing else is new (RFC 9293, section 3.10.7.4);
    /// stacks believe only one that grows.
    pub any_window: bool,
    /// Receives D-SACK and sends it (RFC 2883).
    pub dsack: bool,
}

/// Acknowledgements sent because something was refused. Without a limit two ends that each refuse
/// what the other answers, which takes a forged segment, go on for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answers {
    /// What acknowledges places that were never sent is answered; else it is dropped silently.
    pub to_unsent: bool,
    /// How many challenges there may be: answers to a RST or a SYN in the connection, and to what
    /// acknowledges too much or too little (RFC 5961, section 7).
    pub limit: Option<AnswerLimit>,
    /// The limit holds as well for answers to segments without data that are out of the window,
    /// have an old timestamp or are a SYN once more.
    pub limits_empty: bool,
}

/// So many answers within a span that begins with the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimit {
    /// Answers.
    pub most: u32,
    /// The span.
    pub within: Span,
}

/// Every profile: name and maker.
const PROFILES: &[fn() -> Profile] = &[
    freebsd_6_0::profile,
    linux_2_6_15::profile,
    linux_6::profile,
    freebsd_14::profile,
    rfc::profile,
    linux_6::default,
    linux_6::linux_2005,
];

/// No profile has that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no TCP {name:?}: write one of {}", names().join(", "))]
pub struct UnknownProfile {
    name: String,
}

/// The names of all profiles.
pub fn names() -> Vec<&'static str> {
    PROFILES.iter().map(|make| make().name).collect()
}

/// The profile of that name.
pub fn named(name: &str) -> Result<Profile, UnknownProfile> {
    PROFILES
        .iter()
        .map(|make| make())
        .find(|profile| profile.name == name)
        .ok_or_else(|| UnknownProfile {
            name: name.to_owned(),
        })
}
