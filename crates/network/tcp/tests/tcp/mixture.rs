//! Random stacks: every part is drawn at random, so that parts are tested in any combination.

use posthaste_tcp::congestion::{
    Avoidance, Basis, Control, Counting, Exit, GrowthLimit, Restart, SlowStart,
};
use posthaste_tcp::profile::{
    EarlyRetransmit, FramingRule, InitialWindow, Nagle, Profile, Recovery, RecoveryEngine,
    RoundTrips, TailProbe,
};
use posthaste_tcp::receive::ack::{AckCompression, AckRule};
use posthaste_tcp::receive::window::WindowRule;
use posthaste_tcp::reduction::{ReductionBound, ReductionRule};
use posthaste_tcp::rtt::RttRule;
use posthaste_tcp::{TimerClock, profile};
use posthaste_units::{Span, Stream};
use rand::RngExt as _;

const fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// Draws one of the values.
pub(crate) fn one<T: Copy>(stream: &mut Stream, choices: &[T]) -> T {
    choices[stream.random_range(0..choices.len())]
}

/// Draws a named profile.
pub(crate) fn named(stream: &mut Stream) -> Profile {
    let name = one(stream, &profile::names());
    profile::named(name).expect("a name from the list")
}

/// Draws a profile with random parts.
pub(crate) fn mixed(stream: &mut Stream) -> Profile {
    let other = named(stream);
    let segments = stream.random_range(1..12);
    Profile {
        clock: one(
            stream,
            &[
                TimerClock::Exact,
                TimerClock::Ticks(ms(10)),
                TimerClock::Wheel(ms(4)),
            ],
        ),
        rtt: one(
            stream,
            &[
                RttRule::Rfc6298,
                RttRule::Bsd,
                RttRule::Linux { unit: ms(1) },
                RttRule::Linux {
                    unit: Span::from_micros(1),
                },
            ],
        ),
        timeout: named(stream).timeout,
        round_trips: one(stream, &[RoundTrips::ByEcho, RoundTrips::BySegment]),
        initial_window: one(
            stream,
            &[InitialWindow::Segments(segments), InitialWindow::Rfc3390],
        ),
        control: control(stream),
        reduction: one(
            stream,
            &[
                ReductionRule::AtOnce,
                ReductionRule::RateHalving,
                ReductionRule::Proportional {
                    bound: ReductionBound::Conservative,
                },
                ReductionRule::Proportional {
                    bound: ReductionBound::Heuristic,
                },
            ],
        ),
        recovery: recovery(stream),
        nagle: one(stream, &[Nagle::Any, Nagle::Later, Nagle::Small]),
        ack: ack(stream),
        window: one(
            stream,
            &[
                WindowRule::Rfc,
                WindowRule::Bsd,
                WindowRule::BsdQuarter,
                WindowRule::Linux { first: 5_840 },
            ],
        ),
        strictness: named(stream).strictness,
        ..other
    }
}

fn control(stream: &mut Stream) -> Control {
    let halves_first = stream.random_bool(0.5);
    Control {
        avoidance: one(
            stream,
            &[
                Avoidance::Reno,
                Avoidance::Bic,
                Avoidance::Cubic { halves_first },
            ],
        ),
        slow_start: one(
            stream,
            &[
                SlowStart::PerAck,
                SlowStart::PerSegment,
                SlowStart::Bytes { limit: 2 },
            ],
        ),
        exit: one(
            stream,
            &[Exit::AtLoss, Exit::HyStart, Exit::HyStartPlusPlus],
        ),
        counting: one(stream, &[Counting::Bytes, Counting::Segments]),
        limit: one(
            stream,
            &[
                GrowthLimit::Ignored,
                GrowthLimit::Full,
                GrowthLimit::Validated,
            ],
        ),
        basis: one(stream, &[Basis::Flight, Basis::Window, Basis::Usable]),
        restart: one(
            stream,
            &[Restart::Initial, Restart::Segments(1), Restart::Halving],
        ),
    }
}

fn recovery(stream: &mut Stream) -> Recovery {
    let early = EarlyRetransmit {
        delayed: stream.random_bool(0.5),
    };
    let probe = TailProbe {
        extra: ms(2),
        delayed_ack: ms(200),
    };
    let engine = if stream.random_bool(0.4) {
        RecoveryEngine::Bsd {
            window_must_match: stream.random_bool(0.5),
        }
    } else {
        RecoveryEngine::Pipe {
            fack: stream.random_bool(0.5),
            free_fin: stream.random_bool(0.5),
            defers: stream.random_bool(0.5),
        }
    };
    Recovery {
        engine,
        limited_transmit: stream.random_bool(0.5),
        early_retransmit: stream.random_bool(0.3).then_some(early),
        tail_probe: stream.random_bool(0.5).then_some(probe),
        rack: stream.random_bool(0.5),
        frto: stream.random_bool(0.5),
        undo: stream.random_bool(0.5),
        rto_restart: stream.random_bool(0.3),
        tail_copies: one(stream, &[0, 0, 1, 3]),
        fin_rides: stream.random_bool(0.8),
        framing: stream.random_bool(0.2).then_some(FramingRule {
            parts: 3,
            below: 10_000,
        }),
        ..named(stream).recovery
    }
}

fn ack(stream: &mut Stream) -> AckRule {
    let compression = AckCompression {
        free: 3,
        held: 44,
        delay: ms(1),
    };
    let linux = AckRule::Linux {
        quick: one(stream, &[0, 2, 16]),
        min: ms(40),
        max: ms(200),
        compression: stream.random_bool(0.5).then_some(compression),
        push_ends: stream.random_bool(0.5),
        early_write: false,
    };
    one(
        stream,
        &[
            AckRule::Rfc { delay: ms(200) },
            AckRule::Bsd { delay: ms(100) },
            linux,
        ],
    )
}
