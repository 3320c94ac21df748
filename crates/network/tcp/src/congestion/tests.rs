//! Windows compared with the formulas of RFC 5681, 3465, 9438 and 9406, with BIC's paper, and with the code of old
//! stacks.

use super::*;
use proptest::prelude::*;

const MSS: u32 = 1000;
const M: u64 = MSS as u64;

const BSD: Control = Control {
    avoidance: Avoidance::Reno,
    slow_start: SlowStart::PerAck,
    exit: Exit::AtLoss,
    counting: Counting::Bytes,
    limit: GrowthLimit::Ignored,
    basis: Basis::Usable,
    restart: Restart::Segments(1),
};
const OLD_LINUX: Control = Control {
    avoidance: Avoidance::Bic,
    counting: Counting::Segments,
    limit: GrowthLimit::Full,
    basis: Basis::Window,
    restart: Restart::Halving,
    ..BSD
};
const LINUX: Control = Control {
    avoidance: Avoidance::Cubic {
        halves_first: false,
    },
    slow_start: SlowStart::PerSegment,
    exit: Exit::HyStart,
    limit: GrowthLimit::Validated,
    ..OLD_LINUX
};
const RFC: Control = Control {
    slow_start: SlowStart::Bytes { limit: 1 },
    basis: Basis::Flight,
    limit: GrowthLimit::Full,
    restart: Restart::Initial,
    ..BSD
};
const RENO: Control = Control {
    avoidance: Avoidance::Reno,
    exit: Exit::AtLoss,
    ..LINUX
};

/// A sender with a full window. Every acknowledgement covers `each` segments.
struct TestSender {
    congestion: Congestion,
    now: Instant,
    acked: u64,
    rtt: Span,
}

impl TestSender {
    fn new(control: Control, initial: u64) -> Self {
        Self {
            congestion: Congestion::new(control, MSS, initial * M),
            now: Instant::from_nanos(1_000_000_000),
            acked: 1,
            rtt: Span::from_millis(100),
        }
    }

    fn window(&self) -> u64 {
        self.congestion.window()
    }

    fn ack(&mut self, segments: u64) {
        let in_flight = self.window();
        self.acked += segments * M;
        self.congestion.acked(&AckProgress {
            now: self.now,
            bytes: segments * M,
            segments: segments as u32,
            rtt: Some(self.rtt),
            acked: self.acked,
            next: self.acked + in_flight - (segments * M).min(in_flight),
            in_flight,
            limited: true,
        });
    }

    /// One round trip with acknowledgements 5 ms apart.
    fn round(&mut self, each: u64) {
        let began = self.now;
        for _ in 0..(self.window() / M).div_ceil(each) {
            self.ack(each);
            self.now += Span::from_millis(5);
        }
        self.now = self.now.max(began + self.rtt);
    }

    fn lose(&mut self) {
        self.congestion.lost(self.window());
        self.congestion.set_window(self.congestion.threshold());
        self.congestion.finished();
    }
}

/// Windows in segments, one per round trip.
fn rounds(sender: &mut TestSender, each: u64, count: usize) -> Vec<u64> {
    let mut windows = Vec::new();
    for _ in 0..count {
        windows.push(sender.window() / M);
        sender.round(each);
    }
    windows
}

/// The first flights with an acknowledgement for every second segment: growth by 3/2 if acknowledgements are counted,
/// by 2 if segments or bytes are.
#[test]
fn slow_start_by_what_is_counted() {
    assert_eq!(rounds(&mut TestSender::new(BSD, 4), 2, 4), [4, 6, 9, 14]);
    assert_eq!(rounds(&mut TestSender::new(RFC, 4), 2, 4), [4, 6, 9, 14]);
    assert_eq!(
        rounds(&mut TestSender::new(OLD_LINUX, 4), 2, 4),
        [4, 6, 9, 14]
    );
    assert_eq!(rounds(&mut TestSender::new(RENO, 4), 2, 4), [4, 8, 16, 32]);
    let appropriate = Control {
        slow_start: SlowStart::Bytes { limit: 2 },
        ..RFC
    };
    assert_eq!(
        rounds(&mut TestSender::new(appropriate, 4), 2, 4),
        [4, 8, 16, 32]
    );
    assert_eq!(rounds(&mut TestSender::new(BSD, 3), 1, 3), [3, 6, 12]);
}

/// RFC 5681, section 3.1: half, then about a segment per round trip.
#[test]
fn reno_halves_and_adds_one() {
    for control in [BSD, RFC, RENO] {
        let mut sender = TestSender::new(control, 20);
        sender.lose();
        assert_eq!(sender.window(), 10 * M);
        sender.congestion.set_window(11 * M);
        for expected in 11..16 {
            let off = (sender.window() / M).abs_diff(expected);
            assert!(off <= 1, "{control:?}: {} for {expected}", sender.window());
            sender.round(1);
        }
    }
}

/// The remainder of an acknowledgement that ends slow start counts beyond it (`tcp_slow_start`).
#[test]
fn slow_start_stops_at_the_threshold() {
    let mut sender = TestSender::new(RENO, 8);
    sender.lose();
    sender.congestion.set_window(2 * M);
    sender.ack(4);
    assert_eq!(sender.window(), 4 * M);
    sender.ack(2);
    assert_eq!(sender.window(), 5 * M);
}

#[test]
fn a_timeout_leaves_one_segment() {
    for control in [BSD, OLD_LINUX, LINUX, RFC] {
        let mut sender = TestSender::new(control, 12);
        sender.congestion.timed_out(12 * M);
        assert_eq!(sender.window(), M);
        let threshold = sender.congestion.threshold();
        assert!(
            (6 * M..=8 * M).contains(&threshold),
            "{control:?} {threshold}"
        );
        sender.ack(1);
        sender.congestion.collapse();
        assert_eq!(
            (sender.window(), sender.congestion.threshold()),
            (M, threshold)
        );
        sender.congestion.undo();
        assert_eq!(sender.window(), 12 * M);
        assert_eq!(sender.congestion.threshold(), UNKNOWN);
    }
}

/// BSD: `max(2, min(wnd, cwnd) / 2 / mss)` segments.
#[test]
fn bsd_halves_what_the_peer_allows() {
    let mut congestion = Congestion::new(BSD, MSS, 20 * M);
    congestion.lost(9_900);
    assert_eq!(congestion.threshold(), 4 * M);
}

#[test]
fn a_window_that_is_not_used_grows_only_in_bsd() {
    let lazy = |control| {
        let mut congestion = Congestion::new(control, MSS, 10 * M);
        congestion.acked(&AckProgress {
            now: Instant::ORIGIN,
            bytes: M,
            segments: 1,
            rtt: None,
            acked: M,
            next: 2 * M,
            in_flight: 2 * M,
            limited: false,
        });
        congestion.window() / M
    };
    assert_eq!(lazy(BSD), 11);
    assert_eq!((lazy(OLD_LINUX), lazy(LINUX), lazy(RFC)), (10, 10, 10));
}

/// RFC 2861: half for each timeout that has passed, never below the initial window.
#[test]
fn a_pause_takes_what_it_should() {
    let timeout = Span::from_millis(200);
    let after = |control: Control, ms| {
        let mut congestion = Congestion::new(control, MSS, 3 * M);
        congestion.set_window(24 * M);
        congestion.after_idle(Instant::ORIGIN, Span::from_millis(ms), timeout);
        congestion.window() / M
    };
    assert_eq!(
        [199, 201, 401, 601, 9000].map(|ms| after(LINUX, ms)),
        [24, 12, 6, 3, 3]
    );
    assert_eq!([199, 201].map(|ms| after(RFC, ms)), [24, 3]);
    assert_eq!([199, 200].map(|ms| after(BSD, ms)), [24, 1]);
}

/// BIC's paper, figure 1: fast far from the old maximum, slow near it, fast again beyond. Up to 14 segments it equals
/// Reno.
#[test]
fn bic_searches() {
    let mut sender = TestSender::new(OLD_LINUX, 200);
    sender.lose();
    assert_eq!(sender.window() / M, 200 * 819 / 1024);
    let windows = rounds(&mut sender, 1, 60);
    let steps: Vec<u64> = windows.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // At most 16 per round trip. The estimate starts at two segments per acknowledgement and, in whole sixteenths,
    // never falls to one, so twice that can occur.
    assert!(
        steps[0] >= 5 && steps.iter().all(|step| *step <= 32),
        "{steps:?}"
    );
    let near = windows.iter().position(|window| *window >= 196).unwrap();
    assert!(steps[near] <= 1, "{windows:?}");
    let beyond = windows.iter().position(|window| *window > 230).unwrap();
    assert!(steps[beyond] >= 8, "{windows:?}");

    let (mut bic, mut reno) = (
        TestSender::new(OLD_LINUX, 12),
        TestSender::new(OLD_LINUX, 12),
    );
    reno.congestion.control.avoidance = Avoidance::Reno;
    for sender in [&mut bic, &mut reno] {
        sender.lose();
    }
    assert_eq!(rounds(&mut bic, 1, 8), rounds(&mut reno, 1, 8));
}

/// Smart framing counts bytes. The growth of the window remains that of the stack.
#[test]
fn bic_searches_in_bytes_too() {
    let bytes = Control {
        counting: Counting::Bytes,
        ..OLD_LINUX
    };
    let windows = [OLD_LINUX, bytes].map(|control| {
        let mut sender = TestSender::new(control, 200);
        sender.lose();
        rounds(&mut sender, 1, 60)
    });
    assert_eq!(windows[0], windows[1]);
}

/// RFC 9438: 0.7 of the window at a loss, back at `W_max` after `K = cbrt(0.3 W_max / 0.4)` seconds, and never slower
/// than Reno with CUBIC's share.
#[test]
fn cubic_is_back_after_k_seconds() {
    for control in [
        LINUX,
        Control {
            counting: Counting::Bytes,
            ..LINUX
        },
    ] {
        let mut sender = TestSender::new(control, 400);
        sender.rtt = Span::from_millis(100);
        sender.lose();
        assert_eq!(sender.window() / M, 400 * 717 / 1024);
        let began = sender.now;
        let k = (0.3_f64 * 400.0 / 0.4).cbrt();
        let mut at_k = 0;
        while sender.now.since(began).as_secs_f64() < 2.0 * k {
            // All acknowledgements of a round trip arrive within it.
            let (start, count) = (sender.now, sender.window() / M);
            for _ in 0..count {
                sender.ack(1);
                sender.now += sender.rtt / count;
            }
            sender.now = start + sender.rtt;
            if sender.now.since(began).as_secs_f64() <= k {
                at_k = sender.window() / M;
            }
        }
        assert!((390..=405).contains(&at_k), "{at_k} after {k} s");
        let twice = sender.window() / M;
        // Symmetric: 2 K after the loss the window is as far above as it was below.
        assert!((490..=560).contains(&twice), "{twice}");
    }
}

/// FreeBSD's first slow start ends with half, as in Reno.
#[test]
fn cubic_may_halve_at_first() {
    let mut sender = TestSender::new(
        Control {
            avoidance: Avoidance::Cubic { halves_first: true },
            ..LINUX
        },
        100,
    );
    sender.lose();
    assert_eq!(sender.window() / M, 50);
    sender.congestion.timed_out(50 * M);
    sender.congestion.set_window(50 * M);
    sender.lose();
    assert_eq!(sender.window() / M, 35);
}

#[test]
fn cubic_makes_room_when_it_shrinks() {
    let mut sender = TestSender::new(LINUX, 100);
    sender.lose();
    let first = sender.window() / M;
    sender.lose();
    assert_eq!(sender.window() / M, first * 717 / 1024);
    // Fast convergence (section 4.7): the target is (1 + beta) / 2 of the window, not the window.
    let windows = rounds(&mut sender, 1, 30);
    let target = first * (1024 + 717) / 2048;
    let flat = windows.windows(6).find(|part| part[5] == part[0]);
    let flat = flat.map_or(0, |part| part[0]);
    assert!(
        flat.abs_diff(target) <= 4,
        "{flat} for {target}: {windows:?}"
    );
}

/// Linux's HyStart: delay beyond an eighth (4 to 16 ms) of the shortest round trip ends slow start, but not below 16
/// segments.
#[test]
fn hystart_leaves_by_delay() {
    let mut sender = TestSender::new(LINUX, 10);
    sender.round(1);
    assert_eq!(sender.congestion.threshold(), UNKNOWN);
    sender.rtt = Span::from_millis(112);
    sender.round(1);
    assert_eq!(
        sender.congestion.threshold(),
        UNKNOWN,
        "12 ms more is no queue"
    );
    sender.rtt = Span::from_millis(114);
    sender.round(1);
    assert_ne!(sender.congestion.threshold(), UNKNOWN);
}

/// A train longer than half a round trip ends slow start, too.
#[test]
fn hystart_leaves_by_train() {
    let mut sender = TestSender::new(LINUX, 40);
    for _ in 0..40 {
        sender.ack(1);
        sender.now += Span::from_millis(1);
    }
    assert_eq!(sender.congestion.threshold(), UNKNOWN, "40 ms of a train");
    let mut sender = TestSender::new(LINUX, 80);
    for _ in 0..80 {
        sender.ack(1);
        sender.now += Span::from_millis(1);
    }
    let left = sender.congestion.threshold() / M;
    assert!((80 + 51..=80 + 53).contains(&left), "{left}");
}

/// RFC 9406: after a delay the window grows by a quarter for five round trips. If the delay disappears, normal slow
/// start continues.
#[test]
fn hystart_plus_plus_doubts_first() {
    let control = Control {
        exit: Exit::HyStartPlusPlus,
        ..RFC
    };
    let mut sender = TestSender::new(control, 16);
    sender.round(1);
    sender.rtt = Span::from_millis(113);
    let before = sender.window();
    sender.round(1);
    sender.round(1);
    let growth = (sender.window() - before) as f64 / before as f64;
    assert!(growth < 1.0, "{growth}");
    assert_eq!(sender.congestion.threshold(), UNKNOWN);
    for _ in 0..5 {
        sender.round(1);
    }
    assert_ne!(sender.congestion.threshold(), UNKNOWN);

    let mut sender = TestSender::new(control, 16);
    for rtt in [100, 113, 100, 100, 100, 100, 100, 100, 100] {
        sender.rtt = Span::from_millis(rtt);
        sender.round(1);
    }
    assert_eq!(sender.congestion.threshold(), UNKNOWN);
}

proptest! {
    /// For any input, the window stays within its bounds, and slow start grows by at most the data acknowledged.
    #[test]
    fn windows_stay_within_reason(
        events in proptest::collection::vec((0u8..12, 1u64..40, 1u64..500), 1..200),
    ) {
        for control in [BSD, OLD_LINUX, LINUX, RFC, RENO] {
            let mut sender = TestSender::new(control, 4);
            for (kind, segments, ms) in &events {
                sender.now += Span::from_millis(*ms);
                let before = sender.window();
                match kind {
                    0 => sender.lose(),
                    1 => sender.congestion.timed_out(before),
                    2 => sender.congestion.undo(),
                    3 => {
                        let idle = Span::from_millis(*ms * 10);
                        sender.congestion.after_idle(sender.now, idle, Span::from_millis(200));
                    }
                    _ => {
                        sender.rtt = Span::from_millis(*ms);
                        sender.ack(*segments);
                        prop_assert!(sender.window() <= before + (*segments).max(1) * M);
                        prop_assert!(sender.window() >= before);
                    }
                }
                prop_assert!((M..=LARGEST).contains(&sender.window()));
                prop_assert!(sender.congestion.threshold() >= 2 * M);
                if control.counting == Counting::Segments {
                    prop_assert_eq!(sender.window() % M, 0);
                }
            }
        }
    }
}
