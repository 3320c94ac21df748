//! HTTP/2: due times over multiplexed connections, and one outcome for each request against servers of every kind.

mod calls;
mod hostile;
mod random;
mod server;

use std::time::Duration;

use posthaste_load::{
    Connections, Data, Multiplexing, Outcome, Pace, Plan, Protocol, RequestSpec, Run, WhenFull,
    WhenRejected,
};
use posthaste_units::Span;

use self::server::{
    INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, ServerAct, StreamServer, goaway, reply, reset,
    setting,
};
use crate::addresses::{self, DEAD_FIRST};
use crate::server::{answering, carried_out, ok, plan as http1_plan};

/// An open-loop plan for HTTP/2 with these options.
fn plan(server: &StreamServer, per_second: f64, millis: u64, options: Multiplexing) -> Plan {
    let mut plan = http1_plan(server.address, per_second, millis);
    plan.connect_timeout = Span::from_secs(10);
    plan.protocol = Protocol::Http2(options);
    plan
}

fn with_connections(connections: usize) -> Multiplexing {
    Multiplexing {
        connections,
        ..Multiplexing::default()
    }
}

/// Checks that each request was attempted, and counts what the server received.
fn all_are_ok(run: &Run) {
    let counts: Vec<_> = run
        .outcomes
        .iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    assert_eq!(
        run.outcomes[Outcome::Ok],
        run.intended,
        "{counts:?} {:?}",
        run.reasons
    );
}

#[test]
fn response_time_starts_when_due_if_streams_are_scarce() {
    let server = StreamServer::answering(
        setting(MAX_CONCURRENT_STREAMS, 10),
        Duration::from_millis(100),
    );
    // The server does 100 requests per second; 200 per second are due.
    let run = carried_out(&plan(&server, 200.0, 1_000, with_connections(1)));
    all_are_ok(&run);
    assert_eq!(run.intended, 200);
    // Request n is due after 5 n ms and answered in the (n / 10 + 1)-th turn of 100 ms: 597.5 ms - 45 ms / 2 in the mean.
    let mean = run.response.histogram().mean().as_millis_f64();
    assert!(mean > 550.0, "mean response time {mean} ms");
    let service = run.service.histogram().quantile(0.5).as_millis_f64();
    assert!(service < mean / 2.0, "median service time {service} ms");
    let queue = run.phases.queue.mean().as_millis_f64();
    assert!(queue > 400.0, "mean of the phase queue {queue} ms");
    assert!(
        run.streams.queued.server_limit > 150,
        "{:?}",
        run.streams.queued
    );
    assert_eq!(server.log().requests.len(), 200);
    assert_eq!(server.log().most_open, 10);
}

#[test]
fn the_limit_of_the_plan_holds_too() {
    let server = StreamServer::answering(Vec::new(), Duration::from_millis(50));
    let options = Multiplexing {
        streams: Some(2),
        ..Multiplexing::default()
    };
    let run = carried_out(&plan(&server, 100.0, 500, options));
    all_are_ok(&run);
    assert_eq!(server.log().most_open, 2);
    assert!(run.streams.queued.own_limit > 0);
}

#[test]
fn a_connection_that_is_closed_gracefully_loses_nothing() {
    for rejected in [WhenRejected::Count, WhenRejected::Resend] {
        let server = StreamServer::start(Vec::new(), |arrival| {
            let mut bytes = reply(arrival.stream, b"hello");
            if arrival.number == 19 {
                bytes.splice(0..0, goaway(arrival.stream, 0));
            }
            match arrival.number {
                ..20 => ServerAct::Send(bytes, Duration::from_millis(5)),
                _ => ServerAct::Ignore,
            }
        });
        // A connection takes twenty requests. With ten streams, a GOAWAY rejects ten at most, and the next connection
        // takes these first: no request is rejected twice, however late the client is.
        let options = Multiplexing {
            rejected,
            streams: Some(10),
            ..with_connections(2)
        };
        let run = carried_out(&plan(&server, 400.0, 1_000, options));
        let [ok, rejected_ones] = [Outcome::Ok, Outcome::Rejected].map(|one| run.outcomes[one]);
        assert_eq!(
            ok + rejected_ones,
            400,
            "{:?} {:?}",
            run.outcomes,
            run.reasons
        );
        let log = server.log();
        let taken = log.requests.iter().filter(|arrival| arrival.number < 20);
        assert_eq!(taken.count() as u64, ok);
        assert!(run.streams.goaways.total() >= ok / 20 - 2);
        if rejected == WhenRejected::Resend {
            assert_eq!(rejected_ones, 0);
        }
    }
}

#[test]
fn refused_streams_are_rejected_or_sent_once_more() {
    for rejected in [WhenRejected::Count, WhenRejected::Resend] {
        // Every third request is refused, never two in a row.
        let server = StreamServer::start(Vec::new(), |arrival| {
            let bytes = match arrival.number % 3 {
                2 => reset(arrival.stream, 7),
                _ => reply(arrival.stream, b"hello"),
            };
            ServerAct::Send(bytes, Duration::ZERO)
        });
        let options = Multiplexing {
            rejected,
            ..Multiplexing::default()
        };
        let run = carried_out(&plan(&server, 100.0, 300, options));
        let received = server.log().requests.len() as u64;
        match rejected {
            WhenRejected::Count => {
                assert_eq!(run.outcomes[Outcome::Rejected], 10, "{:?}", run.outcomes);
                assert_eq!(run.outcomes[Outcome::Ok], 20);
                assert_eq!(received, 30);
            }
            WhenRejected::Resend => {
                assert_eq!(received, 30 + run.streams.resent);
                assert!(run.streams.resent >= 10);
                assert_eq!(run.attempts.total(), received, "each sending is an attempt");
                assert_eq!(run.attempts.sent, received);
                assert_eq!(run.sent, 30, "a request counts as sent once");
            }
        }
        assert_eq!(run.streams.resets_received.total(), received / 3);
    }
}

#[test]
fn a_stalled_connection_is_not_avoided() {
    let server = StreamServer::start(setting(MAX_CONCURRENT_STREAMS, 1), |arrival| match arrival
        .connection
    {
        0 => ServerAct::Ignore,
        _ => ServerAct::Send(reply(arrival.stream, b"hello"), Duration::ZERO),
    });
    let mut plan = plan(&server, 100.0, 400, with_connections(4));
    plan.timeout = Span::from_millis(2_000);
    let run = carried_out(&plan);
    assert_eq!(run.outcomes[Outcome::Ok], 30, "{:?}", run.outcomes);
    // After the reset of the first one, another gets the stream, shortly before its own deadline.
    let rest = run.outcomes[Outcome::NoStream] + run.outcomes[Outcome::TimedOut];
    assert_eq!(rest, 10, "{:?}", run.outcomes);
    assert_eq!(
        run.streams.resets_sent.total(),
        run.outcomes[Outcome::TimedOut]
    );
    assert!(
        run.response.histogram().count() == 30,
        "only replies have a time"
    );
}

#[test]
fn requests_without_a_stream_are_not_attempted() {
    let server = StreamServer::answering(setting(MAX_CONCURRENT_STREAMS, 0), Duration::ZERO);
    let mut plan = plan(&server, 100.0, 300, with_connections(1));
    plan.timeout = Span::from_millis(1_000);
    let run = carried_out(&plan);
    let received = server.log().requests.len() as u64;
    // Until the SETTINGS of the server arrive, streams are open to all.
    assert_eq!(run.attempted(), received, "{:?}", run.outcomes);
    assert_eq!(run.outcomes[Outcome::NoStream] + received, 30);
    assert!(received < 5, "{received}");
    assert!(run.streams.queued.longest >= Span::from_millis(1_000));
}

#[test]
fn full_connections_can_drop_requests_or_be_joined_by_others() {
    let options = |when_full| Multiplexing {
        when_full,
        ..Multiplexing::default()
    };
    let start = || {
        let limit = setting(MAX_CONCURRENT_STREAMS, 2);
        StreamServer::answering(limit, Duration::from_millis(300))
    };
    let server = start();
    let run = carried_out(&plan(&server, 100.0, 200, options(WhenFull::Drop)));
    let dropped = run.outcomes[Outcome::Dropped];
    assert!(
        dropped >= 10 && dropped + run.outcomes[Outcome::Ok] == 20,
        "{:?}",
        run.outcomes
    );
    assert_eq!(run.attempted(), server.log().requests.len() as u64);
    let server = start();
    let run = carried_out(&plan(&server, 100.0, 200, options(WhenFull::Open)));
    all_are_ok(&run);
    assert!(server.log().connections > 5, "{}", server.log().connections);
    assert_eq!(server.log().most_open, 2);
}

#[test]
fn each_request_can_have_a_connection_of_its_own() {
    let server = StreamServer::answering(Vec::new(), Duration::ZERO);
    let mut plan = plan(&server, 100.0, 200, with_connections(1));
    plan.connections = Connections::New;
    all_are_ok(&carried_out(&plan));
    assert_eq!(server.log().connections, 20);
}

#[test]
fn bodies_wait_for_flow_control() {
    let settings = setting(INITIAL_WINDOW_SIZE, 1_000);
    let server = StreamServer::answering(settings, Duration::ZERO);
    let mut plan = plan(&server, 50.0, 200, with_connections(1));
    let url = format!("http://{}/", server.address);
    plan.requests = vec![RequestSpec::post(url, "text/plain", "x".repeat(100_000))];
    let run = carried_out(&plan);
    all_are_ok(&run);
    assert!(run.streams.stalled > 0);
    assert_eq!(run.streams.windows_exhausted, 0);
    assert!(
        server
            .log()
            .requests
            .iter()
            .all(|arrival| arrival.body == 100_000)
    );
}

#[test]
fn placeholders_are_filled_on_streams() {
    let server = StreamServer::answering(Vec::new(), Duration::ZERO);
    let mut plan = plan(&server, 50.0, 200, with_connections(1));
    plan.data = Data::read("text\na\nbb\nccc\n".as_bytes()).unwrap();
    let url = format!("http://{}/{{{{text}}}}", server.address);
    plan.requests = vec![RequestSpec::post(url, "text/plain", "{{text}}")];
    all_are_ok(&carried_out(&plan));
    let log = server.log();
    let bodies: Vec<usize> = log.requests.iter().map(|arrival| arrival.body).collect();
    assert_eq!(bodies, [1, 2, 3, 1, 2, 3, 1, 2, 3, 1]);
}

#[test]
fn closed_loop_clients_keep_their_connections() {
    let server = StreamServer::answering(Vec::new(), Duration::from_millis(10));
    let mut plan = plan(&server, 1.0, 1, with_connections(3));
    plan.pace = Pace::Closed {
        clients: 6,
        length: Span::from_millis(300),
    };
    let run = carried_out(&plan);
    all_are_ok(&run);
    let log = server.log();
    assert_eq!(run.intended, log.requests.len() as u64);
    assert_eq!((log.connections, log.most_open), (3, 2));
}

#[test]
fn event_loops_share_the_connections() {
    let server = StreamServer::answering(Vec::new(), Duration::from_millis(10));
    let mut plan = plan(&server, 200.0, 200, with_connections(4));
    plan.threads = 2;
    all_are_ok(&carried_out(&plan));
    assert_eq!(server.log().connections, 4);
    let per_connection = |connection| {
        let log = server.log();
        let requests = log.requests.iter();
        requests
            .filter(|arrival| arrival.connection == connection)
            .count()
    };
    assert_eq!([0, 1, 2, 3].map(per_connection), [10; 4]);
}

#[test]
fn a_server_of_http1_is_a_protocol_error() {
    // A server that closed with unread bytes would reset the connection, and its reply could be lost.
    let address = answering(ok("hello"), false);
    let mut plan = http1_plan(address, 100.0, 100);
    plan.protocol = Protocol::Http2(Multiplexing::default());
    let run = carried_out(&plan);
    assert_eq!(
        run.outcomes[Outcome::ProtocolError],
        10,
        "{:?}",
        run.outcomes
    );
}

#[test]
fn a_closed_port_refuses_all_requests() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut plan = http1_plan(address, 100.0, 100);
    plan.protocol = Protocol::Http2(with_connections(2));
    let run = carried_out(&plan);
    assert_eq!(run.outcomes[Outcome::Refused], 10, "{:?}", run.outcomes);
}

#[test]
fn connections_pass_over_dead_addresses() {
    let server = StreamServer::answering(Vec::new(), Duration::ZERO);
    for connections in [Connections::New, Connections::KeepAlive] {
        let mut plan = addresses::plan(server.address.port(), &DEAD_FIRST, connections);
        plan.protocol = Protocol::Http2(Multiplexing::default());
        addresses::passes_over_the_dead(&carried_out(&plan));
    }
}
