//! Received bytes of a request's stream to its head and content.

use thiserror::Error;

use super::head::{LIST_LIMIT, RequestHead, SectionReader};
use crate::streams::head::ReplyFault;
use crate::streams::http3::ErrorCode;
use crate::streams::http3::error::{Http3Error, ReceiveFault, StreamFault};
use crate::streams::http3::frame::kind;
use crate::streams::http3::qpack::SectionDecoder;
use crate::streams::http3::reader::{Http3FrameReader, PayloadForm, ReceivedPiece, is_of_http2};

/// An error of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The stream ends, and the others continue: RESET_STREAM and STOP_SENDING with this code.
    ///
    /// H3_EXCESSIVE_LOAD before the head means that the fields exceed 64 KiB. A reply with status 431 is possible then.
    #[error("{reason} ({code})")]
    Stream {
        /// Code of the reset.
        code: ErrorCode,
        /// The violation.
        reason: &'static str,
    },
    /// The connection ends.
    #[error(transparent)]
    Connection(#[from] Http3Error),
}

impl RequestError {
    const fn stream(code: ErrorCode, reason: &'static str) -> Self {
        Self::Stream { code, reason }
    }
}

impl From<StreamFault> for RequestError {
    fn from(StreamFault { code, reason }: StreamFault) -> Self {
        Self::Stream { code, reason }
    }
}

impl From<ReceiveFault> for RequestError {
    fn from(fault: ReceiveFault) -> Self {
        match fault {
            ReceiveFault::Stream(fault) => fault.into(),
            ReceiveFault::Connection(error) => error.into(),
        }
    }
}

/// A part of a request, in the order head, content in any number of pieces, trailers.
#[derive(Debug, PartialEq, Eq)]
pub enum RequestPiece<'a> {
    /// The fields.
    Head(RequestHead),
    /// Bytes of the content, at least one.
    Content(&'a [u8]),
    /// Valid trailers. Their fields are not kept.
    Trailers,
}

/// The part of the request that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestStage {
    /// Nothing, or a part of the head.
    Head,
    /// The head, with the number of bytes that `content-length` still announces.
    Content(Option<u64>),
    Trailers,
}

/// The reader of a request's stream.
///
/// [`RequestReader::next`] until it returns nothing, for each received piece of the stream, then
/// [`RequestReader::end`]. After an error nothing is called any more.
#[derive(Debug)]
pub struct RequestReader {
    frames: Http3FrameReader,
    decoder: SectionDecoder,
    stage: RequestStage,
}

impl Default for RequestReader {
    fn default() -> Self {
        Self {
            frames: Http3FrameReader::default(),
            decoder: SectionDecoder::default(),
            stage: RequestStage::Head,
        }
    }
}

impl RequestReader {
    /// Takes the next piece from `input`. `None` if more bytes are needed.
    pub fn next<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<RequestPiece<'s>>, RequestError> {
        let stage = self.stage;
        let form = |kind, length| payload_form(kind, length, stage);
        match self.frames.next(input, form)? {
            None => Ok(None),
            Some(ReceivedPiece::Content(piece)) => {
                self.stage = RequestStage::Content(content_left(stage, piece.len())?);
                Ok(Some(RequestPiece::Content(piece)))
            }
            Some(ReceivedPiece::Frame(_, section)) => {
                let is_trailers = stage != RequestStage::Head;
                let mut reader = SectionReader::new(is_trailers);
                let decoded = self.decoder.decode(section, |field| reader.field(field));
                decoded.map_err(|error| {
                    let code = ErrorCode::QPACK_DECOMPRESSION_FAILED;
                    Http3Error::new(code, error.reason())
                })?;
                let head = reader.finish().map_err(StreamFault::from)?;
                if is_trailers {
                    self.stage = RequestStage::Trailers;
                    content_complete(stage)?;
                    return Ok(Some(RequestPiece::Trailers));
                }
                self.stage = RequestStage::Content(head.content_length);
                Ok(Some(RequestPiece::Head(head)))
            }
        }
    }

    /// Checks the end of the stream.
    pub fn end(&self) -> Result<(), RequestError> {
        if !self.frames.is_between_frames() {
            return Err(Http3Error::frame("a stream ends inside a frame").into());
        }
        if self.stage == RequestStage::Head {
            let reason = "the stream ends before the request";
            return Err(RequestError::stream(
                ErrorCode::H3_REQUEST_INCOMPLETE,
                reason,
            ));
        }
        content_complete(self.stage)
    }
}

/// Counts a piece of content. Returns the rest of the announced length.
fn content_left(stage: RequestStage, length: usize) -> Result<Option<u64>, RequestError> {
    let RequestStage::Content(left) = stage else {
        unreachable!("the form of DATA was checked");
    };
    let Some(left) = left else {
        return Ok(None);
    };
    match left.checked_sub(length as u64) {
        Some(left) => Ok(Some(left)),
        None => {
            let reason = "content longer than content-length";
            Err(RequestError::stream(ErrorCode::H3_MESSAGE_ERROR, reason))
        }
    }
}

/// Checks the length of the content at its end (RFC 9114, section 4.1.2).
fn content_complete(stage: RequestStage) -> Result<(), RequestError> {
    match stage {
        RequestStage::Content(Some(1..)) => {
            let reason = "content shorter than content-length";
            Err(RequestError::stream(ErrorCode::H3_MESSAGE_ERROR, reason))
        }
        _ => Ok(()),
    }
}

/// Checks the header of a frame on the stream of a request (RFC 9114, sections 4.1 and 7.2).
fn payload_form(kind: u64, length: u64, stage: RequestStage) -> Result<PayloadForm, ReceiveFault> {
    let unexpected = |reason| Err(Http3Error::unexpected(reason).into());
    match kind {
        kind::DATA if stage == RequestStage::Head => unexpected("DATA before the head"),
        kind::DATA | kind::HEADERS if stage == RequestStage::Trailers => {
            unexpected("DATA or HEADERS after trailers")
        }
        kind::DATA => Ok(PayloadForm::Pieces),
        kind::HEADERS if length > LIST_LIMIT as u64 => {
            Err(ReplyFault::excessive("a field section is longer than 64 KiB").into())
        }
        kind::HEADERS => Ok(PayloadForm::Whole),
        kind::PUSH_PROMISE => unexpected("PUSH_PROMISE of the client"),
        kind::SETTINGS | kind::GOAWAY | kind::CANCEL_PUSH | kind::MAX_PUSH_ID => {
            unexpected("a frame of the control stream on the stream of a request")
        }
        _ if is_of_http2(kind) => unexpected("a frame type of HTTP/2"),
        // RFC 9114, section 9.
        _ => Ok(PayloadForm::Skipped),
    }
}
