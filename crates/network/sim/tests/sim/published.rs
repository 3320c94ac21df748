//! Published results of the packet-loss study for its two stacks: Author at 10 ms, by position of the loss (Garcia,
//! Hurtig, Brunstrom, WEBIST 2007, figures 2 and 6).
//!
//! Parameters that the paper does not state were chosen to match these results: 300 kbit/s, 14 bytes of Ethernet
//! header, and processing on FreeBSD from the acceptance of the connection.

use posthaste_link::{Direction, Plan};
use posthaste_sim::{ProcessingClock, Totals};

use crate::support::{author, dropping, plan, scenario, simulator};

/// Transactions behind each median.
const COUNT: u64 = 200;

/// Returns the median response time in ms and the share of transactions with a timeout of the server, at each position
/// from 0 (no loss).
fn by_position(tcp: &str, clock: ProcessingClock) -> Vec<(f64, f64)> {
    let line = Plan {
        jitter: Some("variance:50%".parse().expect("a jitter")),
        overhead: 14,
        ..plan(Some(300), 10)
    };
    let at = |position: u32| {
        let down = match position {
            0 => line.clone(),
            _ => dropping(line.clone(), Direction::Down, &position.to_string()),
        };
        let service = posthaste_sim::SimulatedService { clock, ..author() };
        let mut simulator = simulator(scenario(tcp, [line.clone(), down], service));
        let (mut totals, mut waited) = (Totals::new(), 0);
        for number in 1..=COUNT {
            let transaction = simulator.play(number);
            waited += u64::from(transaction.server.timeouts > 0);
            totals.add(&transaction);
        }
        (totals.response.summary().p50, waited as f64 / COUNT as f64)
    };
    (0..=12).map(at).collect()
}

fn sensitive(positions: &[(f64, f64)]) -> Vec<usize> {
    let data = 3..=11;
    data.filter(|position| positions[*position].1 > 0.5)
        .collect()
}

fn assert_near(what: &str, found: f64, published: f64) {
    let apart = found / published - 1.0;
    assert!(
        apart.abs() < 0.03,
        "{what}: {found:.1}, published {published}"
    );
}

/// The paper gives whole seconds for the loss of the SYN-ACK.
fn assert_three_seconds(found: f64) {
    assert!((found - 3000.0).abs() < 500.0, "{found:.1}");
}

#[test]
fn freebsd_answers_as_published() {
    let found = by_position("freebsd-6.0", ProcessingClock::Accept);
    assert_near("without loss", found[0].0, 610.0);
    assert_near("position 10 over 6", found[10].0 - found[6].0, 632.0);
    assert_eq!(sensitive(&found), [8, 9, 10, 11]);
    assert_three_seconds(found[1].0 - found[0].0);
}

#[test]
fn linux_answers_as_published() {
    let found = by_position("linux-2.6.15", ProcessingClock::Request);
    assert_near("without loss", found[0].0, 661.0);
    assert_eq!(sensitive(&found), [9, 10, 11]);
    assert_three_seconds(found[1].0 - found[0].0);
}
