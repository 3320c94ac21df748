//! Response times that can be computed by hand, and inputs that are refused.

use posthaste_link::Plan;
use posthaste_quic_sim::{QuicOptions, QuicSimulator};
use posthaste_sim::{Ending, SimulatedExchange};
use posthaste_units::{ResponseTime, Span};

use crate::support::{SEED, author, dropping, ms, plan, scenario, simulator};

fn exchange(request: u64, processing: u64, reply: u64) -> SimulatedExchange {
    SimulatedExchange {
        pause: Span::ZERO,
        request,
        processing: ms(processing),
        reply,
    }
}

fn only(plan: &Plan, exchanges: Vec<SimulatedExchange>) -> Vec<ResponseTime> {
    let plans = [plan.clone(), plan.clone()];
    let mut simulator = simulator(scenario(QuicOptions::default(), plans, exchanges));
    let transaction = simulator.play(1);
    assert_eq!(transaction.ending, Ending::Complete);
    transaction.responses.to_vec()
}

#[test]
fn without_a_bandwidth_only_delays_and_processing_count() {
    let expected = ResponseTime {
        t_conn: ms(20),
        t_client: Span::ZERO,
        t_req: ms(10),
        t_proc: ms(200),
        t_resp: ms(10),
    };
    assert_eq!(
        only(&plan(None, 10), vec![exchange(100, 200, 1000)]),
        [expected]
    );
}

/// The client's Initial has 1,200 bytes, and IP and UDP add 28.
#[test]
fn a_bandwidth_adds_each_byte_of_every_datagram() {
    let slow = plan(Some(1000), 10);
    let [response] = only(&slow, vec![exchange(100, 200, 1000)])[..] else {
        panic!("one response");
    };
    let line = |bytes: u64| Span::from_nanos(bytes * 8_000);
    // The server's flight is padded, too.
    let handshake = response.t_conn.saturating_sub(ms(20));
    assert!(handshake >= line(2 * 1228) && handshake <= line(1228 + 1480));
    assert_eq!(response.t_proc, ms(200));
    let reply = response.t_resp.saturating_sub(ms(10));
    assert!(
        reply > line(1000 + 28) && reply < line(1000 + 28 + 60),
        "{reply}"
    );
}

#[test]
fn a_connection_that_is_kept_pays_once() {
    let kept = vec![
        SimulatedExchange {
            pause: ms(50),
            ..exchange(100, 30, 1000)
        };
        3
    ];
    let responses = only(&plan(None, 10), kept);
    let times: Vec<Span> = responses.iter().map(ResponseTime::total).collect();
    assert_eq!(times, [ms(20 + 50 + 50), ms(50), ms(50)]);
    assert_eq!(responses[0].t_client, ms(50));
    assert_eq!(responses[2].t_conn, Span::ZERO);
}

#[test]
fn large_replies_pass() {
    let responses = only(&plan(None, 0), vec![exchange(1, 0, 20_000_000)]);
    assert_eq!(responses[0].total(), Span::ZERO);
}

#[test]
fn silence_is_given_up_after_the_idle_timeout() {
    let plans = dropping(&plan(None, 10), "down:1-1000000");
    let mut simulator = simulator(scenario(QuicOptions::default(), plans, author()));
    let transaction = simulator.play(1);
    assert_eq!(transaction.ending.name(), "timed-out");
    assert!(transaction.responses.is_empty());
    let lasted = transaction.ended.since(transaction.began).as_secs_f64();
    assert!((30.0..70.0).contains(&lasted), "{lasted}");
}

#[test]
fn long_processing_is_no_silence() {
    let responses = only(&plan(None, 10), vec![exchange(100, 3_600_000, 1000)]);
    assert_eq!(responses[0].total(), ms(3_600_040));
}

#[test]
fn invalid_scenarios_are_refused_by_name() {
    let refused = |options: QuicOptions, exchanges| {
        let plans = [plan(None, 1), plan(None, 1)];
        let refused = QuicSimulator::new(scenario(options, plans, exchanges), SEED);
        refused.err().expect("refused").to_string()
    };
    let nothing = refused(QuicOptions::default(), Vec::new());
    assert!(nothing.contains("ask at least once"), "{nothing}");
    let empty = refused(QuicOptions::default(), vec![exchange(100, 1, 0)]);
    assert!(empty.contains("reply 1 is empty"), "{empty}");
    let small = QuicOptions {
        datagram: 1000,
        ..QuicOptions::default()
    };
    let small = refused(small, author());
    assert!(small.starts_with("--datagram 1000: give 1200"), "{small}");
}
