//! Random bytes from the kernel.

use rustix::rand::{GetRandomFlags, getrandom};

/// Random bytes, fit for keys.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty());
    // getrandom(2): requests of up to 256 bytes are complete once the pool is initialised, and are not interrupted.
    assert_eq!(filled, Ok(N), "the kernel has random bytes");
    bytes
}
