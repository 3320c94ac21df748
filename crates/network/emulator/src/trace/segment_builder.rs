//! Packet records for tests, written in the notation of a trace: `S`, `S. ack 1`, `1:1449 ack 301`.

use etherparse::{PacketBuilder, TcpOptionElement};
use posthaste_link::{DeliveryMarks, Departure, Direction, DropReason, Fate};
use posthaste_units::{Instant, Span};

use crate::path::flow::Flow;
use crate::path::packet_record::PacketRecord;

/// Initial sequence numbers. The server's is near the wrap-around.
const BASES: [u32; 2] = [1000, u32::MAX - 700];
const SCALE: u8 = 7;

/// A scripted connection. Its records come in the order in which packets leave.
pub(crate) struct SegmentBuilder {
    connection: u64,
    positions: [u64; 2],
    pub(crate) may_sack: bool,
    packet_records: Vec<PacketRecord>,
}

impl SegmentBuilder {
    pub(crate) fn new() -> Self {
        Self::for_connection(1)
    }

    pub(crate) fn for_connection(connection: u64) -> Self {
        Self {
            connection,
            positions: [0; 2],
            may_sack: true,
            packet_records: Vec::new(),
        }
    }

    /// Adds a packet that arrives at the link at `ms` and is delivered 10 ms later.
    pub(crate) fn delivered(&mut self, ms: f64, direction: Direction, segment: &str) -> &mut Self {
        self.passed(
            ms,
            direction,
            segment,
            Fate::Delivered(DeliveryMarks::default()),
            10.0,
        )
    }

    /// Adds a packet that arrives at the link at `ms` and is dropped.
    pub(crate) fn dropped(&mut self, ms: f64, direction: Direction, segment: &str) -> &mut Self {
        self.passed(
            ms,
            direction,
            segment,
            Fate::Dropped(DropReason::Pattern),
            0.0,
        )
    }

    pub(crate) fn passed(
        &mut self,
        ms: f64,
        direction: Direction,
        segment: &str,
        fate: Fate,
        stay: f64,
    ) -> &mut Self {
        let position = &mut self.positions[direction as usize];
        *position += 1;
        let arrived = Instant::ORIGIN + Span::from_secs_f64(ms / 1e3);
        let left = arrived + Span::from_secs_f64(stay / 1e3);
        let departure = Departure {
            position: *position,
            copy: 0,
            arrived,
            left,
            fate,
            packet: self.packet(direction, segment),
        };
        let flow = Flow {
            protocol: 6,
            client: ([10, 0, 0, 1], 40_000).into(),
            server: ([10, 0, 0, 2], 80).into(),
        };
        let sent = left + Span::from_nanos(if stay > 0.0 { 1 } else { 0 });
        let record = PacketRecord::new(direction, self.connection, flow, &departure, sent);
        self.packet_records.push(record);
        self
    }

    /// All records, in the order in which the packets leave the link.
    pub(crate) fn packet_records(&self) -> Vec<PacketRecord> {
        let mut packet_records = self.packet_records.clone();
        packet_records.sort_by_key(|packet_record| packet_record.left);
        packet_records
    }

    fn packet(&self, direction: Direction, segment: &str) -> Vec<u8> {
        let own = BASES[direction as usize];
        let other = BASES[direction.reverse() as usize];
        let ends = [([10, 0, 0, 1], 40_000), ([10, 0, 0, 2], 80)];
        let (from, to) = (ends[direction as usize], ends[direction.reverse() as usize]);
        let (mut start, mut end, mut acknowledged, mut window) = (0, 0, None, 500);
        let (mut flags, mut options) = (String::new(), Vec::new());
        let range = |segment: &str| {
            let (start, end) = segment.split_once(':').expect("start:end");
            let number = |digits: &str| digits.parse::<u32>().expect("a number");
            (number(start), number(end))
        };
        let mut tokens = segment.split_whitespace();
        while let Some(token) = tokens.next() {
            let mut next = || tokens.next().expect("a number behind it");
            match token {
                "ack" => acknowledged = Some(next().parse::<u32>().expect("a number")),
                "win" => window = next().parse().expect("a number"),
                "sack" => {
                    let (from, to) = range(next());
                    let block = (other.wrapping_add(from), other.wrapping_add(to));
                    options.push(TcpOptionElement::SelectiveAcknowledgement(block, [None; 3]));
                }
                token if token.contains(':') => (start, end) = range(token),
                token => flags = token.to_owned(),
            }
        }
        if flags.contains('S') {
            options.push(TcpOptionElement::WindowScale(SCALE));
            if self.may_sack {
                options.push(TcpOptionElement::SelectiveAcknowledgementPermitted);
            }
        }
        let mut tcp = PacketBuilder::ipv4(from.0, to.0, 64)
            .tcp(from.1, to.1, own.wrapping_add(start), window)
            .options(&options)
            .expect("options that fit");
        if let Some(acknowledged) = acknowledged {
            tcp = tcp.ack(other.wrapping_add(acknowledged));
        }
        for flag in flags.chars() {
            tcp = match flag {
                'S' => tcp.syn(),
                'F' => tcp.fin(),
                'R' => tcp.rst(),
                other => panic!("no flag: {other}"),
            };
        }
        let mut packet = Vec::new();
        let payload = vec![b'x'; end.saturating_sub(start) as usize];
        tcp.write(&mut packet, &payload)
            .expect("a packet that fits");
        packet
    }
}
