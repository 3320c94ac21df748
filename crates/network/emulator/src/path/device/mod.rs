//! The emulator's end of a pair of devices: receives frames with the kernel's arrival stamp, and sends frames.
//!
//! Frames arrive in a ring that is shared with the kernel (TPACKET_V2). Its size is our choice, while the buffer of a
//! socket is limited for users, and polling it needs no system call. Rejected alternatives: TPACKET_V3 delivers blocks,
//! late by their timeout; from a send ring the receiving host would read long after the kernel has returned its frames.

mod ring;

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};

use ring::Ring;

/// A received frame.
pub(crate) struct ArrivedFrame<'a> {
    /// The part that fits into a slot of the ring: any frame of the usual size.
    pub(crate) bytes: &'a [u8],
    /// Time in nanoseconds of the wall clock when the sender's device sent it, stamped by the kernel.
    pub(crate) stamp: u64,
    /// Metadata from the kernel.
    pub(crate) flags: FrameFlags,
}

/// Properties of a frame that its bytes do not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameFlags {
    /// Longer than its slot; only the beginning is here.
    pub(crate) cut: bool,
    /// Several segments, left to a device to split.
    pub(crate) segments: bool,
    /// A checksum is missing, left to a device to fill in.
    pub(crate) unsummed: bool,
    /// The kernel has removed a VLAN tag.
    pub(crate) tagged: bool,
}

/// A socket on one device that receives and sends all frames.
pub(crate) struct Device {
    /// Index of the device in its network namespace.
    pub(crate) index: u32,
    socket: OwnedFd,
    ring: Ring,
}

impl Device {
    /// Opens the device with this index in the calling thread's network namespace.
    pub(crate) fn open(index: u32) -> Result<Self, Errno> {
        let socket = ring::socket()?;
        let ring = Ring::map(&socket)?;
        ring::bind(&socket, index)?;
        Ok(Self {
            index,
            socket,
            ring,
        })
    }

    /// True if a frame waits. Reads memory only.
    pub(crate) fn has_arrival(&self) -> bool {
        self.ring.is_filled()
    }

    /// Passes the next frame to `take` in the kernel's memory. Returns false if none has arrived.
    pub(crate) fn receive(&mut self, take: impl FnOnce(ArrivedFrame<'_>)) -> bool {
        self.ring.take(take)
    }

    /// Sends a frame, given as header and packet. The other end has it when this returns.
    pub(crate) fn send(&self, head: &[u8], packet: &[u8]) -> Result<(), Errno> {
        let parts = [IoSlice::new(head), IoSlice::new(packet)];
        let mut nothing = SendAncillaryBuffer::default();
        rustix::net::sendmsg(&self.socket, &parts, &mut nothing, SendFlags::DONTWAIT).map(|_| ())
    }

    /// Frames dropped because the ring was full, since the last call.
    pub(crate) fn take_overruns(&self) -> Result<u64, Errno> {
        ring::take_overruns(&self.socket)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
