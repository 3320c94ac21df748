//! Delivery without loss, duplication or reordering of bytes, and termination: on links with loss, reordering and
//! duplication, in every pairing of profiles.

use std::sync::Arc;

use posthaste_tcp::remedy::Remedy;
use posthaste_tcp::{ConnectionEnd, Profile, TcpState, profile};
use posthaste_units::Span;
use proptest::prelude::*;

use crate::pair::{Application, EndpointPair, Fate};

fn profiles() -> Vec<Arc<Profile>> {
    profile::names()
        .into_iter()
        .map(|name| {
            let mut profile = profile::named(name).expect("listed");
            // An end that gives up after many losses breaks no rule, but such a run proves nothing.
            profile.handshake.retries = 1000;
            profile.handshake.syn.count = 1000;
            profile.handshake.syn_ack.count = 1000;
            profile.handshake.time_wait = Span::from_secs(20_000);
            Arc::new(profile)
        })
        .collect()
}

fn exchange(profiles: [&Arc<Profile>; 2], sizes: [u64; 2]) -> EndpointPair {
    let mut pair = EndpointPair::new(profiles, [u32::MAX - 2000, 77], Span::from_millis(20));
    pair.applications = [
        Application::new(sizes[0], sizes[1]),
        Application::new(sizes[1], sizes[0]),
    ];
    pair
}

fn finished(pair: &EndpointPair, sizes: [u64; 2]) -> Result<(), String> {
    for end in 0..2 {
        let endpoint = &pair.ends[end];
        if endpoint.state() != TcpState::Closed(ConnectionEnd::Finished)
            || pair.read(end) != sizes[1 - end]
            || endpoint.acknowledged() != sizes[end]
            || !endpoint.peer_has_closed()
        {
            return Err(format!(
                "end {end}: {:?}, read {}, acknowledged {}\n{:?}\n{}",
                endpoint.state(),
                pair.read(end),
                endpoint.acknowledged(),
                endpoint.counters(),
                pair.ladder(),
            ));
        }
    }
    Ok(())
}

#[test]
fn every_pairing_talks() {
    let profiles = profiles();
    for client in &profiles {
        for server in &profiles {
            let sizes = [1438, 12_974];
            let mut pair = exchange([client, server], sizes);
            pair.run(Span::from_secs(100_000), |_, _| Fate::default());
            finished(&pair, sizes).unwrap();
            for end in &pair.ends {
                assert_eq!(end.counters().retransmissions, 0, "{}", pair.ladder());
                assert_eq!(end.counters().refused.total(), 0, "{}", pair.ladder());
            }
        }
    }
}

#[test]
fn a_single_loss_anywhere_is_repaired() {
    for profile in profiles() {
        for direction in 0..2 {
            for position in 1..20 {
                let sizes = [1438, 12_974];
                let mut pair = exchange([&profile, &profile], sizes);
                pair.run(Span::from_secs(100_000), |end, number| Fate {
                    lost: end == direction && number == position,
                    ..Fate::default()
                });
                finished(&pair, sizes).unwrap_or_else(|fault| {
                    panic!("{} {direction} {position}: {fault}", profile.name)
                });
            }
        }
    }
}

fn fates() -> impl Strategy<Value = Vec<[Fate; 2]>> {
    let fate = (0u8..100, 0u64..60, 0u8..100).prop_map(|(loss, late, twice)| Fate {
        lost: loss < 15,
        late: Span::from_millis(if late < 50 { 0 } else { late }),
        twice: twice < 8,
    });
    proptest::collection::vec([fate.clone(), fate], 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_byte_arrives_once_and_everything_ends(
        choice in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        sizes in [1u64..5_000, 0u64..90_000],
        fates in fates(),
        slow in prop::bool::weighted(0.2),
        remedies in prop::sample::subsequence(Remedy::ALL.to_vec(), 0..4),
    ) {
        let all = profiles();
        let chosen = [choice.0.get(&all), choice.1.get(&all)].map(|profile| Arc::new(profile.with(&remedies)));
        let mut pair = exchange([&chosen[0], &chosen[1]], sizes);
        if slow {
            pair.applications[0].reads = 700;
        }
        pair.run(Span::from_secs(100_000), |end, number| {
            fates.get(number - 1).map_or(Fate::default(), |fate| fate[end])
        });
        let result = finished(&pair, sizes);
        prop_assert!(result.is_ok(), "{} to {} {remedies:?}: {}", chosen[0].name, chosen[1].name, result.unwrap_err());
    }
}
