//! Cutting and joining.

use bytes::Bytes;
use posthaste_fleet::parts::{MAX_PARTS, PartError, PartJoiner, PartNumber, cut};
use proptest::prelude::*;

fn part(index: u32, count: u32) -> PartNumber {
    PartNumber::new(index, count).unwrap()
}

#[test]
fn part_numbers_have_one_form() {
    assert_eq!("2/5".parse(), Ok(part(2, 5)));
    assert_eq!(part(0, 1).to_string(), "0/1");
    for text in [
        "", "1", "1/1", "5/2", "+1/2", "01/2", "1/02", " 0/1", "0/1025", "0/0", "-1/2",
    ] {
        let read = text.parse::<PartNumber>();
        assert!(matches!(read, Err(PartError::Number(_))), "{text}");
    }
}

#[test]
fn a_body_that_needs_too_many_parts_is_refused() {
    let body = Bytes::from(vec![0; MAX_PARTS as usize + 1]);
    assert_eq!(cut(body.clone(), 1), Err(PartError::TooMany));
    assert_eq!(
        cut(body, 2).unwrap().len(),
        (MAX_PARTS as usize + 1).div_ceil(2)
    );
    assert_eq!(
        cut(Bytes::new(), 9),
        Ok(vec![(PartNumber::WHOLE, Bytes::new())])
    );
}

#[test]
fn parts_of_different_bodies_with_the_same_numbers_are_refused() {
    let byte = || Bytes::from_static(b"a");
    let mut joiner = PartJoiner::default();
    assert_eq!(joiner.add(10, part(0, 3), byte()), Ok(None));
    for (seq, other) in [
        (11, part(0, 2)),
        (10, part(0, 2)),
        (9, part(0, 2)),
        (12, part(1, 3)),
    ] {
        let added = joiner.add(seq, other, byte());
        assert!(
            matches!(added, Err(PartError::Overlap(_))),
            "{seq} {other}: {added:?}"
        );
    }
    assert_eq!(
        joiner.add(11, PartNumber::WHOLE, byte()),
        Err(PartError::Overlap(11))
    );
    assert_eq!(
        joiner.add(13, PartNumber::WHOLE, byte()),
        Ok(Some((13, byte())))
    );
    assert_eq!(
        joiner.add(0, part(1, 2), byte()),
        Err(PartError::Sequence(0, part(1, 2)))
    );
}

#[test]
fn waiting_parts_are_bounded() {
    let mut joiner = PartJoiner::default();
    let big = Bytes::from(vec![0; 4 << 20]);
    let full = (0..100).find(|index| {
        joiner
            .add(*index, part(*index as u32, 200), big.clone())
            .is_err()
    });
    assert_eq!(full, Some(8));
    let mut joiner = PartJoiner::default();
    let full = (0..1000).find(|body| joiner.add(2 * body, part(0, 2), Bytes::new()).is_err());
    assert_eq!(full, Some(64));
}

#[test]
fn joined_parts_wait_no_more() {
    let mut joiner = PartJoiner::default();
    let big = Bytes::from(vec![0; 4 << 20]);
    for body in 0..20 {
        let seq = 2 * body;
        assert_eq!(joiner.add(seq, part(0, 2), big.clone()), Ok(None));
        let joined = joiner.add(seq + 1, part(1, 2), big.clone()).unwrap();
        assert_eq!(
            joined.map(|(first, bytes)| (first, bytes.len())),
            Some((seq, 8 << 20))
        );
    }
}

proptest! {
    #[test]
    fn parts_in_any_order_are_the_bodies(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..12),
        most in 1usize..80,
        order in any::<u64>(),
    ) {
        let mut parts = Vec::new();
        let mut expected = Vec::new();
        for body in bodies {
            let first = parts.len() as u64;
            let body = Bytes::from(body);
            let cuts = cut(body.clone(), most).unwrap();
            prop_assert!(cuts.iter().all(|(_, part)| part.len() <= most));
            parts.extend((first..).zip(cuts).map(|(seq, (part, bytes))| (seq, part, bytes)));
            expected.push((first, body));
        }
        let mut state = order;
        parts.sort_by_cached_key(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 11
        });
        let mut joiner = PartJoiner::default();
        let mut found = Vec::new();
        for (seq, part, bytes) in parts {
            found.extend(joiner.add(seq, part, bytes).unwrap());
        }
        found.sort();
        prop_assert_eq!(found, expected);
    }
}
