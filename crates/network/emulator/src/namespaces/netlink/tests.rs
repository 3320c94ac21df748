//! Bytes of each request, as netlink-packet-route 0.34 wrote them, and answers of the kernel.

use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixDatagram;

use rustix::io::Errno;

use super::{Netlink, NetlinkError, VethEnd};
use crate::namespaces::route::RouteOptions;

/// Sends a request to a socket that answers it. Returns the bytes of the request in hexadecimal, and the result.
fn exchange<T>(answer: &[u8], request: impl FnOnce(&mut Netlink) -> T) -> (String, T) {
    let (socket, kernel) = UnixDatagram::pair().unwrap();
    kernel.send(answer).unwrap();
    let mut netlink = Netlink {
        socket: socket.into(),
        sequence: 0,
    };
    let result = request(&mut netlink);
    let mut bytes = [0; 4096];
    let length = kernel.recv(&mut bytes).unwrap();
    let hex = bytes[..length].iter().map(|byte| format!("{byte:02x}"));
    (hex.collect(), result)
}

/// An error message, or an acknowledgement with code 0.
fn error(code: i32) -> Vec<u8> {
    let numbers = [36, 2, 1, 0, code.cast_unsigned(), 0, 0, 0, 0];
    numbers.into_iter().flat_map(u32::to_ne_bytes).collect()
}

/// Bytes of a request that the kernel acknowledges.
fn granted(request: impl FnOnce(&mut Netlink) -> Result<(), NetlinkError>) -> String {
    let (bytes, result) = exchange(&error(0), request);
    result.unwrap();
    bytes
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn a_pair_of_devices_nests_the_other_end() {
    let stdin = std::io::stdin();
    let here = VethEnd {
        name: "up",
        mac: [2, 0, 0, 0, 0, 1],
        mtu: 1500,
        network: None,
    };
    let there = VethEnd {
        name: "phost0",
        mac: [2, 0, 0, 0, 0, 2],
        mtu: 1400,
        network: Some(stdin.as_fd()),
    };
    assert_eq!(
        granted(|netlink| netlink.make_pair([here, there])),
        "8c000000100005060100000000000000\
         00000000000000000000000000000000\
         07000300757000000a00010002000000\
         0001000008000400dc05000050001200\
         09000100766574680000000040000200\
         3c000100000000000000000000000000\
         000000000b00030070686f7374300000\
         0a000100020000000002000008000400\
         7805000008001c0000000000"
    );
}

#[test]
fn devices_are_brought_up_by_flags() {
    assert_eq!(
        granted(|netlink| netlink.raise(7)),
        "2000000013000500010000000000000000000000070000008100000081100000"
    );
    assert_eq!(
        granted(Netlink::raise_loopback),
        "2000000013000500010000000000000000000000010000000100000001000000"
    );
}

#[test]
fn addresses_and_neighbours_have_their_family() {
    assert_eq!(
        granted(|netlink| netlink.add_address(7, ip("10.0.0.1"))),
        "28000000140005060100000000000000\
         0220000007000000080002000a000001080001000a000001"
    );
    assert_eq!(
        granted(|netlink| netlink.add_address(7, ip("fd00::1"))),
        "40000000140005060100000000000000\
         0a8002000700000014000200fd000000000000000000000000000001\
         14000100fd000000000000000000000000000001"
    );
    let mac = [2, 0, 0, 0, 0, 2];
    assert_eq!(
        granted(|netlink| netlink.add_neighbour(7, ip("10.0.0.1"), mac)),
        "300000001c0005050100000000000000\
         020000000700000080000000080001000a0000010a0002000200000000020000"
    );
    assert_eq!(
        granted(|netlink| netlink.add_neighbour(7, ip("fd00::1"), mac)),
        "3c0000001c0005050100000000000000\
         0a000000070000008000000014000100fd0000000000000000000000000000010a0002000200000000020000"
    );
}

#[test]
fn routes_have_gateways_and_metrics() {
    let direct = |address| granted(|netlink| netlink.set_route(7, ip(address), 24, None, &[]));
    assert_eq!(
        direct("10.0.0.1"),
        "2c000000180005050100000000000000\
         02180000fe04fd01000000000800040007000000080001000a000001"
    );
    assert_eq!(
        direct("fd00::1"),
        "38000000180005050100000000000000\
         0a180000fe04fd0100000000080004000700000014000100fd000000000000000000000000000001"
    );
    let options: RouteOptions = "initcwnd 3 rto_min 200ms congctl cubic advmss 1000 hoplimit 9 \
                                 initrwnd 4 mtu 1300 quickack 1 window 5"
        .parse()
        .unwrap();
    let via = ip("10.0.0.1");
    assert_eq!(
        granted(|netlink| netlink.set_route(7, via, 0, Some(via), &options.metrics())),
        "84000000180005050100000000000000\
         02000000fe040001000000000800040007000000080005000a000001\
         5800080008000b000300000008000d00c80000000a001000637562696300000008000800e8030000\
         08000a000900000008000e0004000000080002001405000008000f0001000000\
         08000300050000000800010000200000"
    );
    assert_eq!(
        granted(|netlink| netlink.claim_all(ip("fd00::1"))),
        "240000001800050501000000000000000a000000fe04fe02000000000800040001000000"
    );
}

#[test]
fn counters_are_those_of_the_device() {
    // Behind the fixed part: an attribute of 5 bytes, padded, and 25 counters, of which the eighth counts.
    let mut answer = vec![0; 16];
    answer[4] = 16;
    answer[8] = 1;
    answer.extend([0; 16]);
    answer.extend([5, 0, 13, 0, 1, 0, 0, 0]);
    answer.extend([204, 0, 23, 0]);
    answer.extend((1..=25).flat_map(u64::to_ne_bytes));
    let length = u32::try_from(answer.len()).unwrap();
    answer[..4].copy_from_slice(&length.to_ne_bytes());
    let (bytes, lost) = exchange(&answer, |netlink| netlink.lost_in_sending(7));
    assert_eq!(
        bytes,
        "2000000012000100010000000000000000000000070000000000000000000000"
    );
    assert_eq!(lost, Ok(8));
    for cut in 0..answer.len() {
        let (_, lost) = exchange(&answer[..cut], |netlink| netlink.lost_in_sending(7));
        assert!(matches!(lost, Err(NetlinkError::Answer { .. })), "{cut}");
    }
}

#[test]
fn a_refusal_has_the_kernels_reason() {
    let (_, refused) = exchange(&error(-1), |netlink| netlink.raise(7));
    let wanted = NetlinkError::Refused {
        operation: "device up".to_owned(),
        errno: Errno::PERM,
    };
    assert_eq!(refused, Err(wanted));
    let mut stale = error(0);
    stale[8] = 9;
    let (_, result) = exchange(&stale, Netlink::raise_loopback);
    assert!(matches!(result, Err(NetlinkError::Answer { .. })));
}
