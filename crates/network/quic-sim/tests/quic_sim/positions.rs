//! Cost of one lost datagram by position. The expected values were measured with an earlier program that drove the same
//! state machines over the same link model.
//!
//! Author, 10 Mbit/s, 50 ms each way.

use posthaste_link::{Direction, Plan};
use posthaste_quic_sim::{DatagramTrace, EndBehaviour, QuicOptions, QuicScenario};

use crate::support::{author, dropping, plan, response, scenario, simulator};

/// Permitted difference in ms: the earlier values are rounded to 1 ms, and transport parameters have a random length.
const WITHIN: f64 = 2.0;

/// The last datagram of the reply. Its position depends on the number of acknowledgements before the reply.
const LAST: &str = "last";

/// Response time in ms with these datagrams dropped.
fn with(options: &QuicOptions, kbit: u64, delay: u64, drop: &str) -> f64 {
    let line = plan(Some(kbit), delay);
    let drop = match drop {
        LAST => last_of_the_reply(options, &line),
        drop => drop.to_owned(),
    };
    let plans = dropping(&line, &drop);
    response(scenario(options.clone(), plans, author()))
}

fn last_of_the_reply(options: &QuicOptions, line: &Plan) -> String {
    let mut simulator = simulator(scenario(options.clone(), dropping(line, ""), author()));
    let mut trace = DatagramTrace::new();
    simulator.play_before(1, &mut trace);
    let mut datagrams = trace.datagrams().iter().rev();
    let last = datagrams.find(|sent| sent.direction == Direction::Down && sent.frames.has_stream());
    format!("down:{}", last.expect("a reply").position)
}

/// Compares the costs in ms of losses, at an RTT of twice `delay`.
fn assert_costs(options: &QuicOptions, kbit: u64, delay: u64, costs: &[(&str, f64, f64)]) {
    let none = with(options, kbit, delay, "");
    let mut wrong = Vec::new();
    for (drop, low, high) in costs {
        let cost = with(options, kbit, delay, drop) - none;
        if cost < low - WITHIN || cost > high + WITHIN {
            wrong.push(format!("{drop}: {cost:.1}, expected {low} to {high}"));
        }
    }
    assert!(wrong.is_empty(), "{none:.1} without a loss; {wrong:#?}");
}

#[test]
fn lost_datagrams_cost_what_they_cost_before() {
    let usual = QuicOptions::default();
    let none = with(&usual, 10_000, 50, "");
    assert!((none - 414.0).abs() <= WITHIN, "{none}");
    let costs = [
        ("up:1", 999.0, 999.0),
        ("down:1", 1193.0, 1193.0),
        ("up:2", 762.0, 762.0),
        ("up:3", 200.0, 200.0),
        // HANDSHAKE_DONE and the tickets.
        ("down:2", 93.0, 93.0),
        // The client's acknowledgement before the reply.
        ("up:4", 92.0, 92.0),
        // The server's acknowledgements of the request.
        ("down:3", 0.0, 2.0),
        ("down:4", 0.0, 2.0),
        ("down:5", 94.0, 100.0),
        ("down:8", 94.0, 100.0),
        ("down:11", 94.0, 100.0),
        ("down:12", 114.0, 114.0),
        ("down:13", 114.0, 114.0),
        (LAST, 263.0, 263.0),
        // Acknowledgements.
        ("up:5", 0.0, 2.0),
        ("up:7", 0.0, 2.0),
    ];
    assert_costs(&usual, 10_000, 50, &costs);
}

#[test]
fn round_trips_scale_the_costs() {
    let usual = QuicOptions::default();
    let short = [
        ("up:1", 999.0, 999.0),
        ("down:1", 1035.0, 1035.0),
        ("up:2", 202.0, 202.0),
        (LAST, 81.0, 81.0),
    ];
    assert_costs(&usual, 10_000, 10, &short);
    let long = [
        ("up:1", 999.0, 999.0),
        ("down:1", 1395.0, 1395.0),
        ("up:2", 1462.0, 1462.0),
        (LAST, 489.0, 489.0),
    ];
    assert_costs(&usual, 10_000, 100, &long);
}

#[test]
fn options_change_the_costs() {
    let usual = QuicOptions::default();
    let quick = QuicOptions {
        initial_rtt: crate::support::ms(100),
        ..usual.clone()
    };
    let costs = [("up:1", 300.0, 300.0), ("down:1", 494.0, 494.0)];
    assert_costs(&quick, 10_000, 50, &costs);
    let small = QuicOptions {
        datagram: 1200,
        initial_window: 12_000,
        ..usual.clone()
    };
    let none = with(&small, 10_000, 50, "");
    assert!((none - 507.5).abs() <= WITHIN, "{none}");
    let long = QuicOptions {
        datagram: 1200,
        initial_window: 12_000,
        certificate: 3480,
        ..usual
    };
    let none = with(&long, 10_000, 50, "");
    assert!((none - 609.0).abs() <= WITHIN, "{none}");
}

/// Response time in ms at 300 kbit/s and 10 ms, with its datagrams.
fn slow(behaviour: EndBehaviour, drop: &str) -> (f64, DatagramTrace) {
    let plans = dropping(&plan(Some(300), 10), drop);
    let scenario = QuicScenario {
        behaviour: Some(behaviour),
        ..scenario(QuicOptions::default(), plans, author())
    };
    let mut simulator = simulator(scenario);
    let mut trace = DatagramTrace::new();
    let transaction = simulator.play_before(1, &mut trace);
    (transaction.responses[0].total().as_millis_f64(), trace)
}

/// Positions of the server's datagrams with stream data.
fn with_data(trace: &DatagramTrace) -> Vec<u64> {
    let down = trace.datagrams().iter();
    let down = down.filter(|sent| sent.direction == Direction::Down && sent.frames.has_stream());
    down.map(|sent| sent.position).collect()
}

/// Cost in ms of the loss of the last datagram with content of Author's reply, and the number of PINGs of the client.
fn cost_of_the_last(behaviour: EndBehaviour) -> (f64, usize) {
    let (_, plain) = slow(EndBehaviour::default(), "");
    let number = with_data(&plain).len() - 1;
    let (none, trace) = slow(behaviour, "");
    let last = with_data(&trace)[number];
    let (with, trace) = slow(behaviour, &format!("down:{last}"));
    let up = trace.datagrams().iter();
    let pings = up.filter(|sent| sent.direction == Direction::Up && sent.hint().contains("PING"));
    (with - none, pings.count())
}

#[test]
fn padding_after_a_reply_repairs_its_end_without_a_timer() {
    let (plain, _) = cost_of_the_last(EndBehaviour::default());
    let padded = EndBehaviour {
        padding: 4 * 1452,
        ..EndBehaviour::default()
    };
    let (padded, _) = cost_of_the_last(padded);
    assert!(
        plain > 400.0 && padded < 200.0,
        "{padded} instead of {plain}"
    );
}

#[test]
fn pings_of_the_receiver_help_on_a_slow_line() {
    let (plain, none) = cost_of_the_last(EndBehaviour::default());
    let probing = EndBehaviour {
        receiver_probe: Some(crate::support::ms(25)),
        ..EndBehaviour::default()
    };
    let (probed, some) = cost_of_the_last(probing);
    assert!(some > none, "{some} PINGs");
    assert!(probed < plain / 2.0, "{probed} instead of {plain}");
}
