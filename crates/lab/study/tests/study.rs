//! The framework from outside, with sample figures and temporary folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use posthaste_draw::{Axis, Chart, Point, Series, Unit};
use posthaste_study::lab::{self, Counters, Lab};
use posthaste_study::{
    Check, Collection, Conditions, Failure, Figure, Manifest, Needs, Options, Planned, Plot,
    RecordTable, Records, Reproduction, RunError, SelectError, Silent, Study, StudyEnd, draw,
    reproduce,
};
use posthaste_units::{Seed, Span};
use rand::RngExt as _;

static COUNTED_RUNS: AtomicU32 = AtomicU32::new(0);

/// A study for one test only, which counts the runs.
static COUNTED: Study = Study {
    name: "counted",
    needs: Needs::Processor,
    core: true,
    run: |conditions| {
        COUNTED_RUNS.fetch_add(1, Ordering::Relaxed);
        sweep(conditions)
    },
};
static SWEEP: Study = SWEEP_ONE;
const SWEEP_ONE: Study = Study {
    name: "sweep",
    needs: Needs::Processor,
    core: true,
    run: sweep,
};
static BROKEN: Study = Study {
    name: "broken",
    needs: Needs::Processor,
    core: true,
    run: |_| Err("the server said nothing".into()),
};
static PANICS: Study = Study {
    name: "panics",
    needs: Needs::Processor,
    core: true,
    run: |_| panic!("a bug in {}", "a study"),
};
static STOPS: Study = Study {
    name: "stops",
    needs: Needs::Processor,
    core: true,
    run: |conditions| {
        conditions.stop.store(true, Ordering::Relaxed);
        sweep(conditions)
    },
};

static RARE: Study = Study {
    core: false,
    ..SWEEP_ONE
};

fn sweep(conditions: &Conditions<'_>) -> Result<Records, Failure> {
    let mut table = RecordTable::new(["kind", "rate", "mean_ms"]);
    let mut noise = conditions.seed.stream("noise");
    for step in 1u32..=10 {
        if step > 3 && conditions.stopped() {
            break;
        }
        conditions.progress.step(step.into(), 10, "measuring");
        let mean = f64::from(step) + noise.random::<f64>();
        table.push(["page".into(), f64::from(step).into(), mean.into()]);
    }
    let mut records = Records::new();
    records.set_number("capacity", 5.5);
    records.set_number("unknown", f64::NAN);
    records.set_parameter("connect timeout", Span::from_millis(50));
    records.set_table("sweep", table);
    Ok(records)
}

fn plot(records: &Records) -> Vec<Plot> {
    let mut chart = Chart::new(
        "Mean response time",
        Axis::linear("rate", Unit::PerSecond),
        Axis::linear("mean response time", Unit::Millis),
    );
    let rows = records.table("sweep").rows();
    let points = rows.map(|row| Point::new(row.number("rate"), row.number("mean_ms")));
    chart.series = vec![Series::line("page", points)];
    vec![Plot::Chart(chart.clone()), Plot::Chart(chart)]
}

fn checks(records: &Records) -> Vec<Check> {
    let rows = records.table("sweep").len();
    let capacity = records.number("capacity");
    vec![
        Check::instrument(rows > 0, format!("{rows} steps were measured")),
        Check::claim(
            capacity > 9.0,
            format!("capacity {capacity}, the paper's is 9"),
        )
        .because("the sample is small."),
    ]
}

const fn figure(id: &'static str, study: &'static Study) -> Figure {
    Figure {
        id,
        title: "a sample",
        claim: "Response time grows.",
        paper: "Nobody, 2003",
        budget: Span::from_secs(1),
        study,
        plot,
        checks,
        differs: "Nothing is real.",
    }
}

static ONE: Figure = figure("overload/fig-08", &SWEEP);
static TWO: Figure = figure("overload/fig-09", &SWEEP);
static FAILS: Figure = figure("overload/fig-10", &BROKEN);
static BUG: Figure = figure("packet-loss/fig-02", &PANICS);
static STOPPED: Figure = figure("wsqos/fig-47", &STOPS);
static FALSE: Figure = Figure {
    checks: |_| vec![Check::instrument(false, "one is two")],
    ..figure("overload/fig-11", &SWEEP)
};

/// Figures with the papers that they are from.
fn collection<'f>(figures: &'f [&'f Figure]) -> Collection<'f> {
    const PLANNED: &[Planned] = &[
        Planned {
            id: "overload/fig-08",
            title: "response time against request rate",
            comes: "with the load generator",
        },
        Planned {
            id: "wsqos/fig-56",
            title: "response time",
            comes: "with the broker",
        },
        Planned {
            id: "wsqos/fig-68",
            title: "price and load",
            comes: "with adaptive offers",
        },
    ];
    Collection {
        figures,
        papers: &[
            ("overload", "Nobody, 2003"),
            ("packet-loss", "Nobody, 2007"),
            ("wsqos", "Nobody, 2005"),
        ],
        aliases: &[("mobile/fig-04", "wsqos/fig-47")],
        planned: PLANNED,
        questions: &[],
    }
}

/// Runs all of `figures`.
fn run<'f>(
    figures: &'f [&'f Figure],
    options: &Options,
    stop: &AtomicBool,
) -> Result<Reproduction<'f>, RunError> {
    reproduce(&collection(figures), figures, options, stop, &Silent)
}

fn options(out: &Path) -> Options {
    Options {
        full: false,
        seed: Seed(7),
        commit: Some("0123456789ab-dirty".to_owned()),
        out: out.to_owned(),
        lab: Lab::Shared("a test".to_owned()),
        program: None,
        simulated: BTreeMap::new(),
    }
}

fn chosen(figures: &[&'static Figure], names: &[&str]) -> Result<Vec<&'static str>, SelectError> {
    let names: Vec<String> = names.iter().map(|word| (*word).to_owned()).collect();
    let figures = collection(figures).select(&names, false)?;
    Ok(figures.iter().map(|figure| figure.id).collect())
}

#[test]
fn figures_are_chosen_by_id_by_beginning_and_by_alias() {
    let all = [&ONE, &TWO, &BUG, &STOPPED];
    assert_eq!(chosen(&all, &[]).unwrap().len(), 4);
    let rare = figure("overload/fig-10", &RARE);
    let more = [&ONE, &rare];
    let ids = |all| {
        let figures = collection(&more).select(&[], all).unwrap();
        figures.iter().map(|figure| figure.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(false), ["overload/fig-08"]);
    assert_eq!(ids(true), ["overload/fig-08", "overload/fig-10"]);
    assert_eq!(
        chosen(&all, &["overload/fig-09", "overload"]).unwrap(),
        ["overload/fig-08", "overload/fig-09"]
    );
    for word in ["mobile/fig-04", "mobile"] {
        assert_eq!(chosen(&all, &[word]).unwrap(), ["wsqos/fig-47"]);
    }
    assert!(
        chosen(&all, &[""]).is_err(),
        "as from a variable that is not set"
    );
}

#[test]
fn a_name_that_is_none_gets_the_nearest_or_what_it_waits_for() {
    let all = [&ONE, &TWO];
    let unknown = chosen(&all, &["overlaod/fig-08"]).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "no figure \"overlaod/fig-08\", did you mean \"overload/fig-08\"?; \
         `posthaste reproduce --list` shows all"
    );
    let far = chosen(&all, &["zzzzzzzzzzzz"]).unwrap_err();
    assert!(matches!(far, SelectError::Unknown { nearest: None, .. }));
    let waits = chosen(&all, &["wsqos/fig-68"]).unwrap_err().to_string();
    assert!(
        waits.contains("not built yet") && waits.contains("adaptive"),
        "{waits}"
    );
}

#[test]
fn a_study_runs_once_and_its_figures_can_be_drawn_again() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (
        figure("overload/fig-08", &COUNTED),
        figure("overload/fig-09", &COUNTED),
    );
    let all = [&first, &second];
    let stop = AtomicBool::new(false);
    let outcome = run(&all, &options(dir.path()), &stop).unwrap();
    assert_eq!(outcome.exit_code(), 0, "claims do not decide");
    assert_eq!(outcome.figures.len(), 2);
    let results = dir.path().join("overload/fig-08");
    let read = |name: &str| fs::read_to_string(results.join(name)).unwrap();
    let (svg, csv) = (read("figure.svg"), read("records.csv"));
    let report = fs::read_to_string(&outcome.report).unwrap();
    for text in [
        "Response time grows.",
        "capacity 5.5, the paper's is 9",
        "Of 2 claims of the papers 0 hold here, 0 differ for the better and 2 differ",
        "Reason: the sample is small.",
        "Nothing is real.",
        "As for overload/fig-08.",
        "loading=\"lazy\" src=\"overload/fig-08/figure.svg\"",
        "posthaste reproduce overload/fig-08 --seed 7",
        "overload/fig-08/records.csv",
        "connect timeout",
        "comes with the broker",
    ] {
        assert!(report.contains(text), "{text}");
    }
    assert_eq!(report.matches("Nothing is real.").count(), 1, "once");
    assert!(read("manifest.json").contains("\"unknown\": null"));
    assert!(results.join("figure-narrow.svg").exists());

    fs::remove_file(results.join("figure.svg")).unwrap();
    let again = draw(&collection(&all), dir.path()).unwrap();
    assert_eq!((read("figure.svg"), read("records.csv")), (svg, csv));
    assert!(results.join("figure-2.svg").exists());
    assert_eq!(fs::read_to_string(again.report).unwrap(), report);
    assert_eq!(COUNTED_RUNS.load(Ordering::Relaxed), 1);
}

#[test]
fn the_same_seed_gives_the_same_records() {
    let records = |seed| {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            seed,
            ..options(dir.path())
        };
        let stop = AtomicBool::new(false);
        run(&[&ONE], &options, &stop).unwrap();
        fs::read_to_string(dir.path().join("overload/fig-08/records.csv")).unwrap()
    };
    assert_eq!(records(Seed(1)), records(Seed(1)));
    assert_ne!(records(Seed(1)), records(Seed(2)));
}

#[test]
fn records_of_another_machine_are_kept_and_not_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut elsewhere = Records::new();
    elsewhere.set_number("capacity", 11.0);
    let options = Options {
        simulated: BTreeMap::from([(SWEEP.name.to_owned(), elsewhere)]),
        ..options(dir.path())
    };
    // After Ctrl-C, too.
    let all = [&ONE, &STOPPED];
    let outcome = run(&all, &options, &AtomicBool::new(true)).unwrap();
    assert_eq!(outcome.figures.len(), 1);
    let manifest = fs::read_to_string(dir.path().join(ONE.id).join("manifest.json")).unwrap();
    let manifest: Manifest = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest.ended, StudyEnd::Complete);
    assert_eq!(manifest.duration_s, None);
    assert_eq!(manifest.numbers["capacity"], Some(11.0));
}

#[test]
fn a_failing_study_takes_no_other_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let all = [&FAILS, &BUG, &ONE];
    let stop = AtomicBool::new(false);
    let outcome = run(&all, &options(dir.path()), &stop).unwrap();
    assert_eq!(outcome.exit_code(), 3);
    let errors: Vec<_> = outcome
        .figures
        .iter()
        .map(|drawn| drawn.error.as_deref())
        .collect();
    assert_eq!(
        errors,
        [
            Some("the server said nothing"),
            Some("panicked: a bug in a study"),
            None
        ]
    );
    let report = fs::read_to_string(outcome.report).unwrap();
    assert!(report.contains("the server said nothing"));
    assert!(dir.path().join("overload/fig-08/figure.svg").exists());
}

#[test]
fn an_instrument_check_decides_the_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let all = [&FALSE];
    let outcome = run(&all, &options(dir.path()), &stop).unwrap();
    assert_eq!(outcome.exit_code(), 1);
}

#[test]
fn measurements_before_a_stop_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let all = [&STOPPED, &ONE];
    let stop = AtomicBool::new(false);
    let outcome = run(&all, &options(dir.path()), &stop).unwrap();
    assert_eq!((outcome.exit_code(), outcome.figures.len()), (3, 1));
    assert!(outcome.stopped && outcome.figures[0].stopped());
    let csv = fs::read_to_string(dir.path().join("wsqos/fig-47/records.csv")).unwrap();
    assert_eq!(csv.lines().count(), 4, "{csv}");
    let report = fs::read_to_string(outcome.report).unwrap();
    assert!(report.contains("stopped before it was complete"));
}

#[test]
fn measurements_before_an_error_are_kept_and_drawn() {
    static CUT_SHORT: Study = Study {
        name: "cut short",
        needs: Needs::Processor,
        core: true,
        run: |conditions| {
            let mut records = sweep(conditions)?;
            records.cut_short(&"the broker went away");
            Ok(records)
        },
    };
    static ENDS_EARLY: Figure = figure("overload/fig-08", &CUT_SHORT);
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let options = options(dir.path());
    let all = [&ENDS_EARLY];
    let outcome = run(&all, &options, &stop).unwrap();
    assert_eq!(outcome.exit_code(), 3);
    let error = outcome.figures[0].error.as_deref();
    assert_eq!(error, Some("the broker went away"));
    let report = fs::read_to_string(outcome.report).unwrap();
    for kept in ["records.csv", "figure.svg"] {
        let kept = format!("overload/fig-08/{kept}");
        assert!(dir.path().join(&kept).exists(), "{kept}");
        assert!(report.contains(&format!("href=\"{kept}\"")), "{kept}");
    }
    assert!(report.contains("the broker went away"));
}

#[test]
fn a_figure_whose_picture_panics_takes_no_other_with_it() {
    static PANICS: Figure = Figure {
        plot: |_| panic!("a bug in a picture"),
        ..figure("overload/fig-08", &SWEEP)
    };
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let all = [&PANICS, &TWO];
    let outcome = run(&all, &options(dir.path()), &stop).unwrap();
    let error = outcome.figures[0].error.as_deref();
    assert_eq!(error, Some("panicked: a bug in a picture"));
    assert!(outcome.figures[1].error.is_none() && !outcome.figures[1].plots.is_empty());
}

#[test]
fn a_run_without_an_end_keeps_what_was_measured_before_it() {
    static ENDS: Figure = figure("overload/fig-08", &SWEEP);
    static FAILS: Figure = figure("overload/fig-08", &BROKEN);
    static STOPPED: Figure = figure("overload/fig-08", &STOPS);
    let dir = tempfile::tempdir().unwrap();
    let run = |one: &'static Figure| {
        let stop = AtomicBool::new(false);
        run(&[one], &options(dir.path()), &stop).unwrap();
    };
    let read = |name: &str| fs::read_to_string(dir.path().join("overload/fig-08").join(name));
    run(&ENDS);
    let complete = read("records.csv").unwrap();
    for _ in 0..2 {
        for one in [&FAILS, &STOPPED] {
            run(one);
            assert_eq!(read("previous/records.csv").unwrap(), complete);
            assert!(!read("manifest.json").unwrap().contains("complete\""));
        }
    }
    let stopped = read("records.csv").unwrap();
    assert_ne!(stopped, complete);
    // A failed run followed the first stopped one, none the second.
    assert_eq!(read("previous-2/records.csv").unwrap(), stopped);
    assert!(read("previous-3/manifest.json").is_err());
    run(&STOPPED);
    assert_eq!(read("previous-3/records.csv").unwrap(), stopped);
    run(&ENDS);
    assert_eq!(read("records.csv").unwrap(), complete);
    for earlier in ["previous", "previous-2", "previous-3"] {
        let manifest = format!("{earlier}/manifest.json");
        assert!(read(&manifest).is_err(), "{earlier}");
    }
    assert!(read("figure.svg").is_ok());
}

#[test]
fn an_unusable_folder_is_an_error_before_any_run() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let stop = AtomicBool::new(false);
    let all = [&ONE];
    let refused = run(&all, &options(&file), &stop);
    let error = refused.err().unwrap();
    assert!(matches!(error, RunError::Unwritable { .. }));
    assert!(error.to_string().contains("--out"), "{error}");
    assert!(matches!(
        draw(&collection(&[&ONE]), dir.path()),
        Err(RunError::Empty { .. })
    ));
}

#[test]
fn a_damaged_result_is_reported_and_the_others_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let all = [&ONE, &TWO];
    let stop = AtomicBool::new(false);
    run(&all, &options(dir.path()), &stop).unwrap();
    fs::write(dir.path().join("overload/fig-08/manifest.json"), "{").unwrap();
    let outcome = draw(&collection(&all), dir.path()).unwrap();
    assert_eq!(outcome.exit_code(), 3);
    let error = outcome.figures[0].error.as_ref().unwrap();
    assert!(error.contains("run the figure again"), "{error}");
    assert!(outcome.figures[1].error.is_none());
}

/// A program in place of this binary. Another process writes it: a child that a test of this process starts meanwhile
/// would hold it open for writing, and then it cannot be started (ETXTBSY).
/// A script in which Ctrl-C has its default effect. A shell cannot trap a signal that was ignored when it began.
fn script(dir: &Path, text: &str) -> std::path::PathBuf {
    let (source, path) = (dir.join("source"), dir.join("script"));
    fs::write(
        &source,
        format!("#!/usr/bin/env -S --default-signal=INT sh\n{text}"),
    )
    .unwrap();
    let mut install = std::process::Command::new("install");
    let installed = install.arg("-m755").args([&source, &path]).status();
    assert!(installed.unwrap().success());
    path
}

static ON_LINKS: Study = Study {
    needs: Needs::Time,
    ..SWEEP_ONE
};
static ON_OTHER_LINKS: Study = Study {
    name: "other links",
    needs: Needs::Time,
    ..SWEEP_ONE
};

#[test]
fn studies_that_wait_on_links_run_side_by_side() {
    let (first, second) = (
        figure("overload/fig-08", &ON_LINKS),
        figure("overload/fig-09", &ON_OTHER_LINKS),
    );
    let all = [&first, &second];
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let alone = options(dir.path());
    run(&all, &alone, &stop).unwrap();
    // Each one waits until the other has begun.
    let program = script(
        dir.path(),
        "here=$(dirname \"$0\"); touch \"$here/begun-$(basename \"$3\")\"
         until [ -e \"$here/begun-fig-08\" ] && [ -e \"$here/begun-fig-09\" ]; do sleep 0.01; done
         echo '{\"step\":{\"done\":1,\"of\":2,\"words\":\"half\"}}'
         [ \"$3\" = overload/fig-08 ] && echo '{\"over\":[]}'
         [ \"$3\" = overload/fig-08 ]",
    );
    let beside = Options {
        program: Some(program),
        ..alone
    };
    let outcome = run(&all, &beside, &stop).unwrap();
    let errors: Vec<_> = outcome
        .figures
        .iter()
        .map(|drawn| drawn.error.as_deref())
        .collect();
    let early = "its process ended early (exit status: 1)";
    assert_eq!(errors, [None, Some(early)]);
    assert_eq!(outcome.exit_code(), 3);
}

/// Runs a figure with an earlier result in a process that is interrupted and then executes `then`.
fn interrupted(then: &str) -> (usize, bool, u8) {
    let figure = figure("overload/fig-08", &ON_LINKS);
    let all = [&figure];
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    run(&all, &options(dir.path()), &stop).unwrap();
    let text =
        format!("trap '{then}' INT; touch \"${{0%/*}}/ready\"; while :; do sleep 0.01; done");
    let ready = dir.path().join("ready");
    let beside = Options {
        program: Some(script(dir.path(), &text)),
        ..options(dir.path())
    };
    let over = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ready.exists() && !over.load(Ordering::Relaxed) {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            stop.store(true, Ordering::Relaxed);
        });
        let outcome = run(&all, &beside, &stop).unwrap();
        over.store(true, Ordering::Relaxed);
        outcome
    });
    assert!(ready.exists(), "the process has not begun");
    let failed = outcome.figures.iter().any(|drawn| drawn.error.is_some());
    (outcome.figures.len(), failed, outcome.exit_code())
}

#[test]
fn studies_in_processes_are_interrupted_and_keep_what_they_have() {
    assert_eq!(
        interrupted("echo \"{\\\"over\\\":[]}\"; exit"),
        (1, false, 3)
    );
}

/// An earlier result must not count as a result of this run.
#[test]
fn a_study_that_was_stopped_before_it_measured_has_not_run() {
    assert_eq!(interrupted("exit 3"), (0, false, 3));
}

#[test]
fn a_lab_has_loopback_and_counters_of_its_own() {
    // Only the calling thread moves. The other tests stay in their network.
    let inside = std::thread::spawn(|| match lab::enter() {
        Lab::Own => {
            let before = Counters::read().unwrap();
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            std::net::TcpStream::connect(address).unwrap();
            let outside = std::net::TcpStream::connect_timeout(
                &"192.0.2.1:80".parse().unwrap(),
                std::time::Duration::from_millis(50),
            );
            let kind = outside.unwrap_err().kind();
            assert_eq!(kind, std::io::ErrorKind::NetworkUnreachable);
            assert_eq!(Counters::read().unwrap() - before, Counters::default());
            assert_eq!(lab::listen_drops().unwrap(), 0);
        }
        Lab::Shared(reason) => assert!(!reason.is_empty()),
    });
    inside.join().unwrap();
}
