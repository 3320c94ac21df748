//! Marks of congestion, as the kernels at both ends count them.

use std::time::Duration;

use posthaste_emulator::Setup;
use posthaste_link::{DropReason, Plan};
use posthaste_units::BitRate;

use crate::inside::{ReplyService, delay, emulation, kernel_counters, servers, transact};

const REPLY: usize = 1_000_000;

/// Marks down, those that the client's kernel received, and segments that the server's kernel knows to be marked, for
/// one reply over IPv4 and one over IPv6.
fn marks(queue: &str, ecn: &str) -> ([u64; 3], u64) {
    let plan = Plan {
        bandwidth: BitRate::per_second(20_000_000),
        queue: queue.parse().expect("a queue"),
        ..delay(5)
    };
    let setup = Setup {
        sysctls: vec![("net.ipv4.tcp_ecn".to_owned(), ecn.to_owned())],
        ..Setup::default()
    };
    let emulation = emulation(plan).client(setup.clone()).server(setup);
    let running = emulation.start().expect("an emulation");
    for address in servers() {
        let service = ReplyService {
            request: 1000,
            reply: REPLY,
            processing: Duration::ZERO,
            connections: 1,
        };
        let (at, served) = service.start(&running, address);
        running.client.run(move || transact(at, 1000, REPLY));
        served.join().expect("served");
    }
    let received = running.client.run(|| {
        let [v4] = kernel_counters("IpExt:", ["InCEPkts"]);
        let snmp6 = std::fs::read_to_string("/proc/thread-self/net/snmp6").expect("counters");
        let v6 = snmp6
            .lines()
            .find_map(|line| line.strip_prefix("Ip6InCEPkts"));
        let v6: u64 = v6
            .and_then(|count| count.trim().parse().ok())
            .expect("a counter");
        assert!((v4 > 0) == (v6 > 0), "{v4} {v6}");
        v4 + v6
    });
    let [known] = running
        .server
        .run(|| kernel_counters("TcpExt:", ["TCPDeliveredCE"]));
    let outcome = running.finish().expect("an outcome");
    let link = outcome.down.link;
    let dropped =
        link.dropped(DropReason::CoDel).packets + link.dropped(DropReason::QueueFull).packets;
    ([link.marked.packets, received, known], dropped)
}

/// A step and CoDel mark what the kernels negotiated to mark, and both kernels count the marks.
pub(crate) fn marked() {
    for queue in ["1000:step:5", "1000:step:2ms", "1000:codel:1ms:10ms:ecn"] {
        let ([marked, received, known], dropped) = marks(queue, "1");
        assert!(marked > 0 && dropped == 0, "{queue}: {marked} {dropped}");
        assert_eq!(received, marked, "{queue}");
        assert!(known > 0, "{queue}: the sender knows of none");
    }
}

/// Without ECN nothing is marked: CoDel drops, and a step does not.
pub(crate) fn not_negotiated() {
    let (counts, dropped) = marks("1000:codel:1ms:10ms:ecn", "0");
    assert!(counts == [0; 3] && dropped > 0, "{counts:?} {dropped}");
    assert_eq!(marks("1000:step:5", "0"), ([0; 3], 0));
}
