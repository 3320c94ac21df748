//! Effects of each misbehaviour, by counting.

use posthaste_services::{ServiceModel, ServiceReply};
use posthaste_units::{Seed, Span};

use crate::{ask, at, constant, poisson, service, spec};

const EVERYTHING: &str = "mmc:5ms:2,stall=300ms/3s,queue=20,limit=300/s:50,collapse=350/s,hysteresis=300/s:100/s:2x,\
                          cold=2x/1s,warm=2x/5s,drift=10%/min,autoscale=4/2s,hang=2%,error=1%:500";

#[test]
fn the_same_seed_gives_the_same_replies() {
    let run = |seed| {
        let mut service = ServiceModel::new(spec(EVERYTHING), Seed(seed));
        let replies: Vec<_> = poisson(400.0)
            .take(20_000)
            .map(|t| service.arrive(at(t)))
            .collect();
        replies
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn every_arrival_has_one_reply_not_before_it() {
    let mut service = service(EVERYTHING);
    let mut counts = std::collections::BTreeMap::<Option<u16>, u32>::new();
    for time in poisson(400.0).take(50_000) {
        let visit = service.visit(at(time));
        let status = match visit.reply {
            ServiceReply::Answered { at: reply, status } => {
                assert!(reply >= at(time));
                Some(status)
            }
            ServiceReply::Never => None,
        };
        assert_eq!(visit.served.is_some(), matches!(status, Some(200 | 500)));
        *counts.entry(status).or_default() += 1;
    }
    assert_eq!(counts.values().sum::<u32>(), 50_000);
    let statuses: Vec<_> = counts.keys().copied().collect();
    assert_eq!(statuses, [None, Some(200), Some(429), Some(500), Some(503)]);
}

#[test]
fn one_server_serves_in_order_without_overlap() {
    let mut service = service("mm1:5ms,stall=300ms/3s,cold=5x/3s");
    let mut last = at(0.0);
    for time in poisson(180.0).take(20_000) {
        let (begin, end) = service.visit(at(time)).served.expect("nothing is refused");
        assert!(begin >= last && end >= begin);
        assert_eq!(begin, last.max(at(time)), "work conserving");
        last = end;
    }
}

#[test]
fn a_limiter_admits_exactly_its_rate_and_burst() {
    for burst in [1, 5, 50] {
        let mut service = service(&format!("md1:1us,limit=100/s:{burst}"));
        // A flood begins at 1 s: the bucket is full then.
        for tenths in 1..=100 {
            let (from, to) = (10_000 + (tenths - 1) * 1_000, 10_000 + tenths * 1_000);
            let flood = (from..to).map(|t| f64::from(t) / 10_000.0);
            let admitted = flood
                .filter(|t| ask(&mut service, *t).unwrap().1 == 200)
                .count();
            let wanted = if tenths == 1 { 9 + burst } else { 10 };
            assert_eq!(admitted, wanted, "{burst} {tenths}");
        }
    }
}

#[test]
fn hangs_and_errors_have_their_shares() {
    let mut service = service("inf:1ms,hang=2%,error=10%:502");
    let n = 100_000;
    let (mut hangs, mut errors) = (0, 0);
    for time in constant(1000.0).take(n) {
        match ask(&mut service, time) {
            None => hangs += 1,
            Some((_, 502)) => errors += 1,
            Some((time, status)) => assert_eq!((time, status), (0.001, 200)),
        }
    }
    // Four standard errors of a binomial share.
    let expect = |count: u32, share: f64| {
        let error = (share * (1.0 - share) * n as f64).sqrt();
        assert!(
            (f64::from(count) - share * n as f64).abs() < 4.0 * error,
            "{count}"
        );
    };
    expect(hangs, 0.02);
    expect(errors, 0.98 * 0.1);
}

#[test]
fn a_stall_delays_its_share_of_the_requests() {
    let mut service = service("inf:1ms,stall=300ms/3s");
    let mut late = 0;
    let mut longest: f64 = 0.0;
    for time in constant(1000.0).take(300_000) {
        let (response, _) = ask(&mut service, time).unwrap();
        late += u32::from(response > 0.0011);
        longest = longest.max(response);
    }
    // 300 of 3000 arrive in a pause, in 99 or 100 of 100 periods.
    assert!((29_700..=30_000 + 100).contains(&late), "{late}");
    assert!((0.300..0.302).contains(&longest), "{longest}");
}

#[test]
fn a_stall_delays_refusals() {
    let mut service = service("md1:5ms,limit=1/s:1,stall=300ms/10s");
    assert_eq!(ask(&mut service, 10.1), Some((0.205, 200)));
    let (time, status) = ask(&mut service, 10.2).unwrap();
    assert!(
        (time - 0.1).abs() < 1e-9 && status == 429,
        "{time} {status}"
    );
}

/// Replies within a window of a run at a constant rate, per second.
fn throughput(text: &str, rate: f64, from: f64, seconds: f64) -> f64 {
    let mut service = service(text);
    let mut left = 0;
    for time in constant(rate).take_while(|t| *t < from + seconds) {
        if let Some((response, 200)) = ask(&mut service, time) {
            let end = time + response;
            left += u32::from(end >= from && end < from + seconds);
        }
    }
    f64::from(left) / seconds
}

#[test]
fn throughput_falls_beyond_collapse() {
    let text = "md1:5ms,collapse=100/s";
    for (rate, wanted) in [(90.0, 90.0), (100.0, 100.0), (150.0, 66.7), (200.0, 50.0)] {
        let found = throughput(text, rate, 10.0, 20.0);
        assert!(
            (found / wanted - 1.0).abs() < 0.02,
            "{rate}: {found} of {wanted}"
        );
    }
}

#[test]
fn cold_and_warm_services_change_their_speed() {
    let text = "md1:5ms,cold=5x/3s,warm=2x/8s";
    for (from, wanted) in [(1.0, 40.0), (4.0, 200.0), (9.0, 400.0)] {
        let found = throughput(text, 1000.0, from, 1.0);
        assert!(
            (found / wanted - 1.0).abs() < 0.05,
            "{from}: {found} of {wanted}"
        );
    }
    // One request, then none for a minute: the service is still cold.
    let mut service = service(text);
    assert_eq!(ask(&mut service, 1.0), Some((0.025, 200)));
    assert_eq!(ask(&mut service, 61.0), Some((0.025, 200)));
}

#[test]
fn drift_grows_with_active_time() {
    let mut service = service("md1:5ms,drift=10%/min");
    let last = constant(2.0)
        .take_while(|t| *t <= 120.5)
        .map(|t| ask(&mut service, t))
        .last();
    let (time, _) = last.flatten().unwrap();
    assert!((time - 0.006).abs() < 1e-6, "{time}");
}

#[test]
fn hysteresis_lasts_until_the_load_is_low() {
    let mut service = service("md1:5ms,hysteresis=150/s:60/s:2x");
    let mut now = 0.0;
    let mut last = |rate: f64, seconds: f64| {
        let count = (rate * seconds) as u32;
        let mut time = 0.0;
        for _ in 0..count {
            now += 1.0 / rate;
            time = ask(&mut service, now).unwrap().0;
        }
        (time * 1e6).round() / 1e6
    };
    assert_eq!(last(145.0, 10.0), 0.005);
    assert!(last(160.0, 2.0) > 0.01);
    assert_eq!(last(80.0, 10.0), 0.010);
    assert_eq!(last(50.0, 3.0), 0.005);
    assert_eq!(last(145.0, 10.0), 0.005);
}

#[test]
fn servers_follow_the_load() {
    let mut service = service("mm1:5ms,autoscale=4/2s");
    let mut now = 0.0;
    let mut servers_after = |rate: f64, seconds: f64| {
        let end = now + seconds;
        while now < end {
            now += 1.0 / rate;
            ask(&mut service, now);
        }
        service.servers()
    };
    assert_eq!(servers_after(100.0, 10.0), 1);
    assert_eq!(servers_after(500.0, 3.0), 2);
    assert_eq!(servers_after(500.0, 10.0), 4);
    assert_eq!(servers_after(100.0, 20.0), 1);
    assert_eq!(servers_after(500.0, 20.0), 4);
    // Idle for an hour.
    assert_eq!(servers_after(1.0 / 3600.0, 1.0), 1);
}

#[test]
fn backlog_and_work_are_visible() {
    let mut service = service("md1:5ms");
    let first = service.visit(at(1.0));
    let second = service.visit(at(1.001));
    assert_eq!(service.backlog(at(1.002)), Span::from_millis(8));
    assert_eq!(service.backlog(at(2.0)), Span::ZERO);
    let within = |visit: posthaste_services::Visit| visit.service_within(at(1.003), at(1.006));
    assert_eq!(within(first), Span::from_millis(2));
    assert_eq!(within(second), Span::from_millis(1));
    let mut busy = crate::service("mmc:1us:2").with_backlog(Span::from_secs(3));
    assert_eq!(busy.backlog(at(1.0)), Span::from_secs(2));
    assert!(ask(&mut busy, 1.0).unwrap().0 >= 2.0);
}
