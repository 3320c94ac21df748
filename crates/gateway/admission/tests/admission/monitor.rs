//! Comparison of promises with deliveries.

use posthaste_admission::{Delivery, Monitor, Promise, Tally, Verdict};
use posthaste_units::{Ratio, Span};

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
    monitor.promise(at(0), "gold", promise);
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
    let time = Span::from_millis(980 * 300 + 20 * 301);
    let seen = Tally {
        served: 1000,
        late: 20,
        failed: 40,
        refused: 10,
        time,
    };
    assert_eq!((report.seen, report.over), (seen, Span::from_secs(10)));
    let numbers = report
        .judged()
        .map(|(_, judged)| (judged.promised, judged.delivered));
    assert_eq!(
        numbers,
        [
            (Some(0.95), Some(0.98)),
            (Some(2.0), Some(100.0)),
            (Some(0.99), Some(1000.0 / 1040.0)),
            (Some(0.9), Some(1040.0 / 1050.0)),
        ]
    );
    assert!(report.is_broken());
    assert_eq!(
        report.processing_time.verdict,
        Some(Verdict::Kept),
        "2 % late, where 5 % may be"
    );
    assert_eq!(report.rate.verdict, Some(Verdict::Kept));
    assert_eq!(report.reliability.verdict, Some(Verdict::Broken));
    assert_eq!(report.availability.verdict, Some(Verdict::Kept));
    record(&mut monitor, 10_000, 80, LATE);
    record(&mut monitor, 10_000, 150, Delivery::Refused);
    let report = monitor
        .report(at(10_000), "gold", Some("ada"))
        .expect("watched");
    assert_eq!(
        report.processing_time.verdict,
        Some(Verdict::Broken),
        "9 % late"
    );
    assert_eq!(report.availability.verdict, Some(Verdict::Broken));
    assert_eq!(monitor.report(at(10_000), "gold", Some("eve")), None);
    assert_eq!(monitor.report(at(10_000), "silver", None), None);
}

/// Shares at which a verdict changes, calculated by hand from Wilson's interval. Of 100, 98 are not enough for
/// certainty of 95 % and 100 are, 91 may be chance and 89 are not.
#[test]
fn a_handful_of_requests_is_no_verdict() {
    let verdict = |good, late| {
        let mut monitor = monitor();
        record(&mut monitor, 0, good, GOOD);
        record(&mut monitor, 0, late, LATE);
        monitor
            .report(at(1), "gold", None)
            .and_then(|report| report.processing_time.verdict)
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
            .and_then(|report| report.rate.verdict)
    };
    assert_eq!(
        rate(&mut monitor),
        Some(Verdict::Unknown),
        "1.5 a second were asked for"
    );
    record(&mut monitor, 9_999, 4, Delivery::Refused);
    assert_eq!(rate(&mut monitor), Some(Verdict::Unknown), "1.9");
    record(&mut monitor, 9_999, 1, Delivery::Failed);
    assert_eq!(rate(&mut monitor), Some(Verdict::Broken), "2");
    record(&mut monitor, 9_999, 5, GOOD);
    assert_eq!(
        rate(&mut monitor),
        Some(Verdict::Kept),
        "2 a second were served"
    );
}

#[test]
fn criteria_without_a_promise_get_no_verdict() {
    let mut monitor = Monitor::new(Span::from_secs(60), share(0.95), at(0));
    monitor.promise(at(0), "plain", Promise::default());
    monitor.record(at(0), "plain", "ada", LATE);
    let report = monitor.report(at(1), "plain", None).expect("watched");
    let none = (
        report.processing_time.verdict,
        report.rate.verdict,
        report.reliability.verdict,
        report.availability.verdict,
    );
    assert_eq!(
        (report.seen.served, report.seen.late, none),
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
            .map(|report| report.seen.served);
        (report.seen.served, report.over, client)
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
    assert_eq!((report.seen.served, report.over), (0, Span::ZERO));
}

#[test]
fn clients_report_the_window_and_offers_count_since_start() {
    let mut monitor = monitor();
    record(&mut monitor, 0, 30, GOOD);
    record(&mut monitor, 70_000, 30, LATE);
    let fine = |monitor: &mut Monitor| monitor.record(at(70_000), "gold", "bob", GOOD);
    (0..400).for_each(|_| fine(&mut monitor));
    let mut clients: Vec<_> = monitor.clients(at(130_000)).collect();
    clients.sort_by_key(|(_, client, _)| *client);
    let rows = clients.iter().map(|(offer, client, report)| {
        (*offer, *client, report.seen.requests(), report.is_broken())
    });
    let expected = [("gold", "ada", 30, true), ("gold", "bob", 400, false)];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    let ever: Vec<_> = monitor.offers().collect();
    let [("gold", ever)] = *ever else {
        panic!("{ever:?}");
    };
    assert_eq!((ever.served, ever.late), (460, 30));
    let all = Span::from_millis(430 * 300 + 30 * 301);
    assert_eq!((ever.time, ever.mean()), (all, Some(all / 460)));
}

#[test]
fn a_monitor_is_bounded_and_says_what_it_leaves_out() {
    let mut monitor = monitor();
    let long = "a".repeat(257);
    for number in 0..20_000 {
        monitor.record(at(0), "gold", &number.to_string(), GOOD);
    }
    monitor.record(at(0), "gold", &long, GOOD);
    assert_eq!(monitor.clients(at(0)).count(), 16_384);
    let left_out = 20_001 - 16_384;
    assert_eq!(monitor.unwatched(), left_out);
    let served = monitor
        .report(at(0), "gold", None)
        .map(|report| report.seen.served);
    assert_eq!(served, Some(20_001));
    // Two windows later the monitor has capacity again, but still not for a long name.
    monitor.record(at(130_000), "gold", "new", GOOD);
    monitor.record(at(130_000), "gold", &long, GOOD);
    assert_eq!(monitor.clients(at(130_000)).count(), 1);
    assert_eq!(monitor.unwatched(), left_out + 1);
}

#[test]
fn offers_that_nobody_takes_make_room_for_new_ones() {
    let mut monitor = monitor();
    let promise = |monitor: &mut Monitor, ms, name: &str| {
        monitor.promise(at(ms), name, Promise::default());
    };
    record(&mut monitor, 0, 1, GOOD);
    for number in 0..255 {
        let name = number.to_string();
        promise(&mut monitor, 0, &name);
        monitor.record(at(0), &name, "ada", GOOD);
    }
    promise(&mut monitor, 1, "one more");
    assert_eq!((monitor.offers().count(), monitor.unwatched()), (256, 1));
    monitor.record(at(1), "one more", "ada", GOOD);
    assert_eq!(monitor.unwatched(), 2);
    record(&mut monitor, 61_000, 1, GOOD);
    promise(&mut monitor, 121_000, "one more");
    let mut names: Vec<_> = monitor.offers().map(|(name, _)| name).collect();
    names.sort_unstable();
    assert_eq!(names, ["gold", "one more"]);
}
