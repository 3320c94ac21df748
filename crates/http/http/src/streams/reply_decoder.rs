//! Field blocks of replies: decoded and checked, or recognised as the last one.
//!
//! A server under load sends the same block in reply after reply: the fields are indices, or literals that change once
//! a second. While the dynamic table does not change, equal blocks have equal fields. Such a block is compared, and its
//! fields are reported from memory.

use crate::streams::event::EventSink;
use crate::streams::field_decoder::FieldDecoder;
use crate::streams::head::{BlockKind, HeadReader, ReplyFault, ReplyHead};
use crate::streams::recorded_fields::RecordedFields;

/// Longest block that is remembered, in bytes.
const LIMIT: usize = 4 << 10;

/// The decoder of a connection, with its last block.
///
/// A block is recorded when it comes for the second time, because most of those that come once do not return.
#[derive(Debug, Default)]
pub(crate) struct ReplyDecoder<D> {
    decoder: D,
    /// The last block with a head, if it was short enough.
    block: Vec<u8>,
    /// The head in that block, and the number of changes of the table. `None` before the block was recorded.
    head: Option<(ReplyHead, u64)>,
    fields: RecordedFields,
}

impl<D: FieldDecoder> ReplyDecoder<D> {
    /// Reads a block that can be a head, reports its fields, and returns the head.
    pub(crate) fn head(
        &mut self,
        block: &[u8],
        token: u32,
        sink: &mut impl EventSink,
    ) -> Result<Result<ReplyHead, ReplyFault>, D::Error> {
        let before = self.decoder.table_changes();
        if self.block != block {
            self.remember(block);
            let mut reader = HeadReader::new(sink, token, BlockKind::Head, None);
            self.decoder.decode(block, |field| reader.field(field))?;
            return Ok(reader.finish());
        }
        if let Some((head, changes)) = self.head
            && changes == before
        {
            sink.head(token, head.status);
            self.fields.report(token, sink);
            sink.head_end(token);
            return Ok(Ok(head));
        }
        self.head = None;
        self.fields.clear();
        let mut reader = HeadReader::new(sink, token, BlockKind::Head, Some(&mut self.fields));
        self.decoder.decode(block, |field| reader.field(field))?;
        let head = reader.finish();
        if let Ok(head) = head
            && head.status >= 200
            && before == self.decoder.table_changes()
            && self.fields.is_complete()
        {
            self.head = Some((head, before));
        }
        Ok(head)
    }

    /// Reads trailers, and reports them.
    pub(crate) fn trailers(
        &mut self,
        block: &[u8],
        token: u32,
        sink: &mut impl EventSink,
    ) -> Result<Result<ReplyHead, ReplyFault>, D::Error> {
        let mut reader = HeadReader::new(sink, token, BlockKind::Trailers, None);
        self.decoder.decode(block, |field| reader.field(field))?;
        Ok(reader.finish())
    }

    /// Reads a block without reports. Later blocks refer to its entries.
    pub(crate) fn skip(&mut self, block: &[u8]) -> Result<(), D::Error> {
        self.decoder.decode(block, |_| {})
    }

    fn remember(&mut self, block: &[u8]) {
        self.head = None;
        self.block.clear();
        if block.len() <= LIMIT {
            self.block.extend_from_slice(block);
        }
    }
}
