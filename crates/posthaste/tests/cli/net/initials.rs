//! First datagrams of QUIC on the wire, towards a host that never answers: from a capture of the emulated link.

use std::collections::BTreeMap;
use std::path::Path;

use super::{folder, net, own, users};
use crate::command::execute;

/// Port of the host. Nobody listens there, and nothing arrives.
const PORT: u16 = 4_433;

/// A UDP datagram of a capture.
struct Datagram {
    /// Bytes of its payload.
    length: u16,
    /// The first of them.
    first: [u8; 5],
}

/// The UDP datagrams to [`PORT`] in a capture (pcapng), by source port. A lost packet is there once, and its end is cut
/// off.
fn datagrams(capture: &Path) -> BTreeMap<u16, Vec<Datagram>> {
    let bytes = std::fs::read(capture).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let mut found = BTreeMap::<u16, Vec<Datagram>>::new();
    let mut at = 0;
    while at < bytes.len() {
        // An enhanced packet block: its type, its length, the interface, the time, and the packet at byte 28.
        if word(at) == 6 {
            let packet = &bytes[at + 28..at + 28 + word(at + 20)];
            let half = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
            // IPv4 without options, and UDP.
            if packet[0] == 0x45 && packet[9] == 17 && half(22) == PORT {
                let first = packet[28..33].try_into().unwrap();
                let datagram = Datagram {
                    length: half(24) - 8,
                    first,
                };
                found.entry(half(20)).or_default().push(datagram);
            }
        }
        at += word(at + 4);
    }
    found
}

/// The first timer of QUIC without a measured round-trip time is that of 999 ms (RFC 9002, section 6.2.2). It sends two
/// probes (section 6.2.4), each with the Initial again.
#[test]
fn each_attempt_sends_one_initial_unless_it_waits_for_a_timer() {
    for user in users() {
        for (connect_timeout, expected) in [("500ms", 1), ("1500ms", 3)] {
            let folder = folder();
            let capture = folder.path().join("link.pcapng");
            let load = format!(
                "{} load https://10.0.0.2:{PORT}/ --http 3 --insecure --connection new --rate 20/s \
                 --duration 500ms --connect-timeout {connect_timeout} --json",
                own(*user)
            );
            let capture_option = capture.to_str().unwrap();
            let options = ["--up", "--loss 100%", "--trace", capture_option, "--"];
            let run = execute(net(*user, &options).args(["sh", "-c", &load]));
            let report: serde_json::Value = serde_json::from_str(&run.out)
                .unwrap_or_else(|error| panic!("{error}: {}", run.err));
            assert_eq!(report["intended"], 10, "{report}");
            assert_eq!(report["outcomes"]["connect-aborted"], 10, "{report}");
            let found = datagrams(&capture);
            assert_eq!(found.len(), 10, "a port for each attempt");
            for (port, datagrams) in found {
                assert_eq!(datagrams.len(), expected, "port {port}, {connect_timeout}");
                for Datagram { length, first } in datagrams {
                    // A long header of version 1, type Initial, in a datagram of at least 1,200 bytes (RFC 9000, 14.1).
                    assert_eq!(first[0] & 0xf0, 0xc0);
                    assert_eq!(first[1..], [0, 0, 0, 1]);
                    assert!(length >= 1_200, "{length} bytes");
                }
            }
        }
    }
}
