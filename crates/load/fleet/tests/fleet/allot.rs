//! Shares of agents.

use posthaste_fleet::allot::{AllotError, allot};
use posthaste_fleet::names::AgentName;
use proptest::prelude::*;

fn agent(name: &str, loops: u32) -> (AgentName, u32) {
    (name.parse().unwrap(), loops)
}

#[test]
fn agents_get_consecutive_loops_by_name() {
    let shares = allot(&[agent("c", 4), agent("a", 1), agent("b", 2)]).unwrap();
    let found: Vec<_> = shares
        .iter()
        .map(|(name, share)| (name.as_str(), share.first(), share.total()))
        .collect();
    assert_eq!(found, [("a", 0, 7), ("b", 1, 7), ("c", 3, 7)]);
}

#[test]
fn agents_that_cannot_share_are_refused() {
    assert_eq!(allot(&[]), Err(AllotError::NoAgents));
    assert_eq!(
        allot(&[agent("a", 0)]),
        Err(AllotError::NoLoops("a".parse().unwrap()))
    );
    let twice = allot(&[agent("a", 1), agent("b", 1), agent("a", 2)]);
    assert_eq!(twice, Err(AllotError::Duplicate("a".parse().unwrap())));
    assert_eq!(
        allot(&[agent("a", u32::MAX), agent("b", u32::MAX)]),
        Err(AllotError::TooMany)
    );
}

proptest! {
    #[test]
    fn every_loop_belongs_to_one_agent(
        loops in prop::collection::btree_map("[a-z0-9-]{1,8}", 1u32..50, 1..20),
        rotation in 0usize..20,
    ) {
        let mut agents: Vec<_> = loops.iter().map(|(name, loops)| agent(name, *loops)).collect();
        let in_order = allot(&agents).unwrap();
        let middle = rotation % agents.len();
        agents.rotate_left(middle);
        let shares = allot(&agents).unwrap();
        prop_assert_eq!(&shares, &in_order);
        let mut next = 0;
        for (name, share) in &shares {
            prop_assert_eq!(share.first(), next);
            next += loops[name.as_str()];
            prop_assert_eq!(share.total(), loops.values().sum::<u32>());
        }
        prop_assert_eq!(next, loops.values().sum::<u32>());
    }
}
