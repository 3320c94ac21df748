//! `freebsd-6.0`: FreeBSD of November 2005, as the packet-loss study ran it.
//!
//! Taken from the sources of February 2006 (sys/netinet/tcp_*.c) unless marked "from memory". The first flight of three
//! segments was chosen after the fact, because it fits the study's numbers. In the code the acknowledgement of the
//! SYN-ACK adds a segment to RFC 3390's 4380 bytes, which makes four.

use posthaste_units::Span;

use super::*;
use crate::congestion::{Avoidance, Basis, Counting, Exit, GrowthLimit, Restart, SlowStart};

pub(super) fn profile() -> Profile {
    Profile {
        name: "freebsd-6.0",
        about: "FreeBSD 6.0 (2005): NewReno and SACK, 200 ms added to every timeout",
        // kern.hz = 1000 since 2005 on i386.
        clock: TimerClock::Ticks(Span::from_millis(1)),
        offer: OfferedOptions {
            mss: 1460,
            // TCP_MAXWIN << 0 is less than net.inet.tcp.recvspace.
            window_scale: Some(1),
            timestamps: true,
            // The option holds `ticks`.
            timestamp_tick: Span::from_millis(1),
            // net.inet.tcp.sack.enable = 1.
            sack: true,
        },
        handshake: HANDSHAKE,
        // net.inet.tcp.sendspace and recvspace, rounded up to whole segments by tcp_mss().
        send_buffer: 33_304,
        receive_buffer: 66_608,
        rtt: RttRule::Bsd,
        timeout: TimeoutRule {
            // TCPTV_RTOBASE.
            initial: Span::from_secs(3),
            // TCPTV_MIN: net.inet.tcp.rexmit_min = 30.
            minimum: Span::from_millis(30),
            // TCPTV_CPU_VAR: net.inet.tcp.rexmit_slop = 200.
            slop: Span::from_millis(200),
            variance_floor: Span::ZERO,
            granularity: Span::from_millis(1),
            // TCPTV_REXMTMAX.
            maximum: Span::from_secs(64),
            // tcp_backoff ends at 64.
            doublings: 6,
        },
        round_trips: RoundTrips::ByEcho,
        // TCPTV_PERSMIN and TCPTV_PERSMAX.
        persist: Persist {
            minimum: Span::from_secs(5),
            maximum: Span::from_secs(60),
            with_data: true,
        },
        initial_window: InitialWindow::Segments(3),
        control: Control {
            avoidance: Avoidance::Reno,
            slow_start: SlowStart::PerAck,
            exit: Exit::AtLoss,
            counting: Counting::Bytes,
            limit: GrowthLimit::Ignored,
            basis: Basis::Usable,
            restart: Restart::Segments(3),
        },
        // The engine inflates the window itself.
        reduction: ReductionRule::AtOnce,
        recovery: RECOVERY,
        nagle: Nagle::Later,
        // net.inet.tcp.delacktime = 100.
        ack: AckRule::Bsd {
            delay: Span::from_millis(100),
        },
        window: WindowRule::Bsd,
        strictness: Strictness {
            rfc5961: false,
            // dropafterack in tcp_input() has no limit.
            answers: Answers {
                to_unsent: true,
                limit: None,
                limits_empty: false,
            },
            // net.inet.tcp.insecure_rst = 0 (from memory).
            exact_reset: true,
            every_timestamp: false,
            timestamp_needs_ack: false,
            any_window: false,
            dsack: false,
        },
        adaptive_acks: None,
    }
}

const HANDSHAKE: Handshake = Handshake {
    // tcp_syn_backoff = 1, 1, 1, 1, 1, 2, 4 ... (from memory). The connection is given up after TCPTV_KEEP_INIT, 75 s;
    // seven retransmissions are the closest match.
    syn: Retries {
        initial: Span::from_secs(3),
        linear: 4,
        count: 7,
    },
    // Doubling, net.inet.tcp.syncache.rexmtlimit = 3.
    syn_ack: Retries {
        initial: Span::from_secs(3),
        linear: 0,
        count: 3,
    },
    // syncache_socket(): sc_rxtslot > 0 (from memory).
    single_after: Some(0),
    // TCP_MAXRXTSHIFT.
    retries: 12,
    // Twice net.inet.tcp.msl = 30 s.
    time_wait: Span::from_secs(60),
    // tcp_maxidle: TCPTV_KEEPCNT of TCPTV_KEEPINTVL.
    fin_wait_2: Some(Span::from_secs(600)),
};

/// tcprexmtthresh = 3, net.inet.tcp.rfc3042 = 1.
const RECOVERY: Recovery = Recovery::by(RecoveryEngine::Bsd {
    // `tiwin == tp->snd_wnd` in tcp_input().
    window_must_match: true,
});
