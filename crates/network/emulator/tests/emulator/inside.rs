//! Helpers of the tests: connections between two hosts, and the headers of recorded packets.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use posthaste_emulator::{Emulation, PacketRecord, RunningEmulation, SERVER};
use posthaste_link::pattern::Pattern;
use posthaste_link::{Direction, Plan};
use posthaste_units::Span;

/// Attempts at a test that a stalled machine can spoil.
const TRIES: u32 = 10;

/// Fails unless one of several attempts succeeds. A busy machine spoils measurements, but not each time.
pub(crate) fn expect_once(mut attempt: impl FnMut() -> Result<(), String>) {
    for number in 1..=TRIES {
        match attempt() {
            Ok(()) => return,
            Err(reason) => println!("try {number} of {TRIES}: {reason}"),
        }
    }
    panic!("none of {TRIES} tries succeeded");
}

/// `Ok` if `holds`, or else the error `reason`.
pub(crate) fn held(holds: bool, reason: impl FnOnce() -> String) -> Result<(), String> {
    holds.then_some(()).ok_or_else(reason)
}

/// A link with a delay only.
pub(crate) fn delay(ms: u64) -> Plan {
    Plan {
        delay: Span::from_millis(ms),
        ..Plan::default()
    }
}

/// An emulation with the same plan in both directions and all packet records kept.
pub(crate) fn emulation(plan: Plan) -> Emulation {
    let plan = Arc::new(plan);
    Emulation::new(plan.clone(), plan)
        .real_time(true)
        .packet_records(1 << 16)
}

/// The plan of each direction with its part of the pattern.
pub(crate) fn patterned(plan: &Plan, pattern: &str) -> [Arc<Plan>; 2] {
    let pattern = Pattern::parse(pattern).expect("a pattern");
    Direction::BOTH.map(|direction| {
        Arc::new(Plan {
            script: Some(pattern.script(direction).clone()),
            ..plan.clone()
        })
    })
}

/// A service on the server's end. It answers each connection with `reply` bytes, `processing` after `request` bytes
/// have arrived; for a number of connections, one after the other or all at once.
pub(crate) struct ReplyService {
    pub(crate) request: usize,
    pub(crate) reply: usize,
    pub(crate) processing: Duration,
    pub(crate) connections: usize,
}

impl ReplyService {
    /// Listens at `address`. The thread ends with the last connection.
    pub(crate) fn start(
        self,
        running: &RunningEmulation,
        address: IpAddr,
    ) -> (SocketAddr, JoinHandle<()>) {
        let bind = move || TcpListener::bind((address, 0)).expect("a free port");
        let listener = running.server.run(bind);
        let at = listener.local_addr().expect("bound");
        let accept = move || {
            let replies: Vec<_> = (0..self.connections)
                .map(|_| {
                    let (stream, _) = listener.accept().expect("a connection");
                    let (request, reply) = (self.request, self.reply);
                    std::thread::spawn(move || answer(stream, request, self.processing, reply))
                })
                .collect();
            replies
                .into_iter()
                .for_each(|reply| reply.join().expect("answered"));
        };
        (at, running.server.spawn(accept))
    }
}

fn answer(mut stream: TcpStream, request: usize, processing: Duration, reply: usize) {
    let mut bytes = vec![0; request];
    stream.read_exact(&mut bytes).expect("a request");
    std::thread::sleep(processing);
    stream.write_all(&vec![b'r'; reply]).expect("replied");
}

/// Runs one transaction on a connection of its own, to the last byte of the reply.
pub(crate) fn transact(at: SocketAddr, request: usize, reply: usize) -> Duration {
    let start = Instant::now();
    let mut stream = TcpStream::connect(at).expect("connected");
    stream.write_all(&vec![b'q'; request]).expect("sent");
    let mut bytes = vec![0; reply];
    stream.read_exact(&mut bytes).expect("a reply");
    let taken = start.elapsed();
    assert!(bytes.iter().all(|byte| *byte == b'r'));
    let _ = stream.shutdown(Shutdown::Both);
    taken
}

/// The server's addresses of both IP versions.
pub(crate) fn servers() -> [IpAddr; 2] {
    SERVER.both()
}

/// All packet records of a finished run.
pub(crate) fn seen(running: &RunningEmulation) -> Vec<PacketRecord> {
    let packet_records = running
        .packet_records
        .as_ref()
        .expect("they were asked for");
    let mut all: Vec<PacketRecord> = packet_records.drain().collect();
    loop {
        // The last packets of a connection come after its last byte.
        std::thread::sleep(Duration::from_millis(100));
        let before = all.len();
        all.extend(packet_records.drain());
        if all.len() == before {
            return all;
        }
    }
}

/// The part of a TCP header that the tests read.
pub(crate) struct TcpHeader {
    pub(crate) sequence: u32,
    /// Sequence numbers that it occupies, SYN and FIN counted.
    pub(crate) length: u32,
    /// Bytes of payload.
    pub(crate) payload: u32,
}

/// Reads the TCP header of an IPv4 packet from its first bytes.
pub(crate) fn tcp(packet_record: &PacketRecord) -> TcpHeader {
    let head = packet_record.head();
    let start = usize::from(head[0] & 0x0f) * 4;
    let word = |at: usize| u32::from_be_bytes(head[start + at..start + at + 4].try_into().unwrap());
    let header = u32::from(head[start + 12] >> 4) * 4;
    let payload = packet_record.length - start as u32 - header;
    let flags = head[start + 13];
    TcpHeader {
        sequence: word(4),
        length: payload + u32::from(flags & 1) + u32::from(flags >> 1 & 1),
        payload,
    }
}

/// Counters of the kernel of the calling thread's host, of a group such as `TcpExt:`.
pub(crate) fn kernel_counters<const N: usize>(group: &str, names: [&str; N]) -> [u64; N] {
    let netstat = std::fs::read_to_string("/proc/thread-self/net/netstat").expect("counters");
    let mut lines = netstat.lines().filter(|line| line.starts_with(group));
    let mut fields = || lines.next().expect("counters").split_whitespace();
    let (known, values): (Vec<&str>, Vec<&str>) = (fields().collect(), fields().collect());
    names.map(|name| {
        let found = known.iter().position(|known| *known == name);
        let index = found.unwrap_or_else(|| panic!("no counter {name}"));
        values[index].parse().expect("a number")
    })
}
