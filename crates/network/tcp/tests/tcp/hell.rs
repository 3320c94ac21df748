//! Random segments: for any input, no endpoint panics, sends without end, wakes without effect or accepts more than it
//! advertised.

use std::sync::Arc;

use posthaste_tcp::{
    Endpoint, Options, Parity, Profile, SackBlocks, Segment, Timestamps, profile, remedy,
};
use posthaste_units::{Instant, Span};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Act {
    Push(Segment),
    Write(u64),
    Read(u64),
    Close,
    Leave,
    Abort,
    NoDelay(bool),
    Wait(u64),
    Wake,
}

const OWN: u32 = u32::MAX - 500;
const PEER: u32 = 100;

/// Critical numbers: near the expected one, half the number space away, or random.
fn number(base: u32) -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => (0u32..4000).prop_map(move |off| base.wrapping_add(off)),
        2 => (0u32..200).prop_map(move |off| base.wrapping_sub(off)),
        1 => (0u32..10).prop_map(move |off| base.wrapping_add(1 << 31).wrapping_sub(off)),
        1 => any::<u32>(),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    (
        prop::option::weighted(0.3, any::<u16>()),
        prop::option::weighted(0.3, any::<u8>()),
        any::<bool>(),
        prop::option::weighted(0.6, (0u32..5000, 0u32..5000)),
        proptest::collection::vec((number(OWN), number(OWN)), 0..4),
        prop::option::weighted(0.2, (any::<u32>(), 0u32..3000, any::<bool>())),
    )
        .prop_map(
            |(mss, window_scale, sack_permitted, stamps, blocks, parity)| {
                let mut sack = SackBlocks::default();
                for (start, end) in blocks {
                    sack.push(start, end);
                }
                Options {
                    mss,
                    window_scale,
                    sack_permitted,
                    timestamps: stamps.map(|(value, echo)| Timestamps { value, echo }),
                    sack,
                    parity: parity.map(|(any, few, fin)| Parity {
                        covered: if any % 8 == 0 { any } else { few },
                        fin,
                    }),
                }
            },
        )
}

fn segment() -> impl Strategy<Value = Segment> {
    (
        number(PEER),
        prop::option::weighted(0.9, number(OWN)),
        prop::array::uniform4(0u8..100),
        prop_oneof![Just(0u16), Just(1), Just(u16::MAX), any::<u16>()],
        options(),
        prop_oneof![3 => Just(0u32), 3 => 0u32..2000, 1 => Just(65_535), 1 => any::<u32>()],
    )
        .prop_map(|(seq, ack, flags, window, options, len)| Segment {
            seq,
            ack,
            syn: flags[0] < 5,
            fin: flags[1] < 8,
            rst: flags[2] < 2,
            psh: flags[3] < 30,
            window,
            options,
            len,
        })
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        20 => segment().prop_map(Act::Push),
        3 => (0u64..20_000).prop_map(Act::Write),
        3 => (0u64..20_000).prop_map(Act::Read),
        1 => Just(Act::Close),
        1 => Just(Act::Leave),
        1 => prop::bool::weighted(0.05).prop_map(|abort| if abort { Act::Abort } else { Act::Wake }),
        1 => any::<bool>().prop_map(Act::NoDelay),
        3 => (0u64..3_000_000_000).prop_map(Act::Wait),
        5 => Just(Act::Wake),
    ]
}

fn all_profiles() -> Vec<Arc<Profile>> {
    let plain = profile::names()
        .into_iter()
        .map(|name| profile::named(name).expect("listed"));
    plain
        .flat_map(|profile| {
            let helped = profile.with(&remedy::Remedy::ALL);
            [Arc::new(profile), Arc::new(helped)]
        })
        .collect()
}

/// Completes a handshake, so that random segments reach the code after it.
fn begin(profile: &Arc<Profile>, passive: bool, now: Instant, options: Options) -> Endpoint {
    let syn = Segment {
        seq: PEER,
        syn: true,
        window: 20_000,
        options,
        ..Segment::default()
    };
    let ack = Some(OWN.wrapping_add(1));
    if passive {
        let mut endpoint = Endpoint::listen(profile, OWN);
        endpoint.push(now, &syn);
        endpoint.pop(now);
        let stamps = options.timestamps.map(|_| Timestamps { value: 2, echo: 1 });
        let third = Segment {
            seq: PEER + 1,
            ack,
            window: 20_000,
            options: Options {
                timestamps: stamps,
                ..Options::default()
            },
            ..Segment::default()
        };
        endpoint.push(now, &third);
        endpoint
    } else {
        let mut endpoint = Endpoint::connect(profile, OWN, now);
        endpoint.pop(now);
        endpoint.push(now, &Segment { ack, ..syn });
        endpoint
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn nothing_breaks(
        chosen in any::<prop::sample::Index>(),
        passive: bool,
        handshake in prop::bool::weighted(0.9),
        first in options(),
        acts in proptest::collection::vec(act(), 1..120),
    ) {
        let all = all_profiles();
        let profile = chosen.get(&all);
        let mut now = Instant::from_nanos(1_000_000_000);
        let mut endpoint = match (handshake, passive) {
            (true, _) => begin(profile, passive, now, first),
            (false, true) => Endpoint::listen(profile, OWN),
            (false, false) => Endpoint::connect(profile, OWN, now),
        };
        let mut written = 0;
        for act in acts {
            match act {
                Act::Push(segment) => {
                    let before = endpoint.received();
                    if let Some(taken) = endpoint.push(now, &segment) {
                        prop_assert!(taken.start < taken.end);
                        prop_assert!(taken.end - taken.start <= profile.receive_buffer);
                        prop_assert!(taken.start > before);
                    }
                }
                Act::Write(bytes) => written += endpoint.write(now, bytes),
                Act::Read(bytes) => prop_assert!(endpoint.read(bytes) <= bytes),
                Act::Close => endpoint.close(),
                Act::Leave => endpoint.leave(now),
                Act::Abort => endpoint.abort(),
                Act::NoDelay(no_delay) => endpoint.set_no_delay(no_delay),
                Act::Wait(ns) => now += Span::from_nanos(ns),
                Act::Wake => now = now.max(endpoint.wake().unwrap_or(now)),
            }
            let mut count = 0;
            while let Some(segment) = endpoint.pop(now) {
                count += 1;
                prop_assert!(segment.header_bytes() <= 60, "{segment:?}");
                prop_assert!(segment.len + segment.options.bytes() <= 1460, "{segment:?}");
                prop_assert!(count <= 4096, "sends without end: {segment:?}");
            }
            prop_assert!(endpoint.wake().is_none_or(|wake| wake > now));
            prop_assert!(endpoint.acknowledged() <= written);
            prop_assert!(endpoint.readable() <= profile.receive_buffer);
        }
    }
}
