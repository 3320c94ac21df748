//! The parts of a response time, read from packets at both ends.
//!
//! [`ResponseTime`] says what the parts are. The client's end of the link knows when its packets came
//! to the link and when others were sent on to it; the server's end likewise: from that they follow
//! exactly. `t_client` is what the client's program takes to begin, some tens of microseconds where
//! it does nothing else.
//!
//! Bytes count when they are delivered intact for the first time, whichever transmission did it,
//! and first bytes leave with their first transmission, delivered or not: so a loss lengthens the
//! part in which it happens, and a packet sent again for nothing lengthens none. A server that
//! begins to reply before it has the whole request ends `t_req` there, and `t_proc` is zero; a
//! client that asks before it is connected ends `t_conn`. What a server says before it is asked is
//! no reply, and falls into `t_client`.
//!
//! Request bytes that leave after the reply has begun to arrive belong to the next transaction of
//! the connection, whose `t_conn` is zero and whose `t_client` is left out. FINs are no bytes.

use std::collections::{BTreeMap, HashMap};

use posthaste_link::Direction;
use posthaste_units::{Instant, ResponseTime};

use crate::flow::Flow;
use crate::sighting::Sighting;
use crate::trace::{Chronicle, Kind, Life, Seen, Step, Tcp, What};

/// Gaps remembered of what has been delivered, of each direction of a connection: more than a
/// window has.
const GAPS: usize = 4096;
/// Connections under way before those that are over are looked for the first time.
const FEW: usize = 1024;

/// A whole transaction: a request and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The connection's number.
    pub connection: u64,
    /// The connection.
    pub flow: Flow,
    /// Which transaction of its connection it is, from 1.
    pub transaction: u32,
    /// When it began: the first SYN, or the first byte of a later request.
    pub began: Instant,
    /// How long it took, in its parts.
    pub time: ResponseTime,
    /// Bytes of the request.
    pub request: u64,
    /// Bytes of the reply.
    pub reply: u64,
    /// Segments that either end sent again meanwhile, whether or not it was of use.
    pub again: u32,
}

/// Reads response times from sightings as they come.
///
/// Call [`note`](Self::note) with each, [`take`](Self::take) what is complete, and
/// [`finish`](Self::finish) at the end.
#[derive(Default)]
pub struct Responses {
    chronicle: Chronicle,
    connections: HashMap<u64, Connection>,
    complete: Vec<Response>,
    incomplete: u64,
    many: usize,
}

/// Everything that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Whole transactions that had not been taken, by connection.
    pub responses: Vec<Response>,
    /// Transactions, or connections without any, of which a part is missing: never established,
    /// no request, no reply, or not all of it delivered.
    pub incomplete: u64,
}

impl Responses {
    /// Nothing has been seen.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a sighting, in the order in which the emulator gives them.
    pub fn note(&mut self, sighting: Sighting) {
        self.chronicle.push(sighting);
        self.read();
    }

    /// Takes in a step of a chronicle that the caller keeps, in its order: instead of
    /// [`note`](Self::note), where the packets are looked at for other reasons, too.
    pub fn follow(&mut self, step: &Step) {
        let (Step::Came(seen) | Step::Reached(seen)) = step;
        let Some(tcp) = &seen.tcp else {
            return;
        };
        let now = step.time();
        self.forget(now);
        let sighting = &seen.sighting;
        let new = || Connection::new(sighting);
        let connection = self
            .connections
            .entry(sighting.connection)
            .or_insert_with(new);
        connection.last = now;
        if matches!(step, Step::Reached(_)) {
            connection.reached(now, seen, tcp);
        } else if let Some(before) = connection.came(now, seen, tcp) {
            self.judge(before);
        }
    }

    /// Those that are known to be complete, since the next of their connection has begun, or
    /// since the connection was forgotten to give its memory back. The rest comes at the end.
    pub fn take(&mut self) -> Vec<Response> {
        std::mem::take(&mut self.complete)
    }

    /// Nothing more will come.
    pub fn finish(mut self) -> Reading {
        self.chronicle.end();
        self.read();
        for (_, connection) in std::mem::take(&mut self.connections) {
            self.close(&connection);
        }
        self.complete
            .sort_by_key(|response| (response.connection, response.transaction));
        Reading {
            responses: self.complete,
            incomplete: self.incomplete,
        }
    }

    fn read(&mut self) {
        while let Some(step) = self.chronicle.pop() {
            self.follow(&step);
        }
    }

    fn judge(&mut self, transaction: Option<Response>) {
        match transaction {
            Some(response) => self.complete.push(response),
            None => self.incomplete += 1,
        }
    }

    fn close(&mut self, connection: &Connection) {
        self.judge(connection.response());
    }

    fn forget(&mut self, now: Instant) {
        if self.connections.len() < self.many.max(FEW) {
            return;
        }
        let is_over =
            |connection: &Connection| now.since(connection.last) >= connection.life.patience();
        let over = self
            .connections
            .extract_if(|_, connection| is_over(connection));
        let over: Vec<Connection> = over.map(|(_, connection)| connection).collect();
        over.iter().for_each(|connection| self.close(connection));
        self.many = self.connections.len() * 2;
    }
}

/// All response times of a run that is over.
pub fn read(sightings: impl IntoIterator<Item = Sighting>) -> Reading {
    let mut responses = Responses::new();
    sightings
        .into_iter()
        .for_each(|sighting| responses.note(sighting));
    responses.finish()
}

/// What is known of one transaction after another.
struct Connection {
    number: u64,
    flow: Flow,
    last: Instant,
    life: Life,
    transaction: u32,
    opened: Option<Instant>,
    connected: Option<Instant>,
    /// When the first byte of the request, and of the reply, came to the link.
    first: [Option<Instant>; 2],
    /// What has come to the link, and what was delivered.
    streams: [Stream; 2],
    again: u32,
}

/// One direction's bytes.
struct Stream {
    /// Where this transaction's bytes begin.
    begin: u64,
    /// Behind the last byte that has come to the link.
    end: u64,
    /// Everything before has been delivered.
    front: u64,
    /// Since when.
    at: Instant,
    /// Delivered beyond `front`: first place, and the first one behind.
    beyond: BTreeMap<u64, u64>,
}

impl Connection {
    fn new(sighting: &Sighting) -> Self {
        Self {
            number: sighting.connection,
            flow: sighting.flow,
            last: sighting.arrived,
            life: Life::default(),
            transaction: 1,
            opened: None,
            connected: None,
            first: [None; 2],
            streams: [Stream::new(), Stream::new()],
            again: 0,
        }
    }

    /// A packet comes to the link. Where it begins a transaction after another one, the other.
    fn came(&mut self, now: Instant, seen: &Seen, tcp: &Tcp) -> Option<Option<Response>> {
        if seen.sighting.copy > 0 {
            return None;
        } else if seen.what == What::Segment(Kind::Syn) && self.opened.is_none() {
            self.opened = Some(now);
        }
        let way = seen.sighting.direction as usize;
        let end = tcp.sequence + u64::from(tcp.payload);
        let is_new = tcp.payload > 0 && end > self.streams[way].end;
        let is_greeting = is_new && way == Direction::Down as usize && self.first[0].is_none();
        let [_, reply] = &self.streams;
        let next = is_new && seen.sighting.direction == Direction::Up && reply.front > reply.begin;
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
        self.again += u32::from(seen.is_again());
        before
    }

    /// A packet reaches the other end.
    fn reached(&mut self, now: Instant, seen: &Seen, tcp: &Tcp) {
        if !seen.is_intact() {
            return;
        } else if seen.what == What::Segment(Kind::SynAck) {
            self.connected.get_or_insert(now);
        }
        self.life.note(seen.sighting.direction, tcp);
        let stream = &mut self.streams[seen.sighting.direction as usize];
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

    /// The transaction, if all of it is there.
    fn response(&self) -> Option<Response> {
        let (began, connected) = self.opened.zip(self.connected)?;
        let [asked, answered] = self.first;
        let (asked, answered) = asked.zip(answered)?;
        // With TCP Fast Open the request leaves before.
        let connected = connected.min(asked);
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
                t_conn: connected.since(began),
                t_client: asked.since(connected),
                t_req: received.since(asked),
                t_proc: answered.since(received),
                t_resp: reply.at.since(answered),
            },
            request: request.end - request.begin,
            reply: reply.end - reply.begin,
            again: self.again,
        })
    }
}

impl Stream {
    /// The first byte is at place 1, behind the SYN.
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
    use posthaste_link::{Fate, Marks};
    use posthaste_units::Span;

    use super::*;
    use crate::trace::hand::Hand;

    /// A transaction of 300 and 2,048 bytes with 200 ms of processing, 10 ms each way.
    fn lossless() -> Hand {
        let mut hand = Hand::new();
        hand.delivered(0.0, Up, "S");
        hand.delivered(10.0, Down, "S ack 1");
        hand.delivered(20.0, Up, "1:1 ack 1");
        hand.delivered(20.5, Up, "1:301 ack 1");
        hand.delivered(230.5, Down, "1:1449 ack 301");
        hand.delivered(230.6, Down, "F 1449:2049 ack 301");
        hand.delivered(240.7, Up, "F 301:301 ack 2050");
        hand
    }

    fn only(hand: &Hand) -> Response {
        let reading = read(hand.sightings());
        assert_eq!((reading.responses.len(), reading.incomplete), (1, 0));
        reading.responses[0]
    }

    fn parts(response: &Response) -> [f64; 5] {
        let ResponseTime {
            t_conn,
            t_client,
            t_req,
            t_proc,
            t_resp,
        } = response.time;
        // By hand each packet is sent a nanosecond late.
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
        let mut hand = Hand::new();
        hand.dropped(0.0, Up, "S");
        hand.delivered(1000.0, Up, "S");
        hand.delivered(1010.0, Down, "S ack 1");
        hand.dropped(1020.0, Up, "1:201 ack 1");
        hand.delivered(1020.1, Up, "201:301 ack 1");
        hand.delivered(1250.0, Up, "1:201 ack 1");
        hand.dropped(1460.0, Down, "1:1449 ack 301");
        hand.delivered(1460.1, Down, "1449:2049 ack 301");
        hand.delivered(1700.0, Down, "1:1449 ack 301");
        // For nothing: both are there already.
        hand.delivered(1900.0, Down, "1449:2049 ack 301");
        hand.delivered(1900.0, Up, "1:201 ack 2049");
        let response = only(&hand);
        assert_eq!(parts(&response), [1020.0, 0.0, 240.0, 200.0, 250.0]);
        assert_eq!(response.again, 5);
        assert_eq!(response.time.total(), Span::from_nanos(1_710_000_001));
    }

    #[test]
    fn damaged_packets_are_not_delivered() {
        let flipped = Fate::Delivered(Marks {
            flipped: 1,
            ..Marks::default()
        });
        let mut hand = lossless();
        hand.passed(300.0, Up, "301:401 ack 2049", flipped, 10.0);
        hand.delivered(500.0, Up, "301:401 ack 2049");
        hand.delivered(510.0, Down, "2049:2059 ack 401");
        let reading = read(hand.sightings());
        assert_eq!(reading.responses.len(), 2);
        assert_eq!(parts(&reading.responses[1]), [0.0, 0.0, 210.0, 0.0, 10.0]);
        assert_eq!(reading.responses[1].transaction, 2);
    }

    #[test]
    fn what_is_not_whole_is_counted() {
        let mut nothing = Hand::new();
        nothing.dropped(0.0, Up, "S");
        let mut open = Hand::of(2);
        open.delivered(0.0, Up, "S");
        open.delivered(10.0, Down, "S ack 1");
        let mut cut = Hand::of(3);
        cut.delivered(0.0, Up, "S");
        cut.delivered(10.0, Down, "S ack 1");
        cut.delivered(20.0, Up, "1:301 ack 1");
        cut.delivered(230.5, Down, "1:1449 ack 301");
        cut.dropped(230.6, Down, "1449:2049 ack 301");
        let all = [nothing, open, cut].map(|hand| hand.sightings()).concat();
        let incomplete = Reading {
            responses: Vec::new(),
            incomplete: 3,
        };
        assert_eq!(read(all), incomplete);
    }

    /// Its server takes half an hour, while others come and are reset.
    #[test]
    fn a_transaction_that_goes_on_is_not_forgotten() {
        let mut responses = Responses::new();
        let mut note = |hand: &Hand| {
            let sightings = hand.sightings().into_iter();
            sightings.for_each(|sighting| responses.note(sighting));
        };
        let mut asked = Hand::of(0);
        asked.delivered(0.0, Up, "S");
        asked.delivered(10.0, Down, "S ack 1");
        asked.delivered(20.0, Up, "1:301 ack 1");
        note(&asked);
        for connection in 1..=2000u64 {
            let ms = connection as f64 * 1e3;
            let mut other = Hand::of(connection);
            other.delivered(ms, Up, "S");
            other.delivered(ms + 10.1, Down, "R 0:0 ack 1");
            note(&other);
        }
        let mut answered = Hand::of(0);
        answered.delivered(2_001e3, Down, "1:101 ack 301");
        note(&answered);
        let reading = responses.finish();
        assert_eq!((reading.responses.len(), reading.incomplete), (1, 2000));
        assert_eq!(reading.responses[0].reply, 100);
    }

    #[test]
    fn a_greeting_is_no_reply() {
        let mut hand = Hand::new();
        hand.delivered(0.0, Up, "S");
        hand.delivered(10.0, Down, "S ack 1");
        hand.delivered(50.0, Down, "1:101 ack 1");
        hand.delivered(70.0, Up, "1:201 ack 101");
        hand.delivered(180.0, Down, "101:151 ack 201");
        let response = only(&hand);
        assert_eq!(parts(&response), [20.0, 50.0, 10.0, 100.0, 10.0]);
        assert_eq!(response.reply, 50);
    }

    #[test]
    fn a_server_that_does_not_wait_has_no_processing_time() {
        let mut hand = Hand::new();
        hand.delivered(0.0, Up, "S");
        hand.delivered(10.0, Down, "S ack 1");
        hand.delivered(20.0, Up, "1:201 ack 1");
        hand.delivered(25.0, Up, "201:301 ack 1");
        hand.delivered(30.0, Down, "1:101 ack 201");
        let response = only(&hand);
        assert_eq!(parts(&response), [20.0, 0.0, 10.0, 0.0, 10.0]);
    }
}
