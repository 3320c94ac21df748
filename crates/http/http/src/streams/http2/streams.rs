//! The open streams of a connection by their identifiers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::window::{ReceiveWindow, SendWindow, WindowOverflow};
use crate::streams::reply_state::ReplyState;

/// State of an open stream. It is removed at its end.
#[derive(Debug)]
pub(super) struct OpenStream {
    pub(super) token: u32,
    pub(super) send: SendWindow,
    pub(super) receive: ReceiveWindow,
    pub(super) reply: ReplyState,
    /// The request was sent to its end.
    pub(super) sent: bool,
    /// The caller has more of the body, and waits for [`Client::next_writable`](super::Client::next_writable).
    pub(super) waits: bool,
    /// The stream is in the queue of writable streams.
    pub(super) queued: bool,
    /// A window of the server stopped the body at least once.
    pub(super) stalled: bool,
}

/// Hashes identifiers of streams, which the client chooses itself.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        // 2^64 divided by the golden ratio spreads consecutive numbers over all bits.
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// The open streams.
#[derive(Debug, Default)]
pub(super) struct StreamTable(HashMap<u32, OpenStream, BuildHasherDefault<IdHasher>>);

impl StreamTable {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn insert(&mut self, id: u32, stream: OpenStream) {
        let previous = self.0.insert(id, stream);
        debug_assert!(previous.is_none(), "identifiers are used once");
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut OpenStream> {
        self.0.get_mut(&id)
    }

    pub(super) fn token(&self, id: u32) -> Option<u32> {
        self.0.get(&id).map(|stream| stream.token)
    }

    pub(super) fn remove(&mut self, id: u32) -> Option<OpenStream> {
        self.0.remove(&id)
    }

    /// Identifiers and tokens, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().map(|(id, stream)| (*id, stream.token))
    }

    /// Identifiers above `last` of streams without any reply, in ascending order.
    pub(super) fn without_reply(&self, last: u32) -> Vec<u32> {
        let streams = self.0.iter();
        let mut ids: Vec<u32> = streams
            .filter(|(id, stream)| **id > last && !stream.reply.has_reply())
            .map(|(id, _)| *id)
            .collect();
        ids.sort_unstable();
        ids
    }

    /// Changes the send windows of all streams. Returns the streams that wait and may send now, in ascending order.
    pub(super) fn change_windows(&mut self, delta: i64) -> Result<Vec<u32>, WindowOverflow> {
        let mut writable = Vec::new();
        for (id, stream) in &mut self.0 {
            stream.send.change(delta)?;
            if stream.waits && !stream.queued && stream.send.available() > 0 {
                stream.queued = true;
                writable.push(*id);
            }
        }
        writable.sort_unstable();
        Ok(writable)
    }
}
