//! `rfc`: the standards as of 2026, followed literally.

use posthaste_units::Span;

use super::*;
use crate::congestion::{Avoidance, Basis, Counting, Exit, GrowthLimit, Restart, SlowStart};

/// RFC 5681, with the choices that it recommends.
const CONTROL: Control = Control {
    avoidance: Avoidance::Reno,
    slow_start: SlowStart::Bytes { limit: 1 },
    // RFC 9406, which RFC 9438 recommends.
    exit: Exit::HyStartPlusPlus,
    counting: Counting::Bytes,
    limit: GrowthLimit::Full,
    basis: Basis::Flight,
    restart: Restart::Initial,
};

pub(super) fn profile() -> Profile {
    Profile {
        name: "rfc",
        about: "the standards' letter: RFC 9293, 5681, 6298, 6675, 6582, 7323",
        clock: TimerClock::Exact,
        offer: OfferedOptions {
            mss: 1460,
            window_scale: Some(2),
            timestamps: true,
            timestamp_tick: Span::from_millis(1),
            sack: true,
        },
        handshake: HANDSHAKE,
        send_buffer: 131_072,
        receive_buffer: 131_072,
        rtt: RttRule::Rfc6298,
        timeout: TimeoutRule {
            initial: Span::from_secs(1),
            minimum: Span::from_secs(1),
            slop: Span::ZERO,
            variance_floor: Span::ZERO,
            granularity: Span::from_millis(1),
            maximum: Span::from_secs(60),
            doublings: 32,
        },
        round_trips: RoundTrips::ByEcho,
        persist: Persist {
            minimum: Span::from_secs(1),
            maximum: Span::from_secs(60),
            with_data: true,
        },
        initial_window: InitialWindow::Rfc3390,
        control: CONTROL,
        reduction: ReductionRule::AtOnce,
        recovery: RECOVERY,
        nagle: Nagle::Any,
        ack: AckRule::Rfc {
            delay: Span::from_millis(200),
        },
        window: WindowRule::Rfc,
        strictness: Strictness {
            rfc5961: true,
            // RFC 5961, section 7: ten in five seconds, for example.
            answers: Answers {
                to_unsent: true,
                limit: Some(AnswerLimit {
                    most: 10,
                    within: Span::from_secs(5),
                }),
                limits_empty: true,
            },
            exact_reset: false,
            every_timestamp: true,
            timestamp_needs_ack: false,
            any_window: true,
            dsack: true,
        },
        adaptive_acks: None,
    }
}

const HANDSHAKE: Handshake = Handshake {
    syn: Retries {
        initial: Span::from_secs(1),
        linear: 0,
        count: 6,
    },
    syn_ack: Retries {
        initial: Span::from_secs(1),
        linear: 0,
        count: 5,
    },
    single_after: Some(0),
    retries: 15,
    time_wait: Span::from_secs(240),
    fin_wait_2: None,
};

const RECOVERY: Recovery = Recovery {
    rescue: true,
    ..Recovery::by(RecoveryEngine::Pipe {
        fack: false,
        free_fin: false,
        defers: false,
    })
};
