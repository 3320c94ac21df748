//! Reading of whole request bodies, with limits on length and time.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use thiserror::Error;

use crate::connection::peer::Peer;
use crate::exchange::incoming::Incoming;

/// Reasons why a body could not be read.
#[derive(Debug, Error)]
pub enum BodyError {
    /// 413: longer than the limit, as announced or as received.
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    /// 400: the body ended early, or its chunked framing is invalid.
    #[error("the body cannot be read: {0}")]
    Broken(#[from] hyper::Error),
}

/// Reads `body` to its end, at most `limit` bytes. [`crate::Timeouts::body`] limits the time.
///
/// A body that arrives in one piece is returned without a copy.
pub async fn read_body(mut body: Incoming, limit: usize, peer: &Peer) -> Result<Bytes, BodyError> {
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyError::TooLong(limit));
    }
    peer.reading(true);
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        if first.len() + all.len() + data.len() > limit {
            return Err(BodyError::TooLong(limit));
        }
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
    }
    peer.reading(false);
    debug_assert!(first.len() + all.len() <= limit, "the limit holds");
    Ok(if all.is_empty() { first } else { all.freeze() })
}
