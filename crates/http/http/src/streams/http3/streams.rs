//! The open streams of a connection by their identifiers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::output::UnsentBytes;
use super::reader::Http3FrameReader;
use crate::streams::reply_state::ReplyState;

/// Streams whose memory is kept for the next ones.
const SPARE: usize = 1024;

/// Memory that each buffer of such a stream keeps, in bytes.
const KEPT: usize = 2 << 10;

/// State of an open stream. It is removed at its end.
#[derive(Debug)]
pub(super) struct OpenRequestStream {
    pub(super) token: u32,
    pub(super) reply: ReplyState,
    pub(super) progress: SendProgress,
    pub(super) has_body: bool,
    /// The stream is in the order of output.
    pub(super) listed: bool,
    /// The caller has more of the body, and waits for [`Client::next_writable`](super::Client::next_writable).
    pub(super) waits: bool,
    /// The stream is in the queue of writable streams.
    pub(super) queued: bool,
    /// The transport stopped the body at least once.
    pub(super) stalled: bool,
    pub(super) buffers: Box<StreamBuffers>,
}

/// Progress of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendProgress {
    /// The caller has more of it.
    Open,
    /// Its end waits for the transport.
    Ending,
    /// The transport has all of it.
    Sent,
    /// The server does not want the rest.
    Stopped,
}

/// Memory of a stream.
#[derive(Debug, Default)]
pub(super) struct StreamBuffers {
    pub(super) output: UnsentBytes,
    pub(super) reader: Http3FrameReader,
}

impl OpenRequestStream {
    /// True if there is something for the transport, and it accepts it.
    pub(super) fn has_output(&self) -> bool {
        let output = &self.buffers.output;
        let is_open = matches!(self.progress, SendProgress::Open | SendProgress::Ending);
        let has_any = !output.unsent().is_empty() || self.progress == SendProgress::Ending;
        is_open && has_any && !output.blocked
    }

    /// Unsent bytes that the transport would accept.
    pub(super) fn unblocked(&self) -> usize {
        if self.buffers.output.blocked {
            0
        } else {
            self.buffers.output.unsent().len()
        }
    }
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
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 divided by the golden ratio spreads consecutive numbers over all bits.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// The open streams.
#[derive(Debug, Default)]
pub(super) struct StreamTable {
    open: HashMap<u64, OpenRequestStream, BuildHasherDefault<IdHasher>>,
    #[expect(clippy::vec_box, reason = "the boxes return to streams")]
    spare: Vec<Box<StreamBuffers>>,
}

impl StreamTable {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Memory for a new stream.
    pub(super) fn buffers(&mut self) -> Box<StreamBuffers> {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps the memory of a stream that has ended.
    pub(super) fn recycle(&mut self, mut buffers: Box<StreamBuffers>) {
        if self.spare.len() < SPARE {
            buffers.output.reset(KEPT);
            buffers.reader.reset(KEPT);
            self.spare.push(buffers);
        }
    }

    pub(super) fn insert(&mut self, id: u64, stream: OpenRequestStream) {
        let previous = self.open.insert(id, stream);
        debug_assert!(previous.is_none(), "identifiers are used once");
    }

    pub(super) fn get(&self, id: u64) -> Option<&OpenRequestStream> {
        self.open.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut OpenRequestStream> {
        self.open.get_mut(&id)
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<OpenRequestStream> {
        self.open.remove(&id)
    }

    /// Identifiers and tokens, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        self.open.iter().map(|(id, stream)| (*id, stream.token))
    }

    /// Identifiers from `first` on of streams without any reply, in ascending order.
    pub(super) fn without_reply(&self, first: u64) -> Vec<u64> {
        let streams = self.open.iter();
        let mut ids: Vec<u64> = streams
            .filter(|(id, stream)| **id >= first && !stream.reply.has_reply())
            .map(|(id, _)| *id)
            .collect();
        ids.sort_unstable();
        ids
    }
}
