//! State of a reply: the order of its parts, and the length of its content.

use crate::streams::head::{BlockKind, ReplyFault, ReplyHead};

/// Maximum number of interim replies of a stream.
const INTERIM_LIMIT: u8 = 100;

/// Stage of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplyStage {
    Head,
    Content,
    Trailers,
}

/// State of the reply on a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyState {
    stage: ReplyStage,
    /// Announced bytes of content that have not arrived. `None` without an announcement.
    content_left: Option<u64>,
    /// The reply has no content: the request is HEAD, or the status forbids it.
    no_content: bool,
    interim: u8,
}

impl ReplyState {
    /// The state before a reply. `is_head` states that the method is HEAD.
    pub(crate) const fn new(is_head: bool) -> Self {
        Self {
            stage: ReplyStage::Head,
            content_left: None,
            no_content: is_head,
            interim: 0,
        }
    }

    /// True if a part of the reply has arrived, or an interim reply: the server has begun to process the request.
    pub(crate) fn has_reply(&self) -> bool {
        self.interim > 0 || self.has_head()
    }

    /// True if the final head has arrived.
    pub(crate) fn has_head(&self) -> bool {
        self.stage != ReplyStage::Head
    }

    /// True if the trailers have arrived.
    pub(crate) fn has_trailers(&self) -> bool {
        self.stage == ReplyStage::Trailers
    }

    /// Kind of the next field block.
    pub(crate) fn next_block(&self) -> BlockKind {
        match self.stage {
            ReplyStage::Head => BlockKind::Head,
            ReplyStage::Content | ReplyStage::Trailers => BlockKind::Trailers,
        }
    }

    /// Takes a valid head.
    pub(crate) fn head(&mut self, head: ReplyHead) -> Result<(), ReplyFault> {
        if head.is_interim() {
            self.interim += 1;
            if self.interim > INTERIM_LIMIT {
                return Err(ReplyFault::excessive("more than 100 interim replies"));
            }
            return Ok(());
        }
        self.stage = ReplyStage::Content;
        self.no_content |= matches!(head.status, 204 | 304);
        if !self.no_content {
            self.content_left = head.content_length;
        }
        Ok(())
    }

    /// Takes valid trailers.
    pub(crate) fn trailers(&mut self) {
        debug_assert!(self.stage == ReplyStage::Content, "trailers follow a head");
        self.stage = ReplyStage::Trailers;
    }

    /// Takes the permitted part of a piece of content, and checks its length.
    pub(crate) fn content<'a>(&mut self, piece: &'a [u8]) -> (&'a [u8], Result<(), ReplyFault>) {
        if self.no_content && !piece.is_empty() {
            let fault = ReplyFault::malformed("content in a reply that has none");
            return (&[], Err(fault));
        }
        let Some(left) = &mut self.content_left else {
            return (piece, Ok(()));
        };
        let permitted = usize::try_from(*left).map_or(piece.len(), |left| left.min(piece.len()));
        *left -= permitted as u64;
        let result = if permitted < piece.len() {
            Err(ReplyFault::malformed("content longer than content-length"))
        } else {
            Ok(())
        };
        (&piece[..permitted], result)
    }

    /// Checks the length of the content at its end (RFC 9113, section 8.1.1; RFC 9114, section 4.1.2).
    pub(crate) fn content_complete(&self) -> Result<(), ReplyFault> {
        match self.content_left {
            None | Some(0) => Ok(()),
            Some(_) => Err(ReplyFault::malformed("content shorter than content-length")),
        }
    }

    /// True if the head or the announced length shows that nothing of the content is missing.
    pub(crate) fn is_known_complete(&self) -> bool {
        let has_all = self.no_content || self.content_left == Some(0);
        self.has_trailers() || self.has_head() && has_all
    }
}
