//! Numbers that operators rely on: facts that a run must not hide.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;

use crate::command::{CommandOutput, RunningShop, execute, posthaste};

fn load(arguments: &[&str]) -> CommandOutput {
    execute(&mut posthaste(&[&["load"], arguments].concat()))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Returns a port without a listener.
fn closed_port() -> String {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap();
    drop(port);
    format!("http://{address}/")
}

#[test]
fn requests_that_time_out_fail_bounds_on_percentiles() {
    // 200 requests per second are served, and twice as many are due.
    let shop = RunningShop::open(&["--service", "md1:5ms"]);
    let page = shop.page();
    let run = load(&[
        &page,
        "--rate",
        "400/s",
        "--duration",
        "3s",
        "--timeout",
        "500ms",
        "--assert",
        "p50<200ms",
        "--assert",
        "p99<600ms",
        "--allow-late",
        "--json",
    ]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("p50<200ms does not hold"), "{}", run.err);
    assert!(
        run.err.contains("p99<600ms does not hold: > 5"),
        "{}",
        run.err
    );
    let report = json(&run.out);
    let times = &report["response_time_ms"];
    assert_eq!(times["censored"], true);
    assert_eq!(times["count"], report["intended"]);
    assert!(times["p99"].is_null() && times["lower_bounds"]["p99"].as_f64().unwrap() >= 500.0);
    // The survivors are reported separately.
    assert!(report["ok_response_time_ms"]["p99"].as_f64().unwrap() < 600.0);
    assert_eq!(report["assertions"][1]["holds"], false);
}

#[test]
fn an_unreachable_rate_is_reported_first_and_ends_on_time() {
    let shop = RunningShop::open(&[]);
    let arguments = [&shop.url, "--rate", "2M/s", "--duration", "300ms"];
    let run = load(&arguments);
    assert_eq!(run.code, Some(3), "{}", run.err);
    assert!(
        run.out.starts_with("THE GENERATOR WAS THE LIMIT"),
        "{}",
        run.out
    );
    assert!(run.err.contains("--allow-late"), "{}", run.err);
    let allowed = load(&[&arguments[..], &["--allow-late", "--json"]].concat());
    assert_eq!(allowed.code, Some(0), "{}", allowed.err);
    let report = json(&allowed.out);
    assert_eq!(report["generator"]["limited"], true);
    assert_eq!(report["intended"], 600_000);
    // Sending ended, and requests not begun are counted.
    let not_begun = report["generator"]["not_begun"].as_u64().unwrap();
    assert!(not_begun > 100_000, "{not_begun}");
    assert!(report["outcomes"]["dropped"].as_u64().unwrap() >= not_begun);
}

#[test]
fn assertions_are_written_for_other_programs() {
    let shop = RunningShop::open(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let run = load(&[
        &shop.url,
        "--rate",
        "50/s",
        "--duration",
        "200ms",
        "--assert",
        "errors<50%",
        "--assert",
        "p50<1ns",
        "--allow-late",
        "--junit",
        &file("load.xml"),
        "--markdown",
        "-",
    ]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(
        run.out.contains("| p50&lt;1ns | **failed** |"),
        "{}",
        run.out
    );
    let junit = fs::read_to_string(file("load.xml")).unwrap();
    assert!(
        junit.contains("failures=\"1\"") && junit.contains("p50&lt;1ns"),
        "{junit}"
    );
    let search = ["--find", "p99<1s", "--junit", "-"];
    let search = load(&[&[&*shop.url][..], &search].concat());
    assert_eq!(search.code, Some(2), "{}", search.err);
}

#[test]
fn unwritable_files_are_found_before_the_first_request() {
    let shop = RunningShop::open(&[]);
    for option in ["--junit", "--markdown"] {
        let run = load(&[
            &shop.url,
            "--rate",
            "50/s",
            "--duration",
            "10min",
            option,
            "/no/such/folder/file",
        ]);
        assert_eq!(run.code, Some(3), "{}", run.err);
        assert!(run.err.contains("/no/such/folder/file"), "{}", run.err);
        assert_eq!(run.out, "");
    }
}

#[test]
fn silence_is_no_time_of_zero() {
    let url = closed_port();
    let pace = ["--rate", "50/s", "--duration", "200ms"];
    let silent = load(&[&[url.as_str()], &pace[..]].concat());
    assert_eq!(silent.code, Some(3), "{}", silent.err);
    let hint = format!("is anything listening on {}?", &url[7..url.len() - 1]);
    assert!(
        silent.err.contains(&hint) && silent.out.contains(&hint),
        "{}",
        silent.err
    );
    let bound = ["--assert", "p99<1s", "--assert", "ok-p99>0s"];
    let asserted = load(&[&[url.as_str()], &pace[..], &bound].concat());
    assert_eq!(asserted.code, Some(1), "{}", asserted.err);
    assert!(
        asserted.err.contains("p99<1s does not hold: no reply"),
        "{}",
        asserted.err
    );
    assert!(
        asserted.out.contains("UNKNOWN  ok-p99>0s: no good reply"),
        "{}",
        asserted.out
    );
}

#[test]
fn a_folder_that_holds_something_is_not_overwritten() {
    let shop = RunningShop::open(&[]);
    let folder = tempfile::tempdir().unwrap();
    let run = |out: &Path, more: &[&str]| {
        let out = out.to_str().unwrap();
        let fixed = [
            &*shop.url,
            "--rate",
            "50/s",
            "--duration",
            "100ms",
            "--out",
            out,
        ];
        load(&[&fixed[..], &["--allow-late"], more].concat())
    };
    let baseline = folder.path().join("baseline");
    let first = run(&baseline, &[]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    assert!(first.err.contains("baseline/index.html"), "{}", first.err);
    let report = fs::read(baseline.join("report.json")).unwrap();
    let second = run(&baseline, &[]);
    assert_eq!(second.code, Some(3));
    assert!(
        second.err.contains("the report of an earlier run"),
        "{}",
        second.err
    );
    assert!(second.err.contains("--force"), "{}", second.err);
    assert_eq!(fs::read(baseline.join("report.json")).unwrap(), report);
    let forced = run(&baseline, &["--force"]);
    assert_eq!(forced.code, Some(0), "{}", forced.err);
    assert_ne!(fs::read(baseline.join("report.json")).unwrap(), report);

    let foreign = folder.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis.tex"), "years of work").unwrap();
    let refused = run(&foreign, &[]);
    assert_eq!(refused.code, Some(3));
    assert!(refused.err.contains("thesis.tex"), "{}", refused.err);
    assert_eq!(run(&foreign, &["--force"]).code, Some(0));
    assert_eq!(
        fs::read(foreign.join("thesis.tex")).unwrap(),
        b"years of work"
    );
}

#[test]
fn seconds_are_whole_and_have_a_time_of_day() {
    let shop = RunningShop::open(&[]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let out = out.to_str().unwrap();
    let run = load(&[
        &shop.url,
        "--rate",
        "20/s",
        "--duration",
        "2500ms",
        "--allow-late",
        "--out",
        out,
    ]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let seconds = fs::read_to_string(Path::new(out).join("seconds.csv")).unwrap();
    let mut last = 0;
    for line in seconds.lines().skip(1) {
        let mut cells = line.split(',');
        let second: u64 = cells.next().unwrap().parse().unwrap();
        assert!(second > last, "{seconds}");
        last = second;
        let time: jiff::Timestamp = cells.next().unwrap().parse().unwrap();
        assert!(time.as_second() > 1_700_000_000, "{time}");
    }
    assert!(last >= 3, "{seconds}");
}

#[test]
fn a_report_of_an_earlier_form_is_refused_by_its_version() {
    let folder = tempfile::tempdir().unwrap();
    for side in ["old", "new"] {
        let path = folder.path().join(side);
        fs::create_dir(&path).unwrap();
        let report = r#"{"plan": {"version": "0.0.9"}, "response_time_ms": {"p99": 281.0}}"#;
        fs::write(path.join("report.json"), report).unwrap();
    }
    let path = |side: &str| folder.path().join(side).to_str().unwrap().to_owned();
    let compared = execute(&mut posthaste(&["compare", &path("old"), &path("new")]));
    assert_eq!(compared.code, Some(2), "{}", compared.err);
    assert!(
        compared.err.contains("0.0.9") && compared.err.contains("form 1"),
        "{}",
        compared.err
    );
}
