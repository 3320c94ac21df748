//! The emulator's end of a pair of devices: frames out of it with the kernel's arrival stamp, and
//! frames into it.
//!
//! Receiving goes through a ring that is shared with the kernel (TPACKET_V2): a burst then has as
//! much room as we ask for, where the buffer of a socket is limited for users, and looking for
//! news costs no system call. TPACKET_V3 hands over blocks, late by their timeout; a ring for
//! sending would be read by the receiving host long after the kernel has given its frames back.

mod ring;

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};

use ring::Ring;

/// A frame that has come.
pub(crate) struct Arrival<'a> {
    /// As much of it as fits a place of the ring: any frame of the usual size.
    pub(crate) bytes: &'a [u8],
    /// Nanoseconds of the wall clock, by the kernel, when the sender's device let go of it.
    pub(crate) stamp: u64,
    /// What the kernel says of it that its bytes do not.
    pub(crate) state: State,
}

/// What is true of a frame beside its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Longer than its place: only the beginning is here.
    pub(crate) cut: bool,
    /// Segments that a device was expected to cut.
    pub(crate) segments: bool,
    /// A checksum that a device was expected to fill in is missing.
    pub(crate) unsummed: bool,
    /// A VLAN's tag, which the kernel has already taken off.
    pub(crate) tagged: bool,
}

/// A socket on one device that takes every frame and sends any.
pub(crate) struct Device {
    /// Its number in the network it was opened in.
    pub(crate) index: u32,
    socket: OwnedFd,
    ring: Ring,
}

impl Device {
    /// Opens the device of that number in the calling thread's network.
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

    /// Whether a frame waits; looks at memory only.
    pub(crate) fn has_arrival(&self) -> bool {
        self.ring.is_filled()
    }

    /// The next frame, given to `take` in the kernel's memory; false when none has come.
    pub(crate) fn receive(&mut self, take: impl FnOnce(Arrival<'_>)) -> bool {
        self.ring.take(take)
    }

    /// Sends a frame, given as its head and the rest; the other end has it when this returns.
    pub(crate) fn send(&self, head: &[u8], packet: &[u8]) -> Result<(), Errno> {
        let parts = [IoSlice::new(head), IoSlice::new(packet)];
        let mut nothing = SendAncillaryBuffer::default();
        rustix::net::sendmsg(&self.socket, &parts, &mut nothing, SendFlags::DONTWAIT).map(|_| ())
    }

    /// Frames that came and found the ring full, since this was last asked.
    pub(crate) fn take_overruns(&self) -> Result<u64, Errno> {
        ring::take_overruns(&self.socket)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
