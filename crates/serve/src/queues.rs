//! Bytes of a connection in kernel buffers (tcp(7)).

use std::os::fd::RawFd;

/// Bytes in the send queue that the peer has not acknowledged (SIOCOUTQ).
pub(crate) fn unacknowledged(socket: RawFd) -> u32 {
    held(socket, libc::TIOCOUTQ)
}

/// Received bytes that were not read (SIOCINQ).
pub(crate) fn unread(socket: RawFd) -> u32 {
    held(socket, libc::FIONREAD)
}

fn held(socket: RawFd, queue: libc::Ioctl) -> u32 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: either call writes one int, which outlives it.
    let outcome = unsafe { libc::ioctl(socket, queue, &raw mut bytes) };
    match outcome {
        0 => bytes.unsigned_abs(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn what_was_received_is_acknowledged_and_what_was_read_is_not_unread() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(length) = server.write(&[0; 1 << 16]) {
            written += length;
        }
        assert!(unacknowledged(server.as_raw_fd()) > 0);
        assert!(unread(client.as_raw_fd()) > 0);
        client.read_exact(&mut vec![0; written]).unwrap();
        assert_eq!(unread(client.as_raw_fd()), 0);
        while unacknowledged(server.as_raw_fd()) > 0 {
            std::thread::yield_now();
        }
    }
}
