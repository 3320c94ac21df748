//! Frames of a reply: fields and content.

use crate::streams::event::EventSink;
use crate::streams::head::{BlockKind, LIST_LIMIT, ReplyFault};
use crate::streams::http3::ErrorCode;
use crate::streams::http3::error::{Http3Error, ReceiveFault};
use crate::streams::http3::frame::kind;
use crate::streams::http3::qpack::{QpackError, SectionDecoder};
use crate::streams::http3::reader::{PayloadForm, ReceivedPiece, is_of_http2};
use crate::streams::http3::streams::OpenRequestStream;
use crate::streams::reply_decoder::ReplyDecoder;
use crate::streams::reply_state::ReplyState;

/// Maximum length of an encoded field section, in bytes.
const SECTION_LIMIT: u64 = LIST_LIMIT as u64;

/// Decoder of field sections, and a count of the interim replies in them.
pub(super) struct SectionContext<'a> {
    pub(super) decoder: &'a mut ReplyDecoder<SectionDecoder>,
    pub(super) interim: &'a mut u64,
}

impl OpenRequestStream {
    /// Handles the frames in bytes of a stream, until one ends the stream.
    pub(super) fn receive(
        &mut self,
        context: &mut SectionContext<'_>,
        mut bytes: &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ReceiveFault> {
        loop {
            let reply = self.reply;
            let form =
                |kind, length| payload_form(kind, length, reply.has_head(), reply.has_trailers());
            match self.buffers.reader.next(&mut bytes, form)? {
                None => return Ok(()),
                Some(ReceivedPiece::Content(piece)) => {
                    let (content, result) = self.reply.content(piece);
                    // Permitted content is passed on before a fault, so that cuts between reads change nothing.
                    if !content.is_empty() {
                        sink.body(self.token, content);
                    }
                    result?;
                }
                Some(ReceivedPiece::Frame(_, section)) => {
                    context.section(&mut self.reply, self.token, section, sink)?;
                }
            }
        }
    }

    /// Checks the end of a stream.
    pub(super) fn check_end(&self) -> Result<(), ReceiveFault> {
        if !self.buffers.reader.is_between_frames() {
            return Err(Http3Error::frame("a stream ends inside a frame").into());
        }
        if !self.reply.has_head() {
            return Err(ReplyFault::malformed("the stream ends before the reply").into());
        }
        Ok(self.reply.content_complete()?)
    }
}

impl SectionContext<'_> {
    /// Handles a field section: a head, or trailers.
    fn section(
        &mut self,
        reply: &mut ReplyState,
        token: u32,
        section: &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ReceiveFault> {
        let kind = reply.next_block();
        let head = match kind {
            BlockKind::Head => self.decoder.head(section, token, sink),
            BlockKind::Trailers => self.decoder.trailers(section, token, sink),
        };
        let head = head.map_err(decompression_failed)??;
        match kind {
            BlockKind::Head => {
                *self.interim += u64::from(head.is_interim());
                reply.head(head)?;
            }
            BlockKind::Trailers => reply.trailers(),
        }
        Ok(())
    }
}

/// Checks the header of a frame on the stream of a request (RFC 9114, sections 4.1 and 7.2).
fn payload_form(
    kind: u64,
    length: u64,
    has_head: bool,
    has_trailers: bool,
) -> Result<PayloadForm, ReceiveFault> {
    let unexpected = |reason| Err(Http3Error::unexpected(reason).into());
    match kind {
        kind::DATA if !has_head => unexpected("DATA before the head of the reply"),
        kind::DATA | kind::HEADERS if has_trailers => unexpected("DATA or HEADERS after trailers"),
        kind::DATA => Ok(PayloadForm::Pieces),
        kind::HEADERS if length > SECTION_LIMIT => {
            Err(ReplyFault::excessive("a field section is longer than 256 KiB").into())
        }
        kind::HEADERS => Ok(PayloadForm::Whole),
        kind::PUSH_PROMISE => {
            let reason = "PUSH_PROMISE, although no push was permitted";
            Err(Http3Error::new(ErrorCode::H3_ID_ERROR, reason).into())
        }
        kind::SETTINGS | kind::GOAWAY | kind::CANCEL_PUSH | kind::MAX_PUSH_ID => {
            unexpected("a frame of the control stream on the stream of a request")
        }
        _ if is_of_http2(kind) => unexpected("a frame type of HTTP/2"),
        // RFC 9114, section 9.
        _ => Ok(PayloadForm::Skipped),
    }
}

fn decompression_failed(error: QpackError) -> ReceiveFault {
    let code = ErrorCode::QPACK_DECOMPRESSION_FAILED;
    Http3Error::new(code, error.reason()).into()
}
