//! `compare`: verdicts, exit codes and forms, for reports with given numbers.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::command::{CommandOutput, RunningShop, execute, posthaste};

/// The report of a real run, the source of all others, and the folder for them.
struct Reports {
    report: Value,
    folder: tempfile::TempDir,
}

/// Requests of each run: enough to exclude 1 % of errors.
const REQUESTS: u64 = 3_000;

impl Reports {
    fn new() -> Self {
        let shop = RunningShop::open(&[]);
        let made = execute(&mut posthaste(&[
            "load",
            &shop.url,
            "--rate",
            "50/s",
            "--duration",
            "200ms",
            "--allow-late",
            "--json",
        ]));
        assert_eq!(made.code, Some(0), "{}", made.err);
        let mut report: Value = serde_json::from_str(&made.out).unwrap();
        report["intended"] = REQUESTS.into();
        // On a busy machine the run is late, and late runs are not compared.
        report["generator"]["limited"] = false.into();
        let folder = tempfile::tempdir().unwrap();
        let this = Self { report, folder };
        for (name, factor) in [("a1", 1.0), ("a2", 1.02), ("a3", 0.98)] {
            this.keep(name, |report| times(report, factor, 0.01));
        }
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a run with a report changed by `change`.
    fn keep(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut report = self.report.clone();
        times(&mut report, 1.0, 0.01);
        errors(&mut report, 0);
        change(&mut report);
        fs::create_dir_all(self.path(name)).unwrap();
        fs::write(self.path(name).join("report.json"), report.to_string()).unwrap();
    }

    /// Writes three runs `name`1 to `name`3 whose times are `factor` times those of before, 2 % apart.
    fn keep_three(&self, name: &str, factor: f64, change: impl Fn(&mut Value)) {
        for (number, apart) in [(1, 1.01), (2, 0.99), (3, 1.0)] {
            self.keep(&format!("{name}{number}"), |report| {
                times(report, factor * apart, 0.01);
                change(report);
            });
        }
    }

    /// Compares with these words. Names of runs are replaced by their folders.
    fn compare(&self, arguments: &str) -> CommandOutput {
        let arguments = arguments.split(' ').map(|word| match self.path(word) {
            path if path.exists() || word.ends_with(".out") => path.display().to_string(),
            _ => word.to_owned(),
        });
        execute(posthaste(&["compare"]).args(arguments))
    }

    fn three(&self, name: &str, options: &str) -> CommandOutput {
        let options = if options.is_empty() {
            "--margin 25%"
        } else {
            options
        };
        self.compare(&format!("{options} a1 a2 a3 -- {name}1 {name}2 {name}3"))
    }
}

/// Statistics of the times below, in milliseconds.
const TIMES: [(&str, f64); 6] = [
    ("mean", 10.0),
    ("p50", 8.0),
    ("p90", 15.0),
    ("p95", 20.0),
    ("p99", 30.0),
    ("p999", 50.0),
];

/// Response times in a report: a mean of 10 ms times `factor`, known to a share `noise`.
fn times(report: &mut Value, factor: f64, noise: f64) {
    for distribution in ["response_time_ms", "ok_response_time_ms"] {
        let times = &mut report[distribution];
        times["count"] = REQUESTS.into();
        for (key, value) in TIMES {
            let value = value * factor;
            times[key] = value.into();
            let interval = json!([value / (1.0 + noise), value * (1.0 + noise)]);
            times[format!("{key}_interval")] = interval;
        }
    }
    report["response_time_ms"]["answered"] = REQUESTS.into();
}

/// Makes this many requests time out after 500 ms. The others end `ok`.
fn errors(report: &mut Value, count: u64) {
    let outcomes = report["outcomes"].as_object_mut().unwrap();
    outcomes.values_mut().for_each(|count| *count = 0.into());
    outcomes["ok"] = (REQUESTS - count).into();
    outcomes["timed-out"] = count.into();
    let times = &mut report["response_time_ms"];
    times["answered"] = (REQUESTS - count).into();
    let share = count as f64 / REQUESTS as f64;
    // The statistic falls among the timed-out requests if more than this share timed out.
    let beyond = [
        ("mean", 0.0, 12.0),
        ("p50", 0.5, 500.0),
        ("p90", 0.1, 500.0),
        ("p95", 0.05, 500.0),
        ("p99", 0.01, 500.0),
        ("p999", 0.001, 500.0),
    ];
    for (key, _, bound) in beyond.into_iter().filter(|(_, most, _)| share > *most) {
        times[key] = Value::Null;
        times["lower_bounds"][key] = bound.into();
        times[format!("{key}_interval")] = match key {
            "mean" => Value::Null,
            _ => json!([bound, null]),
        };
    }
}

fn document(output: &CommandOutput) -> Value {
    serde_json::from_str(&output.out).unwrap()
}

#[test]
fn three_runs_a_side_decide() {
    let reports = Reports::new();
    for (name, factor, code, verdict) in [
        ("same", 1.01, 0, "equal"),
        ("slower", 1.2, 1, "worse"),
        ("faster", 0.8, 0, "better"),
    ] {
        reports.keep_three(name, factor, |_| ());
        let output = reports.three(name, "--json");
        assert_eq!(
            output.code,
            Some(code),
            "{name}: {}{}",
            output.out,
            output.err
        );
        let document = document(&output);
        assert_eq!(document["verdict"], verdict);
        assert_eq!(document["judged"].as_array().unwrap().len(), 4);
    }
    let output = reports.three("slower", "");
    assert_eq!(output.code, Some(1));
    assert!(
        output
            .err
            .contains("worse in mean of response time, all due, p50"),
        "{}",
        output.err
    );
}

#[test]
fn a_mean_twice_as_long_never_passes() {
    let reports = Reports::new();
    for (factor, noise, code) in [
        (1.99, 0.01, 3),
        (1.99, 0.9, 3),
        (4.36, 0.01, 1),
        (4.36, 5.0, 3),
        (1.0, 0.01, 3),
    ] {
        reports.keep("b", |report| times(report, factor, noise));
        let output = reports.compare("a1 b");
        assert_eq!(
            output.code,
            Some(code),
            "{factor}: {}{}",
            output.out,
            output.err
        );
        assert!(
            output.out.contains("scatter between runs"),
            "{}",
            output.out
        );
    }
    reports.keep_three("double", 1.99, |_| ());
    assert_eq!(reports.three("double", "--allow-unknown").code, Some(1));
}

#[test]
fn unknown_exits_with_3_unless_it_is_allowed() {
    let reports = Reports::new();
    for (name, factor) in [("wide1", 1.0), ("wide2", 1.5), ("wide3", 0.8)] {
        reports.keep(name, |report| times(report, factor, 0.01));
    }
    let output = reports.three("wide", "");
    assert_eq!(output.code, Some(3), "{}{}", output.out, output.err);
    assert!(output.err.contains("no verdict on mean"), "{}", output.err);
    assert!(
        output.out.contains("runs a side would decide"),
        "{}",
        output.out
    );
    let allowed = reports.three("wide", "--allow-unknown");
    assert_eq!((allowed.code, allowed.err.as_str()), (Some(0), ""));
    // One run per side, and a known scatter.
    let known = reports.compare("--scatter 3% a1 a2");
    assert_eq!(known.code, Some(0), "{}{}", known.out, known.err);
    assert_eq!(reports.compare("--scatter 3% a1 wide2").code, Some(1));
    // A margin smaller than the uncertainty of the runs.
    reports.keep_three("same", 1.01, |_| ());
    assert_eq!(reports.three("same", "--margin 1%").code, Some(3));
}

/// A change to the report of a run.
type Change<'c> = &'c dyn Fn(&mut Value);

#[test]
fn runs_that_grow_stop_or_differ_in_length_never_pass() {
    let reports = Reports::new();
    let no_interval =
        |report: &mut Value| report["response_time_ms"]["mean_interval"] = Value::Null;
    let stopped = |report: &mut Value| report["stopped"] = true.into();
    let longer = |report: &mut Value| report["plan"]["pace"] = "open loop, 50/s, 1 s".into();
    let no_time = |report: &mut Value| times(report, 0.0, 0.0);
    let changes: [(&str, Change<'_>, &str); 4] = [
        ("grows", &no_interval, "may grow"),
        ("stopped", &stopped, "was stopped"),
        ("longer", &longer, "another pace"),
        ("none", &no_time, "unknown: no p50 in "),
    ];
    for (name, change, word) in changes {
        for factor in [0.8, 1.0] {
            reports.keep_three(name, factor, change);
            let output = reports.three(name, "");
            assert_eq!(output.code, Some(3), "{name}: {}{}", output.out, output.err);
            assert!(output.out.contains(word), "{name}: {}", output.out);
        }
    }
    reports.keep_three("grows", 1.2, no_interval);
    assert_eq!(reports.three("grows", "").code, Some(1));
    // One of three runs is enough to spoil the comparison.
    reports.keep_three("one", 1.0, |_| ());
    reports.keep("one2", stopped);
    assert_eq!(reports.three("one", "").code, Some(3));
}

#[test]
fn runs_without_an_interval_or_a_number_are_named() {
    let reports = Reports::new();
    let without = |key: &str, report: &mut Value| report["response_time_ms"][key] = Value::Null;
    let expect = |output: &CommandOutput, parts: &[&str]| {
        for part in parts {
            assert!(output.out.contains(part), "{part}: {}", output.out);
        }
    };
    reports.keep_three("b", 1.0, |_| ());
    reports.keep("b2", |report| without("mean_interval", report));
    let mean = [
        "unknown: no interval of the mean in ",
        "b2: response times may grow during a run\n",
    ];
    expect(&reports.three("b", ""), &mean);
    reports.keep("c1", |report| without("p99_interval", report));
    let p99 = [
        "unknown: no interval of the p99 in ",
        "c1: too few independent values\n",
    ];
    expect(&reports.compare("a1 c1"), &p99);
    let names = document(&reports.compare("a1 c1 --json"))["judged"][2]["no_interval_in"].clone();
    assert_eq!(names.as_array().unwrap().len(), 1);
    for name in ["d1", "d2"] {
        reports.keep(name, |report| without("p999", report));
    }
    let p999 = "unknown: no p999 in any run: it needs 5000 requests per run\n";
    expect(&reports.compare("d1 d2"), &[p999]);
}

#[test]
fn errors_count() {
    let reports = Reports::new();
    reports.keep_three("few", 1.0, |report| errors(report, 1));
    let few = reports.three("few", "");
    assert_eq!(few.code, Some(0), "{}{}", few.out, few.err);
    assert!(few.out.contains("ok only (survivors)"), "{}", few.out);
    reports.keep_three("many", 1.0, |report| errors(report, 300));
    let many = reports.three("many", "");
    assert_eq!(many.code, Some(1), "{}{}", many.out, many.err);
    assert!(many.err.contains("share of errors"), "{}", many.err);
    // More than half without a reply, and one run per side.
    reports.keep("half", |report| errors(report, REQUESTS * 6 / 10));
    let half = reports.compare("a1 half --json");
    assert_eq!(half.code, Some(1), "{}{}", half.out, half.err);
    let judged = document(&half)["judged"].clone();
    assert_eq!(judged[1]["reason"], "censored-on-one-side");
    assert_eq!(judged[1]["verdict"], "worse");
}

#[test]
fn options_that_differ_are_named() {
    let reports = Reports::new();
    reports.keep_three("b", 1.0, |report| {
        report["plan"]["connect_timeout"] = "2s".into();
        report["plan"]["threads"] = 7.into();
    });
    reports.keep("b2", |report| report["plan"]["seed"] = 99.into());
    let output = reports.three("b", "");
    assert!(
        output
            .out
            .contains("connect-timeout differs: 500ms | 2s, 500ms, 2s"),
        "{}",
        output.out
    );
    assert!(output.out.contains("seed differs"), "{}", output.out);
    assert!(!output.out.contains("target differs"), "{}", output.out);
    let same = reports.compare("a1 a2 -- a3");
    assert!(!same.out.contains("differs"), "{}", same.out);
}

#[test]
fn other_programs_read_the_verdicts() {
    let reports = Reports::new();
    reports.keep_three("slower", 1.2, |report| {
        report["plan"]["target"] = "GET http://a/?b=<1>&c=]]>".into();
    });
    let output = reports.three("slower", "--markdown table.out --junit suite.out");
    assert_eq!(output.code, Some(1), "{}{}", output.out, output.err);
    let table = fs::read_to_string(reports.path("table.out")).unwrap();
    assert_eq!(
        table.lines().filter(|line| line.starts_with('|')).count(),
        6,
        "{table}"
    );
    assert!(
        table.contains("| mean of response time, all due | **failed** |"),
        "{table}"
    );
    let suite = fs::read_to_string(reports.path("suite.out")).unwrap();
    assert_eq!(elements(&suite, "testcase"), 4, "{suite}");
    assert_eq!(elements(&suite, "failure"), 3, "{suite}");
    let printed = reports.three("slower", "--junit -");
    assert_eq!((printed.code, printed.out), (Some(1), suite));
    let nowhere = reports.three("slower", "--junit /no/such/folder/file");
    assert_eq!(nowhere.code, Some(3), "{}", nowhere.err);
    assert!(nowhere.out.contains("response time"), "{}", nowhere.out);
    assert!(
        nowhere.err.contains("/no/such/folder/file"),
        "{}",
        nowhere.err
    );
}

/// Elements with this name in a well-formed document.
fn elements(xml: &str, name: &str) -> usize {
    use quick_xml::events::Event;
    let mut reader = quick_xml::Reader::from_str(xml);
    reader.config_mut().check_end_names = true;
    let (mut found, mut open) = (0, 0);
    loop {
        match reader.read_event().unwrap() {
            Event::Start(element) => {
                open += 1;
                found += usize::from(element.name().as_ref() == name);
                element
                    .attributes()
                    .for_each(|attribute| drop(attribute.unwrap()));
            }
            Event::End(_) => open -= 1,
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(open, 0, "every element ends");
    found
}
