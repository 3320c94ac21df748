//! A link that changes while it runs, from inside and from outside.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::links::{bookshop, load};
use super::{folder, net, own, reported, users};
use crate::command::{execute, posthaste};

#[test]
fn an_outage_is_seen_by_the_command_and_in_the_report() {
    for user in users() {
        let (posthaste, folder) = (own(*user), folder());
        let load = load(&posthaste, "--rate 20/s --duration 500ms --connection new");
        let line = format!(
            "{posthaste} net outage 1h && {load} --timeout 500ms >lost.json; \
             {posthaste} net outage 0s && {load} --timeout 60s --connect-timeout 60s"
        );
        let trace = folder.path().join("trace.csv");
        let (shop, trace) = (bookshop(&posthaste), trace.to_str().unwrap());
        let line = format!("cd {} && {line}", folder.path().display());
        let options = [
            "--delay",
            "5ms",
            "--control",
            "127.0.0.1:0",
            "--trace",
            trace,
            "--server",
            &shop,
        ];
        let (run, report) = reported(*user, &[&options[..], &["--", "sh", "-c", &line]].concat());
        assert_eq!(run.code, Some(0), "{}", run.err);
        let lost = std::fs::read_to_string(folder.path().join("lost.json")).unwrap();
        let lost: Value = serde_json::from_str(&lost).unwrap();
        assert!(
            lost["outcomes"]["ok"].as_u64().is_none_or(|ok| ok == 0),
            "{lost}"
        );
        let out = run
            .out
            .split_once('{')
            .map(|(_, json)| format!("{{{json}"))
            .unwrap();
        let passed: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(passed["outcomes"]["ok"], 10, "{out}");
        assert!(
            report["up"]["dropped"]["outage"].as_u64() >= Some(10),
            "{report}"
        );
        let changes: Vec<&str> = report["changes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|change| change["change"].as_str().unwrap())
            .collect();
        assert_eq!(changes, ["outage=3600s", "outage=0s"]);
        assert!(
            run.err.contains("control at http://127.0.0.1:")
                && run.err.contains(" ms: outage=3600s"),
            "{}",
            run.err
        );
        let trace = std::fs::read_to_string(trace).unwrap();
        assert_eq!(
            trace
                .lines()
                .filter(|line| line.contains(",change,"))
                .count(),
            2,
            "{trace}"
        );
    }
}

/// One request to a socket, and the reply.
fn exchange(socket: &Path, request: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

/// The state of the links, once the control serves fewer than its maximum number of clients.
fn state(socket: &Path) -> String {
    loop {
        let state = exchange(socket, "GET / HTTP/1.1\r\n\r\n");
        if !state.starts_with("HTTP/1.1 503") {
            return state;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The control refuses a request that it has not read, and its client gets the reason.
fn early_refusals_arrive(socket: &Path) {
    let body = "x".repeat(200_000);
    let long = format!("POST / HTTP/1.1\r\nContent-Length: 200000\r\n\r\n{body}");
    let long = exchange(socket, &long);
    assert!(long.starts_with("HTTP/1.1 413"), "{long}");
    let control = format!("unix:{}", socket.display());
    let set = ["net", "set", "--control", &control, "delay=7ms"];
    // An earlier client may still be counted, so that one of these is refused and a later one is not.
    let mut crowd = Vec::from([(); 16].map(|()| UnixStream::connect(socket).unwrap()));
    loop {
        let crowded = execute(&mut posthaste(&set));
        if crowded.code == Some(3) && crowded.err.contains("16 clients") {
            break;
        }
        assert!(crowd.len() < 100, "{}", crowded.err);
        crowd.push(UnixStream::connect(socket).unwrap());
    }
}

#[test]
fn a_run_is_changed_from_outside_whoever_hangs() {
    for user in users() {
        let folder = folder();
        let (socket, end) = (folder.path().join("control"), folder.path().join("end"));
        let control = format!("unix:{}", socket.display());
        let line = format!("until [ -e {} ]; do sleep 0.05; done", end.display());
        let mut run = net(
            *user,
            &[
                "--delay",
                "5ms",
                "--control",
                &control,
                "--",
                "sh",
                "-c",
                &line,
            ],
        );
        let mut run = run.stderr(Stdio::piped()).spawn().unwrap();
        while UnixStream::connect(&socket).is_err() {
            assert_eq!(run.try_wait().unwrap(), None, "it ended");
            std::thread::sleep(Duration::from_millis(20));
        }
        let _hangs = UnixStream::connect(&socket).unwrap();
        let first = state(&socket);
        assert!(
            first.starts_with("HTTP/1.1 200") && first.contains("\"delay\": \"5ms\""),
            "{first}"
        );
        let refused = exchange(
            &socket,
            "POST / HTTP/1.1\r\nContent-Length: 7\r\n\r\ndelay=5",
        );
        assert!(
            refused.starts_with("HTTP/1.1 400") && refused.contains("no unit"),
            "{refused}"
        );
        let set = |values: &[&str]| {
            execute(posthaste(&["net", "set", "--control", &control]).args(values))
        };
        let done = set(&["up:delay=7ms", "loss=2%"]);
        assert!(
            done.code == Some(0) && done.out.ends_with(" ms: up:delay=7ms loss=2%\n"),
            "{}",
            done.err
        );
        let unknown = set(&["bandwith=1Mbit"]);
        assert!(
            unknown.code == Some(2) && unknown.err.contains("bandwidth"),
            "{}",
            unknown.err
        );
        early_refusals_arrive(&socket);
        let state = state(&socket);
        assert!(
            state.contains("\"delay\": \"7ms\"") && state.contains("up:delay=7ms loss=2%"),
            "{state}"
        );
        std::fs::write(&end, "").unwrap();
        assert_eq!(run.wait_with_output().unwrap().status.code(), Some(0));
        assert!(!socket.exists(), "the socket is left");
        let late = set(&["delay=5ms"]);
        assert!(
            late.code == Some(3) && late.err.contains("--control"),
            "{}",
            late.err
        );
    }
}

#[test]
fn without_a_control_the_remedy_is_named() {
    let run = execute(posthaste(&["net", "set", "delay=5ms"]).env_remove("POSTHASTE_CONTROL"));
    assert_eq!(run.code, Some(2));
    assert!(
        run.err.contains("--control") && run.err.contains("POSTHASTE_CONTROL"),
        "{}",
        run.err
    );
    for user in users() {
        let run = execute(
            net(*user, &["--", "sh", "-c", "echo [$POSTHASTE_CONTROL]"])
                .env("POSTHASTE_CONTROL", "unix:x"),
        );
        assert_eq!(run.out.trim(), "[]", "the control of a run around it");
    }
}
