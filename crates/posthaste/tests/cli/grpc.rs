//! `load --grpc` against the bookshop, whose schema comes from server reflection.

use std::fs;

use serde_json::Value;

use crate::command::{CommandOutput, RunningShop, execute, posthaste};

const GET_BOOK: &str = "bookshop.v1.Bookshop/GetBook";

/// The bookshop's own schema.
const PROTO: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../lab/bookshop/proto/bookshop/v1/bookshop.proto"
);

/// Twenty calls, with further options.
fn call(shop: &RunningShop, method: &str, options: &[&str]) -> CommandOutput {
    let fixed = [
        "load",
        &shop.url,
        "--grpc",
        method,
        "--rate",
        "100/s",
        "--duration",
        "200ms",
        "--connect-timeout",
        "20s",
        "--allow-late",
    ];
    execute(&mut posthaste(&[&fixed, options].concat()))
}

fn json(output: &CommandOutput) -> Value {
    assert_eq!(output.code, Some(0), "{}{}", output.out, output.err);
    serde_json::from_str(&output.out).unwrap()
}

fn isbn(shop: &RunningShop) -> String {
    let page = shop.page();
    page.rsplit('/').next().unwrap().to_owned()
}

#[test]
fn calls_are_counted_by_status_in_every_report() {
    let shop = RunningShop::open(&[]);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("isbns.csv");
    fs::write(&data, format!("isbn\n{}\n0000000000\n", isbn(&shop))).unwrap();
    let data = data.to_str().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let rows = ["--message", "{\"isbn\": \"{{isbn}}\"}", "--data", data];
    let report = json(&call(
        &shop,
        GET_BOOK,
        &[&rows[..], &["--json", "--out", out]].concat(),
    ));
    assert_eq!(report["outcomes"]["ok"], 10);
    assert_eq!(report["outcomes"]["grpc-error"], 10);
    let statuses = serde_json::json!({"OK": 10, "NOT_FOUND": 10});
    assert_eq!(report["grpc"]["statuses"], statuses);
    assert_eq!(report["grpc"]["method"], format!("{GET_BOOK} (unary)"));
    let reason = report["reasons"]["grpc-error"].as_str().unwrap();
    assert!(reason.starts_with("NOT_FOUND: "), "{reason}");
    assert!(report["events"].is_null());
    let read = |name: &str| fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    let sample = "posthaste_load_grpc_replies_total{status=\"NOT_FOUND\"} 10";
    assert!(read("metrics.prom").contains(sample));
    assert!(read("index.html").contains("NOT_FOUND"));
    assert!(
        read("seconds.csv")
            .lines()
            .next()
            .unwrap()
            .contains("grpc-error")
    );
    let text = call(&shop, GET_BOOK, &rows).out;
    for line in ["gRPC unary http://", "gRPC       NOT_FOUND: 10   OK: 10"] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn streams_in_one_direction_are_measured() {
    let shop = RunningShop::open(&[]);
    let isbn = isbn(&shop);
    let list = format!("{{\"isbn\": \"{isbn}\", \"count\": 4, \"gap\": \"10ms\"}}");
    let method = "bookshop.v1.Bookshop/ListBooks";
    let options = ["--message", &list, "--proto", PROTO, "--json"];
    let report = json(&call(&shop, method, &options));
    assert_eq!(report["outcomes"]["ok"], 20);
    assert_eq!(report["events"]["count"], 80);
    assert_eq!(report["events"]["gap_ms"]["count"], 60);
    assert!(report["events"]["gap_ms"]["p50"].as_f64().unwrap() > 5.0);
    assert_eq!(report["plan"]["events"], "gRPC messages");
    let line = format!("{{\"isbn\": \"{isbn}\", \"copies\": 1}}\n");
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("lines.json");
    fs::write(&lines, line.repeat(3)).unwrap();
    let lines = format!("@{}", lines.display());
    let method = "bookshop.v1.Bookshop/PlaceOrder";
    let report = json(&call(&shop, method, &["--message", &lines, "--json"]));
    assert_eq!(report["outcomes"]["ok"], 20);
    assert_eq!(
        report["grpc"]["method"],
        format!("{method} (client streaming)")
    );
}

#[test]
fn assertions_name_the_outcome() {
    let shop = RunningShop::open(&[]);
    let failed = call(&shop, GET_BOOK, &["--assert", "grpc-error<1%"]);
    assert_eq!(failed.code, Some(1), "{}", failed.err);
    assert!(
        failed.err.contains("grpc-error<1% does not hold: 100%"),
        "{}",
        failed.err
    );
}

#[test]
fn mistakes_name_the_remedy_before_anything_is_sent() {
    let shop = RunningShop::open(&[]);
    let cases: &[(&str, &[&str], &str)] = &[
        ("bookshop.v1.Bookshop/GetBok", &[], "the nearest is GetBook"),
        (
            "bookshop.v1.Bokshop/GetBook",
            &[],
            "the nearest is bookshop.v1.Bookshop",
        ),
        ("GetBook", &[], "write package.Service/Method"),
        (
            "bookshop.v1.Bookshop/QuoteLines",
            &[],
            "streams in both directions",
        ),
        (GET_BOOK, &["--message", "{\"isbm\": 1}"], "isbm"),
        (GET_BOOK, &["--http", "1.1"], "gRPC is HTTP/2"),
        (GET_BOOK, &["--body", "x"], "--message"),
        (GET_BOOK, &["--stream", "sse"], "leave it out"),
        (GET_BOOK, &["--decode"], "--decode does not go with --grpc"),
        (GET_BOOK, &["--method", "GET"], "POST"),
        (GET_BOOK, &["-H", "grpc-timeout: 1S"], "--timeout"),
        (GET_BOOK, &["-H", "TE: x"], "gRPC sets it"),
        (GET_BOOK, &["--assert", "gap<1s"], "no events"),
        (GET_BOOK, &["--assert", "no-end-mark<1%"], "grpc-error<1%"),
        (GET_BOOK, &["--proto", "/no/such.proto"], "/no/such.proto"),
        (
            GET_BOOK,
            &["--proto", PROTO, "--protoset", PROTO],
            "cannot be used with",
        ),
    ];
    for (method, options, part) in cases {
        let output = call(&shop, method, options);
        assert_eq!(output.code, Some(2), "{method} {options:?}: {}", output.err);
        assert!(
            output.err.contains(part),
            "{method} {options:?}: {}",
            output.err
        );
    }
    let url = format!("{}/page", shop.url);
    let output = execute(&mut posthaste(&[
        "load", &url, "--grpc", GET_BOOK, "--proto", PROTO, "--rate", "5/s",
    ]));
    assert_eq!(output.code, Some(2), "{}", output.err);
    assert!(
        output.err.contains("the method is the path of a call"),
        "{}",
        output.err
    );
    let output = crate::command::execute(&mut posthaste(&[
        "load",
        &shop.url,
        "--message",
        "{}",
        "--rate",
        "5/s",
    ]));
    assert!(output.err.contains("--grpc"), "{}", output.err);
}
