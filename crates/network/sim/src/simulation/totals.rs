//! Totals of many transactions, mergeable in any order.

use posthaste_link::LinkCounters;
use posthaste_stats::{Histogram, Recorder};
use posthaste_units::{ResponseTime, Span};

use crate::{Ending, Transaction};

/// Results of many transactions.
///
/// All counts are integers, and the number of a transaction determines its batch. Merged totals equal those of one run,
/// for any order and number of threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Simulated connections.
    pub connections: u64,
    /// Exchanges with a complete reply: the number of response times.
    pub answered: u64,
    /// Response times. Each transaction is an independent trial, so that intervals are those of independent values.
    pub response: Recorder,
    /// The parts `t_conn`, `t_req`, `t_proc`, `t_resp`.
    pub parts: [Histogram; 4],
    /// Retransmitted segments of both ends.
    pub retransmissions: u64,
    /// Retransmissions prompted by acknowledgements.
    pub fast_retransmits: u64,
    /// Expired retransmission timers.
    pub timeouts: u64,
    /// Tail loss probes, and copies sent in advance.
    pub probes: u64,
    /// Unnecessary retransmissions: segments with data or a FIN whose receiver had all of it. Copies made by a link are
    /// not counted.
    pub for_nothing: u64,
    /// Acknowledgements repeated by the adaptive duplicate ACK remedy.
    pub adaptive_acks: u64,
    /// Packets sent, up and down.
    pub packets: [u64; 2],
    /// Bytes of IP packets sent, up and down.
    pub bytes: [u64; 2],
    /// Largest number of packets of one connection, up and down.
    pub most_packets: [u64; 2],
    /// The longest response time, and the first transaction that had it.
    pub slowest: Option<(Span, u64)>,
    /// Packets dropped or damaged on the links.
    pub lost: u64,
    /// Connections with a lost packet.
    pub touched: u64,
    pub(crate) endings: [u64; Ending::NAMES.len()],
}

/// A completed connection of any transport.
#[derive(Clone, Copy, Debug)]
pub struct CompletedConnection<'a> {
    /// Number of the transaction, from 1.
    pub number: u64,
    /// Response time of each completed exchange, in order.
    pub responses: &'a [ResponseTime],
    /// Cause of the end.
    pub ending: Ending,
    /// Counters of the links, up and down.
    pub links: [&'a LinkCounters; 2],
    /// Counts of both ends.
    pub tally: ConnectionTally,
}

/// Recoveries from losses of both ends of a connection. The fields are those of [`Totals`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionTally {
    /// Retransmitted packets.
    pub retransmissions: u64,
    /// Retransmissions prompted by acknowledgements.
    pub fast_retransmits: u64,
    /// Expired retransmission timers.
    pub timeouts: u64,
    /// Probes.
    pub probes: u64,
    /// Unnecessary retransmissions.
    pub for_nothing: u64,
    /// Acknowledgements repeated by the adaptive duplicate ACK remedy.
    pub adaptive_acks: u64,
}

impl Totals {
    /// Names of the parts, in order.
    pub const PARTS: [&'static str; 4] = ["t_conn", "t_req", "t_proc", "t_resp"];

    /// Creates empty totals.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a transaction over TCP.
    pub fn add(&mut self, transaction: &Transaction<'_>) {
        self.add_connection(&CompletedConnection {
            number: transaction.number,
            responses: transaction.responses,
            ending: transaction.ending,
            links: transaction.links,
            tally: transaction.tally(),
        });
    }

    /// Adds a connection of any transport.
    pub fn add_connection(&mut self, connection: &CompletedConnection<'_>) {
        let number = connection.number;
        self.connections += 1;
        self.endings[connection.ending.index()] += 1;
        // A millisecond per transaction, so that the batches of a recorder have equal numbers of transactions.
        let position = Span::from_millis(number);
        for response in connection.responses {
            self.answered += 1;
            self.response.record(position, response.total());
            self.slow(response.total(), number);
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
        for (way, link) in connection.links.into_iter().enumerate() {
            self.packets[way] += link.pushed.packets;
            self.bytes[way] += link.pushed.bytes;
            self.most_packets[way] = self.most_packets[way].max(link.pushed.packets);
            lost += link.dropped_in_all().packets + link.corrupted.packets;
        }
        self.lost += lost;
        self.touched += u64::from(lost > 0);
        let tally = &connection.tally;
        self.retransmissions += tally.retransmissions;
        self.fast_retransmits += tally.fast_retransmits;
        self.timeouts += tally.timeouts;
        self.probes += tally.probes;
        self.for_nothing += tally.for_nothing;
        self.adaptive_acks += tally.adaptive_acks;
        self.assert_invariants();
    }

    /// Panics if the totals contradict each other. Checked in debug builds.
    fn assert_invariants(&self) {
        if cfg!(debug_assertions) {
            let ended = self.endings.iter().sum::<u64>();
            assert_eq!(ended, self.connections, "connections differ from endings");
            let responses = self.response.histogram().count();
            assert_eq!(
                responses, self.answered,
                "response times differ from replies"
            );
            let complete = |part: &Histogram| part.count() == self.answered;
            assert!(
                self.parts.iter().all(complete),
                "a response time lacks a part"
            );
            assert!(
                self.touched <= self.connections,
                "more connections are touched than exist"
            );
            assert!(
                self.touched <= self.lost,
                "a connection is touched without a loss"
            );
        }
    }

    /// Adds the totals of other transactions of the same scenario.
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
        self.assert_invariants();
    }

    fn slow(&mut self, time: Span, number: u64) {
        let slower = self
            .slowest
            .is_none_or(|(slowest, first)| time > slowest || (time == slowest && number < first));
        if slower {
            self.slowest = Some((time, number));
        }
    }

    /// Numbers of connections by ending, named as in [`Ending::NAMES`].
    pub fn endings(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Ending::NAMES.into_iter().zip(self.endings)
    }
}
