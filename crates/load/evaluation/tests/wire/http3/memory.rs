//! The memory of a client does not grow with what a hostile server sends.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use posthaste_load::{Outcome, Run};
use posthaste_units::Span;

use super::server::{DATA, HEADERS, ReplyAct, STATUS_200, ServerScript, frame};
use super::{all_are, plan, reason, with_connections};
use crate::server::carried_out;

/// Maximum resident memory of a process with a client and its hostile server, in KiB.
const MOST: u64 = 64_000_000 / 1024;
/// Bytes that a client has to receive, so that one that keeps them exceeds the maximum.
const ENOUGH: u64 = 128_000_000;
/// Set in the process whose memory is measured.
const MEASURED: &str = "POSTHASTE_MEASURED";
/// Time for the tests in that process.
const PATIENCE: Duration = Duration::from_secs(600);
/// Length of a frame that does not end: 2^40 bytes (RFC 9000, section 16).
const ENDLESS: [u8; 8] = [0xc0, 0, 1, 0, 0, 0, 0, 0];

fn endless(kind: u8) -> Vec<u8> {
    [&[kind], &ENDLESS[..]].concat()
}

/// Each server sends zeros at the rate of the loopback device, for as long as the client accepts them.
#[test]
fn endless_frames_and_streams_have_their_outcomes() {
    let head = || frame(HEADERS, STATUS_200);
    let violation = run_within(ReplyAct::Endless(endless(HEADERS)), 30);
    all_are(&violation, Outcome::ProtocolError);
    // A capacity of 0, and then copies of entries that the table does not have.
    let violation = run_within(ReplyAct::EndlessStream(vec![2, 0x20]), 30);
    all_are(&violation, Outcome::ProtocolError);
    let skipped = [
        (
            "body without an end",
            ReplyAct::Endless([head(), endless(DATA)].concat()),
        ),
        ("DATA frames of 0 bytes", ReplyAct::Endless(head())),
        (
            "unknown frame of 2^40 bytes",
            ReplyAct::Endless(endless(0x21)),
        ),
        ("unknown stream", ReplyAct::EndlessStream(vec![0x21])),
    ];
    for (name, act) in skipped {
        let mut seconds = 2;
        let mut run = run_within(act.clone(), seconds);
        while std::env::var_os(MEASURED).is_some() && run.bytes_received < ENOUGH {
            assert!(seconds < 60, "{name}: {} bytes", run.bytes_received);
            seconds *= 2;
            run = run_within(act.clone(), seconds);
        }
        println!("{name}: {} bytes in {seconds} s", run.bytes_received);
        all_are(&run, Outcome::TimedOut);
    }
}

/// Sends five requests, each on its own connection, to a server that acts so, with this timeout in seconds.
fn run_within(act: ReplyAct, seconds: u64) -> Run {
    let server = ServerScript::new(move |_| act.clone()).start();
    let mut plan = plan(server.address, 50.0, 100, with_connections(5));
    plan.timeout = Span::from_secs(seconds);
    let run = carried_out(&plan);
    assert_eq!(run.intended, 5, "{}", reason(&run));
    run
}

/// Peak resident memory of a process in KiB.
fn peak(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Runs these tests in a process of their own. Returns its peak resident memory in KiB.
fn peak_of(tests: &str) -> u64 {
    let output = tempfile::NamedTempFile::new().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([tests, "--test-threads=2", "--nocapture"])
        .env(MEASURED, "1")
        .stdout(output.reopen().unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (begun, mut most) = (Instant::now(), 0);
    while child.try_wait().unwrap().is_none() {
        most = most.max(peak(child.id()).unwrap_or(0));
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let printed = std::fs::read_to_string(output.path()).unwrap();
    assert!(child.wait().unwrap().success(), "{printed}");
    assert!(!printed.contains("running 0 tests"), "{printed}");
    println!("{tests}: {most} KiB at most");
    most
}

#[test]
fn hostile_servers_do_not_fill_the_memory() {
    let all = [
        "http3::hostile",
        "http3::handshakes",
        "http3::memory::endless",
    ];
    std::thread::scope(|scope| {
        let running = all.map(|tests| (tests, scope.spawn(move || peak_of(tests))));
        for (tests, peak) in running {
            let most = peak.join().unwrap();
            assert!((1..=MOST).contains(&most), "{tests}: {most} KiB");
        }
    });
}
