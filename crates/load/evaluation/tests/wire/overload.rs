//! Overload: a connection that is not established is aborted after one SYN.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use posthaste_evaluation::{Effort, LimitedBy, LocalRunner, TrialReport, find};
use posthaste_load::{Connections, Outcome, Pace, RequestSpec};
use posthaste_units::Span;
use rustix::net::{AddressFamily, SocketType};

use crate::server::{IN_VAIN, answering, carried_out, ok, pause, plan, read_request, serve};

/// A socket that listens with this backlog and never accepts; Linux queues one more.
fn never_accepting(backlog: i32) -> (rustix::fd::OwnedFd, SocketAddr) {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    rustix::net::bind(&socket, &any).unwrap();
    rustix::net::listen(&socket, backlog).unwrap();
    let address = rustix::net::getsockname(&socket).unwrap();
    (socket, SocketAddr::try_from(address).unwrap())
}

#[test]
fn connections_beyond_the_accept_queue_are_aborted() {
    let (_socket, address) = never_accepting(4);
    let mut plan = plan(address, 1000.0, 50);
    plan.connections = Connections::New;
    plan.timeout = IN_VAIN;
    let run = carried_out(&plan);
    // The kernel connects the backlog and one more. They receive their request and never answer.
    assert_eq!(run.outcomes[Outcome::TimedOut], 5, "{:?}", run.outcomes);
    assert_eq!(
        run.outcomes[Outcome::ConnectAborted],
        45,
        "{:?}",
        run.outcomes
    );
}

#[test]
fn the_generators_own_limit_drops_and_says_so() {
    let (_socket, address) = never_accepting(100);
    let mut plan = plan(address, 1000.0, 50);
    plan.connection_limit = 20;
    // Long enough that none is free again before all were due, even on a busy machine.
    plan.timeout = Span::from_secs(3);
    let run = carried_out(&plan);
    assert_eq!(run.outcomes[Outcome::Dropped], 30, "{:?}", run.outcomes);
    assert_eq!(run.outcomes[Outcome::TimedOut], 20, "{:?}", run.outcomes);
    assert_eq!(run.attempted(), 20);
}

/// A server that takes 300 ms without any limit, and two connections to it.
#[test]
fn a_search_does_not_take_the_generators_limit_for_the_servers() {
    let address = serve(|mut stream| {
        while read_request(&mut stream) {
            pause(300);
            let _ = stream.write_all(ok("at last").as_bytes());
        }
    });
    let mut plan = plan(address, 1.0, 1);
    plan.connection_limit = 2;
    plan.timeout = Span::from_secs(30);
    let effort = Effort {
        budget: Span::from_secs(3),
        ..Effort::default()
    };
    let objective = "p99<2s".parse().unwrap();
    let stop = AtomicBool::new(false);
    let found = find(
        &plan,
        &objective,
        effort,
        &mut LocalRunner(&stop),
        &mut |_: &TrialReport| (),
    );
    let found = found.unwrap();
    assert_eq!(found.limited_by, LimitedBy::Generator, "{found:?}");
    assert_eq!(found.failed_at_per_s, None);
}

#[test]
fn connections_with_nothing_to_do_make_room_for_other_origins() {
    let addresses = [ok("one"), ok("two")].map(|reply| answering(reply, false));
    let mut plan = plan(addresses[0], 1.0, 1);
    // In sequence: a request that came while the only connection is used would be dropped.
    plan.pace = Pace::Closed {
        clients: 1,
        length: Span::from_secs(1),
    };
    let url = format!("http://{}/", addresses[1]);
    plan.requests.push(RequestSpec::get(url));
    plan.connection_limit = 1;
    let run = carried_out(&plan);
    assert!(
        run.requests
            .iter()
            .all(|part| part.part.outcomes.total() > 0)
    );
    let ok = run.outcomes[Outcome::Ok];
    assert_eq!(ok, run.intended, "{:?}", run.outcomes);
}

#[test]
fn aborted_connections_leave_no_descriptor_behind() {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let (_socket, address) = never_accepting(1);
    let before = open();
    let mut plan = plan(address, 2000.0, 100);
    plan.timeout = Span::from_millis(150);
    carried_out(&plan);
    // Other tests of this binary open a few at the same time. 200 aborted ones would show.
    assert!(open() < before + 100, "{} then {}", before, open());
}
