//! TCP stacks as data: every choice and constant of an endpoint.
//!
//! One file per stack, each constant with its source. Profiles are selected by name, and so are the remedies that
//! change them (`remedy`).

mod freebsd_14;
mod freebsd_6_0;
mod linux_2_6_15;
mod linux_6;
mod rfc;

use posthaste_units::Span;
use thiserror::Error;

use crate::TimerClock;
use crate::congestion::Control;
use crate::receive::ack::AckRule;
use crate::receive::duplicates::AdaptiveAcks;
use crate::receive::window::WindowRule;
use crate::reduction::ReductionRule;
use crate::rtt::{RttRule, TimeoutRule};

/// A TCP stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Name on command lines.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// Granularity of the timers.
    pub clock: TimerClock,
    /// Options of the SYN.
    pub offer: OfferedOptions,
    /// Timers of connection setup and close.
    pub handshake: Handshake,
    /// Capacity for bytes written and not acknowledged.
    pub send_buffer: u64,
    /// Capacity for bytes received and not read.
    pub receive_buffer: u64,
    /// Smoothing of round-trip times.
    pub rtt: RttRule,
    /// Retransmission timeout computed from them.
    pub timeout: TimeoutRule,
    /// Source of round-trip times.
    pub round_trips: RoundTrips,
    /// Timer of probes of a closed window.
    pub persist: Persist,
    /// Initial congestion window.
    pub initial_window: InitialWindow,
    /// Congestion control.
    pub control: Control,
    /// Window during recovery.
    pub reduction: ReductionRule,
    /// Loss detection and retransmission.
    pub recovery: Recovery,
    /// Delay of small segments (RFC 9293, section 3.7.4), unless the application disables it.
    pub nagle: Nagle,
    /// Timing of acknowledgements.
    pub ack: AckRule,
    /// Rules for the advertised window.
    pub window: WindowRule,
    /// Validation of unexpected segments.
    pub strictness: Strictness,
    /// Duplicate acknowledgements sent by a timer of the receiver; a remedy.
    pub adaptive_acks: Option<AdaptiveAcks>,
}

/// The options of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferedOptions {
    /// Largest payload accepted and sent: the MTU less 40.
    pub mss: u16,
    /// Shift of the advertised windows.
    pub window_scale: Option<u8>,
    /// RFC 7323 timestamps.
    pub timestamps: bool,
    /// Tick of the timestamp clock.
    pub timestamp_tick: Span,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
}

/// Connection setup and close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Timer of the SYN.
    pub syn: Retries,
    /// Timer of the SYN-ACK.
    pub syn_ack: Retries,
    /// Largest number of retransmissions of SYN or SYN-ACK, including answers to a repeated SYN. Beyond it, if the
    /// timer expired at least once, data begins with a single segment (RFC 5681, section 3.1). None disables the rule.
    pub single_after: Option<u32>,
    /// Retransmissions of data before the connection is given up.
    pub retries: u32,
    /// Duration of TIME-WAIT.
    pub time_wait: Span,
    /// Time limit of FIN-WAIT-2 once the application is gone. None for no limit.
    pub fin_wait_2: Option<Span>,
}

/// A retransmission timer with back-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// The first timeout.
    pub initial: Span,
    /// Number of further timeouts of the same length before they double.
    pub linear: u32,
    /// Retransmissions before giving up.
    pub count: u32,
}

/// Source of round-trip times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundTrips {
    /// The echoed timestamp, in ticks of its clock. Without timestamps, a segment that was sent once.
    ByEcho,
    /// A segment that was sent once, exactly. The timestamp if all were sent again.
    BySegment,
}

/// Timer of window probes: the retransmission timeout within bounds, doubling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Persist {
    /// Lower bound.
    pub minimum: Span,
    /// Upper bound.
    pub maximum: Span,
    /// A probe carries one byte of new data (RFC 9293, section 3.8.6.1). Otherwise it has no data and a sequence number
    /// that the peer has already acknowledged (Linux).
    pub with_data: bool,
}

/// Initial congestion window for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// Number of full segments.
    Segments(u32),
    /// `min(4 mss, max(2 mss, 4380))` (RFC 3390).
    Rfc3390,
    /// RFC 2414 in segments, as in Linux until 2.6.38: 2 above 1460 bytes, 3 above 1095, else 4 (`tcp_init_cwnd` in
    /// tcp_input.c).
    Rfc2414,
}

impl InitialWindow {
    /// Returns the window in bytes, for segments of `mss` bytes of payload.
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

/// Delay of small segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nagle {
    /// A small segment waits while anything is unacknowledged (RFC 9293, section 3.7.4), unless it carries a FIN.
    Any,
    /// The same, but the end of a write that began with nothing unacknowledged leaves with its full segments (BSD
    /// tcp_output.c: `idle` is determined once for all segments of a call).
    Later,
    /// A small segment waits only while an earlier one is unacknowledged (Minshall; Linux tcp_nagle_check).
    Small,
}

/// Loss detection and repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Algorithm that decides about losses.
    pub engine: RecoveryEngine,
    /// Duplicate acknowledgements after which a segment counts as lost.
    pub threshold: u32,
    /// New data on the first two duplicates (RFC 3042).
    pub limited_transmit: bool,
    /// Early retransmit (RFC 5827), optionally delayed by a quarter of a round trip. Not used with RACK.
    pub early_retransmit: Option<EarlyRetransmit>,
    /// Tail loss probe (RFC 8985, section 7).
    pub tail_probe: Option<TailProbe>,
    /// RACK (RFC 8985, section 6); needs SACK.
    pub rack: bool,
    /// F-RTO (RFC 5682).
    pub frto: bool,
    /// Undo by timestamps (Eifel, RFC 3522) and D-SACK (RFC 3708).
    pub undo: bool,
    /// Retransmits segments that are not known to be lost if nothing else can be sent (RFC 6675, section 4, NextSeg,
    /// rules 3 and 4).
    pub rescue: bool,
    /// RTO restart (RFC 7765).
    pub rto_restart: bool,
    /// Copies of the last segments of a flight, sent at once. 0 for none. A remedy.
    pub tail_copies: u32,
    /// Segments at the end of a flight that one parity segment covers. 0 for none. Both ends need it. A remedy.
    pub tail_parity: u32,
    /// Sends the FIN with the last data segment. Otherwise it is sent alone. A remedy for stacks that do not.
    pub fin_rides: bool,
    /// Uses smaller segments while the window is small. A remedy.
    pub framing: Option<FramingRule>,
}

impl Recovery {
    /// Rules common to all stacks, with the given engine: three duplicates, limited transmit, and a FIN on the last
    /// data segment (RFC 5681, section 3.2; RFC 3042). Nothing that only some stacks have.
    pub(crate) const fn by(engine: RecoveryEngine) -> Self {
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

/// Smart framing (Mellia, Meo, Casetti 2005): the same bytes in more segments, so that enough segments follow a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramingRule {
    /// Number of pieces of a full segment.
    pub parts: u32,
    /// Applies while the congestion window is below this number of bytes.
    pub below: u64,
}

/// The two families of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryEngine {
    /// BSD: pulls the next offset to send back and inflates the window.
    Bsd {
        /// A duplicate counts only if its window equals the last one, even if it has new SACK blocks.
        window_must_match: bool,
    },
    /// Linux and RFC 6675: marks segments and counts bytes in flight.
    Pipe {
        /// FACK: everything below the highest SACKed offset less the threshold is lost.
        fack: bool,
        /// Sends the last segment with its FIN regardless of the congestion window.
        free_fin: bool,
        /// Delays a single segment that the window leaves until the next acknowledgement.
        defers: bool,
    },
}

/// Early retransmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyRetransmit {
    /// Waits a quarter of a round-trip time first (Linux 3.5).
    pub delayed: bool,
}

/// Tail loss probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailProbe {
    /// Added to two round-trip times.
    pub extra: Span,
    /// Added if a single segment is in flight, for the peer's delayed ACK.
    pub delayed_ack: Span,
}

/// Treatment of unexpected and forged segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strictness {
    /// RFC 5961: a RST needs the exact sequence number; a SYN or an old ACK gets a challenge.
    pub rfc5961: bool,
    /// Answers to refused segments.
    pub answers: Answers,
    /// In an established connection a RST needs the exact sequence number. Others are refused silently.
    pub exact_reset: bool,
    /// Drops segments without the agreed timestamp (RFC 7323, section 3.2).
    pub every_timestamp: bool,
    /// Takes no timestamp from a segment that is refused because of its acknowledgement number. RFC 7323, section 4.3,
    /// and the other stacks take it before they look at the number.
    pub timestamp_needs_ack: bool,
    /// Accepts a window even if it shrinks and nothing else is new (RFC 9293, section 3.10.7.4). Stacks accept only one
    /// that grows.
    pub any_window: bool,
    /// Receives and sends D-SACK (RFC 2883).
    pub dsack: bool,
}

/// Acknowledgements that answer refused segments. Without a limit, two ends that refuse each other's answers after a
/// forged segment never stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answers {
    /// Answers acknowledgements of unsent data. Otherwise they are dropped silently.
    pub to_unsent: bool,
    /// Rate limit of challenges: answers to a RST or a SYN in the connection, and to acknowledgements that are too high
    /// or too low (RFC 5961, section 7).
    pub limit: Option<AnswerLimit>,
    /// Applies the limit also to answers to segments without data that are outside the window, have an old timestamp or
    /// are a repeated SYN.
    pub limits_empty: bool,
}

/// Rate limit of answers. The interval begins with the first answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimit {
    /// Maximum number of answers in an interval.
    pub most: u32,
    /// Length of the interval.
    pub within: Span,
}

/// Every profile: its constructor.
const PROFILES: &[fn() -> Profile] = &[
    freebsd_6_0::profile,
    linux_2_6_15::profile,
    linux_2_6_15::early_write,
    linux_6::profile,
    freebsd_14::profile,
    rfc::profile,
    linux_6::default,
    linux_6::linux_2005,
];

/// Error: no profile has that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no TCP {name:?}: write one of {}", names().join(", "))]
pub struct UnknownProfile {
    name: String,
}

/// Names of all profiles.
pub fn names() -> Vec<&'static str> {
    PROFILES.iter().map(|make| make().name).collect()
}

/// Returns the profile with that name.
pub fn named(name: &str) -> Result<Profile, UnknownProfile> {
    PROFILES
        .iter()
        .map(|make| make())
        .find(|profile| profile.name == name)
        .ok_or_else(|| UnknownProfile {
            name: name.to_owned(),
        })
}
