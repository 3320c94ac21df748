//! Response times that can be computed by hand.

use posthaste_link::{Direction, Plan};
use posthaste_sim::{
    Closer, Ending, ProcessingClock, ScenarioError, SimulatedExchange, SimulatedService, Simulator,
};
use posthaste_units::{ResponseTime, Span};

use crate::support::{SEED, author, dropping, ms, plan, scenario, simulator};

fn only(service: SimulatedService, kbit: Option<u64>) -> ResponseTime {
    let plans = [plan(kbit, 10), plan(kbit, 10)];
    let mut simulator = simulator(scenario("rfc", plans, service));
    let transaction = simulator.play(1);
    assert_eq!(transaction.ending, Ending::Complete);
    assert_eq!(transaction.responses.len(), 1);
    transaction.responses[0]
}

#[test]
fn without_a_bandwidth_only_delays_and_processing_count() {
    let response = only(SimulatedService::single(100, ms(200), 1000), None);
    let expected = ResponseTime {
        t_conn: ms(20),
        t_client: Span::ZERO,
        t_req: ms(10),
        t_proc: ms(200),
        t_resp: ms(10),
    };
    assert_eq!(response, expected);
}

#[test]
fn however_much_may_pass_in_one_instant() {
    let service = SimulatedService::single(1, ms(200), 100_000_000);
    let mut simulator = simulator(scenario("linux-6", [plan(None, 0), plan(None, 0)], service));
    let transaction = simulator.play(1);
    assert_eq!(transaction.ending, Ending::Complete);
    assert_eq!(transaction.responses[0].total(), ms(200));
}

#[test]
fn however_often_it_may() {
    let mut service = SimulatedService::single(1, Span::ZERO, 1);
    service.exchanges = vec![service.exchanges[0]; 40_000];
    let mut simulator = simulator(scenario("rfc", [plan(None, 0), plan(None, 0)], service));
    let transaction = simulator.play(1);
    assert_eq!(transaction.ending, Ending::Complete);
    assert_eq!(transaction.responses.len(), 40_000);
}

/// 40 bytes of headers and 20 of options on a SYN; 52 bytes and the data on other segments.
#[test]
fn a_bandwidth_adds_each_byte_of_every_packet() {
    let response = only(SimulatedService::single(1438, ms(150), 2896), Some(1000));
    let line = |bytes: u64| Span::from_nanos(bytes * 8_000);
    assert_eq!(response.t_conn, ms(20) + line(60 + 60));
    // The ACK of the SYN-ACK leaves first.
    assert_eq!(response.t_req, ms(10) + line(52 + 1490));
    assert_eq!(response.t_proc, ms(150));
    // Both segments fit in the first window, and the request is acknowledged by the first.
    assert_eq!(response.t_resp, ms(10) + line(2 * 1500));
}

#[test]
fn processing_may_run_from_when_the_connection_is_accepted() {
    let mut service = SimulatedService::single(1438, ms(150), 12_974);
    let of_request = only(service.clone(), Some(300));
    service.clock = ProcessingClock::Accept;
    let of_accept = only(service, Some(300));
    assert_eq!(of_request.t_proc, ms(150));
    // The request arrives 39.7 ms after the ACK that opens the connection.
    let line = Span::from_nanos(1490 * 8_000_000 / 300 + 1);
    let apart = of_accept.t_proc + line;
    assert!(
        apart.as_nanos().abs_diff(ms(150).as_nanos()) <= 2,
        "{of_accept:?}"
    );
    assert_eq!(of_accept.t_resp, of_request.t_resp);
}

#[test]
fn a_connection_that_is_kept_pays_once() {
    let exchange = SimulatedExchange {
        pause: ms(50),
        request: 100,
        processing: ms(30),
        reply: 1000,
    };
    for closer in [Closer::Server, Closer::Client] {
        let service = SimulatedService {
            exchanges: vec![exchange; 3],
            clock: ProcessingClock::Request,
            closer,
        };
        let mut simulator = simulator(scenario("rfc", [plan(None, 10), plan(None, 10)], service));
        let transaction = simulator.play(1);
        assert_eq!(transaction.ending, Ending::Complete);
        let times: Vec<Span> = transaction
            .responses
            .iter()
            .map(ResponseTime::total)
            .collect();
        assert_eq!(times, [ms(20 + 50 + 50), ms(50), ms(50)]);
        assert_eq!(transaction.responses[0].t_client, ms(50));
        assert_eq!(transaction.responses[2].t_conn, Span::ZERO);
    }
}

#[test]
fn transactions_with_a_silent_server_time_out() {
    let silent = dropping(plan(None, 10), Direction::Down, "1-1000000");
    let mut simulator = simulator(scenario("rfc", [plan(None, 10), silent], author()));
    let transaction = simulator.play(1);
    assert_eq!(transaction.ending.name(), "timed-out");
    assert!(transaction.responses.is_empty());
}

#[test]
fn invalid_scenarios_are_refused_by_name() {
    let error = |service: SimulatedService| {
        let refused = Simulator::new(
            scenario("rfc", [plan(None, 1), plan(None, 1)], service),
            SEED,
        );
        refused.err()
    };
    let nothing = SimulatedService {
        exchanges: Vec::new(),
        ..author()
    };
    assert_eq!(error(nothing), Some(ScenarioError::NoExchange));
    let empty = error(SimulatedService::single(100, ms(1), 0)).expect("refused");
    assert_eq!(
        empty.to_string(),
        "reply 1 is empty: it needs at least one byte to be seen"
    );
    for queue in ["100:codel:ecn", "100:step:5"] {
        let marking = Plan {
            queue: queue.parse().expect("a queue"),
            ..Plan::default()
        };
        let plans = [plan(None, 1), marking];
        let refused = Simulator::new(scenario("rfc", plans, author()), SEED).err();
        let text = refused.expect("refused").to_string();
        assert!(
            text.starts_with("down: ") && text.contains("posthaste net"),
            "{text}"
        );
    }
}
