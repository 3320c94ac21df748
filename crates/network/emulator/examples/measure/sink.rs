//! The receiver: the first eight bytes of each packet, and the arrival stamp of its kernel.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};

use crate::network::{PORT, Started};

/// A received packet.
pub(crate) struct StampedPacket {
    /// Value of its first eight bytes.
    pub(crate) first: u64,
    /// Arrival in its kernel, in ns of the wall clock.
    pub(crate) stamp: u64,
}

/// A receiving thread.
pub(crate) struct Sink {
    /// First eight bytes of the last packet.
    pub(crate) latest: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Vec<StampedPacket>>,
}

impl Sink {
    /// Receives until `expected` packets have arrived, or until finished and no more arrive.
    pub(crate) fn start(network: &Started, expected: usize) -> Self {
        // Bound before the first packet is sent.
        let socket = network.at_server(socket).join().expect("a receiver");
        let ended = Arc::new(AtomicBool::new(false));
        let latest = Arc::new(AtomicU64::new(0));
        let (end_flag, shown) = (ended.clone(), latest.clone());
        let thread = network.at_server(move || {
            let mut arrivals = Vec::with_capacity(1 << 20);
            let mut bytes = [0; 2048];
            while arrivals.len() < expected {
                match socket.recv(&mut bytes) {
                    Ok(_) => {
                        let first = bytes[..8].try_into().expect("eight bytes");
                        let first = u64::from_ne_bytes(first);
                        let stamp = stamp(&socket);
                        arrivals.push(StampedPacket { first, stamp });
                        shown.store(first, Ordering::Relaxed);
                    }
                    Err(_) if end_flag.load(Ordering::Relaxed) => break,
                    Err(_) => {}
                }
            }
            arrivals
        });
        Self {
            latest,
            ended,
            thread,
        }
    }

    /// Waits for the sender, then for the packets that it sent.
    pub(crate) fn finish_after(self, sender: JoinHandle<()>) -> Vec<StampedPacket> {
        sender.join().expect("a sender");
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().expect("a receiver")
    }
}

/// A socket with arrival stamps and the largest possible buffer.
fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).expect("a free port");
    let pause = Some(Duration::from_millis(300));
    socket.set_read_timeout(pause).expect("a timeout");
    if set_socket_recv_buffer_size_force(&socket, 64 << 20).is_err() {
        // As an ordinary user: limited by the machine.
        let _ = set_socket_recv_buffer_size(&socket, 64 << 20);
    }
    let _ = stamp(&socket);
    socket
}

/// Arrival of the last packet read, by the kernel's stamp. The first call switches stamps on.
fn stamp(socket: &UdpSocket) -> u64 {
    const SIOCGSTAMPNS: u64 = 0x8907;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the descriptor is open, and the operation writes one timespec.
    unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSTAMPNS as _, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
