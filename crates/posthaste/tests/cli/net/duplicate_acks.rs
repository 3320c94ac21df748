//! The duplicate-ACK agent as an option: it shortens two late losses with the kernel of 2005.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{own, reported, users};
use crate::command::CommandOutput;

/// A reply of nine segments, the paper's smallest service, after the paper's processing time.
const REPLY: usize = 12_974;
const PROCESSING: Duration = Duration::from_millis(200);
/// Number of transactions, each on a link of its own.
const TRANSACTIONS: u64 = 5;

/// Starts a service of this machine for the duration of the test.
fn service() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(|| answer(stream.unwrap()));
        }
    });
    address
}

fn answer(mut stream: TcpStream) {
    assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
    thread::sleep(PROCESSING);
    let reply = |length: usize| {
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length";
        format!("{head}: {length:05}\r\n\r\n{}", "r".repeat(length))
    };
    let head = reply(0).len();
    stream.write_all(reply(REPLY - head).as_bytes()).unwrap();
}

/// Runs transactions that lose the server's packets 8 and 9. Returns the median in ms, the output and the report.
fn transactions(user: super::User, options: &[&str]) -> (f64, CommandOutput, Value) {
    let outside = service();
    let to = outside.to_string();
    let url = format!("http://10.0.0.2:{}/", outside.port());
    let common = "--kernel linux-2005 --bandwidth 300kbit --delay 10ms --drop down:8-9 --to";
    let load = "--rate 10/s --duration 500ms --connection new --json --allow-late";
    let posthaste = own(user);
    let options: Vec<&str> = common
        .split(' ')
        .chain([to.as_str()])
        .chain(options.iter().copied())
        .chain(["--", posthaste.as_str(), "load", url.as_str()])
        .chain(load.split(' '))
        .collect();
    let (run, report) = reported(user, &options);
    let measured: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(measured["outcomes"]["ok"], TRANSACTIONS, "{}", run.err);
    let median = measured["response_time_ms"]["p50"].as_f64().unwrap();
    (median, run, report)
}

#[test]
fn duplicates_shorten_two_late_losses() {
    for user in users() {
        let (without, _, report) = transactions(*user, &[]);
        assert_eq!(report.get("duplicate_acks"), None);
        let (with, run, report) = transactions(*user, &["--duplicate-acks"]);
        let acks = &report["duplicate_acks"];
        // One for each: the kernel itself has sent two duplicates.
        assert_eq!(acks["injected"], TRANSACTIONS, "{report}");
        assert_eq!(acks["served"], TRANSACTIONS, "{report}");
        assert!(run.err.contains("  acks  5 duplicates sent"), "{}", run.err);
        // About 960 and 750 ms: a timeout, and a fast retransmission.
        assert!(with < without - 100.0, "{with} ms, without {without} ms");
    }
}
