//! Exactly the packets of a pattern are lost, according to our own trace, a trace of the receiver's kernel, and the
//! sender's counters.

use std::collections::HashMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use posthaste_emulator::{Emulation, PacketRecord, RunningEmulation, TcpCounters};
use posthaste_link::{Direction, DropReason, Fate};
use socket2::{Domain, Protocol, Socket, Type};

use crate::inside::{ReplyService, delay, patterned, seen, servers, tcp, transact};

const CONNECTIONS: usize = 40;
/// Limited by the capture's buffer, which is small for an ordinary user.
const AT_ONCE: usize = 4;
const REPLY: usize = 30_000;
/// Enough bytes to distinguish packets: the fixed parts of both headers.
const COMPARED: usize = 40;

pub(crate) fn drop_8() {
    let [up, down] = patterned(&delay(5), "posthaste pattern 1\ndown drop 8\nend\n");
    let emulation = Emulation::new(up, down)
        .real_time(true)
        .packet_records(1 << 16);
    let running = emulation.start().expect("an emulation");
    let before = running.server.run(TcpCounters::read).expect("counters");
    let capture = ClientCapture::start(&running);
    let service = ReplyService {
        request: 10,
        reply: REPLY,
        processing: Duration::ZERO,
        connections: CONNECTIONS,
    };
    let (at, served) = service.start(&running, servers()[0]);
    for _ in 0..CONNECTIONS / AT_ONCE {
        let clients: Vec<JoinHandle<Duration>> = (0..AT_ONCE)
            .map(|_| running.client.spawn(move || transact(at, 10, REPLY)))
            .collect();
        for client in clients {
            client.join().expect("a reply");
        }
    }
    served.join().expect("served");
    let seen = seen(&running);
    let after = running.server.run(TcpCounters::read).expect("counters");
    let received = capture.stop();
    let outcome = running.finish().expect("an outcome");

    let dropped = outcome.down.link.dropped(DropReason::Pattern).packets;
    assert_eq!(dropped, CONNECTIONS as u64);
    assert_eq!(outcome.unseen, 0);
    let lost: Vec<&PacketRecord> = seen
        .iter()
        .filter(|packet_record| matches!(packet_record.fate, Fate::Dropped(_)))
        .collect();
    assert_eq!(lost.len(), CONNECTIONS);
    for packet_record in &lost {
        assert_eq!(
            (packet_record.direction, packet_record.position),
            (Direction::Down, 8)
        );
    }
    let delivered = seen
        .iter()
        .filter(|packet_record| packet_record.direction == Direction::Down)
        .filter(|packet_record| matches!(packet_record.fate, Fate::Delivered(_)));
    let delivered: Vec<&[u8]> = delivered
        .map(|packet_record| &packet_record.head()[..COMPARED])
        .collect();
    assert_eq!(
        received.len(),
        delivered.len(),
        "packets that the receiver saw"
    );
    assert!(
        received == delivered,
        "the receiver saw others, or in another order"
    );
    let repeated = repeated(&seen, at);
    assert_eq!((after - before).retransmitted_segments, repeated);
    assert!(repeated >= CONNECTIONS as u64);
}

/// A client that reuses its port at once has another connection, with an eighth packet of its own.
pub(crate) fn same_ports() {
    let [up, down] = patterned(&delay(5), "posthaste pattern 1\ndown drop 8\nend\n");
    let emulation = Emulation::new(up, down).real_time(true);
    let running = emulation.start().expect("an emulation");
    let service = ReplyService {
        request: 10,
        reply: REPLY,
        processing: Duration::ZERO,
        connections: 2,
    };
    let (at, served) = service.start(&running, servers()[0]);
    let client = move || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_reuse_address(true).expect("a setting");
        let own = SocketAddr::from(([0; 4], 40_000));
        socket.bind(&own.into()).expect("the same port");
        socket.connect(&at.into()).expect("connected");
        // The connection ends with a RST, and so leaves no state behind.
        socket.set_linger(Some(Duration::ZERO)).expect("a setting");
        let mut stream = TcpStream::from(socket);
        stream.write_all(&[b'q'; 10]).expect("sent");
        stream.read_exact(&mut [0; REPLY]).expect("a reply");
    };
    running.client.run(client);
    running.client.run(client);
    served.join().expect("served");
    let outcome = running.finish().expect("an outcome");
    assert_eq!(outcome.connections, 2);
    assert_eq!(outcome.down.link.dropped(DropReason::Pattern).packets, 2);
}

/// Segments of the server that begin before the end of the data already sent.
fn repeated(seen: &[PacketRecord], at: SocketAddr) -> u64 {
    let mut ends: HashMap<u64, u32> = HashMap::new();
    let mut repeated = 0;
    let mut down: Vec<&PacketRecord> = seen
        .iter()
        .filter(|packet_record| {
            packet_record.direction == Direction::Down && packet_record.flow.server == at
        })
        .collect();
    down.sort_by_key(|packet_record| (packet_record.connection, packet_record.position));
    for packet_record in down {
        let segment = tcp(packet_record);
        if segment.length == 0 {
            continue;
        }
        let end = ends
            .entry(packet_record.connection)
            .or_insert(segment.sequence);
        if (segment.sequence.wrapping_sub(*end) as i32) < 0 {
            repeated += 1;
        }
        let next = segment.sequence.wrapping_add(segment.length);
        if (next.wrapping_sub(*end) as i32) > 0 {
            *end = next;
        }
    }
    repeated
}

/// A capture of every IPv4 packet that the client's kernel receives.
struct ClientCapture {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Vec<u8>>>,
}

impl ClientCapture {
    fn start(running: &RunningEmulation) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stop_requested = stop.clone();
        let socket = running.client.run(|| {
            // ETH_P_IP, in network order: packets without the Ethernet header.
            let ipv4 = Protocol::from(i32::from(0x0800u16.to_be()));
            let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(ipv4)).expect("a capture");
            let pause = Some(Duration::from_millis(20));
            socket.set_read_timeout(pause).expect("a timeout");
            socket
        });
        let thread = running.client.spawn(move || {
            let mut packets = Vec::new();
            while !stop_requested.load(Ordering::Relaxed) {
                let mut bytes = vec![0; COMPARED];
                match (&socket).read(&mut bytes) {
                    Ok(_) => packets.push(bytes),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => panic!("{error}"),
                }
            }
            packets
        });
        Self { stop, thread }
    }

    fn stop(self) -> Vec<Vec<u8>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("a capture")
    }
}
