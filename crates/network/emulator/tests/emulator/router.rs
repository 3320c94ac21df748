//! A DiffServ router between real kernels: the bandwidth of each class, in the link's own time.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use posthaste_emulator::{EdgeRule, RunningEmulation};
use posthaste_link::{Class, Classes, Fate, Plan, Queue, Sharing};
use posthaste_units::{BitRate, Dscp, Span};
use socket2::SockRef;

use crate::inside::{emulation, seen, servers};

/// Bandwidth of the link in bytes a second.
const LINE: f64 = 1_030_000.0;
/// Sending time of each sender. Only a late part of it counts.
const SENDING: Duration = Duration::from_secs(5);
const WINDOW: (Span, Span) = (Span::from_millis(2000), Span::from_millis(4500));

/// A sender from the client to a server port of its own.
struct RateSender {
    tcp: bool,
    /// IPv6 instead of IPv4.
    v6: bool,
    dscp: Dscp,
}

const fn tcp(v6: bool, dscp: Dscp) -> RateSender {
    RateSender {
        tcp: true,
        v6,
        dscp,
    }
}

const fn flood(v6: bool, dscp: Dscp) -> RateSender {
    RateSender {
        tcp: false,
        v6,
        dscp,
    }
}

fn plan(classes: [&str; 2]) -> Plan {
    let class = |text: &str| text.parse::<Class>().expect("a class");
    let plan = Plan {
        bandwidth: BitRate::per_second(LINE as u64 * 8),
        classes: Some(Arc::new(Classes::new(classes.map(class).into()))),
        // On a busy machine a sender may pause for longer than 50 packets take, and its queue would be empty.
        queue: Queue {
            packets: 400,
            ..Queue::default()
        },
        ..Plan::default()
    };
    plan.check().expect("a plan");
    plan
}

/// Bytes of IP packets a second that passed the link for each sender, while all send.
fn rates(plan: Plan, edge: Vec<EdgeRule>, senders: &[RateSender]) -> Vec<f64> {
    let emulation = emulation(plan).sharing(Sharing::Whole).edge(edge);
    let running = emulation.start().expect("an emulation");
    let all = senders.iter().map(|sender| start(&running, sender));
    let all: Vec<(u16, _)> = all.collect();
    let mut ports = Vec::new();
    for (port, sending) in all {
        sending.join().expect("sent");
        ports.push(port);
    }
    let seen = seen(&running);
    let began = seen.iter().map(|one| one.arrived).min().expect("packets");
    let (from, to) = (began + WINDOW.0, began + WINDOW.1);
    let rate = |port: &u16| {
        let passed = seen.iter().filter(|one| {
            let whole = matches!(one.fate, Fate::Delivered(_)) && one.direction.name() == "up";
            whole && one.flow.server.port() == *port && (from..to).contains(&one.left)
        });
        let bytes: u64 = passed.map(|one| u64::from(one.length)).sum();
        bytes as f64 / to.since(from).as_secs_f64()
    };
    let rates = ports.iter().map(rate).collect();
    let outcome = running.finish().expect("an outcome");
    let classes = outcome.up.classes.iter();
    let counted: u64 = classes
        .map(|class| class.guaranteed.bytes + class.borrowed.bytes)
        .sum();
    let link = outcome.up.link;
    assert!(counted >= link.delivered.bytes && counted <= link.pushed.bytes);
    rates
}

/// Starts a sender and its receiver. Returns the port.
fn start(running: &RunningEmulation, sender: &RateSender) -> (u16, thread::JoinHandle<()>) {
    let (v6, dscp) = (sender.v6, sender.dscp);
    let address = servers()[usize::from(v6)];
    if sender.tcp {
        let bind = move || TcpListener::bind((address, 0)).expect("a free port");
        let listener = running.server.run(bind);
        let at = listener.local_addr().expect("bound");
        running.server.spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut bytes = vec![0; 1 << 16];
            // Ends with the emulation at the latest.
            while stream.read(&mut bytes).is_ok_and(|read| read > 0) {}
        });
        (at.port(), running.client.spawn(move || write(at, dscp)))
    } else {
        // There is no receiver: packets count when they pass the link.
        let port = 9000 + u16::from(dscp.get());
        let at = SocketAddr::new(address, port);
        (port, running.client.spawn(move || send(at, dscp)))
    }
}

fn mark(socket: SockRef<'_>, to: SocketAddr, dscp: Dscp) {
    let class = u32::from(dscp.traffic_class());
    match to {
        SocketAddr::V4(_) => socket.set_tos_v4(class).expect("a mark"),
        SocketAddr::V6(_) => socket.set_tclass_v6(class).expect("a mark"),
    }
}

fn write(to: SocketAddr, dscp: Dscp) {
    let mut stream = TcpStream::connect(to).expect("connected");
    mark(SockRef::from(&stream), to, dscp);
    let patience = Some(Duration::from_millis(50));
    stream.set_write_timeout(patience).expect("a timeout");
    let (start, bytes) = (Instant::now(), vec![7; 1 << 14]);
    while start.elapsed() < SENDING {
        // If the buffer is full, it will empty later.
        let _ = stream.write(&bytes);
    }
}

/// Sends at one and a half times the bandwidth of the link.
fn send(to: SocketAddr, dscp: Dscp) {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => [0; 4].into(),
        SocketAddr::V6(_) => [0u16; 8].into(),
    };
    let socket = UdpSocket::bind((any, 0)).expect("a free port");
    mark(SockRef::from(&socket), to, dscp);
    let (start, bytes, mut sent) = (Instant::now(), [7; 1400], 0.0);
    while start.elapsed() < SENDING {
        while sent < start.elapsed().as_secs_f64() * LINE * 1.5 {
            // The port is closed, and each datagram causes an error.
            let _ = socket.send_to(&bytes, to);
            sent += 1400.0;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[track_caller]
fn assert_close(found: f64, share: f64) {
    let expected = LINE * share;
    assert!(
        (found / expected - 1.0).abs() < 0.02,
        "{found} instead of {expected} bytes a second"
    );
}

const HALVES: [&str; 2] = ["af11,ef:309kB/s..1030kB/s", "rest:721kB/s..1030kB/s"];

/// Several runs in parallel: they need time, but little CPU.
pub(crate) fn shares() {
    thread::scope(|scope| {
        // TCP of two kernels in each class, IPv4 and IPv6.
        scope.spawn(|| {
            let senders = [
                tcp(false, Dscp::AF11),
                tcp(true, Dscp::EF),
                tcp(false, Dscp::DEFAULT),
                tcp(true, Dscp::AF21),
            ];
            let rates = rates(plan(HALVES), Vec::new(), &senders);
            assert_close(rates[0] + rates[1], 0.3);
            assert_close(rates[2] + rates[3], 0.7);
        });
        scope.spawn(|| {
            let senders = [flood(true, Dscp::AF11), flood(false, Dscp::LE)];
            let rates = rates(plan(HALVES), Vec::new(), &senders);
            assert_close(rates[0], 0.3);
            assert_close(rates[1], 0.7);
        });
        // A single class borrows everything up to its ceiling.
        scope.spawn(|| {
            let rates = rates(plan(HALVES), Vec::new(), &[tcp(false, Dscp::AF11)]);
            assert_close(rates[0], 1.0);
        });
        scope.spawn(|| {
            let half = ["af11:309kB/s..515kB/s", "rest:721kB/s..1030kB/s"];
            let senders = [tcp(true, Dscp::AF11), flood(true, Dscp::DEFAULT)];
            let rates = rates(plan(half), Vec::new(), &senders[..1]);
            assert_close(rates[0], 0.5);
        });
    });
}

/// The edge marks unmarked packets, and removes marks.
pub(crate) fn edge() {
    let rules = ["server:9046=af11", "any=default"];
    let rules = rules.map(|rule| rule.parse().expect("a rule"));
    let senders = [flood(false, Dscp::EF), flood(true, Dscp::AF11)];
    let rates = rates(plan(HALVES), rules.into(), &senders);
    assert_close(rates[0], 0.3);
    assert_close(rates[1], 0.7);
}
