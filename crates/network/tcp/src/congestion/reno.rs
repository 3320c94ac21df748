//! Growth by one segment for a number of acknowledged bytes (RFC 5681, section 3.1), counted in three ways.

/// BSD of 2005: `mss² / window` at every acknowledgement (RFC 5681, equation 3).
pub(super) fn per_ack(mss: u64, window: u64) -> u64 {
    (mss * mss / window.max(1)).max(1)
}

/// Linux of 2005 (`tcp_cong_avoid`): counts acknowledgements. One that finds enough credit only triggers the growth.
/// Returns the segments to grow by.
pub(super) fn per_acks(credit: &mut u64, mss: u64, need: u64) -> u64 {
    if *credit >= need {
        *credit = 0;
        return 1;
    }
    *credit += mss;
    0
}

/// RFC 3465, section 2.1, and Linux since 3.18 (`tcp_cong_avoid_ai`): counts bytes. Credit gathered at a higher need
/// gives at most one segment. Returns the segments to grow by.
pub(super) fn per_bytes(credit: &mut u64, bytes: u64, need: u64) -> u64 {
    let need = need.max(1);
    let before = u64::from(*credit >= need);
    if before > 0 {
        *credit = 0;
    }
    *credit += bytes;
    let gained = *credit / need;
    *credit %= need;
    debug_assert!(
        before == 0 || gained * need + *credit == bytes,
        "old credit counts twice"
    );
    before + gained
}
