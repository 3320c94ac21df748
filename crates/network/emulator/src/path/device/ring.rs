//! Packet sockets and their ring: the system calls, and the memory that the kernel writes to.
//!
//! The first word of each slot states its owner: the kernel or the process. Only that word is read while it may change
//! (packet(7), and packet_mmap.rst of the kernel).

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{c_int, c_void};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::{ArrivedFrame, FrameFlags};

/// Bytes of a slot: the kernel's header and a frame of 1,514 bytes fit.
const SLOT: usize = 2048;
/// Slots: 70 ms of packets at 60,000 a second, in 8 MiB.
const SLOTS: usize = 4096;
/// Bytes that the kernel allocates in one piece.
const BLOCK: usize = 64 << 10;

const _: () = assert!(
    (SLOT * SLOTS).is_multiple_of(BLOCK),
    "a ring has whole blocks"
);
const _: () = assert!(BLOCK.is_multiple_of(SLOT), "a block has whole slots");

/// Bits of a slot's state (linux/if_packet.h) that libc lacks.
const TP_STATUS_GSO_TCP: u32 = 1 << 8;

/// Slots that the kernel fills in turn.
pub(super) struct Ring {
    memory: NonNull<u8>,
    next: usize,
}

// SAFETY: the memory is shared with the kernel only, and reached through one `Ring`, which may be
// in any thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Requests a ring on a socket that is not bound yet, and maps it.
    pub(super) fn map(socket: &OwnedFd) -> Result<Self, Errno> {
        let version = libc::tpacket_versions::TPACKET_V2 as c_int;
        set(socket, libc::SOL_PACKET, libc::PACKET_VERSION, version)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (SLOT * SLOTS / BLOCK) as u32,
            tp_frame_size: SLOT as u32,
            tp_frame_nr: SLOTS as u32,
        };
        set(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, request)?;
        // SAFETY: a new mapping, placed by the kernel, of the ring just requested.
        let memory = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                SLOT * SLOTS,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                socket,
                0,
            )
        }?;
        let memory = NonNull::new(memory.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { memory, next: 0 })
    }

    /// True if the next slot has a frame.
    pub(super) fn is_filled(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Passes the next frame to `take`, then returns its slot to the kernel.
    pub(super) fn take(&mut self, take: impl FnOnce(ArrivedFrame<'_>)) -> bool {
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return false;
        }
        let slot = self.slot();
        // SAFETY: the status says that the slot is ours. It begins with this header, aligned as the kernel aligns
        // slots, and nothing writes to it until it is returned below.
        let header = unsafe { slot.cast::<libc::tpacket2_hdr>().as_ref() };
        let start = usize::from(header.tp_mac).min(SLOT);
        debug_assert!(
            start >= size_of::<libc::tpacket2_hdr>(),
            "a frame overlaps the header of its slot"
        );
        let length = (header.tp_snaplen as usize).min(SLOT - start);
        // SAFETY: start and length stay inside the slot, which is ours as above.
        let bytes = unsafe { std::slice::from_raw_parts(slot.add(start).as_ptr(), length) };
        take(ArrivedFrame {
            bytes,
            stamp: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            flags: FrameFlags {
                cut: header.tp_len > header.tp_snaplen,
                segments: status & TP_STATUS_GSO_TCP != 0,
                unsummed: status & libc::TP_STATUS_CSUMNOTREADY != 0,
                tagged: status & libc::TP_STATUS_VLAN_VALID != 0,
            },
        });
        self.status()
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % SLOTS;
        true
    }

    /// The next slot.
    fn slot(&self) -> NonNull<u8> {
        debug_assert!(self.next < SLOTS, "the next slot is outside the ring");
        // SAFETY: `next` is less than SLOTS, so this stays inside the mapping.
        unsafe { self.memory.add(self.next * SLOT) }
    }

    /// The word that states the owner of the next slot.
    fn status(&self) -> &AtomicU32 {
        // SAFETY: each slot begins with that word, aligned, for as long as the mapping lives.
        unsafe { self.slot().cast::<AtomicU32>().as_ref() }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and of this length, and nothing borrowed from it is left. A failure would leave
        // it mapped, which is harmless.
        let _ = unsafe { rustix::mm::munmap(self.memory.as_ptr().cast(), SLOT * SLOTS) };
    }
}

/// A packet socket that is not bound yet. It will receive frames that others send on its device, with arrival stamps,
/// and none of its own.
pub(super) fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
    let on: c_int = 1;
    set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, on)?;
    set(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, on)?;
    set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, on)?;
    Ok(socket)
}

/// Binds the socket to a device. It receives frames from now on.
pub(super) fn bind(socket: &OwnedFd, index: u32) -> Result<(), Errno> {
    // SAFETY: sockaddr_ll is plain data, for which zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as c_int;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the address is of the length given.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    outcome(result)
}

/// Frames dropped because the ring was full. Resets the kernel's counter.
pub(super) fn take_overruns(socket: &OwnedFd) -> Result<u64, Errno> {
    // SAFETY: tpacket_stats is plain data, for which zeros are valid.
    let mut statistics: libc::tpacket_stats = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &mut length,
        )
    };
    outcome(result).map(|()| u64::from(statistics.tp_drops))
}

/// Sets a socket option to a value of plain data.
fn set<T: Copy>(socket: &OwnedFd, level: c_int, option: c_int, value: T) -> Result<(), Errno> {
    let value: *const c_void = (&raw const value).cast();
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel reads at most `length` bytes of the value.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) };
    outcome(result)
}

fn outcome(result: c_int) -> Result<(), Errno> {
    match result {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}
