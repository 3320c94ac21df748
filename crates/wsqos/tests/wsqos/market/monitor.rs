//! What was promised against what was delivered.

use posthaste_units::{Ratio, Span};
use posthaste_wsqos::market::{Delivery, Monitor, Promise, Verdict};

use super::at;

fn share(share: f64) -> Ratio {
    Ratio::new(share).expect("a share")
}

fn monitor() -> Monitor {
    let mut monitor = Monitor::new(Span::from_secs(60), share(0.95), at(0));
    let promise = Promise {
        processing_time: Some(Span::from_millis(300)),
        rate: Some(2.0),
        reliability: Some(share(0.99)),
        availability: Some(share(0.9)),
    };
    monitor.promise("gold", promise);
    monitor
}

fn record(monitor: &mut Monitor, ms: u64, count: u64, delivery: Delivery) {
    (0..count).for_each(|_| monitor.record(at(ms), "gold", "ada", delivery));
}

const GOOD: Delivery = Delivery::Served(Span::from_millis(300));
const LATE: Delivery = Delivery::Served(Span::from_millis(301));

#[test]
fn promises_kept_and_broken_are_told_apart() {
    let mut monitor = monitor();
    record(&mut monitor, 1000, 980, GOOD);
    record(&mut monitor, 1000, 20, LATE);
    record(&mut monitor, 1000, 40, Delivery::Failed);
    record(&mut monitor, 1000, 10, Delivery::Refused);
    let report = monitor.report(at(10_000), "gold", None).expect("watched");
    assert_eq!(
        (report.served, report.late, report.failed, report.refused),
        (1000, 20, 40, 10)
    );
    assert_eq!(report.over, Span::from_secs(10));
    assert_eq!(
        report.processing_time,
        Some(Verdict::Kept),
        "2 % late, where 5 % may be"
    );
    assert_eq!(report.rate, Some(Verdict::Kept));
    assert_eq!(report.reliability, Some(Verdict::Broken));
    assert_eq!(report.availability, Some(Verdict::Kept));
    record(&mut monitor, 10_000, 80, LATE);
    record(&mut monitor, 10_000, 150, Delivery::Refused);
    let report = monitor
        .report(at(10_000), "gold", Some("ada"))
        .expect("watched");
    assert_eq!(report.processing_time, Some(Verdict::Broken), "9 % late");
    assert_eq!(report.availability, Some(Verdict::Broken));
    assert_eq!(monitor.report(at(10_000), "gold", Some("eve")), None);
    assert_eq!(monitor.report(at(10_000), "silver", None), None);
}

/// The shares at which a verdict turns, from Wilson's interval worked out by hand: of 100, 98 are not
/// enough to be sure of 95 % and 100 are, 91 may be chance and 89 are not.
#[test]
fn a_handful_of_requests_is_no_verdict() {
    let verdict = |good, late| {
        let mut monitor = monitor();
        record(&mut monitor, 0, good, GOOD);
        record(&mut monitor, 0, late, LATE);
        monitor
            .report(at(1), "gold", None)
            .and_then(|report| report.processing_time)
    };
    let expected = [
        (0, 0, Verdict::Unknown),
        (5, 0, Verdict::Unknown),
        (0, 19, Verdict::Unknown),
        (0, 20, Verdict::Broken),
        (98, 2, Verdict::Unknown),
        (100, 0, Verdict::Kept),
        (91, 9, Verdict::Unknown),
        (89, 11, Verdict::Broken),
    ];
    for (good, late, is) in expected {
        assert_eq!(verdict(good, late), Some(is), "{good} and {late}");
    }
}

#[test]
fn a_rate_that_nobody_asked_for_is_not_broken() {
    let mut monitor = monitor();
    record(&mut monitor, 1000, 15, GOOD);
    let rate = |monitor: &mut Monitor| {
        monitor
            .report(at(10_000), "gold", None)
            .and_then(|report| report.rate)
    };
    assert_eq!(
        rate(&mut monitor),
        Some(Verdict::Unknown),
        "1.5 a second were asked for"
    );
    record(&mut monitor, 9_999, 1, Delivery::Refused);
    assert_eq!(rate(&mut monitor), Some(Verdict::Broken));
    record(&mut monitor, 9_999, 5, GOOD);
    assert_eq!(
        rate(&mut monitor),
        Some(Verdict::Kept),
        "2 a second were served"
    );
}

#[test]
fn what_is_not_promised_is_not_judged() {
    let mut monitor = Monitor::new(Span::from_secs(60), share(0.95), at(0));
    monitor.promise("plain", Promise::default());
    monitor.record(at(0), "plain", "ada", LATE);
    let report = monitor.report(at(1), "plain", None).expect("watched");
    let none = (
        report.processing_time,
        report.rate,
        report.reliability,
        report.availability,
    );
    assert_eq!(
        (report.served, report.late, none),
        (1, 0, (None, None, None, None))
    );
}

#[test]
fn windows_pass_and_take_what_is_old_with_them() {
    let mut monitor = monitor();
    record(&mut monitor, 59_999, 7, GOOD);
    record(&mut monitor, 60_000, 2, GOOD);
    let mut served = |ms| {
        let report = monitor.report(at(ms), "gold", None).expect("watched");
        let client = monitor
            .report(at(ms), "gold", Some("ada"))
            .map(|report| report.served);
        (report.served, report.over, client)
    };
    assert_eq!(served(90_000), (9, Span::from_secs(90), Some(9)));
    assert_eq!(served(120_000), (2, Span::from_secs(60), Some(2)));
    assert_eq!(
        served(180_000),
        (0, Span::from_secs(60), None),
        "a client not seen is forgotten"
    );
}

#[test]
fn after_a_long_pause_nothing_old_counts() {
    let mut monitor = monitor();
    record(&mut monitor, 1000, 7, GOOD);
    let report = monitor.report(at(500_000), "gold", None).expect("watched");
    assert_eq!((report.served, report.over), (0, Span::ZERO));
}

#[test]
fn a_monitor_is_bounded_and_says_what_it_leaves_out() {
    let mut monitor = monitor();
    for number in 0..5000 {
        monitor.record(at(0), "gold", &number.to_string(), GOOD);
    }
    assert_eq!(monitor.unwatched(), 5000 - 4096);
    assert_eq!(
        monitor
            .report(at(0), "gold", None)
            .map(|report| report.served),
        Some(5000)
    );
    for number in 0..300 {
        monitor.promise(&number.to_string(), Promise::default());
    }
    assert_eq!(monitor.offers().count(), 256);
    assert_eq!(monitor.unwatched(), 5000 - 4096 + 300 - 255);
    monitor.record(at(0), "299", "ada", GOOD);
    assert_eq!(monitor.unwatched(), 5000 - 4096 + 300 - 255 + 1);
}
