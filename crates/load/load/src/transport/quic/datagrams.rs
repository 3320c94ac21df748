//! The UDP socket of a connection: several datagrams in one system call.
//!
//! GSO (`UDP_SEGMENT`) sends a buffer as datagrams of one size, GRO (`UDP_GRO`) returns received datagrams of one size in
//! one buffer (udp(7)). Without GRO, the kernel returns a datagram for each call.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use quinn_proto::{EcnCodepoint, Transmit};
use quinn_udp::{RecvMeta, UdpSocketState};

/// Datagrams of one buffer, of one size except the last.
pub(super) struct ReceivedDatagrams {
    /// Bytes in the buffer.
    pub(super) length: usize,
    /// Bytes of each datagram.
    pub(super) stride: usize,
    pub(super) source: SocketAddr,
    pub(super) ecn: Option<EcnCodepoint>,
}

/// Bytes of datagrams in a buffer, and of each but the last.
pub(super) fn sizes(transmit: &Transmit) -> (usize, usize) {
    (
        transmit.size,
        transmit.segment_size.unwrap_or(transmit.size),
    )
}

/// Options of the socket that the kernel has accepted, and datagrams that it had no space for.
pub(super) struct DatagramSocket {
    state: UdpSocketState,
    unsent: Option<(Transmit, Vec<u8>)>,
}

impl DatagramSocket {
    /// Sets the options of a connected socket.
    pub(super) fn new(socket: &OwnedFd) -> io::Result<Self> {
        Ok(Self {
            state: UdpSocketState::new(socket.into())?,
            unsent: None,
        })
    }

    /// Maximum number of datagrams in one call.
    pub(super) fn batch(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Reads datagrams. `WouldBlock` if there are none.
    pub(super) fn receive(
        &self,
        socket: &OwnedFd,
        buffer: &mut [u8],
    ) -> io::Result<ReceivedDatagrams> {
        let mut meta = [RecvMeta::default()];
        self.state
            .recv(socket.into(), &mut [IoSliceMut::new(buffer)], &mut meta)?;
        let [meta] = meta;
        Ok(ReceivedDatagrams {
            length: meta.len,
            stride: meta.stride.max(1),
            source: meta.addr,
            ecn: meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8)),
        })
    }

    /// Sends datagrams. Returns false if the kernel has no space: then it keeps them for [`DatagramSocket::flush`].
    pub(super) fn send(
        &mut self,
        socket: &OwnedFd,
        transmit: Transmit,
        bytes: &[u8],
    ) -> io::Result<bool> {
        debug_assert!(self.unsent.is_none(), "datagrams overtake earlier ones");
        match self.try_send(socket, &transmit, bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.unsent = Some((transmit, bytes.to_vec()));
                Ok(false)
            }
            sent => sent.map(|()| true),
        }
    }

    /// Bytes of kept datagrams, and of each of them.
    pub(super) fn unsent(&self) -> Option<(usize, usize)> {
        self.unsent.as_ref().map(|(transmit, _)| sizes(transmit))
    }

    /// Sends kept datagrams. Returns false if the kernel has no space yet.
    pub(super) fn flush(&mut self, socket: &OwnedFd) -> io::Result<bool> {
        match self.unsent.take() {
            None => Ok(true),
            Some((transmit, bytes)) => self.send(socket, transmit, &bytes),
        }
    }

    fn try_send(&self, socket: &OwnedFd, transmit: &Transmit, bytes: &[u8]) -> io::Result<()> {
        let ecn = transmit.ecn;
        self.state.try_send(
            socket.into(),
            &quinn_udp::Transmit {
                destination: transmit.destination,
                ecn: ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
                contents: bytes,
                segment_size: transmit.segment_size,
                src_ip: transmit.src_ip,
            },
        )
    }
}
