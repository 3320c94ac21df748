//! Patterns made, shown, refused. The captures are written here byte by byte.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::command::{CommandOutput, execute, posthaste};

/// Client and server of every capture here.
const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 80);
/// Bytes of each segment of data.
const SIZE: usize = 1000;

fn make(arguments: &[&str]) -> CommandOutput {
    execute(&mut posthaste(&[&["pattern", "make"], arguments].concat()))
}

fn show(arguments: &[&str]) -> CommandOutput {
    execute(&mut posthaste(&[&["pattern", "show"], arguments].concat()))
}

fn written(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path: PathBuf = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The lines of a pattern without its header, comments and end.
fn entries(pattern: &str) -> Vec<&str> {
    let lines: Vec<&str> = pattern.lines().collect();
    assert_eq!(lines.first(), Some(&"posthaste pattern 1"));
    assert_eq!(lines.last(), Some(&"end"));
    let inner = lines[1..lines.len() - 1].iter();
    inner
        .filter(|line| !line.starts_with('#'))
        .copied()
        .collect()
}

#[test]
fn lists_become_a_pattern() {
    let made = make(&[
        "--drop",
        "down:8",
        "--drop",
        "up:3-5,7",
        "--add",
        "down delay from 10: 80ms",
    ]);
    assert_eq!((made.code, &*made.err), (Some(0), ""));
    let expected = ["up drop 3-5, 7", "down drop 8", "down delay from 10: 80ms"];
    assert_eq!(entries(&made.out), expected);
}

#[test]
fn chance_repeats_with_its_seed() {
    let drawn = |seed: &str, connection: &[&str]| {
        let arguments = ["--loss", "2%", "--packets", "10000", "--seed", seed];
        let made = make(&[&arguments, connection].concat());
        assert_eq!(made.code, Some(0), "{}", made.err);
        made.out
    };
    let once = drawn("1", &[]);
    assert_eq!(once, drawn("1", &[]));
    assert_ne!(entries(&once), entries(&drawn("2", &[])));
    assert_ne!(entries(&once), entries(&drawn("1", &["--connection", "1"])));
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), "loss.pattern", once.as_bytes());
    let shown = show(&[&path, "--json", "--packets", "10000"]);
    let rows: Value = serde_json::from_str(&shown.out).unwrap();
    for row in rows.as_array().unwrap() {
        let share = row["share"].as_f64().unwrap();
        assert!((0.015..0.025).contains(&share), "{row}");
    }
    assert_eq!(rows.as_array().unwrap().len(), 2);
}

#[test]
fn a_trace_of_mahimahi_is_its_delivery_opportunities() {
    let folder = tempfile::tempdir().unwrap();
    let trace = written(folder.path(), "trace", b"1\n1\n1\n101\n");
    let made = make(&["--mahimahi", &format!("down:{trace}")]);
    let expected = [
        "down repeat 101ms",
        "down opportunities 0ms: 1",
        "down opportunities 1ms: 3",
    ];
    assert_eq!(entries(&made.out), expected, "{}", made.err);
}

#[test]
fn a_timeline_is_what_holds_from_each_row_on() {
    let folder = tempfile::tempdir().unwrap();
    let rows = b"time_s,bandwidth_mbit,delay_ms,loss_percent\n0,5,20,\n30,0.5,80,2\n60,,,\n";
    let path = written(folder.path(), "drive.csv", rows);
    let made = make(&["--timeline", &format!("up:{path}")]);
    let expected = [
        "up repeat 60000ms",
        "up delay from 0ms: 20ms",
        "up delay from 30000ms: 80ms",
        "up bandwidth from 0ms: 5Mbit",
        "up bandwidth from 30000ms: 500kbit",
        "up loss from 30000ms: 2%",
    ];
    assert_eq!(entries(&made.out), expected, "{}", made.err);
    let pattern = written(folder.path(), "drive.pattern", made.out.as_bytes());
    let shown = show(&[&pattern]);
    assert!(shown.out.contains("loss from"), "{}", shown.out);
}

#[test]
fn a_pattern_is_shown_as_table_strips_and_picture() {
    let folder = tempfile::tempdir().unwrap();
    let text = "posthaste pattern 1\ndown drop 8\ndown drop 12-14, 20\ndown bandwidth from 200ms: 160kbit\nend\n";
    let path = written(folder.path(), "p.pattern", text.as_bytes());
    let picture = folder.path().join("p.html");
    let shown = show(&[&path, "--picture", picture.to_str().unwrap()]);
    assert_eq!((shown.code, &*shown.err), (Some(0), ""));
    for part in [
        "5 of 20 packets, 25.000%",
        "·······█···███·····█",
        "200ms",
        "from there on",
    ] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    let page = std::fs::read_to_string(&picture).unwrap();
    assert!(page.contains("<svg") && page.contains("Bandwidth in force"));
    let picture = folder.path().join("p.svg");
    let svg = show(&[&path, "--picture", picture.to_str().unwrap()]);
    assert!(svg.err.contains("first of 2 charts"), "{}", svg.err);
    assert!(
        std::fs::read_to_string(&picture)
            .unwrap()
            .starts_with("<svg")
    );
    let png = show(&[&path, "--picture", "p.png"]);
    assert_eq!(png.code, Some(2));
    assert!(png.err.contains("FILE.html"), "{}", png.err);
}

#[test]
fn a_pattern_is_read_from_a_pipe_and_errors_name_the_line() {
    let mut child = posthaste(&["pattern", "show", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input
        .write_all(b"posthaste pattern 1\ndown drop 8\ndown dorp 9\n")
        .unwrap();
    drop(input);
    let output = CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!((output.code, &*output.out), (Some(2), ""));
    let expected = "-: line 3, column 6: \"dorp\" is nothing that happens to packets: write drop,";
    assert!(output.err.contains(expected), "{}", output.err);
}

/// Direction of a packet.
#[derive(Clone, Copy)]
enum PacketDirection {
    Up,
    Down,
}

/// A TCP packet over IPv4: sequence number, acknowledgement, flags, bytes of data.
fn packet(
    way: PacketDirection,
    id: u16,
    sequence: u32,
    acknowledges: u32,
    flags: u8,
    data: usize,
) -> Vec<u8> {
    let (from, to) = match way {
        PacketDirection::Up => (CLIENT, SERVER),
        PacketDirection::Down => (SERVER, CLIENT),
    };
    let length = u16::try_from(40 + data).unwrap().to_be_bytes();
    let mut bytes = vec![0x45, 0, length[0], length[1]];
    bytes.extend(id.to_be_bytes());
    bytes.extend([0x40, 0, 64, 6, 0, 0]);
    bytes.extend(from.0);
    bytes.extend(to.0);
    bytes.extend(from.1.to_be_bytes());
    bytes.extend(to.1.to_be_bytes());
    bytes.extend(sequence.to_be_bytes());
    bytes.extend(acknowledges.to_be_bytes());
    bytes.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    bytes.resize(40 + data, 0);
    bytes
}

/// A capture of raw IP packets, each at its millisecond.
fn pcap(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0]);
    file.extend([0; 8]);
    file.extend(65_535_u32.to_le_bytes());
    file.extend(101_u32.to_le_bytes());
    for (ms, packet) in packets {
        let (seconds, micros) = ((ms / 1000) as u32, (ms % 1000 * 1000) as u32);
        let length = packet.len() as u32;
        for field in [seconds, micros, length, length] {
            file.extend(field.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// The same packets in the newer format, with times in nanoseconds.
fn pcapng(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    fn block(kind: u32, body: &[u8], file: &mut Vec<u8>) {
        let padding = body.len().next_multiple_of(4) - body.len();
        let length = (12 + body.len() + padding) as u32;
        file.extend(kind.to_le_bytes());
        file.extend(length.to_le_bytes());
        file.extend(body);
        file.extend(vec![0; padding]);
        file.extend(length.to_le_bytes());
    }
    let mut file = Vec::new();
    let mut body = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    body.extend([1, 0, 0, 0]);
    body.extend([0xff; 8]);
    block(0x0a0d_0d0a, &body, &mut file);
    // Raw IP, any length. Option 9: a clock of 10^-9 s. End of options.
    let body = [101, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    block(1, &body, &mut file);
    for (ms, packet) in packets {
        let nanos = ms * 1_000_000;
        let length = packet.len() as u32;
        let mut body = Vec::new();
        for field in [0, (nanos >> 32) as u32, nanos as u32, length, length] {
            body.extend(field.to_le_bytes());
        }
        body.extend(packet);
        block(6, &body, &mut file);
    }
    file
}

const SYN: u8 = 2;
const ACK: u8 = 16;

/// The captures of both ends of a transfer of ten segments down, 10 ms each way. Segments 2 and 7 are lost, 7 twice,
/// and segment 4 arrives after 5.
fn both_ends() -> [Vec<(u64, Vec<u8>)>; 2] {
    let mut ends = [Vec::new(), Vec::new()];
    let mut id = 0;
    let mut send =
        |at: u64, way: PacketDirection, fields: (u32, u32, u8, usize), later: Option<u64>| {
            id += 1;
            let packet = packet(way, id, fields.0, fields.1, fields.2, fields.3);
            let (sender, receiver) = match way {
                PacketDirection::Up => (0, 1),
                PacketDirection::Down => (1, 0),
            };
            ends[sender].push((at, packet.clone()));
            if let Some(later) = later {
                ends[receiver].push((at + 10 + later, packet));
            }
        };
    send(0, PacketDirection::Up, (100, 0, SYN, 0), Some(0));
    send(10, PacketDirection::Down, (500, 101, SYN | ACK, 0), Some(0));
    send(20, PacketDirection::Up, (101, 501, ACK, 0), Some(0));
    let byte = |n: u32| 501 + n * SIZE as u32;
    for n in 0..10 {
        let later = match n {
            2 | 7 => None,
            4 => Some(3),
            _ => Some(0),
        };
        send(
            40 + u64::from(n),
            PacketDirection::Down,
            (byte(n), 101, ACK, SIZE),
            later,
        );
    }
    send(
        100,
        PacketDirection::Down,
        (byte(2), 101, ACK, SIZE),
        Some(0),
    );
    send(101, PacketDirection::Down, (byte(7), 101, ACK, SIZE), None);
    send(
        200,
        PacketDirection::Down,
        (byte(7), 101, ACK, SIZE),
        Some(0),
    );
    for end in &mut ends {
        end.sort_by_key(|(at, _)| *at);
    }
    ends
}

#[test]
fn losses_and_order_are_read_off_captures() {
    let folder = tempfile::tempdir().unwrap();
    let [client, server] = both_ends();
    let client = written(folder.path(), "client.pcapng", &pcapng(&client));
    let server = written(folder.path(), "server.pcap", &pcap(&server));
    let found = |arguments: &[&str]| {
        let made = make(&[&["--direction", "down"], arguments].concat());
        assert_eq!((made.code, &*made.err), (Some(0), ""));
        made.out
    };
    // Position 1 is the SYN-ACK. The ten segments are 2 to 11, the retransmissions 12, 13 and 14.
    let both = found(&["--client-capture", &client, "--server-capture", &server]);
    let exact = ["down drop 4, 9, 13", "down hold 6: 2"];
    assert_eq!(entries(&both), exact, "packet by packet");
    assert!(
        both.contains("# down: 14 packets, 3 lost, 1 overtaken"),
        "{both}"
    );
    // The client cannot see that a retransmission was lost too.
    let client = found(&["--client-capture", &client]);
    assert_eq!(entries(&client), ["down drop 4, 9", "down hold 6: 2"]);
    // The server cannot see the order, but sees its own retransmissions.
    let server = found(&["--server-capture", &server]);
    assert_eq!(entries(&server), ["down drop 4, 9, 13"]);
}

/// Only the headers are compared if one capture has more of a packet than the other.
#[test]
fn captures_that_keep_too_little_of_each_packet_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let [client, server] = both_ends();
    let cut = |packets: &[(u64, Vec<u8>)]| {
        let packets = packets.iter();
        let packets = packets.map(|(at, packet)| (*at, packet[..packet.len().min(70)].to_vec()));
        packets.collect::<Vec<_>>()
    };
    let whole = written(folder.path(), "client.pcap", &pcap(&client));
    let short = written(folder.path(), "server.pcap", &pcap(&cut(&server)));
    let made = make(&["--client-capture", &whole, "--server-capture", &short]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let note = "13 packets were cut before the 60 bytes";
    assert!(made.err.contains(note), "{}", made.err);
    assert!(made.err.contains("`-s 0`"), "{}", made.err);
    assert!(!made.err.contains("client.pcap"), "{}", made.err);
    let exact = ["down drop 4, 9, 13", "down hold 6: 2"];
    assert_eq!(entries(&made.out), exact, "{}", made.out);
}

#[test]
fn a_pattern_of_several_connections_names_its_options() {
    let folder = tempfile::tempdir().unwrap();
    let [one, _] = both_ends();
    // The same connection from another port, at the same time.
    let other = one.iter().map(|(at, packet)| {
        let mut packet = packet.clone();
        let port = if packet[15] == CLIENT.0[3] { 20 } else { 22 };
        packet[port..port + 2].copy_from_slice(&(CLIENT.1 + 1).to_be_bytes());
        (*at, packet)
    });
    let both: Vec<_> = one
        .iter()
        .cloned()
        .zip(other)
        .flat_map(|(one, other)| [one, other])
        .collect();
    let file = written(folder.path(), "client.pcap", &pcap(&both));
    let made = make(&["--client-capture", &file]);
    let note = "# 2 connections share one count: use this pattern with --shared, or make one of a single connection \
                with --connection N";
    assert!(made.out.contains(note), "{}", made.out);
    let made = make(&["--client-capture", &file, "--connection", "2"]);
    let found = ["down drop 4, 9", "down hold 6: 2"];
    assert_eq!(entries(&made.out), found, "{}", made.out);
    assert!(made.out.contains("# connection 2 of 2"), "{}", made.out);
}

#[test]
fn packets_outside_the_other_capture_are_counted_apart() {
    let folder = tempfile::tempdir().unwrap();
    let [client, server] = both_ends();
    let until = |packets: &[(u64, Vec<u8>)], ms: u64| {
        let early = packets.iter().filter(|(at, _)| *at < ms);
        early.cloned().collect::<Vec<_>>()
    };
    let client = written(folder.path(), "client.pcap", &pcap(&until(&client, 100)));
    let server = written(folder.path(), "server.pcap", &pcap(&server));
    let made = make(&["--client-capture", &client, "--server-capture", &server]);
    assert_eq!((made.code, &*made.err), (Some(0), ""));
    assert_eq!(entries(&made.out), ["down drop 4, 9", "down hold 6: 2"]);
    let note =
        "2 lost, 1 overtaken, 3 sent while the other capture shows nothing: not known, omitted";
    assert!(made.out.contains(note), "{}", made.out);
}

#[test]
fn a_capture_that_is_cut_off_or_of_something_else_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let [client, _] = both_ends();
    let whole = pcap(&client);
    let cut = written(folder.path(), "cut.pcap", &whole[..whole.len() - 7]);
    let made = make(&["--client-capture", &cut]);
    assert_eq!(made.code, Some(0));
    assert!(made.err.contains("cut off"), "{}", made.err);
    let second = make(&["--client-capture", &cut, "--connection", "2"]);
    assert_eq!(second.code, Some(2));
    assert!(second.err.contains("connections 1 to 1"), "{}", second.err);
    let mut other = whole.clone();
    other[20] = 105; // IEEE 802.11
    let other = written(folder.path(), "wlan.pcap", &other);
    let wireless = make(&["--client-capture", &other]);
    assert_eq!(wireless.code, Some(2));
    assert!(wireless.err.contains("type 105"), "{}", wireless.err);
    let long = vec![(0, packet(PacketDirection::Up, 1, 1, 1, ACK, 4000))];
    let long = written(folder.path(), "long.pcap", &pcap(&long));
    let merged = make(&["--client-capture", &long]);
    assert!(merged.err.contains("ethtool"), "{}", merged.err);
}
