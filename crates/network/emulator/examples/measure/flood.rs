//! Capacity in packets of the largest size per second, with the sender always ahead and without losses.
//!
//! The sender keeps the emulator's ring filled but never full. The number under way follows from the counters of the
//! kernel at the far end, so no program has to read there. A socket with the smallest buffer receives and drops the
//! packets.

use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use posthaste_link::Plan;

use crate::network::{PORT, Started, TestedNetwork};
use crate::{Failure, LARGEST, wall_clock};

/// Maximum number of packets under way. The ring of the emulator has 4,096 slots.
const WINDOW: u64 = 3_500;
/// Packets per system call.
const BATCH: usize = 64;

/// Prints the number of packets that the far end's kernel received, for each of `seconds`.
pub(crate) fn capacity(network: TestedNetwork, seconds: u64) -> Result<(), Failure> {
    let running = network.start(Plan::default())?;
    let (far_end, unread) = far_end(&running)?;
    let sender = running.at_client(move |connect| {
        let socket = connect();
        let first = far_end.received();
        let (mut sent, mut received) = (0, 0);
        for _ in 0..seconds {
            let (since, from, before) = (Instant::now(), wall_clock(), received);
            while since.elapsed() < Duration::from_secs(1) {
                while sent + BATCH as u64 <= received + WINDOW {
                    sent += send_batch(&socket);
                }
                received = far_end.received() - first;
            }
            println!("window {from} {} {}", wall_clock(), received - before);
        }
        // Waits for the packets under way. Those that have not arrived by then are lost.
        let patience = Instant::now() + Duration::from_secs(5);
        while received < sent && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(1));
            received = far_end.received() - first;
        }
        println!("received {received}");
        sent
    });
    println!("sent {}", sender.join().expect("a sender"));
    drop(unread);
    running.finish()
}

/// IP counters of a kernel.
struct FarEnd(File);

/// Opens the counters of the server's kernel, and a socket for the packets, without a reader.
fn far_end(running: &Started) -> Result<(FarEnd, UdpSocket), Failure> {
    let opened = running.at_server(|| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 0)?;
        let counters = File::open("/proc/thread-self/net/snmp")?;
        Ok::<_, std::io::Error>((FarEnd(counters), socket))
    });
    Ok(opened.join().expect("it only opens")?)
}

impl FarEnd {
    /// Packets that its kernel received (Ip InReceives, the third of its values).
    fn received(&self) -> u64 {
        let mut text = [0; 1024];
        let length = self.0.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..length]);
        let values = text.lines().nth(1).unwrap_or_default();
        let received = values.split(' ').nth(3).unwrap_or_default();
        received.parse().expect("Ip InReceives")
    }
}

/// Sends a batch of the largest packets. Returns the number that the kernel accepted.
fn send_batch(socket: &UdpSocket) -> u64 {
    let bytes = [0u8; LARGEST];
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: mmsghdr is plain data, for which zeros are valid.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
    for message in &mut messages {
        message.msg_hdr.msg_iov = &raw mut part;
        message.msg_hdr.msg_iovlen = 1;
    }
    // SAFETY: the descriptor is open. The messages and the bytes that they share outlive the call. It reads the bytes
    // and writes the messages' lengths only.
    let taken =
        unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), BATCH as u32, 0) };
    u64::try_from(taken).unwrap_or(0)
}
