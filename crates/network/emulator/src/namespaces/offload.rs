//! Switches the offloads of a device off, so that it passes packets as they would be on a wire.
//!
//! With offloads, a veth device carries segments of 64 KiB without checksums. One loss would hit forty packets, and a
//! flipped bit would go unnoticed.

use std::io;
use std::os::fd::AsRawFd as _;

use rustix::net::{AddressFamily, SocketType, socket};

/// The ethtool commands that set one offload each (linux/ethtool.h).
const OFFLOADS: [(&str, u32); 6] = [
    ("rx checksum", 0x15),
    ("tx checksum", 0x17),
    ("scatter-gather", 0x19),
    ("tso", 0x1f),
    ("gso", 0x24),
    ("gro", 0x2c),
];

/// Argument of the commands (struct ethtool_value).
#[repr(C)]
struct Setting {
    command: u32,
    data: u32,
}

/// Switches the offloads of the device called `name` off, in the calling thread's network namespace.
pub(crate) fn disable(name: &str) -> io::Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: ifreq is plain data, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let places = request.ifr_name.len() - 1;
    assert!(
        name.len() <= places,
        "the kernel cuts the name {name:?} of a device"
    );
    for (slot, byte) in request.ifr_name[..places].iter_mut().zip(name.bytes()) {
        *slot = byte as libc::c_char;
    }
    for (offload, command) in OFFLOADS {
        let mut setting = Setting { command, data: 0 };
        request.ifr_ifru.ifru_data = (&raw mut setting).cast();
        // SAFETY: the descriptor is open. The request names a zero-terminated device and points to a setting that
        // outlives the call. The call reads its two words.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &mut request) };
        if result != 0 {
            let error = io::Error::last_os_error();
            return Err(io::Error::new(
                error.kind(),
                format!("{offload} stays on: {error}"),
            ));
        }
    }
    Ok(())
}
