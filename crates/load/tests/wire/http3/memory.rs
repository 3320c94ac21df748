//! The memory of a client does not grow with what a hostile server sends.

use std::process::{Command, Stdio};
use std::time::Duration;

use posthaste_load::Outcome;
use posthaste_units::Span;

use super::server::{DATA, HEADERS, ReplyAct, STATUS_200, ServerScript, frame};
use super::{all_are, plan, reason, with_connections};
use crate::server::carried_out;

/// Maximum resident memory of a process with a client and its hostile server, in KiB.
const MOST: u64 = 64_000_000 / 1024;
/// Length of a frame that does not end: 2^40 bytes (RFC 9000, section 16).
const ENDLESS: [u8; 8] = [0xc0, 0, 1, 0, 0, 0, 0, 0];

fn endless(kind: u8) -> Vec<u8> {
    [&[kind], &ENDLESS[..]].concat()
}

/// Each server sends zeros at the rate of the loopback device, for as long as the client accepts them.
#[test]
fn endless_frames_and_streams_have_their_outcomes() {
    use Outcome::{Ok, ProtocolError, TimedOut};
    let head = || frame(HEADERS, STATUS_200);
    let cases = [
        (
            "body without an end",
            ReplyAct::Endless([head(), endless(DATA)].concat()),
            TimedOut,
        ),
        (
            "DATA frames of 0 bytes",
            ReplyAct::Endless(head()),
            TimedOut,
        ),
        (
            "field section of 2^40 bytes",
            ReplyAct::Endless(endless(HEADERS)),
            ProtocolError,
        ),
        (
            "unknown frame of 2^40 bytes",
            ReplyAct::Endless(endless(0x21)),
            TimedOut,
        ),
        ("unknown stream", ReplyAct::EndlessStream(vec![0x21]), Ok),
        (
            "stream of the encoder: a capacity of 0, and then a duplicate of nothing",
            ReplyAct::EndlessStream(vec![2, 0x20]),
            ProtocolError,
        ),
    ];
    for (name, act, expected) in cases {
        let server = ServerScript::new(move |_| act.clone()).start();
        let mut plan = plan(server.address, 50.0, 100, with_connections(5));
        plan.timeout = Span::from_secs(if expected == TimedOut { 2 } else { 30 });
        let run = carried_out(&plan);
        println!("{name}: {:?}, {} bytes", run.outcomes, run.bytes_received);
        assert!(run.intended == 5, "{name}: {}", reason(&run));
        all_are(&run, expected);
    }
}

/// Peak resident memory of a process in KiB.
fn peak(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Runs the tests with hostile servers in a process of their own.
#[test]
fn hostile_servers_do_not_fill_the_memory() {
    for hostile in [
        "http3::hostile",
        "http3::handshakes",
        "http3::memory::endless",
    ] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(hostile)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut most = 0;
        while child.try_wait().unwrap().is_none() {
            most = most.max(peak(child.id()).unwrap_or(0));
            std::thread::sleep(Duration::from_millis(10));
        }
        let output = child.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{printed}");
        assert!(!printed.contains("running 0 tests"), "{printed}");
        println!("{hostile}: {most} KiB at most");
        assert!((1..=MOST).contains(&most), "{hostile}: {most} KiB");
    }
}
