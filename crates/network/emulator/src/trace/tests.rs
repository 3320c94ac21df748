//! Classification of packets, from scripted connections; and files that cannot be written.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use etherparse::PacketBuilder;
use pcap_parser::{Block, OptionCode, PcapBlockOwned, PcapError, create_reader};
use posthaste_link::Direction::{Down, Up};
use posthaste_link::{DeliveryMarks, Departure, Fate};
use posthaste_units::{Instant, Span};

use super::segment_builder::SegmentBuilder;
use super::*;
use crate::path::flow::Flow;
use crate::path::packet_record::PacketRecord;

/// A connection up to the reply: handshake and request, 10 ms each way.
fn opened() -> SegmentBuilder {
    opened_with(true)
}

fn opened_with(may_sack: bool) -> SegmentBuilder {
    let mut builder = SegmentBuilder::new();
    builder.may_sack = may_sack;
    builder.delivered(0.0, Up, "S");
    builder.delivered(10.1, Down, "S ack 1");
    builder.delivered(20.2, Up, "1:1 ack 1");
    builder.delivered(20.3, Up, "1:301 ack 1");
    builder.delivered(30.4, Down, "1:1 ack 301");
    builder
}

fn events(builder: &SegmentBuilder) -> Vec<PacketEvent> {
    let mut event_order = EventOrder::new();
    builder
        .packet_records()
        .into_iter()
        .for_each(|packet_record| event_order.push(packet_record));
    event_order.end();
    std::iter::from_fn(|| event_order.pop()).collect()
}

/// Labels such as `data rto` of all packets of one direction, in order of arrival.
fn read(builder: &SegmentBuilder, direction: posthaste_link::Direction) -> Vec<String> {
    let mut all = Vec::new();
    for event in events(builder) {
        let PacketEvent::Arrived(packet) = event else {
            continue;
        };
        if packet.packet_record.direction == direction {
            let sending = packet.tcp.as_ref().and_then(|tcp| tcp.sending);
            let sending = sending.filter(|sending| *sending != Sending::First);
            let again = sending.map_or_else(String::new, |sending| format!(" {}", sending.name()));
            all.push(format!("{}{again}", packet.kind));
        }
    }
    all
}

#[test]
fn a_transaction_without_loss() {
    let mut builder = opened();
    builder.delivered(230.0, Down, "1:1449 ack 301");
    builder.delivered(230.1, Down, "F 1449:2049 ack 301");
    builder.delivered(240.2, Up, "301:301 ack 1449");
    builder.delivered(240.3, Up, "F 301:301 ack 2050");
    builder.delivered(250.4, Down, "2050:2050 ack 302");
    assert_eq!(read(&builder, Up), ["syn", "ack", "data", "ack", "fin"]);
    assert_eq!(
        read(&builder, Down),
        ["syn-ack", "ack", "data", "data-fin", "ack"]
    );
    let events = events(&builder);
    assert!(events.is_sorted_by_key(PacketEvent::time));
    let last = events.iter().rev().find_map(|event| match event {
        PacketEvent::Arrived(packet) => packet.tcp.clone(),
        PacketEvent::Delivered(_) => None,
    });
    let last = last.expect("a segment");
    assert_eq!(
        (last.sequence, last.acknowledgment, last.window),
        (2050, Some(302), 500 << 7)
    );
}

#[test]
fn a_hole_in_what_is_acknowledged_is_repaired_fast() {
    for may_sack in [true, false] {
        let sack = |to: u32| {
            if may_sack {
                format!(" sack 1449:{to}")
            } else {
                String::new()
            }
        };
        let mut builder = opened_with(may_sack);
        builder.dropped(230.0, Down, "1:1449 ack 301");
        builder.delivered(230.1, Down, "1449:2897 ack 301");
        builder.delivered(230.2, Down, "2897:4345 ack 301");
        builder.delivered(230.3, Down, "4345:5793 ack 301");
        for (ms, to) in [(240.2, 2897), (240.3, 4345), (240.4, 5793)] {
            builder.delivered(ms, Up, &format!("301:301 ack 1{}", sack(to)));
        }
        builder.delivered(250.5, Down, "1:1449 ack 301");
        assert_eq!(read(&builder, Up)[3..], ["dupack"; 3]);
        assert_eq!(
            read(&builder, Down)[2..],
            ["data", "data", "data", "data", "data fast"]
        );
    }
}

#[test]
fn a_late_loss_waits_for_the_timer() {
    for (may_sack, first) in [(true, "data-fin rto-or-probe"), (false, "data-fin rto")] {
        let mut builder = opened_with(may_sack);
        builder.delivered(230.0, Down, "1:1449 ack 301");
        builder.dropped(230.1, Down, "F 1449:2049 ack 301");
        builder.delivered(240.1, Up, "301:301 ack 1449");
        builder.dropped(480.0, Down, "F 1449:2049 ack 301");
        builder.delivered(980.0, Down, "F 1449:2049 ack 301");
        assert_eq!(
            read(&builder, Down)[2..],
            ["data", "data-fin", first, "data-fin rto"]
        );
    }
}

#[test]
fn a_probe_is_the_last_segment_and_makes_the_rest_fast() {
    let mut builder = opened();
    builder.delivered(230.0, Down, "1:1449 ack 301");
    builder.dropped(230.1, Down, "1449:2897 ack 301");
    builder.dropped(230.2, Down, "2897:4345 ack 301");
    builder.delivered(240.1, Up, "301:301 ack 1449");
    builder.delivered(300.0, Down, "2897:4345 ack 301");
    builder.delivered(310.1, Up, "301:301 ack 1449 sack 2897:4345");
    builder.delivered(321.0, Down, "1449:2897 ack 301");
    assert_eq!(
        read(&builder, Down)[2..],
        ["data", "data", "data", "data probe", "data fast"]
    );
}

#[test]
fn three_duplicates_that_a_sender_ignores_end_in_a_timeout() {
    let mut builder = opened_with(false);
    builder.dropped(230.0, Down, "1:1449 ack 301");
    builder.delivered(230.1, Down, "1449:2897 ack 301");
    builder.delivered(230.2, Down, "2897:4345 ack 301");
    builder.delivered(230.3, Down, "4345:5793 ack 301");
    for ms in [240.2, 240.3, 240.4] {
        builder.delivered(ms, Up, "301:301 ack 1");
    }
    builder.delivered(480.0, Down, "1:1449 ack 301");
    assert_eq!(
        read(&builder, Down)[2..],
        ["data", "data", "data", "data", "data rto"]
    );
}

#[test]
fn packets_after_a_timeout_are_named_so() {
    let mut builder = opened_with(false);
    builder.dropped(230.0, Down, "1:1449 ack 301");
    builder.dropped(230.1, Down, "1449:2897 ack 301");
    builder.dropped(230.2, Down, "2897:4345 ack 301");
    builder.delivered(480.0, Down, "1:1449 ack 301");
    builder.delivered(490.1, Up, "301:301 ack 1449");
    builder.delivered(500.2, Down, "1449:2897 ack 301");
    builder.delivered(500.3, Down, "2897:4345 ack 301");
    let tail = ["data rto", "data after-rto", "data after-rto"];
    assert_eq!(read(&builder, Down)[5..], tail);
}

#[test]
fn syns_that_come_again() {
    let mut builder = SegmentBuilder::new();
    builder.delivered(0.0, Up, "S");
    builder.dropped(10.1, Down, "S ack 1");
    builder.delivered(1000.0, Up, "S");
    builder.dropped(1010.1, Down, "S ack 1");
    builder.delivered(2010.2, Down, "S ack 1");
    assert_eq!(read(&builder, Up), ["syn", "syn rto"]);
    assert_eq!(
        read(&builder, Down),
        ["syn-ack", "syn-ack answer", "syn-ack rto"]
    );
}

#[test]
fn acknowledgements_by_what_they_say() {
    let mut builder = opened();
    builder.delivered(230.0, Down, "1:1449 ack 301");
    builder.dropped(230.1, Down, "1449:2897 ack 301");
    builder.delivered(230.2, Down, "2897:4345 ack 301");
    builder.delivered(240.1, Up, "301:301 ack 1449");
    builder.delivered(240.2, Up, "301:301 ack 1449 win 600");
    builder.delivered(240.3, Up, "301:301 ack 1449 win 600");
    builder.delivered(900.0, Up, "300:300 ack 1449 win 600");
    builder.delivered(900.1, Up, "R 301:301 ack 1449");
    let named = ["ack", "window-update", "dupack", "keep-alive", "rst"];
    assert_eq!(read(&builder, Up)[3..], named);
}

#[test]
fn damaged_headers_do_not_mislead() {
    let mut builder = opened();
    let flipped = Fate::Delivered(DeliveryMarks {
        flipped: 2,
        ..DeliveryMarks::default()
    });
    builder.passed(230.0, Down, "1:1449 ack 301", flipped, 10.0);
    builder.passed(230.1, Down, "900001449:900002897 ack 301", flipped, 10.0);
    builder.delivered(480.0, Down, "1:1449 ack 301");
    let read = read(&builder, Down);
    assert_eq!(read[2..], ["data", "unreadable", "data rto-or-probe"]);
}

#[test]
fn a_damaged_number_ahead_of_the_stream_is_not_believed() {
    let flipped = Fate::Delivered(DeliveryMarks {
        flipped: 1,
        ..DeliveryMarks::default()
    });
    let mut builder = opened();
    builder.passed(230.0, Down, "10000001:10001449 ack 301", flipped, 10.0);
    builder.delivered(230.1, Down, "1:1449 ack 301");
    builder.delivered(230.2, Down, "1449:2897 ack 301");
    assert_eq!(read(&builder, Down)[2..], ["unreadable", "data", "data"]);
}

#[test]
fn a_damaged_syn_changes_nothing_that_was_agreed_on() {
    let flipped = Fate::Delivered(DeliveryMarks {
        flipped: 1,
        ..DeliveryMarks::default()
    });
    let mut builder = opened();
    builder.delivered(230.0, Down, "1:1449 ack 301");
    builder.may_sack = false;
    builder.passed(230.1, Down, "S 1:1447 ack 301", flipped, 10.0);
    builder.dropped(230.2, Down, "1449:2897 ack 301");
    builder.delivered(240.1, Up, "301:301 ack 1449");
    builder.delivered(480.0, Down, "1449:2897 ack 301");
    let read = read(&builder, Down);
    assert_eq!(read.last().unwrap(), "data rto-or-probe", "{read:?}");
}

/// Connection 0 is opened and falls silent. 5,000 others come and are reset, one a second.
#[test]
fn connections_that_are_over_are_forgotten() {
    let mut event_order = EventOrder::new();
    let push = |event_order: &mut EventOrder, builder: &SegmentBuilder| {
        let packet_records = builder.packet_records().into_iter();
        packet_records.for_each(|packet_record| event_order.push(packet_record));
    };
    let mut quiet = SegmentBuilder::for_connection(0);
    quiet.delivered(0.0, Up, "S");
    quiet.delivered(10.1, Down, "S ack 1");
    quiet.delivered(20.2, Up, "1:301 ack 1");
    push(&mut event_order, &quiet);
    for connection in 1..=5000u64 {
        let ms = connection as f64 * 1e3;
        let mut builder = SegmentBuilder::for_connection(connection);
        builder.delivered(ms, Up, "S");
        builder.delivered(ms + 10.1, Down, "R 0:0 ack 1");
        push(&mut event_order, &builder);
        while event_order.pop().is_some() {}
    }
    assert!(
        event_order.connections() < 3000,
        "{}",
        event_order.connections()
    );
    let mut later = SegmentBuilder::for_connection(0);
    later.delivered(5_001e3, Up, "301:601 ack 1");
    push(&mut event_order, &later);
    event_order.end();
    let rest: Vec<PacketEvent> = std::iter::from_fn(|| event_order.pop()).collect();
    assert!(rest.len() < 600, "{}", rest.len());
    let of_quiet = |event: &&PacketEvent| matches!(event, PacketEvent::Arrived(packet) if packet.packet_record.connection == 0);
    let Some(PacketEvent::Arrived(packet)) = rest.iter().find(of_quiet) else {
        panic!("a packet was forgotten");
    };
    let tcp = packet.tcp.as_ref().unwrap();
    assert_eq!((tcp.sequence, tcp.window), (301, 500 << 7), "it goes on");
}

fn written(name: &str, builder: &SegmentBuilder) -> Vec<u8> {
    written_with(name, builder, ChangeLog::default())
}

/// The file of a run whose links changed.
pub(super) fn written_with(name: &str, builder: &SegmentBuilder, log: ChangeLog) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    let writer = TraceFileWriter::create(&[&path], &[]).expect("a file");
    let mut writer = writer.changes(log);
    let packet_records = builder.packet_records();
    let packets = packet_records.len() as u64;
    packet_records
        .into_iter()
        .for_each(|packet_record| writer.note(packet_record));
    assert_eq!(
        writer.finish().expect("all of it"),
        WrittenTrace { packets }
    );
    std::fs::read(&path).expect("the file")
}

pub(super) fn with_a_loss() -> SegmentBuilder {
    let mut builder = opened();
    builder.delivered(230.0, Down, "1:1449 ack 301");
    builder.dropped(230.1, Down, "F 1449:2049 ack 301");
    builder.delivered(240.2, Up, "301:301 ack 1449");
    builder.delivered(480.0, Down, "F 1449:2049 ack 301");
    builder.delivered(490.1, Up, "301:301 ack 2050");
    builder
}

#[test]
fn the_table_has_a_line_for_each_packet() {
    let csv = String::from_utf8(written("t.csv", &with_a_loss())).expect("text");
    insta::assert_snapshot!(csv);
}

#[test]
fn the_ladder_of_a_connection() {
    let text = String::from_utf8(written("t.txt", &with_a_loss())).expect("text");
    insta::assert_snapshot!(text);
    let svg = String::from_utf8(written("t.svg", &with_a_loss())).expect("text");
    assert!(svg.starts_with("<svg") && svg.contains("rto-or-probe"));
}

#[test]
fn the_capture_holds_each_packet_before_and_after() {
    let builder = with_a_loss();
    let bytes = written("t.pcapng", &builder);
    let mut reader = create_reader(1 << 16, &*bytes).expect("a capture");
    let mut packets: Vec<(u32, u64, String, Vec<u8>)> = Vec::new();
    loop {
        match reader.next() {
            Ok((offset, block)) => {
                if let PcapBlockOwned::NG(Block::EnhancedPacket(packet)) = block {
                    let stamp = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                    let is_comment = |code| code == OptionCode::Comment;
                    let comment = packet.options.iter().find(|option| is_comment(option.code));
                    let comment = comment
                        .expect("a comment")
                        .as_str()
                        .expect("text")
                        .to_owned();
                    let data = packet.data[..packet.caplen as usize].to_vec();
                    packets.push((packet.if_id, stamp, comment, data));
                }
                reader.consume(offset);
            }
            Err(PcapError::Eof) => break,
            Err(PcapError::Incomplete(_)) => reader.refill().expect("more"),
            Err(error) => panic!("{error}"),
        }
    }
    let packet_records = builder.packet_records();
    let delivered =
        |packet_record: &&PacketRecord| matches!(packet_record.fate, Fate::Delivered(_));
    let after = packet_records.iter().filter(delivered).count();
    assert_eq!(
        packets.iter().filter(|packet| packet.0 == 0).count(),
        packet_records.len()
    );
    assert_eq!(packets.iter().filter(|packet| packet.0 == 1).count(), after);
    assert!(packets.is_sorted_by_key(|packet| packet.1));
    assert_eq!(packets[0].3, packet_records[0].head());
    let lost: Vec<&str> = packets
        .iter()
        .map(|packet| &*packet.2)
        .filter(|line| line.contains("dropped"))
        .collect();
    assert_eq!(
        lost,
        ["connection 1, down 4: data-fin, first; dropped: pattern"]
    );
    assert_eq!(
        packets[1].2,
        "connection 1, up 1: syn, first; delivered after 10ms, sent 1ns late"
    );
}

/// A file of this name on a full device.
fn full(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    std::os::unix::fs::symlink("/dev/full", &path).expect("a link");
    path
}

#[test]
fn a_full_disk_is_an_error_and_says_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["run.csv", "run.pcapng", "run.svg", "run.txt"] {
        let other = folder.path().join(format!("whole-{name}"));
        let mut writer = TraceFileWriter::create(&[full(folder.path(), name), other.clone()], &[])
            .expect("files");
        let builder = with_a_loss();
        builder
            .packet_records()
            .into_iter()
            .for_each(|packet_record| writer.note(packet_record));
        let error = writer.finish().expect_err("no room").to_string();
        assert!(
            error.contains("No space left on device") && error.contains("make room"),
            "{error}"
        );
        let whole = std::fs::metadata(other).expect("a file").len();
        assert!(whole > 100, "{name}: {whole} bytes");
    }
}

#[test]
fn after_an_error_everything_is_still_taken_and_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer =
        TraceFileWriter::create(&[full(folder.path(), "run.csv")], &[]).expect("a file");
    let many = 3 * (1 << 16);
    let mut builder = SegmentBuilder::new();
    builder.delivered(0.0, Up, "S");
    let packet_record = builder.packet_records().remove(0);
    for _ in 0..many {
        writer.note(packet_record.clone());
    }
    match writer.finish() {
        Err(TraceError::Write { packets, .. }) => assert_eq!(packets, many),
        other => panic!("{other:?}"),
    }
}

#[test]
fn invalid_trace_names_are_refused_before_the_start() {
    for name in ["run", "run.pcap", "run.CSV.gz"] {
        let refused = TraceFileWriter::create(&[name], &[])
            .err()
            .expect("refused");
        assert!(
            refused.to_string().contains(".csv, .pcapng, .svg or .txt"),
            "{refused}"
        );
    }
    let nowhere = TraceFileWriter::create(&["/nowhere/run.csv"], &[])
        .err()
        .expect("refused");
    assert!(nowhere.to_string().contains("No such file"), "{nowhere}");
    assert!(File::open("run").is_err());
}

/// A UDP datagram from the client to port 443, or back, with this payload.
fn datagram(position: u64, direction: posthaste_link::Direction, payload: &[u8]) -> PacketRecord {
    let [client, server] = [([10, 0, 0, 1], 40_000), ([10, 0, 0, 2], 443)];
    let (from, to) = match direction {
        Up => (client, server),
        Down => (server, client),
    };
    let mut packet = Vec::new();
    PacketBuilder::ipv4(from.0, to.0, 64)
        .udp(from.1, to.1)
        .write(&mut packet, payload)
        .unwrap();
    let arrived = Instant::ORIGIN + Span::from_millis(position);
    let flow = Flow {
        protocol: 17,
        client: client.into(),
        server: server.into(),
    };
    let departure = Departure {
        position,
        copy: 0,
        arrived,
        left: arrived,
        fate: Fate::Delivered(DeliveryMarks::default()),
        packet,
    };
    PacketRecord::new(direction, 1, flow, &departure, arrived)
}

/// The kinds of packets, in order of arrival.
fn kinds(records: impl IntoIterator<Item = PacketRecord>) -> Vec<DecodedPacket> {
    let mut event_order = EventOrder::new();
    records
        .into_iter()
        .for_each(|record| event_order.push(record));
    event_order.end();
    std::iter::from_fn(|| event_order.pop())
        .filter_map(|event| match event {
            PacketEvent::Arrived(packet) => Some(Arc::unwrap_or_clone(packet)),
            PacketEvent::Delivered(_) => None,
        })
        .collect()
}

#[test]
fn quic_packets_are_named_from_the_first_long_header_on() {
    let short = [0x41; 30];
    let initial = [&[0xc0, 0, 0, 0, 1, 0, 0, 0, 0x44, 0x9e][..], &[1; 1182]].concat();
    let handshake = [&[0xe0, 0, 0, 0, 1, 0, 0, 5][..], &[1; 5]].concat();
    let flight = [
        &[0xc0, 0, 0, 0, 1, 0, 0, 0, 0x40, 100][..],
        &[1; 100],
        &handshake,
    ]
    .concat();
    let packets = kinds([
        datagram(1, Up, &short),
        datagram(2, Up, &initial),
        datagram(3, Down, &flight),
        datagram(4, Up, &short),
    ]);
    let names: Vec<String> = packets
        .iter()
        .map(|packet| packet.kind.to_string())
        .collect();
    assert_eq!(names, ["udp", "Initial", "Initial+Handshake", "1-RTT"]);
    let ladder = ladder(&packets);
    let labels: Vec<&str> = ladder.arrows.iter().map(|arrow| &*arrow.label).collect();
    assert_eq!(
        labels,
        [
            "1 udp",
            "2 Initial 1192",
            "3 Initial+Handshake 123",
            "4 1-RTT 30"
        ]
    );
    assert!(ladder.notes.iter().any(|note| note.contains("encrypted")));
}

/// RFC 9287: both ends may clear the fixed bit once the client has had the reply to its first packet.
#[test]
fn packets_without_the_fixed_bit_are_quic_after_one_with_it() {
    let long = |first: u8| [&[first, 0, 0, 0, 1, 0, 0][..], &[0, 2, 1, 1]].concat();
    let handshake = [&[0xa0, 0, 0, 0, 1, 0, 0, 5][..], &[1; 5]].concat();
    let flight = [&long(0x80)[..], &handshake, &[0, 1, 1]].concat();
    let names = |payloads: &[(posthaste_link::Direction, &[u8])]| -> Vec<String> {
        let records = (1..)
            .zip(payloads)
            .map(|(position, (direction, payload))| datagram(position, *direction, payload));
        let packets = kinds(records);
        packets
            .iter()
            .map(|packet| packet.kind.to_string())
            .collect()
    };
    assert_eq!(
        names(&[
            (Up, &long(0xc0)),
            (Down, &flight),
            (Up, &handshake),
            (Up, &[0x01, 9])
        ]),
        ["Initial", "Initial+Handshake+1-RTT", "Handshake", "1-RTT"]
    );
    let time_request = [&[0xe3][..], &[0; 47]].concat();
    assert_eq!(
        names(&[(Up, &time_request), (Up, &long(0x80)), (Down, &flight)]),
        ["udp"; 3]
    );
}
