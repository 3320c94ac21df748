//! `freebsd-14`: FreeBSD of 2023 with its default stack.
//!
//! Taken from the sources (sys/netinet/tcp_*.c, cc/cc_cubic.c) unless marked "from memory". The stack marks segments in
//! the scoreboard with a pipe and PRR, as RFC 6675 and RFC 6937 describe, so it uses that engine. Growing buffers have
//! their largest size from the start.

use posthaste_units::Span;

use super::*;
use crate::congestion::{Avoidance, Basis, Counting, Exit, GrowthLimit, Restart, SlowStart};
use crate::reduction::ReductionBound;

pub(super) fn profile() -> Profile {
    Profile {
        name: "freebsd-14",
        about: "FreeBSD 14 (2023), default stack: CUBIC, SACK with a pipe, PRR",
        clock: TimerClock::Exact,
        offer: OfferedOptions {
            mss: 1460,
            // From kern.ipc.maxsockbuf of 2 MB.
            window_scale: Some(6),
            timestamps: true,
            timestamp_tick: Span::from_millis(1),
            sack: true,
        },
        handshake: HANDSHAKE,
        // net.inet.tcp.sendbuf_max and recvbuf_max.
        send_buffer: 2_097_152,
        receive_buffer: 2_097_152,
        rtt: RttRule::Bsd,
        timeout: TimeoutRule {
            // net.inet.tcp.rexmit_initial = 1000.
            initial: Span::from_secs(1),
            // TCPTV_MIN and TCPTV_CPU_VAR.
            minimum: Span::from_millis(30),
            slop: Span::from_millis(200),
            variance_floor: Span::ZERO,
            granularity: Span::from_millis(1),
            maximum: Span::from_secs(64),
            // tcp_backoff ends at 512.
            doublings: 9,
        },
        round_trips: RoundTrips::ByEcho,
        persist: Persist {
            minimum: Span::from_secs(5),
            maximum: Span::from_secs(60),
            with_data: true,
        },
        // net.inet.tcp.initcwnd_segments = 10 (from memory).
        initial_window: InitialWindow::Segments(10),
        control: Control {
            avoidance: Avoidance::Cubic { halves_first: true },
            // net.inet.tcp.abc_l_var = 2 (from memory).
            slow_start: SlowStart::Bytes { limit: 2 },
            exit: Exit::AtLoss,
            counting: Counting::Bytes,
            limit: GrowthLimit::Full,
            basis: Basis::Usable,
            restart: Restart::Segments(10),
        },
        // net.inet.tcp.do_prr = 1, do_prr_conservative = 0.
        reduction: ReductionRule::Proportional {
            bound: ReductionBound::SlowStart,
        },
        recovery: RECOVERY,
        nagle: Nagle::Later,
        // TCPTV_DELACK.
        ack: AckRule::Bsd {
            delay: Span::from_millis(40),
        },
        window: WindowRule::BsdQuarter,
        strictness: Strictness {
            rfc5961: true,
            // net.inet.tcp.ack_war_cnt and ack_war_timewindow.
            answers: Answers {
                to_unsent: true,
                limit: Some(AnswerLimit {
                    most: 5,
                    within: Span::from_secs(1),
                }),
                limits_empty: false,
            },
            exact_reset: false,
            every_timestamp: false,
            timestamp_needs_ack: false,
            any_window: false,
            // Sent since FreeBSD 13.
            dsack: true,
        },
        adaptive_acks: None,
    }
}

const HANDSHAKE: Handshake = Handshake {
    // tcp_backoff doubles from the first retransmission on. The connection is given up after 75 s.
    syn: Retries {
        initial: Span::from_secs(1),
        linear: 0,
        count: 5,
    },
    // net.inet.tcp.syncache.rexmtlimit = 3.
    syn_ack: Retries {
        initial: Span::from_secs(1),
        linear: 0,
        count: 3,
    },
    // syncache_socket(): sc_rxmits > 1, the first transmission counted (from memory).
    single_after: Some(0),
    // TCP_MAXRXTSHIFT.
    retries: 12,
    // Twice net.inet.tcp.msl.
    time_wait: Span::from_secs(60),
    // net.inet.tcp.finwait2_timeout.
    fin_wait_2: Some(Span::from_secs(60)),
};

const RECOVERY: Recovery = Recovery::by(RecoveryEngine::Pipe {
    fack: false,
    free_fin: false,
    defers: false,
});
