//! Bounds, their figures, and what few requests show.

use super::*;

#[test]
fn the_page_names_every_figure_and_outcome() {
    const PAGE: &str = include_str!("../../../../../docs/reference/load.md");
    for figure in figures() {
        assert!(PAGE.contains(&format!("`{figure}`")), "{figure}");
    }
    for outcome in Outcome::ALL {
        let row = format!("| `{}` | {} |", outcome.name(), outcome.meaning());
        assert!(PAGE.contains(&row), "{row}");
    }
}

#[test]
fn event_figures_need_events_and_include_failures() {
    let holds = |text: &str, report: &Report| {
        text.parse::<Assertion>().unwrap().holds(report) == Some(true)
    };
    let mut report = crate::testing::report(90, 10);
    for text in ["first<1h", "gap<1h", "events>0/s", "no-end-mark<=100%"] {
        assert!(!holds(text, &report), "{text}");
    }
    let tally = posthaste_load::EventTally {
        with_end_mark: 88,
        ..posthaste_load::EventTally::default()
    };
    report.events = Some(crate::report::EventsReport::new(&tally, 1.0, true));
    assert!(holds("no-end-mark<=12%", &report) && !holds("no-end-mark<12%", &report));
    for text in ["first<1h", "gap<1h", "events>0/s"] {
        assert!(!holds(text, &report), "{text}");
    }
}

#[test]
fn events_of_one_instant_are_the_reason_for_an_unknown_gap() {
    let mut report = crate::testing::report(100, 0);
    let tally = posthaste_load::EventTally {
        at_once: 100,
        ..posthaste_load::EventTally::default()
    };
    report.events = Some(crate::report::EventsReport::new(&tally, 1.0, false));
    for text in ["gap<1h", "gap-p50<1h", "events>0/s"] {
        let run = crate::testing::run(100, 0);
        let result = text
            .parse::<Assertion>()
            .unwrap()
            .check(&report, &run, false);
        assert_eq!(result.holds, None);
        assert!(result.found.contains("one instant"), "{result:?}");
    }
    let text = crate::report::text(&report, crate::report::TextTimes::All);
    assert!(text.contains("all events at one instant in 100 replies"));
    assert!(!text.contains("95 % of the streams"), "{text}");
}

#[test]
fn figures_and_bounds_are_read() {
    for text in [
        "p99<200ms",
        "mean <= 1s",
        "errors<1%",
        "rate>=500/s",
        "timed-out<=0.1%",
    ] {
        let assertion: Assertion = text.parse().unwrap();
        assert_eq!(assertion.to_string(), text);
    }
    assert!(
        "p99<200ms"
            .parse::<Assertion>()
            .unwrap()
            .objective()
            .is_some()
    );
    assert!(
        "p99>200ms"
            .parse::<Assertion>()
            .unwrap()
            .objective()
            .is_none()
    );
    assert!(
        "errors<1%"
            .parse::<Assertion>()
            .unwrap()
            .objective()
            .is_none()
    );
    for (text, is_objective) in [
        ("first<1s", true),
        ("gap-p50<=1s", true),
        ("events>20/s", true),
        ("events<20/s", false),
        ("events>0/s", false),
        ("gap>1s", false),
        ("no-end-mark<1%", false),
    ] {
        let assertion: Assertion = text.parse().unwrap();
        assert_eq!(assertion.objective().is_some(), is_objective, "{text}");
    }
    assert_eq!(
        "ok-p99<1s".parse::<Assertion>().unwrap().to_string(),
        "ok-p99<1s"
    );
}

#[test]
fn a_reply_that_never_came_is_longer_than_any_bound() {
    use crate::testing::{report, run};
    // Of ten requests, four are answered after 100 ms and six are given up after 500 ms.
    let check_of = |good, given_up| {
        let (report, run) = (report(good, given_up), run(good, given_up));
        move |text: &str| {
            text.parse::<Assertion>()
                .unwrap()
                .check(&report, &run, true)
        }
    };
    let check = check_of(4, 6);
    let holds = |text: &str| check(text).holds == Some(true);
    assert!(holds("p50>1s") && !holds("p50<10s") && !holds("mean<10s") && !holds("max<1h"));
    assert!(holds("ok-p99<200ms") && holds("timed-out<=60%") && !holds("errors<1%"));
    assert!(
        check("p50<200ms").found.starts_with("> 500"),
        "{:?}",
        check("p50<200ms")
    );
    // Ten requests do not determine a quantile of 99.9 %.
    assert!(!holds("p999<1h") && !holds("p999>1us"));
    assert!(check("p999<1h").found.contains("needs 5000"));
    let check = check_of(0, 5);
    assert_eq!(check("p50<1s").found, "no reply");
    assert_eq!(check("ok-p50<1s").found, "no good reply");
    assert_eq!(check("ok-p50>1us").holds, None);
}

#[test]
fn few_requests_do_not_show_that_a_bound_holds() {
    use crate::testing::{report, run};
    let check = |good, given_up, text: &str, allow_few| {
        let (report, run) = (report(good, given_up), run(good, given_up));
        let assertion: Assertion = text.parse().unwrap();
        assertion.check(&report, &run, allow_few)
    };
    let holds = |good, given_up, text| check(good, given_up, text, false).holds;
    // Good replies take 100 ms.
    for (text, needed) in [
        ("p50<1s", 6),
        ("p90<1s", 30),
        ("p95<1s", 60),
        ("p99<1s", 300),
        ("p999<1s", 5_000),
        ("ok-p99<1s", 300),
        ("errors<1%", 300),
        ("timed-out<=10%", 30),
    ] {
        assert_eq!(holds(needed - 1, 0, text), None, "{text}");
        assert_eq!(holds(needed, 0, text), Some(true), "{text}");
    }
    assert_eq!(check(20, 0, "p99<1s", true).holds, Some(true));
    let found = check(20, 0, "p99<1s", false).found;
    assert!(
        found.contains("needs 300 requests") && found.contains("--allow-few"),
        "{found}"
    );
    // One of 20 is chance, five are not.
    assert_eq!(holds(19, 1, "p99<1s"), None);
    assert_eq!(holds(15, 5, "p99<1s"), Some(false));
    assert_eq!(holds(15, 5, "errors<1%"), Some(false));
    // Bounds from below, means and maxima have no share beyond them.
    for text in ["p99>1us", "mean<1s", "max<1s", "rate>=0/s", "errors<=0%"] {
        assert_eq!(holds(20, 0, text), Some(true), "{text}");
    }
}

#[test]
fn mistakes_name_the_remedy() {
    let refused = |text: &str| text.parse::<Assertion>().unwrap_err().to_string();
    assert!(refused("p99").contains("p99<200ms"));
    assert!(refused("p98<1ms").contains("did you mean p9"));
    assert!(refused("timeout<1%").contains("did you mean timed-out"));
    assert!(refused("p99<200").contains("no unit"));
    assert!(refused("errors<5ms").contains("share"));
    assert!(refused("errors<1").contains("write 1%, or 100%"));
    assert!("errors<=0".parse::<Assertion>().is_ok());
}
