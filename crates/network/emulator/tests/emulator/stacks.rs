//! Profiles in place of a kernel's TCP, with this machine's kernel as the peer.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use posthaste_emulator::{Emulation, RunningEmulation};
use posthaste_link::{Direction, Plan, Reordering};
use posthaste_tcp::profile;
use posthaste_units::{Ratio, Span};
use socket2::SockRef;

use crate::inside::{ReplyService, emulation, expect_once, held, servers, transact};

/// Bytes each way: enough segments for losses on a lossy link.
const BYTES: usize = 60_000;

/// A link that loses, duplicates and reorders packets.
fn hell() -> Plan {
    let percent = |percent: f64| Ratio::new(percent / 100.0).expect("a share");
    Plan {
        delay: Span::from_millis(3),
        loss: Some("2%".parse().expect("a loss")),
        duplication: percent(1.0),
        reordering: Some(Reordering::Hold {
            share: percent(1.0),
            places: 3,
        }),
        ..Plan::default()
    }
}

fn start(plan: Plan, name: &str, end: Direction) -> RunningEmulation {
    let profile = Arc::new(profile::named(name).expect("a profile"));
    let emulation: Emulation = emulation(plan).tcp(end, Some(profile));
    emulation.start().expect("an emulation")
}

fn stream(count: usize, step: usize) -> Vec<u8> {
    (0..count).map(|at| (at * step % 251) as u8).collect()
}

/// Writes everything from a thread while it reads to the end. Returns the received data.
fn exchange(mut connection: TcpStream, sends: Vec<u8>) -> Vec<u8> {
    let mut writer = connection.try_clone().expect("a second handle");
    let writes = thread::spawn(move || {
        writer.write_all(&sends).expect("written");
        writer.shutdown(Shutdown::Write).expect("closed");
    });
    let mut got = Vec::new();
    connection.read_to_end(&mut got).expect("read to the end");
    writes.join().expect("written");
    got
}

/// Data in both directions at once over a very bad link, with every profile at either end.
pub(crate) fn both_ways() {
    for name in profile::names() {
        for end in Direction::BOTH {
            let running = start(hell(), name, end);
            let address = servers()[0];
            let bind = move || TcpListener::bind((address, 0)).expect("a free port");
            let listener = running.server.run(bind);
            let at = listener.local_addr().expect("bound");
            let accepts = move || {
                let (connection, _) = listener.accept().expect("a connection");
                exchange(connection, stream(BYTES, 7))
            };
            let served = running.server.spawn(accepts);
            let got = running.client.run(move || {
                let connection = TcpStream::connect(at).expect("connected");
                exchange(connection, stream(BYTES, 3))
            });
            assert!(
                got == stream(BYTES, 7),
                "{name} {end}: {} bytes came down",
                got.len()
            );
            let got = served.join().expect("served");
            assert!(
                got == stream(BYTES, 3),
                "{name} {end}: {} bytes came up",
                got.len()
            );
            let outcome = running.finish().expect("an outcome");
            let stack = outcome.stacks[end as usize].expect("it was asked for");
            // The last duplicates may arrive after the end of the connection, and count as strays.
            assert_eq!((stack.connections, stack.broken), (1, 0), "{name} {end}");
        }
    }
}

/// FreeBSD 6.0 adds this time to every timeout.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(200);

/// Requests and replies on a persistent connection, in both versions of IP.
pub(crate) fn keep_alive() {
    for end in Direction::BOTH {
        let running = start(Plan::default(), "freebsd-6.0", end);
        let began = Instant::now();
        for address in servers() {
            let bind = move || TcpListener::bind((address, 0)).expect("a free port");
            let listener = running.server.run(bind);
            let at = listener.local_addr().expect("bound");
            let served = running.server.spawn(move || {
                let (mut connection, _) = listener.accept().expect("a connection");
                let mut request = [0; 100];
                while connection.read_exact(&mut request).is_ok() {
                    connection.write_all(&stream(5_000, 5)).expect("replied");
                }
            });
            running.client.run(move || {
                let mut connection = TcpStream::connect(at).expect("connected");
                for _ in 0..5 {
                    connection.write_all(&[1; 100]).expect("asked");
                    let mut reply = vec![0; 5_000];
                    connection.read_exact(&mut reply).expect("a reply");
                    assert!(reply == stream(5_000, 5));
                }
            });
            served.join().expect("served");
        }
        let took = began.elapsed();
        let outcome = running.finish().expect("an outcome");
        let stack = outcome.stacks[end as usize].expect("it was asked for");
        assert_eq!((stack.connections, stack.broken), (2, 0), "{end}");
        // A stalled machine lets timers expire.
        let stood_still = took >= SHORTEST_TIMEOUT;
        assert!(
            stack.retransmissions == 0 || stood_still,
            "{end}: {stack:?}"
        );
    }
}

/// Many short transactions, one after the other and several at a time.
pub(crate) fn short_ones() {
    expect_once(|| {
        let (slowest, timeouts) = many_short_ones();
        // A stalled machine lets timers expire.
        held(slowest < Duration::from_secs(1) && timeouts == 0, || {
            format!("{slowest:?} for the slowest, {timeouts} timeouts")
        })
    });
}

/// Time of the slowest transaction, and number of expired timers.
fn many_short_ones() -> (Duration, u64) {
    let running = start(Plan::default(), "linux-2.6.15", Direction::Down);
    let service = ReplyService {
        request: 300,
        reply: 3_000,
        processing: Duration::ZERO,
        connections: 400,
    };
    let (at, served) = service.start(&running, servers()[0]);
    let clients: Vec<_> = (0..4)
        .map(|_| {
            running.client.spawn(move || {
                let taken = (0..100).map(|_| transact(at, 300, 3_000));
                taken.max().expect("a hundred")
            })
        })
        .collect();
    let slowest = clients
        .into_iter()
        .map(|client| client.join().expect("replies"))
        .max();
    served.join().expect("served");
    let outcome = running.finish().expect("an outcome");
    let stack = outcome.stacks[Direction::Down as usize].expect("it was asked for");
    assert_eq!((stack.connections, stack.broken), (400, 0));
    (slowest.expect("four clients"), stack.timeouts)
}

/// A refusal reaches the client, and a reset reaches the other end.
pub(crate) fn refusals_and_resets() {
    for end in Direction::BOTH {
        let running = start(Plan::default(), "freebsd-6.0", end);
        let address = servers()[0];
        let nobody = SocketAddr::new(address, 9);
        let refused = running.client.run(move || TcpStream::connect(nobody));
        let error = refused.expect_err("nothing listens there");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{end}");

        let bind = move || TcpListener::bind((address, 0)).expect("a free port");
        let listener = running.server.run(bind);
        let at = listener.local_addr().expect("bound");
        let served = running.server.spawn(move || {
            let (mut connection, _) = listener.accept().expect("a connection");
            connection.read(&mut [0; 10]).expect_err("a reset").kind()
        });
        running.client.run(move || {
            let connection = TcpStream::connect(at).expect("connected");
            thread::sleep(Duration::from_millis(50));
            let linger = Some(Duration::ZERO);
            SockRef::from(&connection).set_linger(linger).expect("set");
        });
        assert_eq!(
            served.join().expect("served"),
            ErrorKind::ConnectionReset,
            "{end}"
        );
    }
}
