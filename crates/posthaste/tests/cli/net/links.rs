//! Effects of the link on a service inside, from the report and from measurements inside.

use serde_json::Value;

use super::{folder, net, own, reported, users};
use crate::command::said;

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
            let words = [&options[..], &["--", "sh", "-c", &load]].concat();
            let (run, report) = reported(*user, &words);
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
        let run = said(&mut net(
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
        let run = said(&mut net(
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
        let run = said(&mut net(
            *user,
            &["--server", &shop, "--", "sh", "-c", &load],
        ));
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert!(run.out.contains("1 ok"), "{}", run.out);
    }
}
