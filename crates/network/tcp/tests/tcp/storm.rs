//! A forged segment makes two ends refuse each other's acknowledgements. Each refusal is answered, and the answer
//! refused, up to a profile's limit.

use std::sync::Arc;

use posthaste_tcp::{Endpoint, Segment, profile};
use posthaste_units::{Instant, Span};

const TRIP: Span = Span::from_millis(1);
const SECONDS: u64 = 20;

fn established(name: &str) -> ([Endpoint; 2], Instant) {
    let profile = Arc::new(profile::named(name).expect("listed"));
    let now = Instant::from_nanos(1_000_000_000);
    let mut ends = [
        Endpoint::connect(&profile, 7, now),
        Endpoint::listen(&profile, 9),
    ];
    let mut turns = [0, 1, 0].into_iter().cycle();
    for end in turns.by_ref().take(6) {
        while let Some(segment) = ends[end].pop(now) {
            ends[1 - end].push(now, &segment);
        }
    }
    (ends, now)
}

/// Number of segments exchanged after the ends in `victims` accepted a hundred forged bytes.
fn exchanged(name: &str, victims: &[usize]) -> u64 {
    let (mut ends, mut now) = established(name);
    for victim in victims {
        let (own, other) = (ends[*victim].isn(), ends[1 - *victim].isn());
        let mut forged = Segment {
            seq: other.wrapping_add(1),
            ack: Some(own.wrapping_add(1)),
            window: 1000,
            len: 100,
            ..Segment::default()
        };
        forged.options.timestamps = Some(posthaste_tcp::Timestamps {
            value: 1_000_000,
            echo: 1,
        });
        let taken = ends[*victim].push(now, &forged);
        assert_eq!(taken, Some(1..101), "{name}");
        ends[*victim].read(100);
    }
    let until = now + Span::from_secs(SECONDS);
    let mut count = 0;
    while now < until {
        now += TRIP;
        let left = ends
            .each_mut()
            .map(|end| std::iter::from_fn(|| end.pop(now)).collect::<Vec<_>>());
        for (end, segments) in left.into_iter().enumerate() {
            count += segments.len() as u64;
            for segment in segments {
                ends[1 - end].push(now, &segment);
            }
        }
    }
    count
}

#[test]
fn a_limit_ends_it() {
    // Both ends answer up to the limit. Late acknowledgements are added.
    let most = |answers, within: u64| 2 * (answers * (SECONDS * 1000 / within + 1)) + 4;
    for victims in [&[0][..], &[1], &[0, 1]] {
        for name in ["linux-6", "linux-2005"] {
            let count = exchanged(name, victims);
            assert!(count <= most(1, 500), "{name} {victims:?}: {count}");
        }
        let count = exchanged("rfc", victims);
        assert!(count <= most(10, 5000), "rfc {victims:?}: {count}");
    }
    for victim in [0, 1] {
        let count = exchanged("freebsd-14", &[victim]);
        assert!(count <= most(5, 1000), "freebsd-14 {victim}: {count}");
    }
}

/// Behaviour of the stacks of 2005, as used by an attack (Abramov, Herzberg 2011).
#[test]
fn without_a_limit_it_goes_on() {
    let endless = SECONDS * 1000 / 2;
    assert!(exchanged("freebsd-6.0", &[0]) > endless);
    assert!(exchanged("linux-2.6.15", &[0, 1]) > endless);
    assert!(exchanged("linux-2.6.15", &[0]) < 4, "one end is silent");
}
