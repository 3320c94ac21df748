//! Early data: requests in the first datagrams of resumed connections, accepted, rejected, or not offered.

use std::net::SocketAddr;
use std::time::Duration;

use posthaste_evaluation::report::Report;
use posthaste_load::{
    Connections, EarlyDataCounts, Multiplexing, Outcome, Plan, Protocol, QuicOptions, RetryPolicy,
    WhenFull,
};
use posthaste_units::Span;

use super::server::{Greeting, LossyLine, QuicServer, ReplyAct, ServerScript, Tickets, reply};
use super::{all_are, plan as http3_plan, reason};
use crate::server::carried_out;

/// A plan with a connection for each request, and early data.
fn plan(server: SocketAddr, per_second: f64, millis: u64) -> Plan {
    let mut plan = http3_plan(server, per_second, millis, Multiplexing::default());
    plan.connections = Connections::New;
    with_early_data(&mut plan);
    plan
}

fn with_early_data(plan: &mut Plan) {
    let Protocol::Http3 { quic, .. } = &mut plan.protocol else {
        unreachable!("the plan is for HTTP/3")
    };
    *quic = QuicOptions {
        early_data: true,
        ..QuicOptions::default()
    };
}

fn answering(tickets: Tickets) -> ServerScript {
    let mut script = ServerScript::answering(Duration::ZERO);
    script.tickets = Box::new(move || tickets);
    script
}

/// Requests that arrived before the end of the handshake.
fn early(server: &QuicServer) -> u64 {
    let log = server.log();
    log.requests.iter().filter(|one| one.is_early).count() as u64
}

#[test]
fn resumed_connections_send_their_requests_as_early_data() {
    let server = answering(Tickets::Accepted).start();
    let plan = plan(server.address, 20.0, 500);
    let run = carried_out(&plan);
    all_are(&run, Outcome::Ok);
    // The first connection has no ticket; each brings tickets for the next.
    let counts = EarlyDataCounts {
        offered: 9,
        accepted: 9,
        rejected: 0,
        sent_again: 0,
    };
    assert_eq!(run.streams.early_data, counts);
    assert_eq!(early(&server), 9);
    let log = server.log();
    assert_eq!((log.connections, log.requests.len()), (10, 10));
    // No request was sent twice.
    assert_eq!((run.attempts.total(), run.attempts.sent), (10, 10));
    let text = posthaste_evaluation::report::text(&Report::new(&plan, &run), Default::default());
    assert!(
        text.contains("CUBIC, ECN, early data, static table"),
        "{text}"
    );
    let line = "early data 9 offered, 9 accepted, 0 rejected (connections); 0 requests sent again";
    assert!(text.contains(line), "{text}");
}

#[test]
fn rejected_early_data_is_sent_again_as_another_attempt() {
    let server = answering(Tickets::Rejected).start();
    let plan = plan(server.address, 20.0, 500);
    let run = carried_out(&plan);
    all_are(&run, Outcome::Ok);
    let counts = EarlyDataCounts {
        offered: 9,
        accepted: 0,
        rejected: 9,
        sent_again: 9,
    };
    assert_eq!(run.streams.early_data, counts);
    // The server has processed each request once, and none of the early ones.
    assert_eq!((early(&server), server.log().requests.len()), (0, 10));
    assert_eq!(
        (run.intended, run.attempts.total(), run.attempts.sent),
        (10, 19, 19)
    );
    assert_eq!(run.attempts.outcomes[Outcome::Rejected], 9);
    assert_eq!(run.attempts.requests, [1, 9]);
    assert_eq!((run.sent, run.completed), (10, 10));
    let report = serde_json::to_value(Report::new(&plan, &run)).unwrap();
    assert_eq!(report["streams"]["early_data"]["rejected"], 9);
    assert_eq!(report["attempts"]["total"], 19);
}

#[test]
fn nothing_is_offered_without_a_ticket_for_it() {
    let server = answering(Tickets::None).start();
    let plan = plan(server.address, 50.0, 200);
    let run = carried_out(&plan);
    all_are(&run, Outcome::Ok);
    assert_eq!(run.streams.early_data, EarlyDataCounts::default());
    assert_eq!(early(&server), 0);
    let text = posthaste_evaluation::report::text(&Report::new(&plan, &run), Default::default());
    assert!(text.contains("never offered: no connection"), "{text}");
}

#[test]
fn connections_do_not_resume_without_the_option() {
    let server = answering(Tickets::Accepted).start();
    let mut plan = plan(server.address, 50.0, 200);
    let Protocol::Http3 { quic, .. } = &mut plan.protocol else {
        unreachable!("the plan is for HTTP/3")
    };
    quic.early_data = false;
    let run = carried_out(&plan);
    all_are(&run, Outcome::Ok);
    assert_eq!((early(&server), run.attempts.total()), (0, 10));
    let report = Report::new(&plan, &run);
    assert!(report.streams.as_ref().unwrap().early_data.is_none());
    let text = posthaste_evaluation::report::text(&report, Default::default());
    assert!(text.contains("resumption: off"), "{text}");
}

#[test]
fn several_rejected_requests_keep_their_order_and_limits() {
    for tickets in [Tickets::Accepted, Tickets::Rejected] {
        let mut counts = run_with_early_data(tickets);
        for _ in 0..20 {
            // On a busy machine the first connection may end before its ticket is sent.
            if counts.offered > 0 {
                break;
            }
            counts = run_with_early_data(tickets);
        }
        let rejected = u64::from(tickets == Tickets::Rejected);
        assert_eq!((counts.offered, counts.rejected), (1, rejected));
    }
}

/// Sends 80 requests. The first connection of the queue ends after five of them, so that a queue of requests waits for
/// the second.
fn run_with_early_data(tickets: Tickets) -> EarlyDataCounts {
    let mut script = ServerScript::new(|arrival| match (arrival.connection, arrival.number) {
        (0, 4) => ReplyAct::Close(0x100),
        _ => ReplyAct::Send(reply(b"hello"), Duration::from_millis(1)),
    });
    script.tickets = Box::new(move || tickets);
    let server = script.start();
    let mut plan = http3_plan(server.address, 400.0, 200, Multiplexing::default());
    with_early_data(&mut plan);
    let run = carried_out(&plan);
    let [ok, reset] = [Outcome::Ok, Outcome::Reset].map(|one| run.outcomes[one]);
    assert_eq!(ok + reset, 80, "{:?} {}", run.outcomes, reason(&run));
    assert!(ok >= 40, "{:?} {}", run.outcomes, reason(&run));
    let counts = run.streams.early_data;
    assert_eq!(run.attempts.total(), run.intended + counts.sent_again);
    counts
}

#[test]
fn rejections_are_no_retries() {
    let server = ServerScript {
        tickets: Box::new(|| Tickets::Rejected),
        ..ServerScript::new(|_| ReplyAct::Reset(Vec::new(), 0x102))
    }
    .start();
    let mut plan = plan(server.address, 50.0, 200);
    plan.retries = Some(RetryPolicy {
        limit: 1,
        backoff: posthaste_load::Backoff::None,
    });
    let run = carried_out(&plan);
    all_are(&run, Outcome::Reset);
    // Each request is sent once, and once more by its client, whatever early data adds.
    assert_eq!(run.attempts.outcomes[Outcome::Reset], 20);
    let again = run.streams.early_data.sent_again;
    assert_eq!(run.attempts.outcomes[Outcome::Rejected], again);
    assert!(again >= 10, "{again} sent again");
}

#[test]
fn early_data_meets_bad_lines_retries_and_full_connections() {
    for (number, tickets) in [Tickets::Accepted, Tickets::Rejected]
        .into_iter()
        .enumerate()
    {
        let mut script = answering(tickets);
        if number == 0 {
            script.greeting = Box::new(Greeting::retries);
        }
        script.streams = 2;
        script.line = Box::new(|| LossyLine {
            loss: 0.1,
            duplication: 0.05,
            reordering: 0.1,
        });
        let server = script.start();
        let mut plan = plan(server.address, 200.0, 500);
        plan.timeout = Span::from_secs(4);
        plan.protocol.multiplexing_mut().unwrap().when_full = WhenFull::Open;
        let run = carried_out(&plan);
        // Two losses at the beginning of a connection take more than 4 s, and four take more than the connect timeout:
        // its first timer is that of 999 ms.
        let late = [Outcome::TimedOut, Outcome::ConnectAborted].map(|one| run.outcomes[one]);
        let [ok, late] = [run.outcomes[Outcome::Ok], late.iter().sum()];
        assert_eq!(ok + late, 100, "{:?} {}", run.outcomes, reason(&run));
        assert!(ok >= 90, "{:?}", run.outcomes);
        assert!(
            run.streams.early_data.offered > 10,
            "{:?}",
            run.streams.early_data
        );
    }
}

#[test]
fn early_data_to_a_vanished_server_ends_with_connect_timeout() {
    // It is silent after the first connection, for which the line is open.
    let server = answering(Tickets::Accepted).start();
    let mut plan = plan(server.address, 50.0, 200);
    plan.connect_timeout = Span::from_millis(300);
    let silent = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let line = std::sync::Arc::clone(&silent);
    let mut script = answering(Tickets::Accepted);
    script.act = Box::new(move |_| {
        silent.store(true, std::sync::atomic::Ordering::Relaxed);
        ReplyAct::Send(reply(b"hello"), Duration::ZERO)
    });
    let answers = std::sync::atomic::AtomicUsize::new(0);
    script.line = Box::new(move || LossyLine {
        // The datagrams of the first reply and its tickets pass.
        loss: if line.load(std::sync::atomic::Ordering::Relaxed)
            && answers.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 6
        {
            1.0
        } else {
            0.0
        },
        ..LossyLine::default()
    });
    let gone = script.start();
    plan.requests[0].url = format!("https://{}/", gone.address);
    let run = carried_out(&plan);
    let [ok, aborted] = [Outcome::Ok, Outcome::ConnectAborted].map(|one| run.outcomes[one]);
    assert_eq!(ok + aborted, 10, "{:?} {}", run.outcomes, reason(&run));
    assert!(ok >= 1 && aborted >= 5, "{:?}", run.outcomes);
    let counts = run.streams.early_data;
    assert!(
        counts.offered > counts.accepted + counts.rejected,
        "{counts:?}"
    );
}

#[test]
fn methods_that_change_something_are_refused() {
    let mut plan = plan(([127, 0, 0, 1], 1).into(), 10.0, 100);
    plan.requests[0].method = "POST".to_owned();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let error = posthaste_load::run(&plan, &stop, &mut ()).err().unwrap();
    let error = error.to_string();
    assert!(
        error.contains("POST does not go with --early-data"),
        "{error}"
    );
    assert!(error.contains("leave --early-data out"), "{error}");
}
