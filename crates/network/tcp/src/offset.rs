//! Unwrapped sequence numbers. Comparisons do not fail at 2^32.

/// A position in one direction of a connection. The SYN is 0, the first byte of data 1, and the FIN follows the last
/// byte. Never wraps.
pub type Offset = u64;

/// Returns the 32-bit sequence number of an offset in a stream that begins at `isn`.
pub const fn wrap(isn: u32, offset: Offset) -> u32 {
    isn.wrapping_add(offset as u32)
}

/// Returns the offset nearest to `near` of a 32-bit number, in a stream that begins at `isn`.
///
/// None if the nearest offset lies before the SYN. A distance of more than half of the number space cannot occur in an
/// open connection (RFC 9293, section 3.4).
pub const fn unwrap(isn: u32, number: u32, near: Offset) -> Option<Offset> {
    let distance = number.wrapping_sub(wrap(isn, near)) as i32;
    near.checked_add_signed(distance as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn wrapped_offsets_unwrap_near_their_reference(isn: u32, near in 0u64..1 << 40, off in -(1i64 << 31)..1 << 31) {
            prop_assume!(near as i64 + off >= 0);
            let offset = (near as i64 + off) as u64;
            prop_assert_eq!(unwrap(isn, wrap(isn, offset), near), Some(offset));
        }
    }

    #[test]
    fn nothing_lies_before_the_syn() {
        assert_eq!(unwrap(5, 4, 0), None);
        assert_eq!(unwrap(u32::MAX, 0, 0), Some(1));
    }
}
