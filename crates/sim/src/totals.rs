//! Many transactions together: numbers that can be merged, whoever counted which.

use posthaste_stats::{Histogram, Recorder};
use posthaste_units::Span;

use crate::{Ending, Transaction};

/// What became of many transactions.
///
/// Everything is counted in whole numbers, and each transaction has its place by its number: merged
/// totals equal those of one run, in whatever order and on however many threads they were counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Connections played.
    pub connections: u64,
    /// Exchanges that were answered completely: the response times.
    pub answered: u64,
    /// Response times. Each transaction is a trial of its own, so that intervals are those of
    /// independent values.
    pub response: Recorder,
    /// The parts `t_conn`, `t_req`, `t_proc`, `t_resp`.
    pub parts: [Histogram; 4],
    /// Segments of either end that were sent again.
    pub retransmissions: u64,
    /// Of these: prompted by acknowledgements.
    pub fast_retransmits: u64,
    /// Retransmission timers that ran out.
    pub timeouts: u64,
    /// Tail loss probes and copies in advance.
    pub probes: u64,
    /// Segments with data or a FIN that came to an end which had all of it: sent again for nothing.
    /// What came again because a link had copied it is not counted.
    pub for_nothing: u64,
    /// Acknowledgements repeated by the adaptive-duplicate-ACK remedy.
    pub adaptive_acks: u64,
    /// Packets sent, up and down.
    pub packets: [u64; 2],
    /// Bytes of IP packets sent, up and down.
    pub bytes: [u64; 2],
    /// Most packets that one connection had, up and down.
    pub most_packets: [u64; 2],
    /// The longest response time, and the first transaction that had it.
    pub slowest: Option<(Span, u64)>,
    /// Packets lost on the links.
    pub lost: u64,
    /// Connections of which a packet was lost.
    pub touched: u64,
    endings: [u64; Ending::NAMES.len()],
}

impl Totals {
    /// The names of the parts, in their order.
    pub const PARTS: [&'static str; 4] = ["t_conn", "t_req", "t_proc", "t_resp"];

    /// Nothing has been played.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a transaction.
    pub fn add(&mut self, transaction: &Transaction<'_>) {
        self.connections += 1;
        self.endings[transaction.ending.index()] += 1;
        // A millisecond each: a recorder's batches are of equal numbers of transactions.
        let place = Span::from_millis(transaction.number);
        for response in transaction.responses {
            self.answered += 1;
            self.response.record(place, response.total());
            self.slow(response.total(), transaction.number);
            let parts = [
                response.t_conn,
                response.t_req,
                response.t_proc,
                response.t_resp,
            ];
            for (histogram, part) in self.parts.iter_mut().zip(parts) {
                histogram.record(part);
            }
        }
        let mut lost = 0;
        for (way, link) in transaction.links.into_iter().enumerate() {
            self.packets[way] += link.pushed.packets;
            self.bytes[way] += link.pushed.bytes;
            self.most_packets[way] = self.most_packets[way].max(link.pushed.packets);
            lost += link.dropped_in_all().packets + link.corrupted.packets;
        }
        self.lost += lost;
        self.touched += u64::from(lost > 0);
        let mut again = 0;
        for end in [transaction.client, transaction.server] {
            self.retransmissions += end.retransmissions;
            self.fast_retransmits += end.fast;
            self.timeouts += end.timeouts;
            self.probes += end.probes;
            self.adaptive_acks += end.adaptive_acks;
            again += end.duplicate_data;
        }
        self.for_nothing += again - transaction.by_copies;
    }

    /// Adds what another has counted, of other transactions of the same scenario.
    pub fn merge(&mut self, other: &Self) {
        self.connections += other.connections;
        self.answered += other.answered;
        self.response.merge(&other.response);
        for (histogram, more) in self.parts.iter_mut().zip(&other.parts) {
            histogram.merge(more);
        }
        self.retransmissions += other.retransmissions;
        self.fast_retransmits += other.fast_retransmits;
        self.timeouts += other.timeouts;
        self.probes += other.probes;
        self.for_nothing += other.for_nothing;
        self.adaptive_acks += other.adaptive_acks;
        self.lost += other.lost;
        self.touched += other.touched;
        for way in 0..2 {
            self.packets[way] += other.packets[way];
            self.most_packets[way] = self.most_packets[way].max(other.most_packets[way]);
            self.bytes[way] += other.bytes[way];
        }
        if let Some((time, number)) = other.slowest {
            self.slow(time, number);
        }
        for (count, more) in self.endings.iter_mut().zip(other.endings) {
            *count += more;
        }
    }

    fn slow(&mut self, time: Span, number: u64) {
        let slower = self
            .slowest
            .is_none_or(|(slowest, first)| time > slowest || (time == slowest && number < first));
        if slower {
            self.slowest = Some((time, number));
        }
    }

    /// Connections that ended so, by the names of [`Ending::NAMES`].
    pub fn endings(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Ending::NAMES.into_iter().zip(self.endings)
    }
}
