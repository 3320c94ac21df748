//! Bytes of a connection in kernel buffers (tcp(7)).

use std::os::fd::{AsFd, AsRawFd as _};

/// Bytes in the send queue that the peer has not acknowledged (SIOCOUTQ).
pub(crate) fn unacknowledged(socket: impl AsFd) -> u32 {
    let mut bytes: libc::c_int = 0;
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the call writes one int, which outlives it.
    let outcome = unsafe { libc::ioctl(socket, libc::TIOCOUTQ, &raw mut bytes) };
    match outcome {
        0 => bytes.unsigned_abs(),
        _ => 0,
    }
}

/// Received bytes that were not read (SIOCINQ).
pub(crate) fn unread(socket: impl AsFd) -> u64 {
    rustix::io::ioctl_fionread(socket).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn acknowledged_and_read_bytes_leave_the_socket_queues() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(length) = server.write(&[0; 1 << 16]) {
            written += length;
        }
        assert!(unacknowledged(&server) > 0);
        assert!(unread(&client) > 0);
        client.read_exact(&mut vec![0; written]).unwrap();
        assert_eq!(unread(&client), 0);
        while unacknowledged(&server) > 0 {
            std::thread::yield_now();
        }
    }
}
