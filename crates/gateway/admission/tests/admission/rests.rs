//! The end of a load: prices and limits recover, and only then.

use posthaste_admission::controller::ProportionalIntegral;
use posthaste_admission::limit::{Aimd, Gradient};
use posthaste_admission::{Controller, Limit, Limiter, Observed, Pricing, Rest};
use posthaste_units::{Ratio, Span};

use crate::{at, eur};

/// A price at its maximum, after a minute of overload.
fn overloaded() -> Pricing {
    let controller = Controller::ProportionalIntegral(ProportionalIntegral::default());
    let mut pricing = Pricing::new(controller, eur());
    for sample in 0..300 {
        pricing.push(seen(sample * 200, 1.0, 200));
    }
    assert_eq!(pricing.price().micros(), 1_000_000);
    pricing
}

fn seen(ms: u64, busy: f64, delay: u64) -> Observed {
    Observed {
        at: at(ms),
        busy,
        delay: Span::from_millis(delay),
    }
}

/// Time until the price is 0, in milliseconds. `rest` is called before each sample.
fn until_free(pricing: &mut Pricing, rest: impl Fn(u64) -> Ratio) -> u64 {
    let from = 60_000;
    let samples = (1..100).map(|sample| 200 * sample);
    samples
        .into_iter()
        .find(|passed| {
            pricing.rest(rest(from + passed));
            pricing.push(seen(from + passed, 0.0, 0)).micros() == 0
        })
        .expect("a price of 0")
}

fn rest_after(mean: Span) -> Rest {
    let mut rest = Rest::new(at(0));
    rest.enter();
    rest.replied(mean);
    rest.leave(at(60_000));
    rest
}

#[test]
fn the_price_of_an_idle_service_is_0_after_a_second() {
    let slowly = until_free(&mut overloaded(), |_| Ratio::default());
    assert!(slowly >= 5_000, "by the controller alone: {slowly} ms");
    let rest = rest_after(Span::from_millis(20));
    let free = until_free(&mut overloaded(), |ms| rest.at(at(ms)));
    assert!((600..=1_200).contains(&free), "{free} ms");
}

#[test]
fn a_pause_below_the_quiet_time_moves_no_price() {
    let rest = rest_after(Span::from_millis(20));
    let (mut with, mut without) = (overloaded(), overloaded());
    // Bursts of 0.6 s with pauses of 0.4 s.
    let mut now = 60_000;
    for _ in 0..20 {
        for (busy, delay) in [(1.0, 200), (1.0, 200), (1.0, 200), (0.0, 0), (0.0, 0)] {
            now += 200;
            let mut paused = rest;
            if busy > 0.0 {
                paused.enter();
            } else {
                paused.leave(at(now - 400));
            }
            with.rest(paused.at(at(now)));
            assert_eq!(
                with.push(seen(now, busy, delay)),
                without.push(seen(now, busy, delay))
            );
        }
    }
    assert!(with.price().micros() >= 800_000, "{}", with.price());
}

#[test]
fn a_slow_service_rests_later_and_one_in_service_never() {
    for (mean, quiet) in [(1, 500), (125, 500), (1_000, 4_000), (3_600_000, 30_000)] {
        let rest = rest_after(Span::from_millis(mean));
        let at = |ms: u64| rest.at(at(60_000 + ms)).get();
        assert_eq!((at(0), at(quiet)), (0.0, 0.0), "{mean} ms");
        assert!((at(quiet + quiet / 2) - 0.5).abs() < 1e-9, "{mean} ms");
        assert_eq!((at(2 * quiet), at(100 * quiet)), (1.0, 1.0), "{mean} ms");
    }
    let mut rest = Rest::new(at(0));
    assert_eq!(rest.at(at(1_000)).get(), 1.0);
    rest.enter();
    assert_eq!(rest.at(at(1_000_000)).get(), 0.0, "a request is in service");
}

/// Twenty requests per second of 20 ms each are 40 % of one worker.
#[test]
fn rejected_requests_keep_the_load_unless_they_are_few() {
    let mut crowd = rest_after(Span::from_millis(20));
    for ms in (60_000..70_000).step_by(50) {
        crowd.rejected(at(ms));
        assert_eq!(crowd.at(at(ms)).get(), 0.0, "at {ms} ms");
    }
    let mut few = rest_after(Span::from_millis(20));
    for ms in (60_000..61_900).step_by(400) {
        few.rejected(at(ms));
    }
    assert_eq!(few.at(at(61_600)).get(), 1.0);
    // Without a reply nothing is known about the service.
    let mut unknown = Rest::new(at(0));
    unknown.rejected(at(900));
    assert_eq!(unknown.at(at(1_000)).get(), 0.0);
}

fn aimd() -> Limiter {
    Limiter::Aimd(Aimd {
        timeout: Span::from_millis(500),
        ..Aimd::default()
    })
}

fn gradient() -> Limiter {
    Limiter::Gradient(Gradient::default())
}

fn grown(limiter: Limiter, to: u32) -> Limit {
    let mut limit = crate::limit(limiter, 4, 1000);
    while limit.now() < to {
        limit.push(crate::reply(Span::from_millis(10), limit.now(), false));
    }
    limit
}

fn fail(limit: &mut Limit) {
    (0..2_000).for_each(|_| limit.push(crate::reply(Span::from_secs(5), limit.now().max(1), true)));
}

#[test]
fn a_rest_raises_a_lowered_limit_to_half_the_confirmed_one() {
    for limiter in [aimd(), gradient()] {
        let mut limit = grown(limiter, 80);
        fail(&mut limit);
        assert!(limit.now() <= 10, "{}", limit.now());
        limit.rest();
        let recovered = limit.now();
        assert!((33..=45).contains(&recovered), "{recovered}");
        // A limit that is high enough stays.
        limit.rest();
        assert_eq!(limit.now(), recovered);
    }
}

/// After each rest, such a service gets half as many requests as after the one before.
#[test]
fn each_rest_gives_an_overloaded_service_fewer_requests() {
    for limiter in [aimd(), gradient()] {
        let mut limit = grown(limiter, 80);
        let mut last = limit.now();
        for _ in 0..5 {
            fail(&mut limit);
            limit.rest();
            let now = limit.now();
            assert!(now <= 10 || now <= last / 2 + 1, "{now} after {last}");
            last = now;
        }
        assert!(last <= 10, "{last}");
    }
}

/// A probe lowers the limit to a third. If the load ends then, no round would end it.
#[test]
fn a_probe_does_not_outlive_the_load() {
    let mut limit = grown(Limiter::default(), 100);
    for _ in 0..1_000 {
        if limit.now() < 50 {
            break;
        }
        limit.push(crate::reply(Span::from_millis(100), limit.now(), false));
    }
    assert!(limit.is_probing());
    let during = limit.now();
    limit.rest();
    assert!(
        limit.now() >= during * 3 - 3,
        "{} after {during}",
        limit.now()
    );
}

#[test]
fn a_round_from_before_a_rest_does_not_lower_the_limit_after_it() {
    let mut limit = grown(aimd(), 30);
    (0..5).for_each(|_| limit.push(crate::reply(Span::from_secs(1), 30, true)));
    limit.rest();
    (0..30).for_each(|_| limit.push(crate::reply(Span::from_millis(10), 30, false)));
    assert_eq!(limit.now(), 31);
}
