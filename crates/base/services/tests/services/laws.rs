//! Response times of each law, compared with queueing theory.

use posthaste_stats::theory::{Md1, Mm1, Mm1k, Mmc};
use posthaste_units::Span;

use crate::{ask, poisson, service};

const BATCHES: usize = 50;

/// Fails unless the mean of batches is within four standard errors of the truth.
fn expect_mean(name: &str, batches: &[f64], truth: f64) {
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let variance = batches.iter().map(|b| (b - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let error = (variance / n).sqrt();
    println!("{name}: {mean} of {truth}, standard error {error}");
    assert!(
        (mean - truth).abs() < 4.0 * error,
        "{name}: {mean} of {truth}"
    );
    assert!(error < 0.05 * truth, "{name}: a test without power");
}

/// Mean response time and share beyond a time, compared with theory.
fn expect_sojourn(text: &str, rate: f64, mean: Span, tail: (f64, Span)) {
    let (share, beyond) = tail;
    let mut service = service(text);
    let mut times = poisson(rate).map(|at| ask(&mut service, at).expect("no hangs").0);
    for _ in 0..20_000 {
        times.next();
    }
    let mut means = Vec::new();
    let mut shares = Vec::new();
    for _ in 0..BATCHES {
        let batch: Vec<f64> = times.by_ref().take(20_000).collect();
        let n = batch.len() as f64;
        let late = batch.iter().filter(|t| **t > beyond.as_secs_f64()).count();
        means.push(batch.iter().sum::<f64>() / n);
        shares.push(late as f64 / n);
    }
    expect_mean(&format!("{text}, mean"), &means, mean.as_secs_f64());
    expect_mean(&format!("{text}, share"), &shares, share);
}

#[test]
fn response_times_agree_with_theory() {
    let ms = Span::from_millis;
    let mm1 = Mm1::new(0.7, ms(5)).unwrap();
    let mm1_tail = (0.05, mm1.sojourn_quantile(0.95));
    expect_sojourn("mm1:5ms", 140.0, mm1.mean_sojourn(), mm1_tail);
    let md1 = Md1::new(0.8, ms(5)).unwrap();
    let md1_tail = (0.05, md1.sojourn_quantile(0.95));
    expect_sojourn("md1:5ms", 160.0, md1.mean_sojourn(), md1_tail);
    let mmc = Mmc::new(0.8, ms(20), 4).unwrap();
    let mmc_tail = (0.05, mmc.sojourn_quantile(0.95));
    expect_sojourn("mmc:20ms:4", 160.0, mmc.mean_sojourn(), mmc_tail);
}

/// Mean response time by the formula of Pollaczek and Khinchine.
fn expect_mean_sojourn(text: &str, rate: f64, mean: f64, variation_squared: f64) {
    let mut service = service(text);
    let mut times = poisson(rate).map(|at| ask(&mut service, at).expect("no hangs").0);
    let batches: Vec<f64> = (0..BATCHES)
        .map(|_| times.by_ref().take(20_000).sum::<f64>() / 20_000.0)
        .collect();
    let load = rate * mean;
    let wait = load * mean * (1.0 + variation_squared) / (2.0 * (1.0 - load));
    expect_mean(text, &batches, mean + wait);
}

#[test]
fn general_laws_have_their_mean_wait() {
    // Mean 9.5 ms; second moment 0.9 * 25 + 0.1 * 2500 = 272.5 ms².
    let variation = 272.5 / (9.5 * 9.5) - 1.0;
    expect_mean_sojourn("bimodal:5ms:50ms:10%", 60.0, 0.0095, variation);
    expect_mean_sojourn("lognormal:5ms:1.5", 100.0, 0.005, 2.25);
}

#[test]
fn unlimited_servers_never_wait() {
    let mut service = service("inf:2ms");
    for arrival in poisson(100_000.0).take(10_000) {
        assert_eq!(ask(&mut service, arrival), Some((0.002, 200)));
    }
    assert_eq!(service.servers(), 0);
}

#[test]
fn a_finite_system_blocks_as_theory_says() {
    for (text, status) in [("mm1k:5ms:5", None), ("mm1:5ms,queue=5", Some(503))] {
        let mut service = service(text);
        let mut replies = poisson(180.0).map(|at| ask(&mut service, at));
        let batches: Vec<f64> = (0..BATCHES)
            .map(|_| {
                let batch = replies.by_ref().take(10_000);
                let refused = batch.filter(|reply| match reply {
                    None => true,
                    Some((time, 503)) => *time == 0.0,
                    Some((_, status)) => *status != 200,
                });
                refused.count() as f64 / 10_000.0
            })
            .collect();
        let theory = Mm1k::new(0.9, Span::from_millis(5), 5).unwrap();
        expect_mean(&format!("{text} {status:?}"), &batches, theory.blocking());
    }
}

#[test]
fn the_busy_share_is_the_load() {
    for text in ["mm1:5ms", "mmc:20ms:4"] {
        let mut service = service(text);
        let mut sum = 0.0;
        for arrival in poisson(120.0).take(50_000) {
            ask(&mut service, arrival);
            sum += service.busy();
        }
        let mean = sum / 50_000.0;
        assert!((0.5..0.72).contains(&mean), "{text}: {mean} of 0.6");
    }
}
