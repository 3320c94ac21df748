//! Signals, full disks, missing descriptors, closed readers: a clean end without losses.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::command::{CommandOutput, RunningShop, execute, posthaste, signal, until};

#[test]
fn ctrl_c_keeps_what_was_measured_and_says_so() {
    let shop = RunningShop::open(&[]);
    let child = posthaste(&[
        "load",
        "--allow-late",
        &shop.page(),
        "--rate",
        "100/s",
        "--duration",
        "600s",
        "--json",
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    until("fifty replies", || shop.pages() >= 50);
    signal("INT", child.id());
    let output = CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!(output.code, Some(3), "{}", output.err);
    assert!(output.err.contains("stopped"), "{}", output.err);
    let report: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(report["stopped"], true);
    let sum: u64 = report["outcomes"]
        .as_object()
        .unwrap()
        .values()
        .map(|c| c.as_u64().unwrap())
        .sum();
    assert_eq!(report["intended"].as_u64().unwrap(), sum);
    assert!(sum >= 50, "{sum}");
    // The real duration, and the part of the plan that was due.
    let took = report["duration_s"].as_f64().unwrap();
    assert!(
        took < 600.0 && report["planned_duration_s"] == 600.0,
        "{took}"
    );
    assert_eq!(report["planned_requests"], 60_000);
}

#[test]
fn ctrl_c_in_a_search_prints_what_is_known() {
    let shop = RunningShop::open(&[]);
    let page = shop.page();
    let child = posthaste(&[
        "load",
        &page,
        "--find",
        "p99<10s",
        "--duration",
        "600s",
        "--json",
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    until("fifty replies", || shop.pages() >= 50);
    signal("INT", child.id());
    let output = CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!(output.code, Some(3), "{}", output.err);
    assert!(output.err.contains("stopped"), "{}", output.err);
    let found: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(found["stopped"], true);
    assert!(found["held_at_per_s"].is_null());
    assert!(!found["trials"].as_array().unwrap().is_empty());
}

#[test]
fn the_bookshop_drains_on_sigterm() {
    let mut shop = RunningShop::open(&[]);
    signal("TERM", shop.id());
    assert_eq!(shop.wait(), Some(0));
}

#[test]
fn a_taken_port_is_named() {
    let shop = RunningShop::open(&[]);
    let address = shop.url.strip_prefix("http://").unwrap();
    let output = execute(&mut posthaste(&["bookshop", "--listen", address]));
    assert_eq!(output.code, Some(3));
    assert!(output.err.contains(address), "{}", output.err);
}

#[test]
fn without_descriptors_requests_are_counted_not_lost() {
    let shop = RunningShop::open(&["--service", "md1:100ms"]);
    let arguments = [
        "load",
        &shop.page(),
        "--rate",
        "200/s",
        "--duration",
        "500ms",
        "--connection",
        "new",
        "--timeout",
        "1s",
        "--json",
    ];
    let script = "ulimit -n 20 && exec \"$0\" \"$@\"";
    let mut limited = Command::new("sh");
    limited
        .args(["-c", script, env!("CARGO_BIN_EXE_posthaste")])
        .args(arguments);
    let output = execute(&mut limited);
    // The generator was the limit, and the remedy is named.
    assert_eq!(output.code, Some(3), "{}", output.err);
    assert!(output.err.contains("ulimit -n"), "{}", output.err);
    let report: Value = serde_json::from_str(&output.out).unwrap();
    let count = |name: &str| report["outcomes"][name].as_u64().unwrap();
    assert_eq!(report["intended"], 100);
    assert!(
        count("client-failed") + count("dropped") > 50,
        "{}",
        report["outcomes"]
    );
}

#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    let shop = RunningShop::open(&[]);
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("unfinished")).unwrap();
    let out = folder.path().to_str().unwrap();
    let run = execute(&mut posthaste(&[
        "load",
        "--allow-late",
        &shop.url,
        "--rate",
        "50/s",
        "--duration",
        "100ms",
        "--out",
        out,
    ]));
    assert_eq!(run.code, Some(3), "{}", run.err);
    assert!(
        run.err.contains("report.json") && run.out.contains("5 intended"),
        "{}",
        run.err
    );
    // A file is written completely or not at all.
    assert!(!folder.path().join("report.json").exists());
    assert!(!folder.path().join("unfinished").exists());
    let nowhere = execute(&mut posthaste(&[
        "load",
        "--allow-late",
        &shop.url,
        "--rate",
        "5/s",
        "--out",
        "/proc/none",
    ]));
    assert_eq!(nowhere.code, Some(3));
    assert!(
        nowhere.err.contains("/proc/none") && nowhere.out.is_empty(),
        "{}",
        nowhere.err
    );
}

#[test]
fn a_run_that_cannot_begin_leaves_the_records_of_the_one_before() {
    let shop = RunningShop::open(&[]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let load = |url: &str| {
        let options = ["--rate", "50/s", "--duration", "100ms", "--out", out];
        execute(posthaste(&["load", url, "--force", "--allow-late"]).args(options))
    };
    let records = || {
        let files = std::fs::read_dir(folder.path()).unwrap();
        let read =
            |file: std::fs::DirEntry| (file.file_name(), std::fs::read(file.path()).unwrap());
        let mut records: Vec<_> = files.map(|file| read(file.unwrap())).collect();
        records.sort();
        records
    };
    assert_eq!(load(&shop.url).code, Some(0));
    let before = records();
    assert_eq!(before.len(), 5);
    let unknown = load("http://no-such-name.invalid/");
    assert_eq!(unknown.code, Some(3), "{}", unknown.err);
    assert!(unknown.err.contains("--resolve"), "{}", unknown.err);
    assert!(records() == before, "{:?}", folder.path());
}

#[test]
fn a_reader_that_goes_away_is_no_crash() {
    let shop = RunningShop::open(&[]);
    let mut child = posthaste(&["load", &shop.url, "--rate", "50/s", "--duration", "300ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
}

#[test]
fn a_reader_of_errors_that_goes_away_is_no_crash() {
    let mut child = posthaste(&["compare", "no-such-run", "another"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn without_a_terminal_there_is_no_colour_and_no_bar() {
    let shop = RunningShop::open(&[]);
    let run = execute(
        posthaste(&[
            "load",
            "--allow-late",
            &shop.url,
            "--rate",
            "50/s",
            "--duration",
            "1200ms",
        ])
        .env("COLUMNS", "40")
        .process_group(0),
    );
    assert_eq!(run.code, Some(0));
    assert!(
        !run.out.contains('\x1b') && run.err.is_empty(),
        "{:?}",
        run.err
    );
}

#[test]
fn a_rate_beyond_all_counting_obeys_sigterm() {
    let shop = RunningShop::open(&[]);
    let page = shop.page();
    let line = [
        "load",
        &page,
        "--rate",
        "1000M/s",
        "--duration",
        "600s",
        "--json",
    ];
    let child = posthaste(&line)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("fifty replies", || shop.pages() >= 50);
    signal("TERM", child.id());
    let output = CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!(output.code, Some(3), "{}", output.err);
    let report: Value = serde_json::from_str(&output.out).unwrap();
    let (intended, seconds) = (&report["intended"], &report["duration_s"]);
    let due = seconds.as_f64().unwrap() * 1e9;
    let share = intended.as_u64().unwrap() as f64 / due;
    assert!((share - 1.0).abs() < 1e-6, "{intended} in {seconds} s");
}

#[test]
fn a_second_run_does_not_write_to_the_folder_of_the_first() {
    let shop = RunningShop::open(&[]);
    let (page, folder) = (shop.page(), tempfile::tempdir().unwrap());
    let out = folder.path().join("run");
    let out = out.to_str().unwrap();
    let line = [
        "load",
        &page,
        "--rate",
        "20/s",
        "--duration",
        "600s",
        "--out",
        out,
    ];
    let first = posthaste(&line)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("a reply", || shop.pages() >= 1);
    let second = execute(&mut posthaste(&[
        "load",
        &page,
        "--rate",
        "5/s",
        "--duration",
        "1s",
        "--out",
        out,
        "--force",
    ]));
    signal("INT", first.id());
    let first = first.wait_with_output().unwrap();
    assert_eq!(second.code, Some(3), "{}", second.err);
    assert!(second.err.contains("another run writes"), "{}", second.err);
    assert_eq!(first.status.code(), Some(3));
    assert!(std::path::Path::new(out).join("report.json").exists());
}
