//! The kernel's data about a TCP connection: TCP_INFO (tcp(7)), and the network path that follows from it.

use std::os::fd::{AsFd, AsRawFd as _};

use posthaste_units::{BitRate, Size, Span};

/// Size of `struct tcp_info` up to `tcpi_delivery_rate`, present since Linux 4.9.
const LENGTH: usize = 168;

/// Fields of the kernel's `struct tcp_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// The connection has had too little to send for a measurement of `delivery_rate`.
    pub is_application_limited: bool,
    /// Maximum segment size of the sender, in bytes.
    pub segment_size: u32,
    /// Segments sent and not acknowledged.
    pub unacknowledged: u32,
    /// The smoothed round-trip time, in microseconds.
    pub rtt_micros: u32,
    /// The congestion window, in segments.
    pub congestion_window: u32,
    /// Recent delivery rate, in bytes per second.
    pub delivery_rate: u64,
}

/// The path of a connection to its peer.
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

/// Queries the kernel about a TCP socket. `None` for other sockets, and before Linux 4.9.
pub fn tcp_info(socket: impl AsFd) -> Option<TcpInfo> {
    let mut info = [0_u8; LENGTH];
    let mut length = LENGTH as libc::socklen_t;
    // SAFETY: the pointer and the length describe `info`, which outlives the call.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (outcome == 0 && length as usize == LENGTH).then(|| TcpInfo::read(&info))
}

impl TcpInfo {
    /// Reads fields by their offsets in the kernel's `include/uapi/linux/tcp.h`, because libc's struct ends before the
    /// rate.
    fn read(info: &[u8; LENGTH]) -> Self {
        let word =
            |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
        let mut rate = [0; 8];
        rate.copy_from_slice(&info[160..]);
        Self {
            is_application_limited: info[7] & 1 != 0,
            segment_size: word(16),
            unacknowledged: word(24),
            rtt_micros: word(68),
            congestion_window: word(80),
            delivery_rate: u64::from_ne_bytes(rate),
        }
    }

    /// The network path. `None` if no rate is known yet.
    pub fn path(&self) -> Option<NetworkPath> {
        let window = u64::from(self.segment_size) * u64::from(self.congestion_window);
        let allowed = window.saturating_mul(1_000_000) / u64::from(self.rtt_micros.max(1));
        let bytes = if self.is_application_limited || self.delivery_rate == 0 {
            self.delivery_rate.max(allowed)
        } else {
            self.delivery_rate
        };
        Some(NetworkPath {
            rate: BitRate::per_second(bytes.saturating_mul(8))?,
            rtt: Span::from_micros(self.rtt_micros.into()),
            window: Size::from_bytes(window),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn the_kernel_tells_of_loopback() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(&[1; 1000]).unwrap();
        client.read_exact(&mut [0; 1000]).unwrap();
        let path = tcp_info(&server).unwrap().path().unwrap();
        // Loopback has segments of at most 64 KiB and a round trip of microseconds.
        assert!(
            (10_000..=700_000).contains(&path.window.as_bytes()),
            "{path:?}"
        );
        assert!(path.rtt < Span::from_millis(20), "{path:?}");
        assert!(path.rate.as_bits() > 1_000_000, "{path:?}");
    }

    #[test]
    fn sockets_other_than_tcp_have_no_tcp_info() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(tcp_info(&socket), None);
    }
}
