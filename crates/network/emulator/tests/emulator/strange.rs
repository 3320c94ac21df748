//! Packets that no host sends with its normal settings: they are rejected by name and counted, without other effects.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

use etherparse::PacketBuilder;
use posthaste_emulator::{
    CLIENT, DEVICE, EmulationOutcome, EmulationVerdict, FrameRefusal, RunningEmulation, SERVER,
};
use posthaste_link::Plan;
use rustix::net::{AddressFamily, SocketType, netdevice};

use crate::inside::{ReplyService, emulation, servers, transact};

/// Commands of ethtool for the offloads of a sender (linux/ethtool.h).
const TX_CHECKSUM: u32 = 0x17;
const SCATTER_GATHER: u32 = 0x19;
const TSO: u32 = 0x1f;
const GSO: u32 = 0x24;

fn start() -> RunningEmulation {
    emulation(Plan::default()).start().expect("an emulation")
}

/// Waits for packets to arrive, and ends the run. Returns the packets rejected on the way up.
fn refused(running: RunningEmulation) -> (Vec<(FrameRefusal, u64)>, EmulationOutcome) {
    std::thread::sleep(Duration::from_millis(50));
    let outcome = running.finish().expect("an outcome");
    assert!(!matches!(outcome.verdict(), EmulationVerdict::Lost { .. }));
    (outcome.up.bypassed.refusals().collect(), outcome)
}

pub(crate) fn frames() {
    let packet = |payload: usize| {
        let mut packet = Vec::new();
        PacketBuilder::ipv4(CLIENT.v4.octets(), SERVER.v4.octets(), 64)
            .udp(4000, 9)
            .write(&mut packet, &vec![0; payload])
            .expect("a packet");
        packet
    };
    let tagged = |inner: u16| [&[0, 5], &inner.to_be_bytes()[..], &packet(8)].concat();
    let frames: Vec<(u16, Vec<u8>)> = vec![
        (0x0800, packet(8)),
        (0x0806, vec![0; 28]),
        (0x8100, tagged(0x0800)),
        (0x88a8, tagged(0x8100)),
        (0x88cc, vec![0; 50]),
        (0x0800, packet(8)[..25].to_vec()),
    ];
    let running = start();
    running.client.run(move || {
        let socket = packet_socket();
        for (kind, rest) in frames {
            let head = [&SERVER.mac[..], &CLIENT.mac, &kind.to_be_bytes()].concat();
            let frame = [head, rest].concat();
            rustix::net::send(&socket, &frame, rustix::net::SendFlags::empty()).expect("sent");
        }
    });
    let (refused, outcome) = refused(running);
    let expected = [
        (FrameRefusal::Arp, 1),
        (FrameRefusal::Vlan, 2),
        (FrameRefusal::Protocol, 1),
        (FrameRefusal::Malformed, 1),
    ];
    assert_eq!(refused, expected);
    assert_eq!(outcome.up.link.delivered.packets, 1);
}

pub(crate) fn jumbo() {
    let running = start();
    running.client.run(|| {
        set_mtu(9000);
        datagrams(4000);
    });
    let (refused, outcome) = refused(running);
    assert_eq!(refused, [(FrameRefusal::Oversized, 2)]);
    assert_eq!(outcome.up.link.pushed.packets, 0);
}

/// A device that promises checksums and segmentation, although no device on the path does either.
pub(crate) fn offloads() {
    let running = start();
    let service = ReplyService {
        request: 1,
        reply: 1,
        processing: Duration::ZERO,
        connections: 2,
    };
    let (at, served) = service.start(&running, servers()[0]);
    running.client.run(move || {
        transact(at, 1, 1);
        let mut stream = TcpStream::connect(at).expect("connected");
        stream.write_all(b"q").expect("sent");
        for offload in [TX_CHECKSUM, SCATTER_GATHER, TSO, GSO] {
            switch_on(offload);
        }
        datagrams(100);
        // The first two depend on each other. Data beyond one packet is left to the device.
        stream.write_all(&[b'q'; 20_000]).expect("taken");
    });
    served.join().expect("served");
    let (refused, outcome) = refused(running);
    let count = |refusal| outcome.up.bypassed.refused(refusal);
    assert!(count(FrameRefusal::Unsummed) >= 2, "{refused:?}");
    assert!(count(FrameRefusal::Oversized) >= 1, "{refused:?}");
    assert_eq!(refused.len(), 2, "{refused:?}");
}

/// Sends a datagram of that size to the server of each IP version.
fn datagrams(size: usize) {
    for address in servers() {
        let socket = UdpSocket::bind(if address.is_ipv4() {
            "0.0.0.0:0"
        } else {
            "[::]:0"
        });
        let to = SocketAddr::new(address, 9);
        let sent = socket.expect("a free port").send_to(&vec![7; size], to);
        sent.expect("sent");
    }
}

/// A socket that sends whole frames on the host's device.
fn packet_socket() -> OwnedFd {
    let socket = rustix::net::socket(AddressFamily::PACKET, SocketType::RAW, None);
    let socket = socket.expect("a packet socket");
    let index = netdevice::name_to_index(&socket, DEVICE).expect("the device");
    // SAFETY: sockaddr_ll is plain data, for which zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = index as i32;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the address is of the length given.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    assert_eq!(bound, 0, "{}", std::io::Error::last_os_error());
    socket
}

fn set_mtu(mtu: i32) {
    ask(
        libc::SIOCSIFMTU,
        libc::__c_anonymous_ifr_ifru { ifru_mtu: mtu },
    );
}

fn switch_on(offload: u32) {
    // Layout of struct ethtool_value.
    let mut setting = [offload, 1];
    let ifru_data = (&raw mut setting).cast();
    ask(
        libc::SIOCETHTOOL,
        libc::__c_anonymous_ifr_ifru { ifru_data },
    );
}

/// Performs an ioctl on the host's device.
fn ask(request: libc::c_ulong, value: libc::__c_anonymous_ifr_ifru) {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a free port");
    let mut ifr_name = [0; libc::IFNAMSIZ];
    for (slot, byte) in ifr_name.iter_mut().zip(DEVICE.bytes()) {
        *slot = byte as libc::c_char;
    }
    let mut ifreq = libc::ifreq {
        ifr_name,
        ifr_ifru: value,
    };
    // SAFETY: the descriptor is open. The request names a zero-terminated device, and the data that it points to
    // outlives the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), request as _, &mut ifreq) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}
