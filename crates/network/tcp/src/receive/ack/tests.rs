//! Acknowledgements compared with RFC 1122, 5681 and 9293 and with the code of BSD and Linux.

use super::*;
use proptest::prelude::*;

const MSS: u32 = 1448;

const fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

fn at(ms: u64) -> Instant {
    Instant::ORIGIN + Span::from_millis(ms)
}

const BSD: AckRule = AckRule::Bsd { delay: ms(100) };
const RFC: AckRule = AckRule::Rfc { delay: ms(200) };
const LINUX: AckRule = AckRule::Linux {
    quick: 16,
    min: ms(40),
    max: ms(200),
    compression: Some(AckCompression {
        free: 3,
        held: 44,
        delay: ms(1),
    }),
    push_ends: true,
    early_write: false,
};

fn segment(len: u32, position: SegmentPosition) -> DataArrival {
    DataArrival {
        len,
        position,
        fin: false,
        push: false,
        window: 65_535,
        window_holds: true,
        window_grew: false,
        closed: false,
        sack: true,
        rtt: Some(ms(30)),
        timeout: ms(230),
    }
}

fn policy(rule: AckRule) -> AckPolicy {
    AckPolicy::new(rule, TimerClock::Exact, MSS)
}

/// Returns the numbers of those of `count` segments in order, one per millisecond, that are acknowledged at once.
fn at_once(rule: AckRule, count: u64, len: u32) -> Vec<u64> {
    let mut policy = policy(rule);
    (1..=count)
        .filter(|n| {
            let now = policy.arrived(at(*n), &segment(len, SegmentPosition::Next)) == AckNow::Now;
            if now {
                policy.sent();
            }
            now
        })
        .collect()
}

#[test]
fn every_second_segment_at_once() {
    assert_eq!(at_once(BSD, 7, MSS), [2, 4, 6]);
    assert_eq!(at_once(RFC, 7, MSS), [2, 4, 6]);
    // BSD counts segments; the standard counts full ones.
    assert_eq!(at_once(BSD, 7, 100), [2, 4, 6]);
    assert_eq!(at_once(RFC, 31, 100), [29]);
}

#[test]
fn a_single_segment_waits() {
    for (rule, wait) in [(BSD, 100), (RFC, 200)] {
        let mut policy = policy(rule);
        assert_eq!(
            policy.arrived(at(5), &segment(MSS, SegmentPosition::Next)),
            AckNow::Later
        );
        assert_eq!(policy.deadline(), at(5 + wait));
        policy.sent();
        assert_eq!(policy.deadline(), Instant::FAR_FUTURE);
    }
}

/// RFC 5681, section 4.2: a gap shown or filled is acknowledged at once. BSD also acknowledges at once a FIN, and data
/// that arrive while its window is closed.
#[test]
fn gaps_and_ends_do_not_wait() {
    for rule in [BSD, RFC, LINUX] {
        for position in [
            SegmentPosition::Beyond,
            SegmentPosition::Fills,
            SegmentPosition::Old,
        ] {
            let mut policy = policy(rule);
            assert_eq!(
                policy.arrived(at(1), &segment(MSS, position)),
                AckNow::Now,
                "{rule:?}"
            );
        }
    }
    let fin = DataArrival {
        fin: true,
        ..segment(10, SegmentPosition::Next)
    };
    assert_eq!(policy(BSD).arrived(at(1), &fin), AckNow::Now);
    let closed = DataArrival {
        window: 0,
        ..segment(10, SegmentPosition::Next)
    };
    assert_eq!(policy(BSD).arrived(at(1), &closed), AckNow::Now);
    assert_eq!(
        policy(BSD).arrived(at(1), &segment(0, SegmentPosition::Next)),
        AckNow::None
    );
}

/// Sixteen at once, then every second as soon as more than one full segment is owed.
#[test]
fn linux_begins_quickly() {
    let acks = at_once(LINUX, 24, MSS);
    let expected: Vec<u64> = (1..=16).chain([18, 20, 22, 24]).collect();
    assert_eq!(acks, expected);
    // With a window of four segments two are acknowledged quickly.
    let mut policy = policy(LINUX);
    let small = DataArrival {
        window: 4 * u64::from(MSS),
        ..segment(MSS, SegmentPosition::Next)
    };
    for _ in 0..2 {
        assert_eq!(policy.arrived(at(1), &small), AckNow::Now);
        policy.sent();
    }
    assert_eq!(policy.arrived(at(1), &small), AckNow::Later);
}

fn used_up() -> AckPolicy {
    let mut policy = policy(LINUX);
    for n in 0..16 {
        policy.arrived(at(n), &segment(MSS, SegmentPosition::Next));
        policy.sent();
    }
    policy
}

#[test]
fn linux_waits_as_long_as_gaps_are() {
    let mut policy = used_up();
    assert_eq!(
        policy.arrived(at(16), &segment(MSS, SegmentPosition::Next)),
        AckNow::Later
    );
    assert_eq!(policy.deadline(), at(56));
    policy.expired(at(56));
    policy.sent();
    // The delay has doubled; a round trip of 30 ms bounds it by the minimum.
    policy.arrived(at(100), &segment(MSS, SegmentPosition::Next));
    assert_eq!(policy.deadline(), at(140));
    policy.sent();
    let far = DataArrival {
        rtt: Some(ms(500)),
        ..segment(MSS, SegmentPosition::Next)
    };
    policy.arrived(at(200), &far);
    assert!(policy.deadline() > at(260), "{:?}", policy.deadline());
}

#[test]
fn linux_that_answers_waits_for_its_answer() {
    let mut policy = policy(LINUX);
    policy.arrived(at(1), &segment(MSS, SegmentPosition::Next));
    policy.sent();
    policy.sent_data(at(5));
    assert_eq!(
        policy.arrived(at(6), &segment(MSS, SegmentPosition::Next)),
        AckNow::Later
    );
    assert_eq!(policy.deadline(), at(46));
    policy.expired(at(46));
    policy.sent();
    assert_eq!(
        policy.arrived(at(47), &segment(MSS, SegmentPosition::Next)),
        AckNow::Now
    );
}

/// A client that writes before it is connected sends the acknowledgement of the SYN-ACK with its request, and
/// acknowledges a reply late: with the second segment, or after 40 ms, but at once after that.
#[test]
fn linux_that_writes_early_acknowledges_the_first_reply_late() {
    let AckRule::Linux {
        quick,
        min,
        max,
        compression,
        push_ends,
        ..
    } = LINUX
    else {
        unreachable!("the rule of these tests is Linux's");
    };
    let early = AckRule::Linux {
        quick,
        min,
        max,
        compression,
        push_ends,
        early_write: true,
    };
    assert_eq!(policy(LINUX).connected(at(1), 5840), AckNow::Now);
    let requested = || {
        let mut policy = policy(early);
        assert_eq!(policy.connected(at(1), 5840), AckNow::Later);
        assert_eq!(policy.deadline(), at(1) + max);
        policy.sent();
        policy.sent_data(at(1));
        assert_eq!(
            policy.arrived(at(300), &segment(MSS, SegmentPosition::Next)),
            AckNow::Later
        );
        assert_eq!(policy.deadline(), at(340));
        policy
    };
    let mut policy = requested();
    assert_eq!(
        policy.arrived(at(320), &segment(MSS, SegmentPosition::Next)),
        AckNow::Now
    );
    policy = requested();
    policy.expired(at(340));
    policy.sent();
    assert_eq!(
        policy.arrived(at(341), &segment(MSS, SegmentPosition::Next)),
        AckNow::Now
    );
}

/// A short segment ends a message. It is acknowledged once the reader has read everything, like a full one with PSH.
#[test]
fn linux_acknowledges_an_end_when_it_is_read() {
    for (len, push) in [(700, false), (MSS, true)] {
        let mut policy = used_up();
        let end = DataArrival {
            push,
            ..segment(len, SegmentPosition::Next)
        };
        assert_eq!(policy.arrived(at(17), &end), AckNow::Later);
        assert_eq!(policy.read(false), AckNow::None);
        assert_eq!(policy.read(true), AckNow::Now);
    }
    let mut policy = used_up();
    policy.arrived(at(17), &segment(MSS, SegmentPosition::Next));
    assert_eq!(policy.read(true), AckNow::None);
}

#[test]
fn linux_holds_back_the_fourth_duplicate() {
    let mut policy = used_up();
    for n in 0..3 {
        assert_eq!(
            policy.arrived(at(20 + n), &segment(MSS, SegmentPosition::Beyond)),
            AckNow::Now
        );
        policy.sent();
    }
    assert_eq!(
        policy.arrived(at(30), &segment(MSS, SegmentPosition::Beyond)),
        AckNow::Later
    );
    assert_eq!(policy.deadline(), at(31));
    let near = DataArrival {
        rtt: Some(ms(2)),
        ..segment(MSS, SegmentPosition::Beyond)
    };
    policy.sent();
    policy.arrived(at(40), &near);
    assert_eq!(policy.deadline(), at(40) + Span::from_micros(100));
    // Without SACK nothing may be withheld.
    let plain = DataArrival {
        sack: false,
        ..segment(MSS, SegmentPosition::Beyond)
    };
    assert_eq!(policy.arrived(at(41), &plain), AckNow::Now);
}

#[test]
fn linux_is_quick_again_after_a_duplicate_and_after_a_pause() {
    let mut policy = used_up();
    policy.arrived(at(20), &segment(MSS, SegmentPosition::Old));
    policy.sent();
    assert_eq!(
        policy.arrived(at(21), &segment(MSS, SegmentPosition::Next)),
        AckNow::Now
    );
    let mut policy = used_up();
    assert_eq!(
        policy.arrived(at(15 + 231), &segment(MSS, SegmentPosition::Next)),
        AckNow::Now
    );
}

proptest! {
    /// RFC 1122, section 4.2.3.2: no acknowledgement waits for 500 ms or behind a second full segment. Nothing is owed
    /// without a deadline.
    #[test]
    fn nobody_waits_too_long(
        segments in proptest::collection::vec((0u64..400, 1u32..=MSS, any::<bool>()), 1..80),
    ) {
        for rule in [BSD, RFC, LINUX] {
            let (mut policy, mut now, mut owed) = (policy(rule), Instant::ORIGIN, Vec::new());
            for (gap, len, push) in &segments {
                now += ms(*gap);
                let due = policy.deadline();
                if due <= now {
                    policy.expired(due);
                    policy.sent();
                    owed.clear();
                }
                owed.push((now, *len));
                let arrival = DataArrival { push: *push, ..segment(*len, SegmentPosition::Next) };
                match policy.arrived(now, &arrival) {
                    AckNow::Now => { policy.sent(); owed.clear(); }
                    AckNow::Later => {
                        let due = policy.deadline();
                        prop_assert!(due.since(owed[0].0) < ms(500), "{rule:?}");
                    }
                    AckNow::None => prop_assert!(false),
                }
                let full = owed.iter().filter(|(_, len)| *len == MSS).count();
                prop_assert!(full < 2, "{rule:?}: {owed:?}");
            }
        }
    }
}
