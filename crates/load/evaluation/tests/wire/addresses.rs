//! Servers with several addresses: connections take them in turn, and a dead address costs no request.

use std::net::{IpAddr, SocketAddr, TcpListener};

use posthaste_load::{Connections, Outcome, Plan, Resolve, Run};
use posthaste_units::Span;

use crate::server::{answering, carried_out, ok, plan as http1_plan};

/// Addresses of a server whose port is closed on all but the first.
const DEAD: [&str; 2] = ["127.0.0.2", "127.0.0.3"];
/// All addresses of the server.
pub(crate) const DEAD_FIRST: [&str; 3] = ["127.0.0.2", "127.0.0.3", "127.0.0.1"];

/// A plan of 30 requests for a name with these addresses.
pub(crate) fn plan(port: u16, addresses: &[&str], connections: Connections) -> Plan {
    let mut plan = http1_plan(SocketAddr::from(([127, 0, 0, 1], port)), 100.0, 300);
    plan.requests[0].url = format!("http://shop.example:{port}/");
    plan.connections = connections;
    plan.connect_timeout = Span::from_secs(10);
    plan.resolve = addresses
        .iter()
        .map(|address| Resolve {
            host: "shop.example".to_owned(),
            port,
            address: address.parse().unwrap(),
        })
        .collect();
    plan
}

fn counts(run: &Run, address: &str) -> (u64, u64) {
    let address: IpAddr = address.parse().unwrap();
    let mut counts = run.addresses.iter();
    let found = counts.find(|(known, _)| known.ip() == address);
    found.map_or((0, 0), |(_, counts)| (counts.connections, counts.failed))
}

/// Checks that each request was answered by the address that lives, and that the dead ones were tried once each.
pub(crate) fn passes_over_the_dead(run: &Run) {
    assert_eq!(
        run.outcomes[Outcome::Ok],
        30,
        "{:?} {:?}",
        run.outcomes,
        run.reasons
    );
    for dead in DEAD {
        let (connections, failed) = counts(run, dead);
        assert_eq!(connections, failed, "{dead}");
        assert!(failed <= 1, "{dead} was tried {failed} times");
    }
    let failed: u64 = DEAD.iter().map(|dead| counts(run, dead).1).sum();
    assert!(failed > 0, "no dead address was tried");
    assert!(counts(run, "127.0.0.1").0 > 0);
}

#[test]
fn connections_of_http1_pass_over_dead_addresses() {
    let server = answering(ok("x"), false);
    for connections in [Connections::New, Connections::KeepAlive] {
        let run = carried_out(&plan(server.port(), &DEAD_FIRST, connections));
        passes_over_the_dead(&run);
        assert_eq!(run.sent, 30, "a request is sent once");
    }
}

#[test]
fn connections_take_living_addresses_in_turn() {
    let first = answering(ok("x"), false);
    let port = first.port();
    let others: Vec<TcpListener> = DEAD
        .iter()
        .filter_map(|address| TcpListener::bind((*address, port)).ok())
        .collect();
    assert_eq!(others.len(), 2, "the port is taken on another address");
    for listener in others {
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                crate::server::read_request(&mut stream);
                let _ = std::io::Write::write_all(&mut stream, ok("x").as_bytes());
            }
        });
    }
    let addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
    let run = carried_out(&plan(port, &addresses, Connections::New));
    assert_eq!(
        run.outcomes[Outcome::Ok],
        30,
        "{:?} {:?}",
        run.outcomes,
        run.reasons
    );
    for address in addresses {
        assert_eq!(counts(&run, address), (10, 0), "{address}");
    }
}

#[test]
fn a_server_without_a_living_address_refuses_each_request_once() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let run = carried_out(&plan(closed.port(), &DEAD, Connections::New));
    assert_eq!(run.outcomes[Outcome::Refused], 30, "{:?}", run.outcomes);
    let failed: u64 = DEAD.iter().map(|dead| counts(&run, dead).1).sum();
    assert_eq!(failed, 60, "each request tries both addresses");
}
