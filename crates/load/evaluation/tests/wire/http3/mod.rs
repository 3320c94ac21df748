//! HTTP/3: one outcome for each request, against servers of every kind, on good and bad lines.

mod early_data;
mod frames;
mod handmade;
mod handshakes;
mod hostile;
mod identity;
mod memory;
mod packets;
mod qlog;
mod random;
mod script;
mod served;
mod server;

use std::io::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use posthaste_load::{
    Connections, Multiplexing, Outcome, PemFile, Plan, Protocol, QuicOptions, RequestSpec, Run,
    WhenRejected,
};
use posthaste_units::Span;

use self::identity::certificate;
use self::server::{GOAWAY, Greeting, LossyLine, ReplyAct, ServerScript, frame, reply};
use crate::addresses::{self, DEAD_FIRST};
use crate::server::{carried_out, plan as http1_plan};

/// An open-loop plan for HTTP/3 with these options.
fn plan(server: SocketAddr, per_second: f64, millis: u64, options: Multiplexing) -> Plan {
    let mut plan = http1_plan(server, per_second, millis);
    plan.requests = vec![RequestSpec::get(format!("https://{server}/"))];
    plan.connect_timeout = Span::from_secs(10);
    plan.tls.insecure = true;
    plan.protocol = Protocol::Http3 {
        multiplexing: options,
        quic: QuicOptions::default(),
    };
    plan
}

fn with_connections(connections: usize) -> Multiplexing {
    Multiplexing {
        connections,
        ..Multiplexing::default()
    }
}

/// Checks that all requests have this outcome.
fn all_are(run: &Run, expected: Outcome) {
    let counts: Vec<_> = run
        .outcomes
        .iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    assert_eq!(
        run.outcomes[expected], run.intended,
        "{counts:?} {:?}",
        run.reasons
    );
}

fn reason(run: &Run) -> String {
    format!("{:?}", run.reasons)
}

#[test]
fn requests_are_answered_on_streams_of_their_connections() {
    let server = ServerScript::answering(Duration::ZERO).start();
    let run = carried_out(&plan(server.address, 400.0, 500, with_connections(2)));
    all_are(&run, Outcome::Ok);
    let log = server.log();
    assert_eq!(log.requests.len(), 200);
    assert_eq!(log.connections, 2);
    for connection in 0..2 {
        let carried = log
            .requests
            .iter()
            .filter(|one| one.connection == connection);
        assert_eq!(carried.count(), 100);
    }
    assert_eq!(run.connections, 2);
    assert!(run.phases.queue.count() == 200 && run.bytes_received > 200 * 5);
}

#[test]
fn datagrams_leave_one_by_one_without_offload() {
    let server = ServerScript::answering(Duration::ZERO).start();
    let mut plan = plan(server.address, 100.0, 100, with_connections(1));
    plan.protocol = Protocol::Http3 {
        multiplexing: with_connections(1),
        quic: QuicOptions {
            segmentation_offload: false,
            ..QuicOptions::default()
        },
    };
    all_are(&carried_out(&plan), Outcome::Ok);
}

#[test]
fn a_connection_for_each_request_has_a_handshake_each() {
    let server = ServerScript::answering(Duration::ZERO).start();
    let mut plan = plan(server.address, 100.0, 100, Multiplexing::default());
    plan.connections = Connections::New;
    all_are(&carried_out(&plan), Outcome::Ok);
    assert_eq!(server.log().connections, 10);
}

#[test]
fn response_time_starts_when_due_if_streams_are_scarce() {
    let mut script = ServerScript::answering(Duration::from_millis(100));
    script.streams = 10;
    let server = script.start();
    // The server does 100 requests per second; 200 per second are due.
    let run = carried_out(&plan(server.address, 200.0, 1_000, with_connections(1)));
    all_are(&run, Outcome::Ok);
    // As over HTTP/2: 575 ms in the mean, most of it in the queue.
    let mean = run.response.histogram().mean().as_millis_f64();
    assert!(mean > 550.0, "mean response time {mean} ms");
    let queue = run.phases.queue.mean().as_millis_f64();
    assert!(queue > 400.0, "mean of the phase queue {queue} ms");
    assert!(
        run.streams.queued.server_limit > 150,
        "{:?}",
        run.streams.queued
    );
}

#[test]
fn a_body_waits_for_the_window_of_the_server() {
    let mut script = ServerScript::answering(Duration::ZERO);
    script.window = 4_096;
    let server = script.start();
    let mut plan = plan(server.address, 20.0, 500, with_connections(1));
    let mut request = RequestSpec::get(format!("https://{}/", server.address));
    request.method = "POST".to_owned();
    request.body = "x".repeat(200_000);
    plan.requests = vec![request];
    let run = carried_out(&plan);
    all_are(&run, Outcome::Ok);
    assert!(server.log().requests.iter().all(|one| one.length > 200_000));
    assert!(run.streams.stalled > 0);
    assert_eq!(run.streams.windows_exhausted, 0);
}

#[test]
fn a_connection_that_is_closed_gracefully_loses_nothing() {
    for rejected in [WhenRejected::Count, WhenRejected::Resend] {
        // The GOAWAY with the tenth request names the next stream as the first that is not processed.
        let server = ServerScript::new(|arrival| match arrival.number {
            9 => ReplyAct::Control(frame(GOAWAY, &[40])),
            ..10 => ReplyAct::Send(reply(b"hello"), Duration::from_millis(5)),
            _ => ReplyAct::Ignore,
        })
        .start();
        // A connection takes ten requests. With five streams, a GOAWAY rejects five at most, and the next connection
        // takes these first: no request is rejected twice, however late the client is.
        let options = Multiplexing {
            rejected,
            streams: Some(5),
            ..with_connections(1)
        };
        let run = carried_out(&plan(server.address, 400.0, 500, options));
        let [ok, rejected_ones] = [Outcome::Ok, Outcome::Rejected].map(|one| run.outcomes[one]);
        assert_eq!(
            ok + rejected_ones,
            200,
            "{:?} {:?}",
            run.outcomes,
            run.reasons
        );
        let answered = server
            .log()
            .requests
            .iter()
            .filter(|one| one.number < 10)
            .count();
        assert_eq!(answered as u64, ok);
        // On a busy machine many requests meet the same GOAWAY, and there are fewer connections.
        assert!(run.streams.goaways.total() >= 2);
        if rejected == WhenRejected::Resend {
            assert_eq!(run.outcomes[Outcome::Rejected], 0, "{}", reason(&run));
        }
    }
}

#[test]
fn a_silent_host_gets_one_initial_for_each_attempt() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut plan = plan(
        silent.local_addr().unwrap(),
        100.0,
        200,
        Multiplexing::default(),
    );
    plan.connections = Connections::New;
    plan.connect_timeout = Span::from_millis(500);
    let run = carried_out(&plan);
    all_are(&run, Outcome::ConnectAborted);
    silent.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2_048];
    let mut datagrams = Vec::new();
    while let Ok((length, source)) = silent.recv_from(&mut buffer) {
        // A long header of version 1, type Initial, in a datagram of at least 1,200 bytes (RFC 9000, 14.1, 17.2.2).
        assert_eq!((buffer[0] & 0xf0, &buffer[1..5]), (0xc0, &[0, 0, 0, 1][..]));
        assert!(length >= 1_200);
        datagrams.push(source.port());
    }
    let attempts = datagrams.len();
    assert_eq!(attempts as u64, run.intended);
    datagrams.sort_unstable();
    datagrams.dedup();
    assert_eq!(
        datagrams.len(),
        attempts,
        "each attempt has a port of its own"
    );
}

#[test]
fn a_closed_port_refuses() {
    let closed = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for connections in [Connections::New, Connections::KeepAlive] {
        let mut plan = plan(closed, 100.0, 100, Multiplexing::default());
        plan.connections = connections;
        all_are(&carried_out(&plan), Outcome::Refused);
    }
}

#[test]
fn a_retry_costs_a_round_trip_and_nothing_else() {
    let mut script = ServerScript::answering(Duration::ZERO);
    script.greeting = Box::new(Greeting::retries);
    let server = script.start();
    let run = carried_out(&plan(server.address, 100.0, 100, with_connections(1)));
    all_are(&run, Outcome::Ok);
    assert!(server.log().initials >= 2);
}

#[test]
fn certificates_and_protocols_are_checked() {
    let server = ServerScript::answering(Duration::ZERO).start();
    let mut trusting = plan(server.address, 100.0, 50, Multiplexing::default());
    trusting.tls.insecure = false;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(certificate().as_bytes()).unwrap();
    let mut distrusting = trusting.clone();
    trusting.tls.roots = Some(PemFile::read(file.path()).unwrap());
    all_are(&carried_out(&trusting), Outcome::Ok);
    distrusting.tls.roots = None;
    let run = carried_out(&distrusting);
    all_are(&run, Outcome::TlsFailed);
    assert!(reason(&run).contains("--ca FILE"), "{}", reason(&run));

    let mut script = ServerScript::answering(Duration::ZERO);
    script.alpn = b"other";
    let other = script.start();
    let run = carried_out(&plan(other.address, 100.0, 50, Multiplexing::default()));
    all_are(&run, Outcome::TlsFailed);
}

#[test]
fn a_bad_line_loses_no_request() {
    let mut script = ServerScript::answering(Duration::from_millis(2));
    script.line = Box::new(|| LossyLine {
        loss: 0.05,
        duplication: 0.05,
        reordering: 0.1,
    });
    let server = script.start();
    let run = carried_out(&plan(server.address, 200.0, 1_000, with_connections(4)));
    all_are(&run, Outcome::Ok);
}

#[test]
fn a_server_that_forgets_its_connections_resets_them() {
    let server = ServerScript::new(|arrival| match arrival.number {
        5 => ReplyAct::Forget,
        _ => ReplyAct::Send(reply(b"hello"), Duration::ZERO),
    })
    .start();
    let mut plan = plan(server.address, 100.0, 200, with_connections(1));
    plan.timeout = Span::from_secs(10);
    plan.connect_timeout = Span::from_millis(300);
    let run = carried_out(&plan);
    assert_eq!(
        run.outcomes[Outcome::Ok],
        5,
        "{:?} {}",
        run.outcomes,
        reason(&run)
    );
    assert!(
        run.outcomes[Outcome::Reset] >= 1,
        "{:?} {}",
        run.outcomes,
        reason(&run)
    );
    assert!(reason(&run).contains("stateless reset"), "{}", reason(&run));
}

#[test]
fn plain_addresses_are_refused() {
    let mut plan = plan(
        ([127, 0, 0, 1], 1).into(),
        10.0,
        100,
        Multiplexing::default(),
    );
    plan.requests = vec![RequestSpec::get("http://127.0.0.1:1/")];
    let stop = std::sync::atomic::AtomicBool::new(false);
    let error = posthaste_load::run(&plan, &stop, &mut ()).err().unwrap();
    assert!(error.to_string().contains("https://"), "{error}");
}

#[test]
fn connections_pass_over_dead_addresses() {
    let server = ServerScript::answering(Duration::ZERO).start();
    let port = server.address.port();
    let mut plan = addresses::plan(port, &DEAD_FIRST, Connections::KeepAlive);
    plan.requests[0].url = format!("https://shop.example:{port}/");
    plan.tls.insecure = true;
    plan.protocol = Protocol::Http3 {
        multiplexing: Multiplexing::default(),
        quic: QuicOptions::default(),
    };
    addresses::passes_over_the_dead(&carried_out(&plan));
}
