//! Growth by one segment for so much acknowledged (RFC 5681, section 3.1): three ways to count it.

/// BSD of 2005: `mss² / window` at every acknowledgement (RFC 5681, equation 3).
pub(super) fn per_ack(mss: u64, window: u64) -> u64 {
    (mss * mss / window.max(1)).max(1)
}

/// Linux of 2005 (`tcp_cong_avoid`): acknowledgements count, one that finds enough is spent on
/// the growth. Returns segments to grow by.
pub(super) fn per_acks(credit: &mut u64, mss: u64, need: u64) -> u64 {
    if *credit >= need {
        *credit = 0;
        return 1;
    }
    *credit += mss;
    0
}

/// RFC 3465, section 2.1, and Linux since 3.18 (`tcp_cong_avoid_ai`): bytes count. Credit that
/// was gathered at a higher need buys one segment at most. Returns segments to grow by.
pub(super) fn per_bytes(credit: &mut u64, bytes: u64, need: u64) -> u64 {
    let need = need.max(1);
    let before = u64::from(*credit >= need);
    if before > 0 {
        *credit = 0;
    }
    *credit += bytes;
    let gained = *credit / need;
    *credit %= need;
    before + gained
}
