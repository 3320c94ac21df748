//! Output and exit code of runs without problems, or with problems of the server only.

use std::fs;

use serde_json::Value;

use crate::command::{RunningShop, execute, posthaste};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_json_keeps_its_contract() {
    let shop = RunningShop::open(&[]);
    let url = format!("{}/isbns.csv", shop.url);
    let output = execute(&mut posthaste(&[
        "load",
        "--allow-late",
        &url,
        "--rate",
        "200/s",
        "--duration",
        "500ms",
        "--json",
    ]));
    assert_eq!(output.code, Some(0), "{}", output.err);
    let report = json(&output.out);
    for key in ["offered_rate", "sent_rate", "achieved_rate", "duration_s"] {
        assert!(report[key].is_number(), "{key}");
    }
    let outcomes = report["outcomes"].as_object().unwrap();
    assert_eq!(outcomes.len(), 21);
    let sum: u64 = outcomes.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!((report["intended"].as_u64().unwrap(), sum), (100, 100));
    assert_eq!(report["outcomes"]["ok"], 100);
    let statistics = ["mean", "p50", "p90", "p95", "p99", "max"];
    for key in [
        "response_time_ms",
        "ok_response_time_ms",
        "service_time_ms",
        "send_lateness_ms",
    ] {
        let is_number = |s: &&str| report[key][s].is_number();
        assert!(statistics.iter().all(is_number), "{key}");
    }
    // A hundred requests do not determine one in a thousand.
    assert!(report["response_time_ms"]["p999"].is_null());
    assert_eq!(report["format"], 2);
    assert_eq!(report["statuses"]["200"], 100);
    for phase in [
        "dns", "queue", "connect", "tls", "send", "wait", "receive", "decode",
    ] {
        assert!(report["phases_ms"][phase]["p50"].is_number(), "{phase}");
    }
}

#[test]
fn assertions_decide_the_exit_code() {
    let shop = RunningShop::open(&[]);
    let run = |bound: &str| {
        let arguments = [
            "load",
            "--allow-late",
            &shop.url,
            "--rate",
            "100/s",
            "--duration",
            "200ms",
            "--assert",
            bound,
        ];
        execute(&mut posthaste(&arguments))
    };
    assert_eq!(run("errors<20%").code, Some(0));
    let unknown = run("errors<1%");
    assert_eq!(unknown.code, Some(3));
    assert!(
        unknown.err.contains("errors<1% is unknown")
            && unknown.err.contains("needs 300 requests")
            && unknown.err.contains("--allow-few"),
        "{}",
        unknown.err
    );
    let failed = run("p50<1ns");
    assert_eq!(failed.code, Some(1));
    assert!(
        failed.err.contains("p50<1ns does not hold"),
        "{}",
        failed.err
    );
}

#[test]
fn a_client_that_decodes_tells_what_came_of_it() {
    let shop = RunningShop::open(&["--gzip", "6"]);
    let page = shop.page();
    let run = |options: &[&str]| {
        let fixed = [
            "load",
            &page,
            "--rate",
            "50/s",
            "--duration",
            "200ms",
            "--allow-late",
        ];
        let output = execute(&mut posthaste(&[&fixed, options].concat()));
        assert_eq!(output.code, Some(0), "{}", output.err);
        output.out
    };
    let report = json(&run(&["--slowdown", "1000", "--json"]));
    assert_eq!(report["plan"]["decoding_slowdown"], 1000);
    assert_eq!(report["outcomes"]["ok"], 10);
    let decoded = |key: &str| report["decoded"][key].as_u64().unwrap();
    assert_eq!(decoded("replies"), 10);
    assert!(decoded("bytes") > decoded("bytes_coded"));
    let median = |times: &Value| times["p50"].as_f64().unwrap();
    let decode = median(&report["phases_ms"]["decode"]);
    // Decoding takes a microsecond at least, and every reported time includes it.
    assert!(decode >= 1.0 && median(&report["service_time_ms"]) >= decode);
    assert!(median(&report["response_time_ms"]) >= decode);
    let text = run(&["--slowdown", "1000"]);
    for line in ["replies decoded 1,000 times slower", "10 replies, "] {
        assert!(text.contains(line), "{text}");
    }
    let plain = json(&run(&[
        "--decode",
        "-H",
        "Accept-Encoding: identity",
        "--json",
    ]));
    assert_eq!(plain["decoded"]["replies"], 0);
    assert!(json(&run(&["--json"]))["decoded"].is_null());
}

#[test]
fn a_fault_counts_in_both_versions_of_soap() {
    let shop = RunningShop::open(&[]);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("isbn.csv");
    fs::write(&data, "isbn\n0000000000\n").unwrap();
    let wsdl = format!("{}/soap?wsdl", shop.url);
    for version in ["1.1", "1.2"] {
        let output = execute(&mut posthaste(&[
            "load",
            "--allow-late",
            "--wsdl",
            &wsdl,
            "--operation",
            "BookLite",
            "--soap",
            version,
            "--data",
            data.to_str().unwrap(),
            "--rate",
            "50/s",
            "--duration",
            "200ms",
            "--json",
        ]));
        assert_eq!(output.code, Some(0), "{}", output.err);
        assert_eq!(json(&output.out)["outcomes"]["soap-fault"], 10, "{version}");
    }
}

#[test]
fn records_are_kept() {
    let shop = RunningShop::open(&[]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let output = execute(&mut posthaste(&[
        "load",
        "--allow-late",
        &shop.url,
        "--rate",
        "100/s",
        "--duration",
        "300ms",
        "--out",
        out,
    ]));
    assert_eq!(output.code, Some(0), "{}", output.err);
    for file in [
        "report.json",
        "seconds.csv",
        "times.hlog",
        "index.html",
        "metrics.prom",
    ] {
        let length = fs::metadata(folder.path().join(file)).unwrap().len();
        assert!(length > 100, "{file} is empty");
    }
}

#[test]
fn the_seconds_add_up_to_the_report() {
    let shop = RunningShop::open(&[]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let output = execute(&mut posthaste(&[
        "load",
        "--allow-late",
        &shop.url,
        "--steps",
        "50/s..150/s:3",
        "--duration",
        "2400ms",
        "--out",
        out,
        "--json",
    ]));
    assert_eq!(output.code, Some(0), "{}", output.err);
    let report = json(&output.out);
    assert_eq!(report["steps"].as_array().unwrap().len(), 3);
    let seconds = fs::read_to_string(folder.path().join("seconds.csv")).unwrap();
    let intended: u64 = seconds
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(2).unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(intended, report["intended"].as_u64().unwrap());
}

#[test]
fn a_mix_is_drawn_by_weight() {
    let shop = RunningShop::open(&[]);
    let folder = tempfile::tempdir().unwrap();
    let mix = folder.path().join("mix.toml");
    let entry = |name: &str, path: &str, weight: u32| {
        format!(
            "[[request]]\nname = '{name}'\nweight = {weight}\nurl = '{}{path}'\n",
            shop.url
        )
    };
    fs::write(
        &mix,
        entry("home", "/", 3) + &entry("health", "/healthz", 1),
    )
    .unwrap();
    let output = execute(&mut posthaste(&[
        "load",
        "--allow-late",
        "--mix",
        mix.to_str().unwrap(),
        "--rate",
        "1k/s",
        "--duration",
        "1s",
        "--json",
    ]));
    assert_eq!(output.code, Some(0), "{}", output.err);
    let report = json(&output.out);
    let home = report["requests"][0]["intended"].as_f64().unwrap();
    // 1,000 draws of 3/4: four standard deviations are 55.
    assert!((home - 750.0).abs() < 55.0, "{home}");
}
