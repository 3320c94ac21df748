//! Effects of the link on a service inside, from the report and from measurements inside.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use serde_json::Value;

use super::{User, folder, net, own, reported, users};
use crate::command::execute;

pub(super) fn load(posthaste: &str, options: &str) -> String {
    format!("{posthaste} load http://$POSTHASTE_SERVER:8080/ --allow-late --json {options}")
}

pub(super) fn bookshop(posthaste: &str) -> String {
    format!("{posthaste} bookshop --listen 0.0.0.0:8080")
}

#[test]
fn a_service_inside_is_as_far_away_as_asked() {
    for user in users() {
        let posthaste = own(*user);
        // The shop's first replies take longer, because it is still starting.
        let load = load(&posthaste, "--rate 20/s --duration 1s --warm-up 1s");
        let shop = bookshop(&posthaste);
        let options = ["--delay", "20ms", "--server", &shop];
        let median = || {
            let arguments = [&options[..], &["--", "sh", "-c", &load]].concat();
            let (run, report) = reported(*user, &arguments);
            assert_eq!(run.code, Some(0), "{}", run.err);
            let measured: Value = serde_json::from_str(&run.out).unwrap();
            assert_eq!(measured["outcomes"]["ok"], 20, "{}", run.out);
            assert_eq!(report["status"], 0);
            assert!(report["connections"].as_u64().unwrap() >= 1);
            assert!(report["up"]["packets"].as_u64().unwrap() > 20);
            let p50 = |times: &str| measured[times]["p50"].as_f64().unwrap();
            assert!(p50("response_time_ms") >= 40.0, "{}", run.out);
            // Without the time that a busy generator needs before it sends.
            p50("service_time_ms")
        };
        // A machine that pauses for half a second delays half of the requests.
        let near = (1..=10).any(|number| {
            let median = median();
            println!("try {number} of 10: {median} ms in the median");
            median < 60.0
        });
        assert!(near, "farther away ten times");
    }
}

#[test]
fn each_connection_loses_exactly_what_was_asked() {
    for user in users() {
        let posthaste = own(*user);
        let load = load(
            &posthaste,
            "--rate 20/s --duration 500ms --connection new --connect-timeout 5s",
        );
        let shop = bookshop(&posthaste);
        let options = ["--delay", "1ms", "--drop", "down:3", "--server", &shop];
        let (run, report) = reported(*user, &[&options[..], &["--", "sh", "-c", &load]].concat());
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert_eq!(report["connections"], 10, "{report}");
        assert_eq!(report["down"]["dropped"]["pattern"], 10, "{report}");
        assert_eq!(report["up"]["dropped"].as_object().unwrap().len(), 0);
        assert_eq!(report["down"]["pattern_missed"], false);
    }
}

/// Bytes of each reply of [`large_replies`].
const LARGE: usize = 250_000;

/// A service of this machine with large replies.
fn large_replies() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let answer = |mut stream: TcpStream| {
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        let head =
            format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {LARGE}\r\n\r\n");
        // The client may be gone when a test fails.
        let _ = stream.write_all(&[head.as_bytes(), &vec![b'r'; LARGE]].concat());
    };
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || answer(stream.unwrap()));
        }
    });
    address
}

/// Response time of the slowest of four large replies over 8 Mbit/s, in ms, and the report.
fn slowest_of_four(user: User, options: &[&str]) -> (f64, Value, String) {
    let outside = large_replies();
    let posthaste = own(user);
    let load = format!(
        "{posthaste} load http://10.0.0.2:{}/ --allow-late --json --rate 40/s --duration 100ms --connection new \
         --connect-timeout 30s --timeout 60s",
        outside.port()
    );
    let to = outside.to_string();
    let line = ["--bandwidth", "8Mbit", "--delay", "5ms", "--to", &to];
    let (run, report) = reported(user, &[&line, options, &["--", "sh", "-c", &load]].concat());
    assert_eq!(run.code, Some(0), "{}", run.err);
    let measured: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(measured["outcomes"]["ok"], 4, "{}", run.out);
    let slowest = measured["response_time_ms"]["max"].as_f64().unwrap();
    (slowest, report, run.err)
}

/// Four replies of 250 kB take a second of 8 Mbit/s together. The last request is due 75 ms after the first.
#[test]
fn connections_share_one_link_unless_asked() {
    let together = 1000.0 / 1.05 - 75.0;
    for user in users() {
        let (slowest, report, text) = slowest_of_four(*user, &[]);
        assert!(
            slowest >= together,
            "{slowest} ms: more than the rate of the link"
        );
        assert_eq!(report["sharing"], "shared");
        assert!(text.contains("one link for all connections"), "{text}");
        // A busy machine can be slow by itself.
        let apart = (1..=10).any(|number| {
            let (slowest, report, text) = slowest_of_four(*user, &["--per-connection"]);
            assert_eq!(report["sharing"], "per-connection");
            assert!(text.contains("each connection has its own link"), "{text}");
            println!("try {number} of 10: {slowest} ms");
            slowest < together
        });
        assert!(apart, "as slow as one link ten times");
    }
}

/// `down:3` of one link for all is one packet, and the report says so.
#[test]
fn a_pattern_on_a_shared_link_counts_all_packets() {
    for user in users() {
        let posthaste = own(*user);
        let load = load(
            &posthaste,
            "--rate 20/s --duration 200ms --connection new --connect-timeout 5s",
        );
        let shop = bookshop(&posthaste);
        let options = ["--shared", "--drop", "down:3", "--server", &shop];
        let (run, report) = reported(*user, &[&options[..], &["--", "sh", "-c", &load]].concat());
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert_eq!(report["connections"], 4, "{report}");
        assert_eq!(report["down"]["dropped"]["pattern"], 1, "{report}");
        assert!(run.err.contains("of all of them together"), "{}", run.err);
    }
}

#[test]
fn a_loss_that_never_came_is_told_even_to_the_quiet() {
    for user in users() {
        let (run, report) = reported(*user, &["--quiet", "--drop", "down:8", "--", "true"]);
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert!(run.err.contains("ever came"), "{}", run.err);
        let missed = ["up", "down"].map(|way| report[way]["pattern_missed"].as_bool());
        assert_eq!(missed, [Some(false), Some(true)]);
    }
}

/// The hint at the machine's own loopback would mislead whose packets were refused.
#[test]
fn a_link_without_packets_has_a_reason() {
    for user in users() {
        let posthaste = own(*user);
        let load = "--rate 5/s --duration 200ms --connect-timeout 200ms --insecure --allow-late";
        for (url, version, message) in [
            (
                "https://239.1.2.3:9/",
                "3",
                "every packet on its way to it was refused",
            ),
            (
                "http://127.0.0.1:9/",
                "1.1",
                "127.0.0.1 is the command's own machine; use 10.0.0.2",
            ),
        ] {
            let words_of_load = [&posthaste, "load", url, "--http", version];
            let load: Vec<&str> = words_of_load.into_iter().chain(load.split(' ')).collect();
            let (run, report) = reported(*user, &[&["--"], &load[..]].concat());
            assert_eq!(report["up"]["packets"], 0, "{report}");
            assert!(run.err.contains(message), "{url}: {}", run.err);
            assert_eq!(
                run.err.matches("nothing crossed the link").count(),
                1,
                "{}",
                run.err
            );
        }
    }
}

#[test]
fn a_trace_says_what_became_of_each_packet() {
    for user in users() {
        let posthaste = own(*user);
        let folder = folder();
        let trace = folder.path().join("trace.csv");
        let load = load(&posthaste, "--rate 10/s --duration 500ms --connection new");
        let shop = bookshop(&posthaste);
        let options = ["--drop", "down:3", "--trace", trace.to_str().unwrap()];
        let rest = ["--server", &shop, "--", "sh", "-c", &load];
        let (run, report) = reported(*user, &[&options[..], &rest].concat());
        assert_eq!(run.code, Some(0), "{}", run.err);
        let text = std::fs::read_to_string(&trace).unwrap();
        let dropped: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("dropped"))
            .collect();
        assert_eq!(dropped.len(), 5, "{text}");
        assert!(dropped.iter().all(|line| line.contains("down")), "{text}");
        assert_eq!(report["untraced"], 0);
    }
}

/// The kernel reports a connection's congestion control and use of SACK.
#[test]
fn kernels_are_set_by_name_and_by_side() {
    for user in users() {
        let run = execute(&mut net(
            *user,
            &[
                "--kernel",
                "client:linux-2005",
                "--",
                "sh",
                "-c",
                "cat /proc/sys/net/ipv4/tcp_sack /proc/sys/net/ipv4/tcp_frto",
            ],
        ));
        assert_eq!(
            (run.code, run.out.as_str()),
            (Some(0), "0\n0\n"),
            "{}",
            run.err
        );
        let run = execute(&mut net(
            *user,
            &[
                "--kernel",
                "server:linux-2005",
                "--",
                "cat",
                "/proc/sys/net/ipv4/tcp_sack",
            ],
        ));
        assert_eq!(
            (run.code, run.out.as_str()),
            (Some(0), "1\n"),
            "{}",
            run.err
        );
    }
}

/// The network is the user's own, and so are its ports.
#[test]
fn every_port_may_be_listened_on() {
    for user in users() {
        let posthaste = own(*user);
        let shop = format!("{posthaste} bookshop --listen 0.0.0.0:80");
        let load =
            format!("{posthaste} load http://$POSTHASTE_SERVER/ --rate 5/s --duration 200ms");
        let run = execute(&mut net(
            *user,
            &["--server", &shop, "--", "sh", "-c", &load],
        ));
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert!(run.out.contains("1 ok"), "{}", run.out);
    }
}
