//! The kernel's data about the network path to a peer.

use std::os::fd::RawFd;

use posthaste_units::{BitRate, Size, Span};

/// The path of a connection to its peer, from TCP_INFO (tcp(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkPath {
    /// Recent delivery rate. If too little was sent for a measurement, the rate that the congestion window allows, as
    /// if the network were no bottleneck.
    pub rate: BitRate,
    /// The smoothed round-trip time.
    pub rtt: Span,
    /// The congestion window, in bytes.
    pub window: Size,
}

/// Size of `struct tcp_info` up to `tcpi_delivery_rate`, present since Linux 4.9.
const LENGTH: usize = 168;

/// Queries the kernel about a TCP socket. `None` if no rate is known yet.
pub(crate) fn ask(socket: RawFd) -> Option<NetworkPath> {
    let mut info = [0_u8; LENGTH];
    let mut length = LENGTH as libc::socklen_t;
    // SAFETY: the pointer and the length describe `info`, which outlives the call.
    let outcome = unsafe {
        libc::getsockopt(
            socket,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (outcome == 0 && length as usize == LENGTH)
        .then(|| read(&info))
        .flatten()
}

/// Reads fields by their offsets in the kernel's `include/uapi/linux/tcp.h`, because libc's struct ends before the
/// rate.
fn read(info: &[u8; LENGTH]) -> Option<NetworkPath> {
    let word = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
    let (segment, rtt, segments) = (word(16), word(68), word(80));
    let mut rate = [0; 8];
    rate.copy_from_slice(&info[160..]);
    let delivered = u64::from_ne_bytes(rate);
    let too_little_sent = info[7] & 1 != 0;
    let window = u64::from(segment) * u64::from(segments);
    let allowed = window * 1_000_000 / u64::from(rtt.max(1));
    let bytes = match too_little_sent || delivered == 0 {
        true => delivered.max(allowed),
        false => delivered,
    };
    Some(NetworkPath {
        rate: BitRate::per_second(bytes.saturating_mul(8))?,
        rtt: Span::from_micros(rtt.into()),
        window: Size::from_bytes(window),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;

    #[test]
    fn the_kernel_tells_of_loopback() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(&[1; 1000]).unwrap();
        client.read_exact(&mut [0; 1000]).unwrap();
        let path = ask(server.as_raw_fd()).unwrap();
        // Loopback has segments of at most 64 KiB and a round trip of microseconds.
        assert!(
            (10_000..=700_000).contains(&path.window.as_bytes()),
            "{path:?}"
        );
        assert!(path.rtt < Span::from_millis(20), "{path:?}");
        assert!(path.rate.as_bits() > 1_000_000, "{path:?}");
    }

    #[test]
    fn what_is_no_tcp_socket_tells_nothing() {
        assert_eq!(
            ask(std::net::UdpSocket::bind("127.0.0.1:0")
                .unwrap()
                .as_raw_fd()),
            None
        );
    }
}
