//! Events in a reply with a content coding: it is decoded as it arrives, so that each event keeps its time.

use std::fmt;
use std::io::{self, Write};

use posthaste_compression::{Coding, Decoder};

use super::EventProgress;
use crate::reply::decoding::DECODED_LIMIT;

/// The decoder of one reply.
pub(crate) struct EventDecoder(Decoder<EventWriter>);

/// Feeds decoded bytes to the events of the reply, which it has only while a piece is decoded.
struct EventWriter {
    events: Option<EventProgress>,
    left: u64,
}

impl EventDecoder {
    /// Creates the decoder of a body. An error if there is no memory for it.
    pub(crate) fn new(coding: Coding) -> io::Result<Self> {
        let writer = EventWriter {
            events: None,
            left: DECODED_LIMIT,
        };
        Decoder::new(coding, writer).map(Self)
    }

    /// Decodes a piece and reads its events. An error if the piece is invalid; the decoder is unusable afterwards.
    pub(crate) fn feed(
        &mut self,
        piece: &[u8],
        events: &mut Option<EventProgress>,
    ) -> io::Result<()> {
        self.with(events, |decoder| {
            decoder.push(piece)?;
            decoder.flush()
        })
    }

    /// Reads the events that the decoder has not written yet. An error if the body is cut.
    pub(crate) fn finish(&mut self, events: &mut Option<EventProgress>) -> io::Result<()> {
        self.with(events, Decoder::finish)
    }

    fn with(
        &mut self,
        events: &mut Option<EventProgress>,
        act: impl FnOnce(&mut Decoder<EventWriter>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.0.writer().events = events.take();
        let result = act(&mut self.0);
        *events = self.0.writer().events.take();
        result
    }
}

impl fmt::Debug for EventDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventDecoder")
    }
}

impl Write for EventWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len() as u64;
        self.left = self
            .left
            .checked_sub(length)
            .ok_or(io::ErrorKind::StorageFull)?;
        if let Some(events) = &mut self.events {
            events.feed(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
