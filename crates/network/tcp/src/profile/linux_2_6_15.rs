//! `linux-2.6.15`: Linux of January 2006, as the packet-loss study ran it.
//!
//! Taken from the sources of 2.6.18 (net/ipv4/tcp_*.c), a close version, unless marked "from memory". Growing buffers
//! have the size that an exchange of some kilobytes sees.
//!
//! The timing of acknowledgements was also read in 2.6.12 and is the same there: two immediate ones at first
//! (`tcp_incr_quickack`: half of 5,840 bytes), and another one with each growth of the window (`tcp_grow_window`). A
//! client that connects, writes and reads therefore acknowledges every segment of a short reply at once.

use posthaste_units::Span;

use super::*;
use crate::congestion::{Avoidance, Basis, Counting, Exit, GrowthLimit, Restart, SlowStart};

/// HZ = 250, the default since 2.6.13.
const JIFFY: Span = Span::from_millis(4);

/// The same stack at a client that writes before its connection is established.
///
/// The request carries the acknowledgement of the SYN-ACK, and is sent within the delay of an acknowledgement
/// (`tcp_event_data_sent`). The connection counts as interactive from then on: the first segment of the reply is
/// acknowledged with the second one or after 40 ms.
pub(super) fn early_write() -> Profile {
    Profile {
        name: "linux-2.6.15-early-write",
        about: "linux-2.6.15 with a client that writes before it is connected: the first segments \
                of a reply are acknowledged late",
        ack: acknowledgements(true),
        ..profile()
    }
}

pub(super) fn profile() -> Profile {
    Profile {
        name: "linux-2.6.15",
        about: "Linux 2.6.15 (2006): BIC, SACK with FACK, rate halving, timeouts of 200 ms at least",
        clock: TimerClock::Ticks(JIFFY),
        offer: OfferedOptions {
            mss: 1460,
            // From the largest of tcp_rmem, 174,760 bytes.
            window_scale: Some(2),
            timestamps: true,
            // The option holds jiffies.
            timestamp_tick: JIFFY,
            sack: true,
        },
        handshake: HANDSHAKE,
        // The middle value of tcp_wmem grows with the window up to its maximum.
        send_buffer: 131_072,
        // Three quarters of the middle value of tcp_rmem: tcp_adv_win_scale = 2.
        receive_buffer: 65_535,
        rtt: RttRule::Linux { unit: JIFFY },
        timeout: TimeoutRule {
            // TCP_TIMEOUT_INIT.
            initial: Span::from_secs(3),
            minimum: Span::ZERO,
            slop: Span::ZERO,
            // TCP_RTO_MIN.
            variance_floor: Span::from_millis(200),
            granularity: JIFFY,
            // TCP_RTO_MAX.
            maximum: Span::from_secs(120),
            doublings: 32,
        },
        round_trips: RoundTrips::ByEcho,
        persist: Persist {
            minimum: Span::from_millis(200),
            maximum: Span::from_secs(120),
            with_data: false,
        },
        initial_window: InitialWindow::Rfc2414,
        control: Control {
            // CONFIG_DEFAULT: BIC from 2.6.8 to 2.6.18.
            avoidance: Avoidance::Bic,
            slow_start: SlowStart::PerAck,
            exit: Exit::AtLoss,
            counting: Counting::Segments,
            limit: GrowthLimit::Full,
            basis: Basis::Window,
            restart: Restart::Halving,
        },
        // tcp_cwnd_down().
        reduction: ReductionRule::RateHalving,
        recovery: RECOVERY,
        nagle: Nagle::Small,
        ack: acknowledgements(false),
        window: WindowRule::Linux {
            // Four segments at first: tcp_select_initial_window().
            first: 5840,
        },
        strictness: Strictness {
            rfc5961: false,
            // tcp_ack() silently drops acknowledgements of unsent data; limits came with 3.6.
            answers: Answers {
                to_unsent: false,
                limit: None,
                limits_empty: false,
            },
            exact_reset: false,
            every_timestamp: false,
            timestamp_needs_ack: false,
            any_window: false,
            // tcp_dsack = 1.
            dsack: true,
        },
        adaptive_acks: None,
    }
}

const fn acknowledgements(early_write: bool) -> AckRule {
    AckRule::Linux {
        // TCP_MAX_QUICKACKS.
        quick: 16,
        // TCP_DELACK_MIN and TCP_DELACK_MAX.
        min: Span::from_millis(40),
        max: Span::from_millis(200),
        compression: None,
        push_ends: false,
        early_write,
    }
}

const HANDSHAKE: Handshake = Handshake {
    // TCP_TIMEOUT_INIT, tcp_syn_retries = 5, tcp_synack_retries = 5.
    syn: Retries {
        initial: Span::from_secs(3),
        linear: 0,
        count: 5,
    },
    syn_ack: Retries {
        initial: Span::from_secs(3),
        linear: 0,
        count: 5,
    },
    // tcp_init_metrics() requires no retransmission.
    single_after: None,
    // tcp_retries2.
    retries: 15,
    // TCP_TIMEWAIT_LEN and tcp_fin_timeout.
    time_wait: Span::from_secs(60),
    fin_wait_2: Some(Span::from_secs(60)),
};

/// tcp_reordering = 3; tcp_frto = 0 until 2.6.24.
const RECOVERY: Recovery = Recovery {
    undo: true,
    ..Recovery::by(RecoveryEngine::Pipe {
        // tcp_fack = 1.
        fack: true,
        // "Don't be strict about the congestion window for the final FIN": tcp_cwnd_test().
        free_fin: true,
        // Applies only with segmentation offload (TSO); this profile models a device without it.
        defers: false,
    })
};
