//! Numbering, buffering and assembling of notes, without a server.

use bytes::Bytes;
use posthaste_fleet::envelope::{BodyCoding, ProtocolVersion, encode};
use posthaste_fleet::message::{Note, NoteContent, NoteHeader};
use posthaste_fleet::names::AgentName;
use posthaste_fleet::notes::{
    KEPT_SECONDS, Merge, NoteAssembler, NoteBuffer, NoteError, PendingNote, SequenceSet,
};
use posthaste_fleet::parts::{PartNumber, cut};
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq)]
struct Sum(u64);

impl Merge for Sum {
    fn merge(&mut self, later: Self) {
        self.0 += later.0;
    }
}

type TextNote = Note<String, u8>;

/// A message of a note: header, coding and body.
type NoteMessage = (NoteHeader, BodyCoding, Bytes);

fn agent() -> AgentName {
    "a".parse().unwrap()
}

fn assembler() -> NoteAssembler {
    NoteAssembler::new([agent()])
}

/// The messages of notes, in parts of at most `most` bytes.
fn messages(contents: &[NoteContent<String, u8>], most: usize) -> Vec<NoteMessage> {
    let mut messages = Vec::new();
    for content in contents {
        let seq = messages.len() as u64;
        let content = match content.clone() {
            NoteContent::End { end, .. } => NoteContent::End { messages: seq, end },
            other => other,
        };
        let encoded = encode(&TextNote {
            v: ProtocolVersion,
            seq,
            content,
        })
        .unwrap();
        let most = if encoded.coding == BodyCoding::Zstd {
            most
        } else {
            usize::MAX
        };
        for (part, body) in cut(encoded.body.into(), most).unwrap() {
            let seq = messages.len() as u64;
            messages.push((NoteHeader { seq, part }, encoded.coding, body));
        }
    }
    messages
}

fn add(assembler: &mut NoteAssembler, message: NoteMessage) -> Result<Option<TextNote>, NoteError> {
    let (header, coding, body) = message;
    assembler.add(&agent(), header, coding, body)
}

fn second(second: u64) -> NoteContent<String, u8> {
    NoteContent::Seconds {
        first: second,
        last: second,
        sum: "x".into(),
    }
}

const END: NoteContent<String, u8> = NoteContent::End {
    messages: 0,
    end: 0,
};

#[test]
fn the_newest_seconds_are_kept_and_older_ones_are_summed() {
    let mut buffer = NoteBuffer::<Sum, ()>::default();
    let seconds = KEPT_SECONDS as u64 + 40;
    for second in 0..seconds {
        buffer.add_second(second, Sum(1 << (second % 8)));
        assert!(buffer.len() <= KEPT_SECONDS + 1);
    }
    buffer.add_total(Sum(7));
    buffer.add_end(());
    let older = (0..40).map(|second| 1 << (second % 8)).sum();
    let first = PendingNote::Seconds {
        first: 0,
        last: 39,
        sum: Sum(older),
    };
    assert_eq!(buffer.pop(), Some(first));
    for second in 40..seconds {
        let sum = Sum(1 << (second % 8));
        let note = PendingNote::Seconds {
            first: second,
            last: second,
            sum,
        };
        assert_eq!(buffer.pop(), Some(note));
    }
    assert_eq!(buffer.pop(), Some(PendingNote::Total { sum: Sum(7) }));
    assert_eq!(buffer.pop(), Some(PendingNote::End { end: () }));
    assert!(buffer.is_empty() && buffer.pop().is_none());
}

#[test]
fn seconds_that_were_taken_are_not_summed_again() {
    let mut buffer = NoteBuffer::<Sum, ()>::default();
    buffer.add_second(0, Sum(5));
    let taken = PendingNote::Seconds {
        first: 0,
        last: 0,
        sum: Sum(5),
    };
    assert_eq!(buffer.pop(), Some(taken));
    for second in 1..=KEPT_SECONDS as u64 + 1 {
        buffer.add_second(second, Sum(1));
    }
    let older = PendingNote::Seconds {
        first: 1,
        last: 1,
        sum: Sum(1),
    };
    assert_eq!(buffer.pop(), Some(older));
}

#[test]
fn a_repeated_message_has_no_effect() {
    let mut assembler = assembler();
    let message = messages(&[second(0)], 1000).remove(0);
    assert!(add(&mut assembler, message.clone()).unwrap().is_some());
    assert!(add(&mut assembler, message).unwrap().is_none());
    assert_eq!(assembler.count(&agent()), 1);
}

#[test]
fn gaps_are_known_until_they_are_filled() {
    let mut assembler = assembler();
    let mut sent = messages(&[second(0), second(1), second(2), END], 1000);
    let end = sent.pop().unwrap();
    let middle = sent.remove(1);
    for message in sent {
        add(&mut assembler, message).unwrap();
    }
    assert!(assembler.has_gap(&agent()));
    add(&mut assembler, end).unwrap();
    assert!(assembler.has_gap(&agent()) && !assembler.is_complete(&agent()));
    add(&mut assembler, middle).unwrap();
    assert!(!assembler.has_gap(&agent()) && assembler.is_complete(&agent()));
}

#[test]
fn the_end_alone_reveals_what_is_missing() {
    let mut assembler = assembler();
    let end = messages(&[second(0), END], 1000).pop().unwrap();
    assert!(!assembler.has_gap(&agent()));
    add(&mut assembler, end).unwrap();
    assert!(assembler.has_gap(&agent()) && !assembler.is_complete(&agent()));
}

#[test]
fn notes_that_break_the_protocol_are_errors() {
    let stranger = "b".parse().unwrap();
    let (header, coding, body) = messages(&[second(0)], 1000).remove(0);
    let unknown = assembler().add::<String, u8>(&stranger, header, coding, body.clone());
    assert!(matches!(unknown, Err(NoteError::Stranger)));
    // The number in the body is 0.
    let other = NoteHeader { seq: 5, ..header };
    let renumbered = add(&mut assembler(), (other, coding, body.clone()));
    assert!(
        matches!(
            renumbered,
            Err(NoteError::Number {
                stated: 0,
                found: 5
            })
        ),
        "{renumbered:?}"
    );
    let part = PartNumber::new(0, 2).unwrap();
    let divided = add(
        &mut assembler(),
        (NoteHeader { seq: 0, part }, coding, body),
    );
    assert!(matches!(divided, Err(NoteError::PlainPart)));
    let empty = add(
        &mut assembler(),
        (header, coding, Bytes::from_static(b"{}")),
    );
    assert!(matches!(empty, Err(NoteError::Message(_))));
}

#[test]
fn nothing_follows_the_end() {
    let sent = messages(&[second(0), END, second(1)], 1000);
    for order in [[0, 1, 2], [2, 0, 1]] {
        let mut assembler = assembler();
        let added = order.map(|index| add(&mut assembler, sent[index].clone()).map(drop));
        assert!(
            added
                .iter()
                .any(|added| matches!(added, Err(NoteError::AfterEnd))),
            "{order:?}"
        );
    }
    let encoded = encode(&TextNote {
        v: ProtocolVersion,
        seq: 0,
        content: NoteContent::End {
            messages: 3,
            end: 0,
        },
    });
    let encoded = encoded.unwrap();
    let header = NoteHeader {
        seq: 0,
        part: PartNumber::WHOLE,
    };
    let added = add(
        &mut assembler(),
        (header, encoded.coding, encoded.body.into()),
    );
    assert!(matches!(
        added,
        Err(NoteError::Count {
            stated: 3,
            found: 0
        })
    ));
}

#[test]
fn scattered_numbers_are_bounded() {
    let mut set = SequenceSet::default();
    let refused = (0..100_000).find(|number| set.insert(2 * number).is_err());
    assert_eq!(refused, Some(4096));
    // Filling a gap is always possible.
    assert_eq!(set.insert(1), Ok(true));
    assert_eq!(set.contiguous(), 3);
}

/// Numbers shuffled by a seed.
fn shuffled<T>(mut values: Vec<T>, mut state: u64) -> Vec<T> {
    values.sort_by_cached_key(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 11
    });
    values
}

proptest! {
    #[test]
    fn a_sequence_set_is_a_set(numbers in prop::collection::vec(0u64..60, 0..80)) {
        let (mut set, mut model) = (SequenceSet::default(), std::collections::BTreeSet::new());
        for number in numbers {
            prop_assert_eq!(set.insert(number), Ok(model.insert(number)));
            let contiguous = (0..).find(|number| !model.contains(number)).unwrap();
            prop_assert_eq!(set.contiguous(), contiguous);
            prop_assert_eq!(set.has_gap(), contiguous as usize != model.len());
            prop_assert_eq!(set.end(), model.last().map_or(0, |last| last + 1));
        }
        for number in 0..60 {
            prop_assert_eq!(set.contains(number), model.contains(&number));
        }
    }

    #[test]
    fn notes_arrive_once_in_any_order_and_often(
        lengths in prop::collection::vec(0usize..12_000, 0..8),
        most in 200usize..2000,
        order in any::<u64>(),
    ) {
        let mut state = order | 1;
        let text = |length: usize| -> String {
            std::iter::repeat_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                char::from(b'a' + ((state >> 40) % 26) as u8)
            })
            .take(length)
            .collect()
        };
        let mut contents: Vec<_> = lengths
            .into_iter()
            .map(text)
            .zip(0..)
            .map(|(sum, second)| NoteContent::Seconds { first: second, last: second, sum })
            .collect();
        contents.push(NoteContent::Total { sum: "total".into() });
        contents.push(END);
        let sent = messages(&contents, most);
        let often = [sent.clone(), sent].concat();
        let mut assembler = assembler();
        let mut found = Vec::new();
        for message in shuffled(often, order) {
            found.extend(add(&mut assembler, message).unwrap());
        }
        found.sort_by_key(|note| note.seq);
        prop_assert!(assembler.is_complete(&agent()) && !assembler.has_gap(&agent()));
        prop_assert_eq!(found.len(), contents.len());
        for (note, content) in found.into_iter().zip(contents) {
            match (note.content, content) {
                (NoteContent::End { messages, .. }, NoteContent::End { .. }) => {
                    prop_assert_eq!(messages, note.seq);
                }
                (found, sent) => prop_assert_eq!(found, sent),
            }
        }
    }
}
