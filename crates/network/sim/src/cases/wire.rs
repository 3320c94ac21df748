//! The form of [`Totals`] in messages: exact and canonical, like that of the distributions in it.
//!
//! The fields are those of the totals. A time is in nanoseconds, `slowest` is `[time, number]` or null, and `endings`
//! has one count for each of [`Ending::NAMES`]. Equal totals have equal forms, regardless of the order of transactions
//! and merges. Each statement of a form is checked against the others when it is read.

use posthaste_stats::{Histogram, Recorder};
use posthaste_units::Span;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Ending, Totals};

/// Maximum of a count. Sums of accepted forms do not overflow.
const MOST: u64 = 1 << 56;

/// Contradiction in a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum FormError {
    /// A count out of range.
    #[error("a count is above 2^56")]
    Count,
    /// Connections without an ending, or the reverse.
    #[error("the endings are not those of the connections")]
    Endings,
    /// Answers without connections.
    #[error("there are results without a connection")]
    Nothing,
    /// Response times, or their parts, of other answers.
    #[error("the response times or their parts are not those of the answers")]
    Responses,
    /// A slowest response that is not the longest.
    #[error("the slowest response is not the longest")]
    Slowest,
    /// Losses of other connections.
    #[error("the connections with a loss exceed the losses or the connections")]
    Losses,
    /// A connection with more packets than all.
    #[error("one connection has more packets than all of them")]
    Packets,
}

/// The form, with values (`H`, `R`) or references to them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TotalsForm<H, R> {
    connections: u64,
    answered: u64,
    response: R,
    parts: [H; 4],
    retransmissions: u64,
    fast_retransmits: u64,
    timeouts: u64,
    probes: u64,
    for_nothing: u64,
    adaptive_acks: u64,
    packets: [u64; 2],
    bytes: [u64; 2],
    most_packets: [u64; 2],
    slowest: Option<(u64, u64)>,
    lost: u64,
    touched: u64,
    endings: [u64; Ending::NAMES.len()],
}

impl Serialize for Totals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = TotalsForm::<&Histogram, &Recorder> {
            connections: self.connections,
            answered: self.answered,
            response: &self.response,
            parts: self.parts.each_ref(),
            retransmissions: self.retransmissions,
            fast_retransmits: self.fast_retransmits,
            timeouts: self.timeouts,
            probes: self.probes,
            for_nothing: self.for_nothing,
            adaptive_acks: self.adaptive_acks,
            packets: self.packets,
            bytes: self.bytes,
            most_packets: self.most_packets,
            slowest: self.slowest.map(|(time, number)| (time.as_nanos(), number)),
            lost: self.lost,
            touched: self.touched,
            endings: self.endings,
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Totals {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = TotalsForm::<Histogram, Recorder>::deserialize(deserializer)?;
        let slowest = form.slowest;
        let totals = Self {
            connections: form.connections,
            answered: form.answered,
            response: form.response,
            parts: form.parts,
            retransmissions: form.retransmissions,
            fast_retransmits: form.fast_retransmits,
            timeouts: form.timeouts,
            probes: form.probes,
            for_nothing: form.for_nothing,
            adaptive_acks: form.adaptive_acks,
            packets: form.packets,
            bytes: form.bytes,
            most_packets: form.most_packets,
            slowest: slowest.map(|(time, number)| (Span::from_nanos(time), number)),
            lost: form.lost,
            touched: form.touched,
            endings: form.endings,
        };
        check(&totals).map_err(D::Error::custom)?;
        Ok(totals)
    }
}

/// Checks that no statement contradicts another.
fn check(totals: &Totals) -> Result<(), FormError> {
    let counts = [
        totals.connections,
        totals.answered,
        totals.retransmissions,
        totals.fast_retransmits,
        totals.timeouts,
        totals.probes,
        totals.for_nothing,
        totals.adaptive_acks,
        totals.lost,
        totals.touched,
    ];
    let lists = [totals.packets, totals.bytes, totals.most_packets];
    let counts = counts.iter().chain(lists.as_flattened());
    if counts.chain(&totals.endings).any(|count| *count > MOST) {
        return Err(FormError::Count);
    }
    if totals.endings.iter().sum::<u64>() != totals.connections {
        return Err(FormError::Endings);
    }
    if totals.connections == 0 && *totals != Totals::default() {
        return Err(FormError::Nothing);
    }
    let all = totals.response.distribution();
    let is_whole = |part: &Histogram| part.count() == totals.answered;
    if all.censored() > 0 || !is_whole(all.known()) || !totals.parts.iter().all(is_whole) {
        return Err(FormError::Responses);
    }
    // A histogram limits times, the slowest response has none.
    let limited = |(time, _): (Span, u64)| {
        let mut alone = Histogram::new();
        alone.record(time);
        alone.max()
    };
    let longest = (totals.answered > 0).then(|| all.known().max());
    if totals.slowest.map(limited) != longest {
        return Err(FormError::Slowest);
    }
    if totals.touched > totals.lost.min(totals.connections) {
        return Err(FormError::Losses);
    }
    let mut packets = totals.most_packets.iter().zip(&totals.packets);
    if packets.any(|(most, all)| most > all) {
        Err(FormError::Packets)
    } else {
        Ok(())
    }
}
