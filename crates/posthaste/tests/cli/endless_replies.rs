//! Endless coded replies: a client that decodes gives them up before they fill its memory.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;

use serde_json::Value;

use crate::command::posthaste;

/// Number of requests, each on a connection of its own. `POSTHASTE_ENDLESS` overrides it.
const REQUESTS: u64 = 300;

/// Maximum resident memory of the client, in KiB.
const MOST: u64 = 128_000_000 / 1024;

/// Answers each connection with coded bytes for as long as the client accepts them.
fn endless() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let small = std::thread::Builder::new().stack_size(128 << 10);
            let _ = small.spawn(move || answer(stream.unwrap()));
        }
    });
    address
}

fn answer(mut stream: TcpStream) {
    let _ = stream.read(&mut [0; 1024]);
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1000000000000\r\n\r\n";
    let mut sent = stream.write_all(head.as_bytes());
    while sent.is_ok() {
        sent = stream.write_all(&[0x1f; 32 << 10]);
    }
}

/// Peak resident memory of a process in KiB.
fn peak(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[test]
fn endless_coded_replies_do_not_fill_the_memory() {
    let requests = std::env::var("POSTHASTE_ENDLESS").ok();
    let requests = requests.map_or(REQUESTS, |requests| requests.parse().unwrap());
    let address = endless();
    let mut child = posthaste(&["load", &format!("http://{address}/"), "--decode"])
        .args(["--rate", &format!("{requests}/s"), "--duration", "1s"])
        .args(["--connection", "new"])
        .args(["--timeout", "20s", "--allow-late", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        most = most.max(peak(child.id()).unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let report = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let outcomes = &report["outcomes"];
    println!("{most} KiB at most; {outcomes}");
    assert!((1..=MOST).contains(&most), "{most} KiB");
    let count = |outcome: &str| outcomes[outcome].as_u64().unwrap();
    let given_up = count("memory-limit");
    // On a busy machine some are not begun in time.
    assert_eq!(given_up + count("dropped"), requests, "{outcomes}");
    assert!(given_up >= 10, "{outcomes}");
    assert_eq!(report["generator"]["limited"], true);
}
