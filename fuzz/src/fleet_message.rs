//! Messages between agents and conductor: bounded, read back as written, and joined from parts in any order.

use std::collections::BTreeMap;

use bytes::Bytes;
use posthaste_fleet::envelope::{BodyCoding, MAX_DECODED, decode, encode};
use posthaste_fleet::message::{
    ArmReply, ArmRequest, Note, NoteHeader, OrderMessage, PrepareReply, PrepareRequest,
};
use posthaste_fleet::names::AgentName;
use posthaste_fleet::notes::NoteAssembler;
use posthaste_fleet::parts::{PartJoiner, PartNumber, cut};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::within;

/// Bytes that may be allocated for each byte read: a short entry of a map, in a node of it.
const PER_BYTE: usize = 200;

/// Bytes that may be allocated whatever the length.
const FIXED: usize = 16 << 10;

/// Bytes that may be allocated for a compressed body: a vector that doubles, and an error.
const BOMB: usize = 4 * MAX_DECODED;

/// Sums as a payload.
type Sums = BTreeMap<String, u64>;

/// A coding, then any bytes as each kind of message, as headers, and as a sequence of parts.
pub fn fleet_message(input: &[u8]) {
    let Some((first, body)) = input.split_first() else {
        return;
    };
    let coding = match first & 1 {
        0 => BodyCoding::Identity,
        _ => BodyCoding::Zstd,
    };
    round_trip::<PrepareRequest<Sums>>(body, coding);
    round_trip::<PrepareReply<Sums>>(body, coding);
    round_trip::<ArmRequest>(body, coding);
    round_trip::<ArmReply>(body, coding);
    round_trip::<OrderMessage>(body, coding);
    round_trip::<Note<Sums, u64>>(body, coding);
    headers(body);
    joined(body, usize::from(first >> 1) + 1);
    assembled(body, coding);
}

/// Reads a message and writes it again.
fn round_trip<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(
    body: &[u8],
    coding: BodyCoding,
) {
    let (per_byte, fixed) = match coding {
        BodyCoding::Identity => (PER_BYTE, FIXED),
        BodyCoding::Zstd => (0, PER_BYTE * 64 + BOMB),
    };
    let read = within("message", body.len(), per_byte, fixed, || {
        decode::<T>(body, coding)
    });
    let Ok(read) = read else { return };
    let written = encode(&read).expect("what is read can be written");
    let again: T = decode(&written.body, written.coding).expect("what is written can be read");
    assert_eq!(again, read);
}

/// Two lines as the headers of a note: each has one form.
fn headers(body: &[u8]) {
    let Ok(text) = std::str::from_utf8(body) else {
        return;
    };
    let mut lines = text.split('\n');
    let (seq, part) = (lines.next(), lines.next());
    if let Ok(header) = NoteHeader::read(seq, part) {
        assert_eq!(Some(&*header.seq.to_string()), seq);
        assert_eq!(Some(&*header.part.to_string()), part);
        assert!(header.part.count() > 0 && header.seq.checked_mul(2).is_some());
    }
}

/// A body, cut and joined from its last part to its first.
fn joined(body: &[u8], most: usize) {
    let body = Bytes::copy_from_slice(body);
    let Ok(mut parts) = cut(body.clone(), most) else {
        assert!(body.len() > most);
        return;
    };
    let mut joiner = PartJoiner::default();
    let last = parts.remove(0);
    for (seq, (part, bytes)) in (8..).zip(parts).collect::<Vec<_>>().into_iter().rev() {
        assert!(bytes.len() <= most);
        assert_eq!(joiner.add(seq, part, bytes), Ok(None));
    }
    assert_eq!(joiner.add(7, last.0, last.1), Ok(Some((7, body))));
}

/// Five bytes for a message (number, part, count, length of two bytes), and its body: nothing panics, and a message
/// counts once.
fn assembled(mut rest: &[u8], coding: BodyCoding) {
    let agent: AgentName = "a".parse().expect("a name");
    let mut assembler = NoteAssembler::new([agent.clone()]);
    // A compressed body of a few bytes can be long.
    for _ in 0..16 {
        let Some(([seq, index, count, low, high], after)) = rest.split_first_chunk::<5>() else {
            return;
        };
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        let (body, after) = after.split_at(length);
        rest = after;
        let Some(part) = PartNumber::new((*index).into(), (*count).into()) else {
            continue;
        };
        let header = NoteHeader {
            seq: (*seq).into(),
            part,
        };
        let before = assembler.count(&agent);
        let mut add = || {
            let body = Bytes::copy_from_slice(body);
            assembler.add::<Sums, u64>(&agent, header, coding, body)
        };
        // After an error the conductor believes nothing more of this agent.
        if add().is_err() {
            return;
        }
        assert!(matches!(add(), Ok(None)), "a message counts once");
        assert!(assembler.count(&agent) <= before + 1);
        let is_complete = assembler.is_complete(&agent);
        assert!(!is_complete || !assembler.has_gap(&agent));
    }
}
