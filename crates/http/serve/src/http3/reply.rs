//! Frames of a reply, as its body produces them. QUIC's flow control delays the body.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::SystemTime;

use bytes::Bytes;
use hyper::body::Body;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, DATE, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
    UPGRADE,
};
use hyper::{Response, StatusCode};
use posthaste_http::streams::http3::ErrorCode;
use posthaste_http::streams::http3::server::{append_content, append_head, append_trailers};
use quinn::SendStream;

use crate::exchange::reply_body::ReplyBody;

/// Fields of HTTP/1.1 that HTTP/3 forbids (RFC 9114, section 4.2).
const FORBIDDEN: [HeaderName; 5] = [
    CONNECTION,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Sends a reply and ends the stream. An error is the code for its reset.
pub(super) async fn send_reply<B>(
    send: &mut SendStream,
    reply: Response<ReplyBody<B>>,
    is_head: bool,
) -> Result<(), ErrorCode>
where
    B: Body<Data = Bytes> + Unpin,
{
    let (mut parts, mut body) = reply.into_parts();
    let has_content = !matches!(
        parts.status,
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
    );
    complete(&mut parts.headers, has_content, &body);
    let mut bytes = Vec::new();
    append_head(parts.status.as_u16(), pairs(&parts.headers), &mut bytes);
    write(send, bytes.into(), &body).await?;
    let is_empty = is_head || !has_content || body.is_end_stream();
    while !is_empty && let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|_| ErrorCode::H3_INTERNAL_ERROR)?;
        match frame.into_data() {
            Ok(data) if data.is_empty() => {}
            Ok(data) => {
                let mut head = Vec::new();
                append_content(data.len(), &mut head);
                write(send, head.into(), &body).await?;
                write(send, data, &body).await?;
            }
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                let mut bytes = Vec::new();
                append_trailers(pairs(&trailers), &mut bytes);
                write(send, bytes.into(), &body).await?;
                break;
            }
        }
    }
    // An error would state that the client has stopped the stream at its end.
    let _ = send.finish();
    Ok(())
}

/// Adds the fields that hyper adds to replies over the other versions.
fn complete<B: Body>(fields: &mut HeaderMap, has_content: bool, body: &B) {
    if has_content
        && !fields.contains_key(CONTENT_LENGTH)
        && let Some(length) = body.size_hint().exact()
    {
        fields.insert(CONTENT_LENGTH, length.into());
    }
    if !fields.contains_key(DATE) {
        let date = httpdate::fmt_http_date(SystemTime::now());
        let date = HeaderValue::try_from(date).expect("a date has no control characters");
        fields.insert(DATE, date);
    }
}

/// The fields as names and values, without those that HTTP/3 forbids.
fn pairs(fields: &HeaderMap) -> impl Iterator<Item = (&[u8], &[u8])> {
    let permitted = fields.iter().filter(|(name, _)| !FORBIDDEN.contains(name));
    permitted.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
}

/// Writes bytes as the client takes them. Each part that it takes is progress.
async fn write<B>(
    send: &mut SendStream,
    bytes: Bytes,
    body: &ReplyBody<B>,
) -> Result<(), ErrorCode> {
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let count = send.write(rest).await;
        // The client has stopped the stream, or the connection has ended.
        let count = count.map_err(|_| ErrorCode::H3_REQUEST_CANCELLED)?;
        rest = &rest[count..];
        body.in_service.progressed();
    }
    Ok(())
}
