//! `linux-6`: Linux of 2022 to 2026, and the profiles that match the emulator's kernel presets.
//!
//! Taken from the sources of 6.12 (net/ipv4/tcp_*.c) unless marked "from memory". The growing send buffer (`tcp_wmem`)
//! has its largest size. Not modelled: pacing, TCP small queues.

use posthaste_units::Span;

use super::*;
use crate::congestion::{Avoidance, Basis, Counting, Exit, GrowthLimit, Restart, SlowStart};
use crate::receive::ack::AckCompression;
use crate::reduction::ReductionBound;

/// CONFIG_HZ = 250, as on Debian and on the emulator's test machine.
const JIFFY: Span = Span::from_millis(4);

/// The preset `default` is this kernel with CUBIC, which equals `linux-6`.
pub(super) fn default() -> Profile {
    Profile {
        name: "default",
        about: "the twin of the kernel preset default: linux-6 by its other name",
        ..profile()
    }
}

/// The preset `linux-2005`: Reno, no SACK, an initial window of 3, no F-RTO. The rest is as in `linux-6`.
pub(super) fn linux_2005() -> Profile {
    let modern = profile();
    Profile {
        name: "linux-2005",
        about: "the twin of the kernel preset linux-2005: today's Linux with Reno, without SACK \
                and F-RTO, three segments at first",
        offer: OfferedOptions {
            sack: false,
            ..modern.offer
        },
        initial_window: InitialWindow::Segments(3),
        control: Control {
            avoidance: Avoidance::Reno,
            exit: Exit::AtLoss,
            ..modern.control
        },
        recovery: Recovery {
            frto: false,
            ..modern.recovery
        },
        ..modern
    }
}

pub(super) fn profile() -> Profile {
    Profile {
        name: "linux-6",
        about: "Linux 6 (2022-2026): CUBIC with HyStart, RACK and tail loss probes, PRR",
        clock: TimerClock::Wheel(JIFFY),
        offer: OfferedOptions {
            mss: 1460,
            // From the largest of tcp_rmem, 32 MB since 6.17 (6 MB and 7 before).
            window_scale: Some(10),
            timestamps: true,
            // TCP_TS_HZ.
            timestamp_tick: Span::from_millis(1),
            sack: true,
        },
        handshake: HANDSHAKE,
        send_buffer: 4_194_304,
        // The window of the largest of tcp_rmem with full segments of 1448 bytes.
        receive_buffer: 20_971_520,
        rtt: RttRule::Linux {
            unit: Span::from_micros(1),
        },
        timeout: TimeoutRule {
            // TCP_TIMEOUT_INIT.
            initial: Span::from_secs(1),
            minimum: Span::ZERO,
            slop: Span::ZERO,
            // TCP_RTO_MIN.
            variance_floor: Span::from_millis(200),
            granularity: JIFFY,
            // TCP_RTO_MAX.
            maximum: Span::from_secs(120),
            doublings: 32,
        },
        round_trips: RoundTrips::BySegment,
        persist: Persist {
            minimum: Span::from_millis(200),
            maximum: Span::from_secs(120),
            with_data: false,
        },
        // TCP_INIT_CWND.
        initial_window: InitialWindow::Segments(10),
        control: CONTROL,
        // tcp_cwnd_reduction().
        reduction: ReductionRule::Proportional {
            bound: ReductionBound::Heuristic,
        },
        recovery: RECOVERY,
        nagle: Nagle::Small,
        ack: ACKNOWLEDGEMENTS,
        window: WindowRule::LinuxGrowing {
            // The middle value of tcp_rmem.
            memory: 131_072,
        },
        strictness: Strictness {
            rfc5961: true,
            answers: ANSWERS,
            exact_reset: false,
            every_timestamp: false,
            // tcp_ack() calls tcp_replace_ts_recent() since 3.9.
            timestamp_needs_ack: true,
            any_window: false,
            // tcp_dsack = 1.
            dsack: true,
        },
        adaptive_acks: None,
    }
}

/// CUBIC with HyStart, by segments (tcp_cubic.c, tcp_cong.c).
const CONTROL: Control = Control {
    avoidance: Avoidance::Cubic {
        halves_first: false,
    },
    slow_start: SlowStart::PerSegment,
    exit: Exit::HyStart,
    counting: Counting::Segments,
    limit: GrowthLimit::Validated,
    basis: Basis::Window,
    restart: Restart::Halving,
};

const ACKNOWLEDGEMENTS: AckRule = AckRule::Linux {
    // TCP_MAX_QUICKACKS.
    quick: 16,
    // TCP_DELACK_MIN and TCP_DELACK_MAX.
    min: Span::from_millis(40),
    max: Span::from_millis(200),
    compression: Some(AckCompression {
        // TCP_FASTRETRANS_THRESH, tcp_comp_sack_nr, tcp_comp_sack_delay_ns.
        free: 3,
        held: 44,
        delay: Span::from_millis(1),
    }),
    push_ends: true,
    early_write: false,
};

const HANDSHAKE: Handshake = Handshake {
    // tcp_syn_linear_timeouts = 4 (since 6.5), in addition to tcp_syn_retries = 6: the last after 67 s.
    syn: Retries {
        initial: Span::from_secs(1),
        linear: 4,
        count: 10,
    },
    // tcp_synack_retries = 5.
    syn_ack: Retries {
        initial: Span::from_secs(1),
        linear: 0,
        count: 5,
    },
    // tcp_init_transfer(): total_retrans > 1 && undo_marker.
    single_after: Some(1),
    // tcp_retries2.
    retries: 15,
    // TCP_TIMEWAIT_LEN and tcp_fin_timeout.
    time_wait: Span::from_secs(60),
    fin_wait_2: Some(Span::from_secs(60)),
};

/// tcp_invalid_ratelimit, for challenges and for tcp_send_dupack(). All observed on 6.18.
const ANSWERS: Answers = Answers {
    to_unsent: true,
    limit: Some(AnswerLimit {
        most: 1,
        within: Span::from_millis(500),
    }),
    limits_empty: true,
};

/// tcp_reordering = 3.
const RECOVERY: Recovery = Recovery {
    // tcp_early_retrans = 3: TCP_TIMEOUT_MIN_US, and TCP_RTO_MIN if one segment is in flight.
    tail_probe: Some(TailProbe {
        extra: Span::from_millis(2),
        delayed_ack: Span::from_millis(200),
    }),
    // tcp_recovery = 1.
    rack: true,
    // tcp_frto = 2.
    frto: true,
    undo: true,
    ..Recovery::by(RecoveryEngine::Pipe {
        fack: false,
        // tcp_cwnd_test() no longer exempts the final FIN; observed on 6.18.
        free_fin: false,
        // tcp_tso_should_defer(); segmentation is offloaded on every path since 4.17.
        defers: true,
    })
};
