//! `load --retries`: every form of the report, the assertion, and mistakes.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::Value;

use crate::command::{execute, posthaste};

/// Starts a service that answers 503 to each request, and returns its URL.
fn rejecting() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || reject(stream));
        }
    });
    url
}

fn reject(mut stream: TcpStream) {
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    for line in lines.map_while(Result::ok) {
        let reply = b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n";
        if line.is_empty() && stream.write_all(reply).is_err() {
            return;
        }
    }
}

fn sum(outcomes: &Value) -> u64 {
    let counts = outcomes.as_object().unwrap().values();
    counts.map(|count| count.as_u64().unwrap()).sum()
}

#[test]
fn every_report_tells_attempts_from_requests() {
    let url = rejecting();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let options = "--rate 100/s --duration 500ms --retries 3 --backoff exp:5ms --allow-late --json";
    let arguments = ["load", &url, "--assert", "retried<1%", "--out", out];
    let output = execute(posthaste(&arguments).args(options.split(' ')));
    assert_eq!(output.code, Some(1), "{}", output.err);
    let report: Value = serde_json::from_str(&output.out).unwrap();
    let attempts = &report["attempts"];
    assert_eq!(
        (report["intended"].as_u64(), sum(&report["outcomes"])),
        (Some(50), 50)
    );
    assert_eq!(
        (attempts["total"].as_u64(), sum(&attempts["outcomes"])),
        (Some(200), 200)
    );
    assert_eq!(attempts["requests"], serde_json::json!([0, 0, 0, 50]));
    assert_eq!(attempts["per_request"], 4.0);
    assert!(attempts["rate"].as_f64().unwrap() > report["sent_rate"].as_f64().unwrap());
    assert_eq!(attempts["retry_lateness_ms"]["count"], 150);
    assert_eq!(report["statuses"]["503"], 200);
    assert_eq!(report["plan"]["retries"], "3, back-off exp:5ms");
    assert_eq!(report["assertions"][0]["found"], "100%");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let seconds = read("seconds.csv");
    let mut lines = seconds.lines();
    assert!(lines.next().unwrap().ends_with(",retries"), "{seconds}");
    let retries = lines.map(|line| line.rsplit(',').next().unwrap().parse::<u64>().unwrap());
    assert_eq!(retries.sum::<u64>(), 150);
    let metrics = read("metrics.prom");
    let counted = "posthaste_load_requests_by_attempts_total{attempts=\"4\"} 50\n";
    assert!(metrics.contains(counted), "{metrics}");
    let counted = "posthaste_load_attempts_total{outcome=\"status-error\"} 200\n";
    assert!(metrics.contains(counted), "{metrics}");
    assert!(read("index.html").contains("200 attempts for 50 requests: 4.00 per request."));
}

#[test]
fn the_text_shows_both_sums() {
    let url = rejecting();
    let options = "--rate 100/s --duration 300ms --retries 1 --allow-late";
    let output = execute(posthaste(&["load", &url]).args(options.split(' ')));
    for line in [
        "requests   30 intended =",
        "attempts   60, 2.00 per request, ",
        "requests by number of attempts   2: 30",
        "retry lateness, sent",
    ] {
        assert!(output.out.contains(line), "{line}: {}", output.out);
    }
}

#[test]
fn without_retries_nothing_is_said_of_attempts() {
    let url = rejecting();
    let options = "--rate 100/s --duration 100ms --allow-late --assert retried<1% --json";
    let output = execute(posthaste(&["load", &url]).args(options.split(' ')));
    let report: Value = serde_json::from_str(&output.out).unwrap();
    assert!(report.get("attempts").is_none());
    assert_eq!(output.code, Some(3));
    assert!(output.err.contains("--retries N"), "{}", output.err);
}

#[test]
fn mistakes_name_the_remedy() {
    for (options, remedy) in [
        ("--rate 1/s --backoff none", "--retries"),
        ("--rate 1/s --retries 3 --backoff exp", "exp:100ms"),
        ("--rate 1/s --retries 0", "1..=100"),
        ("--find p99<1s --retries 3", "--rate or --steps"),
    ] {
        let output = execute(posthaste(&["load", "http://127.0.0.1:9/"]).args(options.split(' ')));
        assert_eq!(output.code, Some(2), "{options}: {}", output.err);
        assert!(output.err.contains(remedy), "{options}: {}", output.err);
    }
}
