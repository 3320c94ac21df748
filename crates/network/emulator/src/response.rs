//! Response times and their parts, read from packets at both ends.
//!
//! [`ResponseTime`] defines the parts. Each end of the link knows the times when its packets arrived at the link, and
//! the times when others were sent on to it. The parts follow exactly from that. `t_client` is the time until the
//! client's program begins, some tens of microseconds if it does nothing else.
//!
//! Bytes count when they are delivered intact for the first time, by any transmission. First bytes leave with their
//! first transmission, delivered or not. A loss therefore lengthens the part in which it happens, and a needless
//! retransmission lengthens none.
//!
//! - If the server begins to reply before it has the whole request, `t_req` ends there and `t_proc` is zero.
//! - If the client sends a request before it is connected, `t_conn` ends there.
//! - Data that the server sends before a request is not a reply, and is part of `t_client`.
//! - Request bytes that leave after the reply has begun to arrive belong to the next transaction of the connection. Its
//!   `t_conn` and `t_client` are zero.
//! - FINs do not count as bytes.
//! - The ACK of the SYN-ACK passes the link during `t_client`. A request that comes later waits less behind it, so that
//!   `t_req` is shorter by up to its transmission time.

use std::collections::{BTreeMap, HashMap};

use posthaste_link::Direction;
use posthaste_units::{Instant, ResponseTime};

use crate::path::flow::Flow;
use crate::path::packet_record::PacketRecord;
use crate::trace::{
    DecodedPacket, DecodedSegment, EventOrder, Lifecycle, PacketEvent, PacketKind, SegmentKind,
};

/// Maximum number of gaps remembered in the delivered data of each direction of a connection: more than a window has.
const GAPS: usize = 4096;
/// Number of connections at which finished ones are first searched for.
const FEW: usize = 1024;

/// A complete transaction: a request and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Number of the connection.
    pub connection: u64,
    /// Ends of the connection.
    pub flow: Flow,
    /// Number of the transaction in its connection, from 1.
    pub transaction: u32,
    /// Beginning: the first SYN, or the first byte of a later request.
    pub began: Instant,
    /// Its response time, in parts.
    pub time: ResponseTime,
    /// Bytes of the request.
    pub request: u64,
    /// Bytes of the reply.
    pub reply: u64,
    /// Segments that either end retransmitted meanwhile, needlessly or not.
    pub again: u32,
}

/// Reads response times from packet records as they arrive.
///
/// Call [`note`](Self::note) with each record, [`take`](Self::take) for the complete transactions, and
/// [`finish`](Self::finish) at the end.
#[derive(Default)]
pub struct Responses {
    event_order: EventOrder,
    connections: HashMap<u64, MeasuredConnection>,
    complete: Vec<Response>,
    incomplete: u64,
    many: usize,
}

/// Result of [`finish`](Responses::finish).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredResponses {
    /// Complete transactions that had not been taken, by connection.
    pub responses: Vec<Response>,
    /// Incomplete transactions, and connections without any: not established, without request or reply, or not fully
    /// delivered.
    pub incomplete: u64,
}

impl Responses {
    /// A reader without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a packet record, in the emulator's order.
    pub fn note(&mut self, packet_record: PacketRecord) {
        self.event_order.push(packet_record);
        self.read();
    }

    /// Adds a step of the caller's own event_order, in its order. Use it instead of [`note`](Self::note) if the packets
    /// are also needed for other purposes.
    pub fn follow(&mut self, event: &PacketEvent) {
        let (PacketEvent::Arrived(packet) | PacketEvent::Delivered(packet)) = event;
        let Some(tcp) = &packet.tcp else {
            return;
        };
        let now = event.time();
        self.forget(now);
        let packet_record = &packet.packet_record;
        let new = || MeasuredConnection::new(packet_record);
        let connection = self
            .connections
            .entry(packet_record.connection)
            .or_insert_with(new);
        connection.last = now;
        if matches!(event, PacketEvent::Delivered(_)) {
            connection.reached(now, packet, tcp);
        } else if let Some(before) = connection.came(now, packet, tcp) {
            self.judge(before);
        }
    }

    /// Transactions known to be complete: the next of their connection has begun, or the connection was forgotten to
    /// free its memory. [`finish`](Self::finish) returns the rest.
    pub fn take(&mut self) -> Vec<Response> {
        std::mem::take(&mut self.complete)
    }

    /// Ends the input. Returns the transactions not taken yet.
    pub fn finish(mut self) -> MeasuredResponses {
        self.event_order.end();
        self.read();
        for (_, connection) in std::mem::take(&mut self.connections) {
            self.close(&connection);
        }
        self.complete
            .sort_by_key(|response| (response.connection, response.transaction));
        MeasuredResponses {
            responses: self.complete,
            incomplete: self.incomplete,
        }
    }

    fn read(&mut self) {
        while let Some(event) = self.event_order.pop() {
            self.follow(&event);
        }
    }

    fn judge(&mut self, transaction: Option<Response>) {
        match transaction {
            Some(response) => self.complete.push(response),
            None => self.incomplete += 1,
        }
    }

    fn close(&mut self, connection: &MeasuredConnection) {
        self.judge(connection.response());
    }

    fn forget(&mut self, now: Instant) {
        if self.connections.len() < self.many.max(FEW) {
            return;
        }
        let is_over = |connection: &MeasuredConnection| {
            now.saturating_since(connection.last) >= connection.lifecycle.forgotten_after()
        };
        let over = self
            .connections
            .extract_if(|_, connection| is_over(connection));
        let over: Vec<MeasuredConnection> = over.map(|(_, connection)| connection).collect();
        over.iter().for_each(|connection| self.close(connection));
        self.many = self.connections.len() * 2;
    }
}

/// All response times of a finished run.
pub fn read(packet_records: impl IntoIterator<Item = PacketRecord>) -> MeasuredResponses {
    let mut responses = Responses::new();
    packet_records
        .into_iter()
        .for_each(|packet_record| responses.note(packet_record));
    responses.finish()
}

/// State of a connection and its current transaction.
struct MeasuredConnection {
    number: u64,
    flow: Flow,
    last: Instant,
    lifecycle: Lifecycle,
    transaction: u32,
    opened: Option<Instant>,
    connected: Option<Instant>,
    /// Arrival at the link of the first byte of the request, and of the reply.
    first: [Option<Instant>; 2],
    /// Data that arrived at the link, and data that was delivered.
    streams: [Stream; 2],
    again: u32,
}

/// The data of one direction.
struct Stream {
    /// First byte of this transaction.
    begin: u64,
    /// End of the data that has arrived at the link.
    end: u64,
    /// End of the data that was delivered without a gap.
    front: u64,
    /// Time at which `front` was reached.
    at: Instant,
    /// Data delivered beyond `front`: start and end of each piece.
    beyond: BTreeMap<u64, u64>,
}

impl MeasuredConnection {
    fn new(packet_record: &PacketRecord) -> Self {
        Self {
            number: packet_record.connection,
            flow: packet_record.flow,
            last: packet_record.arrived,
            lifecycle: Lifecycle::default(),
            transaction: 1,
            opened: None,
            connected: None,
            first: [None; 2],
            streams: [Stream::new(), Stream::new()],
            again: 0,
        }
    }

    /// Handles a packet that arrives at the link. Returns the previous transaction if the packet begins the next.
    fn came(
        &mut self,
        now: Instant,
        packet: &DecodedPacket,
        tcp: &DecodedSegment,
    ) -> Option<Option<Response>> {
        if packet.packet_record.copy > 0 {
            return None;
        } else if packet.kind == PacketKind::Segment(SegmentKind::Syn) && self.opened.is_none() {
            self.opened = Some(now);
        }
        let way = packet.packet_record.direction as usize;
        let end = tcp.sequence + u64::from(tcp.payload);
        let is_new = tcp.payload > 0 && end > self.streams[way].end;
        let is_greeting = is_new && way == Direction::Down as usize && self.first[0].is_none();
        let [_, reply] = &self.streams;
        let next =
            is_new && packet.packet_record.direction == Direction::Up && reply.front > reply.begin;
        let before = next.then(|| {
            let response = self.response();
            self.begin_next(now);
            response
        });
        if is_new {
            self.streams[way].end = end;
        }
        if is_greeting {
            self.streams[way].begin = end;
        } else if is_new {
            self.first[way].get_or_insert(now);
        }
        self.again += u32::from(packet.is_again());
        before
    }

    /// Handles a packet that reaches the other end.
    fn reached(&mut self, now: Instant, packet: &DecodedPacket, tcp: &DecodedSegment) {
        if !packet.is_intact() {
            return;
        } else if packet.kind == PacketKind::Segment(SegmentKind::SynAck) {
            self.connected.get_or_insert(now);
        }
        self.lifecycle.note(packet.packet_record.direction, tcp);
        let stream = &mut self.streams[packet.packet_record.direction as usize];
        stream.deliver(now, tcp.sequence, tcp.sequence + u64::from(tcp.payload));
    }

    fn begin_next(&mut self, now: Instant) {
        self.transaction += 1;
        self.opened = Some(now);
        self.connected = Some(now);
        self.first = [None; 2];
        self.again = 0;
        for stream in &mut self.streams {
            stream.begin = stream.end;
        }
    }

    /// The transaction, if it is complete.
    fn response(&self) -> Option<Response> {
        let (began, connected) = self.opened.zip(self.connected)?;
        let [requested, answered] = self.first;
        let (requested, answered) = requested.zip(answered)?;
        // With TCP Fast Open the request leaves before the connection is established.
        let connected = connected.min(requested);
        let [request, reply] = &self.streams;
        if request.front < request.end || reply.front < reply.end {
            return None;
        }
        let received = request.at.min(answered);
        Some(Response {
            connection: self.number,
            flow: self.flow,
            transaction: self.transaction,
            began,
            time: ResponseTime {
                // The two directions are stamped separately.
                t_conn: connected.saturating_since(began),
                t_client: requested.saturating_since(connected),
                t_req: received.saturating_since(requested),
                t_proc: answered.saturating_since(received),
                t_resp: reply.at.saturating_since(answered),
            },
            request: request.end - request.begin,
            reply: reply.end - reply.begin,
            again: self.again,
        })
    }
}

impl Stream {
    /// An empty stream. The first byte is number 1, after the SYN.
    fn new() -> Self {
        Self {
            begin: 1,
            end: 1,
            front: 1,
            at: Instant::ORIGIN,
            beyond: BTreeMap::new(),
        }
    }

    fn deliver(&mut self, now: Instant, start: u64, end: u64) {
        if end <= self.front || start == end {
            return;
        }
        if start > self.front {
            if self.beyond.len() < GAPS {
                let known = self.beyond.entry(start).or_insert(end);
                *known = end.max(*known);
            }
            return;
        }
        self.front = end;
        self.at = now;
        while let Some(next) = self
            .beyond
            .first_entry()
            .filter(|next| *next.key() <= self.front)
        {
            self.front = self.front.max(next.remove());
        }
    }
}

#[cfg(test)]
mod tests {
    use posthaste_link::Direction::{Down, Up};
    use posthaste_link::{DeliveryMarks, Fate};
    use posthaste_units::Span;

    use super::*;
    use crate::trace::segment_builder::SegmentBuilder;

    /// A transaction of 300 and 2,048 bytes with 200 ms of processing, 10 ms each way.
    fn lossless() -> SegmentBuilder {
        let mut builder = SegmentBuilder::new();
        builder.delivered(0.0, Up, "S");
        builder.delivered(10.0, Down, "S ack 1");
        builder.delivered(20.0, Up, "1:1 ack 1");
        builder.delivered(20.5, Up, "1:301 ack 1");
        builder.delivered(230.5, Down, "1:1449 ack 301");
        builder.delivered(230.6, Down, "F 1449:2049 ack 301");
        builder.delivered(240.7, Up, "F 301:301 ack 2050");
        builder
    }

    fn only(builder: &SegmentBuilder) -> Response {
        let measured = read(builder.packet_records());
        assert_eq!((measured.responses.len(), measured.incomplete), (1, 0));
        measured.responses[0]
    }

    fn parts(response: &Response) -> [f64; 5] {
        let ResponseTime {
            t_conn,
            t_client,
            t_req,
            t_proc,
            t_resp,
        } = response.time;
        // `SegmentBuilder` sends each packet a nanosecond late.
        [t_conn, t_client, t_req, t_proc, t_resp]
            .map(|part| (part.as_micros_f64() / 10.0).round() / 100.0)
    }

    #[test]
    fn the_parts_of_a_transaction_without_loss() {
        let response = only(&lossless());
        assert_eq!(parts(&response), [20.0, 0.5, 10.0, 200.0, 10.1]);
        assert_eq!(
            (response.request, response.reply, response.again),
            (300, 2048, 0)
        );
        let last = Span::from_nanos(240_600_001);
        assert_eq!(response.time.total(), last);
    }

    #[test]
    fn a_loss_lengthens_the_part_in_which_it_happens() {
        let mut builder = SegmentBuilder::new();
        builder.dropped(0.0, Up, "S");
        builder.delivered(1000.0, Up, "S");
        builder.delivered(1010.0, Down, "S ack 1");
        builder.dropped(1020.0, Up, "1:201 ack 1");
        builder.delivered(1020.1, Up, "201:301 ack 1");
        builder.delivered(1250.0, Up, "1:201 ack 1");
        builder.dropped(1460.0, Down, "1:1449 ack 301");
        builder.delivered(1460.1, Down, "1449:2049 ack 301");
        builder.delivered(1700.0, Down, "1:1449 ack 301");
        // Needless: both have already arrived.
        builder.delivered(1900.0, Down, "1449:2049 ack 301");
        builder.delivered(1900.0, Up, "1:201 ack 2049");
        let response = only(&builder);
        assert_eq!(parts(&response), [1020.0, 0.0, 240.0, 200.0, 250.0]);
        assert_eq!(response.again, 5);
        assert_eq!(response.time.total(), Span::from_nanos(1_710_000_001));
    }

    #[test]
    fn damaged_packets_are_not_delivered() {
        let flipped = Fate::Delivered(DeliveryMarks {
            flipped: 1,
            ..DeliveryMarks::default()
        });
        let mut builder = lossless();
        builder.passed(300.0, Up, "301:401 ack 2049", flipped, 10.0);
        builder.delivered(500.0, Up, "301:401 ack 2049");
        builder.delivered(510.0, Down, "2049:2059 ack 401");
        let measured = read(builder.packet_records());
        assert_eq!(measured.responses.len(), 2);
        assert_eq!(parts(&measured.responses[1]), [0.0, 0.0, 210.0, 0.0, 10.0]);
        assert_eq!(measured.responses[1].transaction, 2);
    }

    #[test]
    fn incomplete_responses_are_counted() {
        let mut nothing = SegmentBuilder::new();
        nothing.dropped(0.0, Up, "S");
        let mut open = SegmentBuilder::for_connection(2);
        open.delivered(0.0, Up, "S");
        open.delivered(10.0, Down, "S ack 1");
        let mut cut = SegmentBuilder::for_connection(3);
        cut.delivered(0.0, Up, "S");
        cut.delivered(10.0, Down, "S ack 1");
        cut.delivered(20.0, Up, "1:301 ack 1");
        cut.delivered(230.5, Down, "1:1449 ack 301");
        cut.dropped(230.6, Down, "1449:2049 ack 301");
        let all = [nothing, open, cut]
            .map(|builder| builder.packet_records())
            .concat();
        let incomplete = MeasuredResponses {
            responses: Vec::new(),
            incomplete: 3,
        };
        assert_eq!(read(all), incomplete);
    }

    /// Its server takes half an hour, while other connections come and are reset.
    #[test]
    fn a_transaction_that_goes_on_is_not_forgotten() {
        let mut responses = Responses::new();
        let mut note = |builder: &SegmentBuilder| {
            let packet_records = builder.packet_records().into_iter();
            packet_records.for_each(|packet_record| responses.note(packet_record));
        };
        let mut requested = SegmentBuilder::for_connection(0);
        requested.delivered(0.0, Up, "S");
        requested.delivered(10.0, Down, "S ack 1");
        requested.delivered(20.0, Up, "1:301 ack 1");
        note(&requested);
        for connection in 1..=2000u64 {
            let ms = connection as f64 * 1e3;
            let mut other = SegmentBuilder::for_connection(connection);
            other.delivered(ms, Up, "S");
            other.delivered(ms + 10.1, Down, "R 0:0 ack 1");
            note(&other);
        }
        let mut answered = SegmentBuilder::for_connection(0);
        answered.delivered(2_001e3, Down, "1:101 ack 301");
        note(&answered);
        let measured = responses.finish();
        assert_eq!((measured.responses.len(), measured.incomplete), (1, 2000));
        assert_eq!(measured.responses[0].reply, 100);
    }

    #[test]
    fn a_greeting_is_no_reply() {
        let mut builder = SegmentBuilder::new();
        builder.delivered(0.0, Up, "S");
        builder.delivered(10.0, Down, "S ack 1");
        builder.delivered(50.0, Down, "1:101 ack 1");
        builder.delivered(70.0, Up, "1:201 ack 101");
        builder.delivered(180.0, Down, "101:151 ack 201");
        let response = only(&builder);
        assert_eq!(parts(&response), [20.0, 50.0, 10.0, 100.0, 10.0]);
        assert_eq!(response.reply, 50);
    }

    #[test]
    fn a_server_that_does_not_wait_has_no_processing_time() {
        let mut builder = SegmentBuilder::new();
        builder.delivered(0.0, Up, "S");
        builder.delivered(10.0, Down, "S ack 1");
        builder.delivered(20.0, Up, "1:201 ack 1");
        builder.delivered(25.0, Up, "201:301 ack 1");
        builder.delivered(30.0, Down, "1:101 ack 201");
        let response = only(&builder);
        assert_eq!(parts(&response), [20.0, 0.0, 10.0, 0.0, 10.0]);
    }
}
