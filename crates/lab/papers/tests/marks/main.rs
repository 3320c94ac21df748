//! Every data segment of a reply has the reply's mark, and no data segment of another reply has it. Checked on the
//! packets of a gateway on a line with loss, so that many segments are retransmitted.
//!
//! Needs root or user namespaces. If a kernel forbids both, every test is reported as ignored and the reason is
//! printed. The harness is custom, because a user namespace must be entered before the first thread starts.

mod asking;
mod testbed;
mod wire;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use posthaste_emulator::{EdgeRule, FlowSelector, SERVER, namespace};
use posthaste_gateway::RunningGateway as Gateway;
use posthaste_units::{Dscp, Seed};
use rand::RngExt as _;

use crate::asking::{Ask, ClientReport, plain, secured};
use crate::testbed::MarkingTestbed;
use crate::wire::expect_marks;

/// Concurrent clients.
const AT_ONCE: usize = 32;

/// Marks of the requests. The default, no mark, is tested like the others.
const MARKS: [Dscp; 5] = [Dscp::DEFAULT, Dscp::AF11, Dscp::AF21, Dscp::EF, Dscp::LE];

fn main() -> ExitCode {
    let allowed = namespace::enter();
    let mut trials = vec![
        trial("replies_of_a_thousand_connections", thousand),
        trial("replies_inside_tls", tls),
        trial("requests_towards_an_upstream", upstream),
        trial("a_network_that_takes_marks_off", bleached),
    ];
    if let Err(error) = &allowed {
        let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!in_ci, "{error}");
        eprintln!("skipped: {error}");
        for trial in &mut trials {
            let skipped = std::mem::replace(trial, Trial::test("", || Ok(())));
            *trial = skipped.with_ignored_flag(true);
        }
    }
    let mut arguments = Arguments::from_args();
    // One line at a time, because each has many clients.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(name: &'static str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok::<(), Failed>(())
    })
}

/// Requests of the `number`th client, drawn from a seed.
fn asks(number: usize, count: usize) -> Vec<Ask> {
    let mut draws = Seed::default()
        .numbered("client", number as u64)
        .stream("asks");
    (0..count)
        .map(|_| Ask {
            mark: MARKS[draws.random_range(0..MARKS.len())],
            length: draws.random_range(1..30_000),
        })
        .collect()
}

/// Runs `count` clients, some at a time, in the client's network. Returns their observations.
fn clients(
    testbed: &MarkingTestbed,
    gateways: &[Gateway],
    count: usize,
    client: impl Fn(usize) -> ClientReport + Send + Sync + 'static,
) -> Vec<ClientReport> {
    let client = Arc::new(client);
    let threads: Vec<_> = (0..AT_ONCE)
        .map(|first| {
            let client = client.clone();
            let share = move || (first..count).step_by(AT_ONCE).map(|n| client(n)).collect();
            testbed.running.client.spawn(share)
        })
        .collect();
    let reports: Vec<std::thread::Result<Vec<ClientReport>>> =
        threads.into_iter().map(|thread| thread.join()).collect();
    for gateway in gateways
        .iter()
        .filter(|_| reports.iter().any(Result::is_err))
    {
        eprintln!("{}", testbed.metrics(gateway));
    }
    reports
        .into_iter()
        .flat_map(|reports| reports.expect("every reply came"))
        .collect()
}

/// 1,008 connections with six replies each, over IPv4, IPv6, and IPv4 to an IPv6 socket. Half of them send each request
/// after the previous reply, the others send all requests at once.
fn thousand() {
    let testbed = MarkingTestbed::open(false, Vec::new());
    let gateways = ["0.0.0.0:0", "[::]:0"].map(|listen| testbed.gateway(listen, ""));
    let [v4, both] = &gateways;
    let addresses: [SocketAddr; 3] = [
        (SERVER.v4, v4.addr.port()).into(),
        (SERVER.v6, both.addr.port()).into(),
        (SERVER.v4, both.addr.port()).into(),
    ];
    let reports = clients(&testbed, &gateways, 1008, move |number| {
        let at_once = number / 3 % 2 == 1;
        plain(addresses[number % 3], &asks(number, 6), at_once)
    });
    let events = ["set", "waited", "refused"].map(|event| -> f64 {
        let counts = gateways
            .iter()
            .map(|gateway| testbed.events(gateway, event));
        counts.sum()
    });
    drop(gateways);
    let seen = expect_marks(&testbed.segments(), reports);
    assert_eq!(seen.connections, 1008);
    assert!(seen.again > 500, "{seen:?}: too little to prove anything");
    // Four of five replies have another mark than the one before.
    let [set, waited, refused] = events;
    assert!(set > 4.5 * 1008.0 && waited > 1000.0, "{events:?}");
    assert_eq!(refused, 0.0);
}

/// The first reply is unmarked, like the TLS handshake before it.
fn tls() {
    let certificate = rcgen::generate_simple_self_signed(vec!["shop".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (chain, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
    std::fs::write(&chain, certificate.cert.pem()).unwrap();
    std::fs::write(&key, certificate.signing_key.serialize_pem()).unwrap();
    let testbed = MarkingTestbed::open(false, Vec::new());
    let more = format!("[tls]\ncertificate = {chain:?}\nkey = {key:?}");
    let gateway = testbed.gateway("[::]:0", &more);
    let port = gateway.addr.port();
    let reports = clients(
        &testbed,
        std::slice::from_ref(&gateway),
        96,
        move |number| {
            let mut asks = asks(number, 6);
            asks[0].mark = Dscp::DEFAULT;
            secured((SERVER.v6, port).into(), &asks, &chain)
        },
    );
    drop(gateway);
    let seen = expect_marks(&testbed.segments(), reports);
    assert_eq!(seen.connections, 96);
    assert!(seen.again > 50, "{seen:?}");
}

/// The upstream is at the client's end, so that its requests pass the line as well.
fn upstream() {
    let testbed = MarkingTestbed::open(true, Vec::new());
    let gateway = testbed.gateway("0.0.0.0:0", "upstream = true");
    let address = (SERVER.v4, gateway.addr.port()).into();
    clients(
        &testbed,
        std::slice::from_ref(&gateway),
        96,
        move |number| plain(address, &asks(number, 4), false),
    );
    drop(gateway);
    let origin = testbed.origin;
    let (mut requests, mut again) = (0, 0);
    let mut known = HashSet::new();
    for segment in testbed.segments() {
        let text = String::from_utf8_lossy(&segment.head);
        let mark = text.split('-').nth(1);
        if let Some(mark) = mark.filter(|_| segment.client == origin) {
            assert_eq!(segment.mark.to_string(), mark, "{text}");
            requests += 1;
            again += usize::from(!known.insert((segment.server, segment.start)));
        }
    }
    assert!(requests >= 4 * 96 && again > 3, "{requests}, {again} again");
}

/// Clients that request a mark get the whole reply, as best effort in such a network.
fn bleached() {
    let edge = EdgeRule {
        flows: FlowSelector::Any,
        dscp: Dscp::DEFAULT,
    };
    let testbed = MarkingTestbed::open(false, vec![edge]);
    let gateway = testbed.gateway("0.0.0.0:0", "");
    let address = (SERVER.v4, gateway.addr.port()).into();
    let mut reports = clients(
        &testbed,
        std::slice::from_ref(&gateway),
        96,
        move |number| plain(address, &asks(number, 6), number % 2 == 1),
    );
    let set = testbed.events(&gateway, "set");
    drop(gateway);
    for reply in reports.iter_mut().flat_map(|report| &mut report.replies) {
        reply.0 = Dscp::DEFAULT;
    }
    let seen = expect_marks(&testbed.segments(), reports);
    assert_eq!(seen.connections, 96);
    assert!(set > 4.0 * 96.0, "{set}: it marked them");
}
