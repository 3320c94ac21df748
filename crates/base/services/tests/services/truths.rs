//! Truths: theory and simulation agree, and each misbehaviour has its known capacity.

use posthaste_services::ServiceModel;
use posthaste_services::truth::{ArrivalProcess, TimeBound, Truth, lasting, simulated, steady};
use posthaste_units::{Seed, Span};

use crate::{at, service, spec};
use ArrivalProcess::{Constant, Poisson};

fn p99(ms: u64) -> TimeBound {
    TimeBound::p99(Span::from_millis(ms))
}

fn rate(truth: Truth) -> f64 {
    truth.rate().expect("a rate").as_per_second()
}

fn expect_near(name: &str, found: Truth, wanted: f64, share: f64) {
    let found = rate(found);
    assert!(
        (found / wanted - 1.0).abs() < share,
        "{name}: {found} of {wanted}"
    );
}

#[test]
fn theory_has_known_rates() {
    // M/M/1: 1 / (mu - rate) * ln 100 = 0.1 s.
    let found = steady(&spec("mm1:5ms"), p99(100), Poisson);
    expect_near("mm1", found, 200.0 - 100f64.ln() / 0.1, 1e-6);
    assert!(matches!(found, Truth::UpTo { is_exact: true, .. }));
    expect_near(
        "md1",
        steady(&spec("md1:5ms"), p99(50), Constant),
        200.0,
        1e-9,
    );
    let mean = TimeBound::Mean {
        within: Span::from_millis(10),
        tolerance: 0.01,
    };
    expect_near("mean", steady(&spec("mm1:5ms"), mean, Poisson), 100.0, 1e-6);
    assert_eq!(steady(&spec("inf:5ms"), p99(5), Poisson), Truth::Any);
    assert_eq!(steady(&spec("inf:5ms"), p99(4), Poisson), Truth::None);
    assert_eq!(steady(&spec("mm1:5ms"), p99(20), Poisson), Truth::None);
    assert_eq!(
        steady(&spec("mm1:5ms,hang=2%"), p99(100), Poisson),
        Truth::None
    );
    assert_eq!(
        steady(&spec("mm1:5ms,hang=2%"), p99(100), Constant),
        Truth::None
    );
}

#[test]
fn simulation_agrees_with_theory() {
    for (text, bound, arrivals) in [
        ("mm1:5ms", p99(100), Poisson),
        ("md1:5ms", p99(50), Poisson),
        ("mmc:5ms:4", p99(50), Poisson),
        ("mm1:5ms,hang=0.5%", p99(100), Poisson),
        ("mm1:5ms,error=0.5%:500", p99(100), Poisson),
        ("mm1:5ms", p99(100), Constant),
        ("md1:5ms", p99(50), Constant),
    ] {
        let theory = rate(steady(&spec(text), bound, arrivals));
        let found = simulated(&spec(text), bound, arrivals, 300_000);
        // Two standard errors of the rate with 300,000 requests of M/M/1 are about 0.03.
        expect_near(&format!("{text} {arrivals:?}"), found, theory, 0.03);
    }
}

#[test]
fn a_stall_has_the_rate_of_its_late_share() {
    // Of 30 s, 0.3 s may be late. With an interval h between arrivals, the late time after the begin of a pause is
    // (0.2033 s h + 0.005 s h - 0.000025 s²) / (h - 0.005 s): the second term is for the request in service.
    let wanted = 0.0917 / 0.001475;
    let found = simulated(
        &spec("md1:5ms,stall=300ms/30s"),
        p99(100),
        Constant,
        100_000,
    );
    expect_near("stall", found, wanted, 0.02);
}

#[test]
fn limits_and_collapse_hold_at_their_rate() {
    for (text, wanted) in [
        ("md1:5ms,limit=100/s:5", 100.0 / 0.99),
        ("md1:5ms,collapse=100/s", 100.0),
    ] {
        let found = simulated(&spec(text), p99(50), Constant, 50_000);
        expect_near(text, found, wanted, 0.01);
    }
    let text = "md1:5ms,limit=100/s:5";
    let poisson = rate(simulated(&spec(text), p99(50), Poisson, 100_000));
    assert!((62.0..66.0).contains(&poisson), "{poisson}");
}

#[test]
fn a_full_bucket_lets_more_pass_for_a_while() {
    // 100/s and 50 more in 10 s, of which 1 % may fail.
    let service = service("md1:5ms,limit=100/s:50");
    let found = lasting(&service, at(5.0), p99(50), Constant, Span::from_secs(10), 3);
    expect_near("bucket", found, 105.0 / 0.99, 0.005);
}

#[test]
fn a_queue_may_grow_until_its_last_request_is_late() {
    // After 0.99 s at 300/s, the queue of 200/s is 0.495 s long.
    let service = service("md1:5ms");
    let second = Span::from_secs(1);
    let found = lasting(&service, at(0.0), p99(500), Constant, second, 3);
    expect_near("queue", found, 300.0, 0.01);
}

#[test]
fn the_state_decides_about_the_time_after_it() {
    let spec = spec("md1:5ms,hysteresis=150/s:60/s:2x");
    let time = Span::from_secs(20);
    let new = ServiceModel::new(spec, Seed(1));
    expect_near(
        "new",
        lasting(&new, at(1.0), p99(50), Constant, time, 1),
        150.5,
        0.01,
    );
    // One second of overload, then a rate at which the slow service clears its queue.
    let mut overloaded = new;
    let times = (0..200).map(|count| f64::from(count) / 200.0);
    for time in times.chain((0..1600).map(|count| 1.0 + f64::from(count) / 80.0)) {
        overloaded.arrive(at(time));
    }
    let after = lasting(&overloaded, at(21.0), p99(50), Constant, time, 1);
    expect_near("overloaded", after, 100.0, 0.01);
}

#[test]
fn age_decides_about_cold_warm_and_drifting_services() {
    let cold = spec("mm1:5ms,cold=5x/3s,warm=2x/8s");
    for (age, wanted) in [(0, "mm1:25ms"), (3, "mm1:5ms"), (8, "mm1:2.5ms")] {
        assert_eq!(cold.at_age(Span::from_secs(age)), spec(wanted));
    }
    let drifting = spec("mm1:5ms,drift=10%/min");
    assert_eq!(drifting.at_age(Span::from_secs(120)), spec("mm1:6ms"));
    assert_eq!(steady(&drifting, p99(100), Poisson), Truth::None);
    expect_near(
        "warm",
        steady(&cold, p99(100), Poisson),
        400.0 - 100f64.ln() / 0.1,
        1e-6,
    );
}
