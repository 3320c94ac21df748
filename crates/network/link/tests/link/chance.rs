//! Random effects, compared with the theory of each distribution.

use std::sync::Arc;

use posthaste_link::loss::GilbertElliott;
use posthaste_link::{DeliveryMarks, DropReason, Fate, Link, Loss, Order, Plan};
use posthaste_units::{Instant, Seed, Span};

use crate::support::{Arrival, dropped, marks, parcel, pass, patterned, share};

const PACKETS: usize = 400_000;

fn packets(bytes: u32) -> Vec<Arrival> {
    (0..PACKETS as u64)
        .map(|packet| (packet * 1_000, bytes))
        .collect()
}

fn losing(loss: &str) -> Plan {
    Plan {
        loss: Some(loss.parse().unwrap()),
        ..Plan::default()
    }
}

/// Lost packets.
fn losses(plan: &Plan, seed: u64) -> Vec<bool> {
    let mut lost = vec![false; PACKETS];
    for position in dropped(&pass(plan, seed, &packets(100)), DropReason::Random) {
        lost[position as usize - 1] = true;
    }
    lost
}

/// A loss of a pattern is drawn from a stream of its own, and `default` returns to the plan's.
#[test]
fn a_pattern_changes_the_probability_of_losses() {
    let pattern =
        "up loss from 100001: 10%\nup loss from 200001: default\nup loss from 300001: 100%";
    for order in [Order::Dummynet, Order::Netem] {
        let plan = Plan {
            script: patterned(pattern).script,
            order,
            queue: "500000".parse().unwrap(),
            ..losing("1%")
        };
        let (lost, alone) = (losses(&plan, 1), losses(&losing("1%"), 1));
        assert_eq!(lost[..100_000], alone[..100_000]);
        assert_eq!(
            lost[200_000..300_000],
            alone[200_000..300_000],
            "the same draws as without"
        );
        assert_binomial(count(&lost[100_000..200_000]), 1e5, 0.1, "10 % for a while");
        assert!(lost[300_000..].iter().all(|lost| *lost));
    }
}

fn count(lost: &[bool]) -> f64 {
    lost.iter().filter(|lost| **lost).count() as f64
}

/// Within four standard deviations of the binomial distribution: fails by chance once in 16,000, and the seeds are
/// fixed.
fn assert_binomial(count: f64, n: f64, p: f64, subject: &str) {
    let deviation = (n * p * (1.0 - p)).sqrt();
    assert!(
        (count - n * p).abs() <= 4.0 * deviation,
        "{subject}: {count} of {n}, p {p}"
    );
}

#[test]
fn independent_losses_are_binomial_and_independent() {
    for (seed, p) in [(1, 0.001), (2, 0.02), (3, 0.5), (4, 0.97)] {
        let lost = losses(&losing(&format!("{}%", p * 100.0)), seed);
        assert_binomial(count(&lost), PACKETS as f64, p, "losses");
        // The loss rate after a loss equals that of all packets.
        let behind: Vec<bool> = lost
            .windows(2)
            .filter(|two| two[0])
            .map(|two| two[1])
            .collect();
        assert_binomial(count(&behind), behind.len() as f64, p, "behind a loss");
    }
    assert_eq!(count(&losses(&losing("0%"), 1)), 0.0);
    assert_eq!(count(&losses(&losing("100%"), 1)), PACKETS as f64);
}

/// Calculation of the study: 2 % of the twelve packets from the server, so 22 % of transactions have a loss.
#[test]
fn two_percent_is_seen_by_22_percent_of_transactions() {
    let lost = losses(&losing("2%"), 5);
    let seen: Vec<bool> = lost
        .chunks_exact(12)
        .map(|packets| packets.contains(&true))
        .collect();
    assert_binomial(
        count(&seen),
        seen.len() as f64,
        1.0 - 0.98_f64.powi(12),
        "transactions",
    );
}

/// Mean length of bursts of lost packets, and the number of bursts.
fn bursts(lost: &[bool]) -> (f64, f64) {
    let begun = lost.windows(2).filter(|two| !two[0] && two[1]).count() as f64;
    (count(lost) / begun, begun)
}

#[test]
fn gilbert_s_bursts_have_their_share_and_length() {
    for (seed, loss, length) in [(1, 0.02, 4.0), (2, 0.1, 2.0), (3, 0.3, 10.0)] {
        let lost = losses(&losing(&format!("bursts:{}%:{length}", loss * 100.0)), seed);
        // Losses come in bursts, so the variance is (2 length - 1) times that of the binomial distribution.
        let widened = (loss * (1.0 - loss) * (2.0 * length - 1.0) / PACKETS as f64).sqrt();
        let found = count(&lost) / PACKETS as f64;
        assert!((found - loss).abs() < 4.0 * widened, "{loss}: {found}");
        // Lengths are geometric: their deviation is sqrt(length (length - 1)).
        let (mean, begun) = bursts(&lost);
        let deviation = (length * (length - 1.0) / begun).sqrt();
        assert!(
            (mean - length).abs() < 4.0 * deviation + 0.01,
            "{length}: {mean}"
        );
    }
}

#[test]
fn gilbert_elliott_loses_by_its_stationary_distribution() {
    let text = "gilbert-elliott:1%:20%:60%:2%";
    let Loss::GilbertElliott(model) = text.parse().unwrap() else {
        panic!("another model");
    };
    assert_eq!(Loss::GilbertElliott(model).to_string(), text);
    let bad = 0.01 / 0.21;
    let expected = bad * 0.6 + (1.0 - bad) * 0.02;
    assert!((model.mean() - expected).abs() < 1e-12);
    let lost = losses(&losing(text), 6);
    let found = count(&lost) / PACKETS as f64;
    assert!((found / expected - 1.0).abs() < 0.03, "{found} {expected}");
    // Probability of a loss after a loss, given the state at the first, and its change.
    let was_bad = bad * 0.6 / expected;
    let is_bad = was_bad * 0.8 + (1.0 - was_bad) * 0.01;
    let behind: Vec<bool> = lost
        .windows(2)
        .filter(|two| two[0])
        .map(|two| two[1])
        .collect();
    let found = count(&behind) / behind.len() as f64;
    let expected = is_bad * 0.6 + (1.0 - is_bad) * 0.02;
    assert!((found / expected - 1.0).abs() < 0.03, "{found} {expected}");
}

/// Short connections have their share of losses, too: the channel does not always begin in the good state.
#[test]
fn the_first_packet_is_lost_as_often_as_any() {
    let plan = losing("bursts:10%:5");
    let lost = (0..20_000)
        .filter(|seed| !dropped(&pass(&plan, *seed, &[(0, 100)]), DropReason::Random).is_empty());
    assert_binomial(lost.count() as f64, 20_000.0, 0.1, "first packets");
}

#[test]
fn losses_that_do_not_exist_are_refused_with_the_remedy() {
    for text in [
        "",
        "2",
        "-1%",
        "101%",
        "bursts:2%",
        "bursts:2%:0.5",
        "bursts:2%:inf",
        "bursts:2%:NaN",
        "bursts:90%:2",
        "gilbert-elliott:1%",
        "gilbert-elliott:1%:1%:1%:1%:1%",
        "x:1%",
    ] {
        let error = text.parse::<Loss>().unwrap_err().to_string();
        assert!(error.contains("bursts:2%:4"), "{text}: {error}");
    }
    for text in ["0.5", "bursts:0.5:4", "gilbert-elliott:0.5:30%"] {
        let error = text.parse::<Loss>().unwrap_err().to_string();
        assert!(error.contains("write 0.5%, or 50%"), "{text}: {error}");
    }
    assert_eq!(GilbertElliott::bursts(share(1.0), 2.0), None);
}

#[test]
fn bits_flip_at_their_rate_in_any_place() {
    let rate = 1e-5;
    let plan = Plan {
        bit_error_rate: share(rate),
        ..Plan::default()
    };
    let out = pass(&plan, 8, &packets(1000));
    let flipped = |marks: DeliveryMarks| f64::from(marks.flipped);
    let flips: f64 = out
        .iter()
        .filter_map(|departure| marks(departure.fate))
        .map(flipped)
        .sum();
    assert_binomial(flips, PACKETS as f64 * 8000.0, rate, "bits");
    let corrupted = out
        .iter()
        .filter_map(|departure| marks(departure.fate))
        .filter(|marks| marks.flipped > 0)
        .count();
    assert_binomial(
        corrupted as f64,
        PACKETS as f64,
        1.0 - (1.0 - rate).powi(8000),
        "packets",
    );
    let all = pass(
        &Plan {
            bit_error_rate: share(1.0),
            ..Plan::default()
        },
        1,
        &[(0, 100)],
    );
    assert_eq!(all[0].packet.flips, 800);
}

#[test]
fn copies_are_as_many_as_asked() {
    let plan = Plan {
        duplication: share(0.1),
        ..losing("20%")
    };
    let out = pass(&plan, 9, &packets(100));
    let copies = out.iter().filter(|departure| departure.copy > 0).count() as f64;
    assert_binomial(
        copies,
        PACKETS as f64,
        0.1 * 0.8,
        "copies of what was not lost",
    );
    // netem: a packet that is both lost and copied passes once, and copies can be lost.
    let out = pass(
        &Plan {
            order: Order::Netem,
            queue: "1000000".parse().unwrap(),
            ..plan
        },
        9,
        &packets(100),
    );
    let lost = |copies: bool| {
        out.iter()
            .filter(|departure| {
                (departure.copy > 0) == copies
                    && departure.fate == Fate::Dropped(DropReason::Random)
            })
            .count() as f64
    };
    assert_binomial(lost(false), PACKETS as f64, 0.2 * 0.9, "netem's losses");
    assert_binomial(
        lost(true),
        PACKETS as f64,
        0.1 * 0.8 * 0.2,
        "netem's lost copies",
    );
}

/// Mean delay by the link's own tally, in ms, of 20,000 packets at this rate.
fn mean_delay(plan: &Plan, packets_per_second: u64) -> Option<f64> {
    let mut link = Link::new(&Arc::new(plan.clone()), Seed(1));
    for id in 0..20_000 {
        let now = Instant::from_nanos(id as u64 * 1_000_000_000 / packets_per_second);
        link.push(now, parcel(id, 100));
        while link.pop(now).is_some() {}
    }
    let tally = link.counters().jittered;
    assert!(tally.mean_wait() <= tally.mean());
    tally.mean().map(Span::as_millis_f64)
}

/// The delay that a pattern adds to one packet is no jitter; the packets behind it wait.
#[test]
fn the_delay_of_a_pattern_is_not_in_the_mean() {
    for order in [Order::Dummynet, Order::Netem] {
        let plan = Plan {
            delay: Span::from_millis(50),
            jitter: Some("1ns".parse().unwrap()),
            order,
            ..patterned("up delay 3: 5s")
        };
        let mut link = Link::new(&Arc::new(plan), Seed(1));
        for id in 0..4 {
            link.push(Instant::ORIGIN, parcel(id, 100));
        }
        let tally = link.counters().jittered;
        let [mean, wait] =
            [tally.mean(), tally.mean_wait()].map(|span| span.unwrap().as_millis_f64());
        assert!(
            (mean - 1300.0).abs() < 0.1 && (wait - 1250.0).abs() < 0.1,
            "{mean} {wait}"
        );
    }
}

/// The mean of the delays that are drawn is that of the plan. Each packet has the largest delay that is still running,
/// so that the mean rises with the number of packets within the jitter.
#[test]
fn jitter_that_keeps_order_moves_the_mean() {
    for order in [Order::Dummynet, Order::Netem] {
        let plan = Plan {
            delay: Span::from_millis(50),
            jitter: Some("10ms".parse().unwrap()),
            queue: "100000".parse().unwrap(),
            order,
            ..Plan::default()
        };
        let [slow, fast] = [20, 2_000].map(|rate| mean_delay(&plan, rate).unwrap());
        assert!((slow - 50.3).abs() < 0.5, "{slow}");
        assert!((fast - 65.4).abs() < 1.0, "{fast}");
        let overtaking = Plan {
            keeps_order: false,
            ..plan
        };
        assert_eq!(mean_delay(&overtaking, 2_000), None);
        let out = pass(&overtaking, 1, &packets(100));
        let delays = out
            .iter()
            .map(|departure| departure.left.since(departure.arrived).as_millis_f64());
        let mean = delays.sum::<f64>() / out.len() as f64;
        assert!((mean - 50.0).abs() < 0.1, "{mean}");
    }
}
