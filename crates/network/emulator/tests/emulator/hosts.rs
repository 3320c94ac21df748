//! Hosts have the requested settings, or report the reason.

use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use posthaste_emulator::sysctl::{self, SysctlError};
use posthaste_emulator::{CLIENT, Emulation, RunningEmulation, SERVER, Setup};
use posthaste_link::{Direction, Plan};
use posthaste_units::Span;

use crate::inside::{
    ReplyService, delay, emulation, expect_once, held, patterned, seen, servers, tcp, transact,
};

/// Congestion control of a connection from the client.
fn congestion_control(running: &RunningEmulation) -> String {
    let listen = || TcpListener::bind((SERVER.v4, 80)).expect("a free port");
    let listener = running.server.run(listen);
    let name = running.client.run(|| {
        let stream = TcpStream::connect((SERVER.v4, 80)).expect("connected");
        rustix::net::sockopt::tcp_congestion(&stream)
    });
    drop(listener);
    name.expect("a name")
}

pub(crate) fn cubic() {
    let running = emulation(delay(1)).start().expect("an emulation");
    assert_eq!(congestion_control(&running), "cubic");
    let reno = Setup {
        route: "congctl reno".parse().expect("options"),
        ..Setup::default()
    };
    let running = emulation(delay(1)).client(reno).start();
    assert_eq!(congestion_control(&running.expect("an emulation")), "reno");
    let unknown = Setup {
        route: "congctl nothing".parse().expect("options"),
        ..Setup::default()
    };
    let refused = emulation(delay(1)).server(unknown).start();
    let error = refused.expect_err("no such control").to_string();
    assert!(error.contains("server: route to 10.0.0.0/24"), "{error}");
}

pub(crate) fn initial_window() {
    let setup = Setup {
        route: "congctl cubic initcwnd 3".parse().expect("options"),
        ..Setup::default()
    };
    let running = emulation(delay(20)).server(setup).start();
    let running = running.expect("an emulation");
    let service = ReplyService {
        request: 1,
        reply: 12_974,
        processing: Duration::from_millis(60),
        connections: 1,
    };
    let (at, served) = service.start(&running, servers()[0]);
    running.client.run(move || transact(at, 1, 12_974));
    served.join().expect("served");
    let seen = seen(&running);
    let data: Vec<_> = seen
        .iter()
        .filter(|packet_record| {
            packet_record.direction == Direction::Down && tcp(packet_record).payload > 0
        })
        .collect();
    let at_once = data.iter().take_while(|packet_record| {
        packet_record.arrived.saturating_since(data[0].arrived) < Span::from_millis(20)
    });
    assert_eq!(at_once.count(), 3);
}

/// The only segment of a reply is lost, so its retransmission comes after the timeout.
pub(crate) fn smallest_timeout() {
    let silence = |route: &str| {
        let setup = Setup {
            sysctls: vec![("net.ipv4.tcp_sack".to_owned(), "0".to_owned())],
            route: route.parse().expect("options"),
        };
        let [up, down] = patterned(&delay(5), "posthaste pattern 1\ndown drop 3\nend\n");
        let emulation = Emulation::new(up, down)
            .real_time(true)
            .packet_records(4096);
        let running = emulation.server(setup).start().expect("an emulation");
        let service = ReplyService {
            request: 1,
            reply: 1000,
            processing: Duration::from_millis(60),
            connections: 1,
        };
        let (at, served) = service.start(&running, servers()[0]);
        running.client.run(move || transact(at, 1, 1000));
        served.join().expect("served");
        let seen = seen(&running);
        let data = seen.iter().filter(|packet_record| {
            packet_record.direction == Direction::Down && tcp(packet_record).payload > 0
        });
        let times: Vec<_> = data.map(|packet_record| packet_record.arrived).collect();
        times[1].saturating_since(times[0])
    };
    assert!(silence("congctl reno") >= Span::from_millis(200));
    expect_once(|| {
        let short = silence("congctl reno rto_min 50ms");
        assert!(short >= Span::from_millis(50), "{short}");
        held(short < Span::from_millis(200), || short.to_string())
    });
}

pub(crate) fn sysctls() {
    let setup = |key: &str, value: &str| Setup {
        sysctls: vec![(key.to_owned(), value.to_owned())],
        ..Setup::default()
    };
    let sack = setup("net.ipv4.tcp_sack", "0");
    let running = emulation(Plan::default())
        .client(sack)
        .start()
        .expect("an emulation");
    let read = || sysctl::get("net.ipv4.tcp_sack").expect("a setting");
    assert_eq!(running.client.run(read), "0");
    assert_eq!(running.server.run(read), "1");
    let saved = || sysctl::get("net.ipv4.tcp_no_metrics_save").expect("a setting");
    assert_eq!(
        (running.client.run(saved), running.server.run(saved)),
        ("1".into(), "1".into())
    );
    let refused = |key: &str, value: &str| {
        let emulation: Emulation = emulation(Plan::default()).client(setup(key, value));
        emulation.start().expect_err("refused").to_string()
    };
    let global = refused("vm.swappiness", "10");
    assert!(global.contains("only settings of a network"), "{global}");
    let unknown = refused("net.ipv4.tcp_none", "1");
    assert!(unknown.contains("no such setting"), "{unknown}");
    let wrong = refused("net.ipv4.tcp_sack", "many");
    assert!(wrong.contains("client: net.ipv4.tcp_sack"), "{wrong}");
    let name = running.client.run(|| sysctl::get("kernel.hostname"));
    assert!(matches!(name, Err(SysctlError::Name { .. })));
}

pub(crate) fn commands() {
    let running = emulation(Plan::default()).start().expect("an emulation");
    let mut show = Command::new("cat");
    show.args(["/proc/self/status", "/proc/net/fib_trie"]);
    let output = running.client.run(move || show.output()).expect("cat");
    let text = String::from_utf8_lossy(&output.stdout);
    let has = |address: Ipv4Addr| text.contains(&address.to_string());
    assert!(has(CLIENT.v4) && !has(SERVER.v4), "{text}");
    let user = rustix::process::getuid().as_raw();
    assert!(text.contains(&format!("Uid:\t{user}\t{user}")), "{text}");
    if user != 0 {
        assert!(text.contains("CapEff:\t0000000000000000"), "{text}");
    }
}

pub(crate) fn panics() {
    let running = emulation(Plan::default()).start().expect("an emulation");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        running.client.run(|| panic!("as intended"));
    }));
    assert!(panicked.is_err());
    assert_eq!(running.client.run(|| 1 + 1), 2);
    let listen = || TcpListener::bind((SERVER.v4, 0)).expect("a free port");
    let listener = running.server.run(listen);
    let at = listener.local_addr().expect("bound");
    let stream = running.client.run(move || TcpStream::connect(at));
    drop(running);
    // Everything has ended without a hang. The rest of the connection leads nowhere.
    let mut stream = stream.expect("connected");
    let timeout = Some(Duration::from_millis(50));
    stream.set_read_timeout(timeout).expect("a timeout");
    assert!(stream.read(&mut [0; 1]).is_err());
}
