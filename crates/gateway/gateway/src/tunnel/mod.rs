//! Switches of protocol: recognition in a request, the request for the upstream, its reply, and the tunnel.
//!
//! A switch passes all stages before forwarding, as any request does. Then:
//!
//! | upstream's reply | towards the client |
//! |---|---|
//! | 101 to the requested protocol | 101, or 200 over HTTP/2; a tunnel |
//! | 101 to another protocol, with the wrong key or with content | 502 |
//! | success other than 101, client with HTTP/2 | 502, because a success would open a tunnel |
//! | anything else | an ordinary reply |
//!
//! [`copy`] moves the bytes.

mod copy;
mod open;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::ext::Protocol;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Version};
use posthaste_http::fields::upgrade::{self, SwitchObstacle, WEBSOCKET};
use posthaste_serve::{Peer, SwitchTask, SwitchedStream, environment};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use self::copy::Tunnel;
use self::open::OpenTunnel;
use crate::error::Rejection;
use crate::record::metrics::GatewayMetrics;
use crate::record::tunnels::SwitchOutcome;
use crate::response::body::ReplyBody;
use crate::upstream::body::UpstreamBody;
use crate::upstream::error::UpstreamError;
use crate::upstream::switched::{SwitchedUpstream, Switches};

/// Appended to a key before it is hashed (RFC 6455, section 1.3).
const WEBSOCKET_ID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A switch of protocol that a client requests and its route allows.
pub(crate) struct Switch {
    metrics: Arc<GatewayMetrics>,
    protocol: HeaderValue,
    /// The reply's `Sec-WebSocket-Accept`, for WebSocket.
    accept: Option<String>,
    /// The key for the upstream, if the client sent none.
    key: Option<HeaderValue>,
    is_http2: bool,
    limit: Duration,
}

/// The protocols that a route allows, and the idle limit of its tunnels.
pub(crate) struct SwitchRules {
    pub(crate) protocols: Vec<String>,
    pub(crate) idle: Duration,
}

impl Switch {
    /// Recognises a switch. `has_body` is about the request, `version` the client's. `None` for other requests, and for
    /// those whose `Upgrade` is ignored.
    pub(crate) fn requested(
        head: &mut Parts,
        has_body: bool,
        version: Version,
        rules: &SwitchRules,
        peer: &Peer,
        metrics: &Arc<GatewayMetrics>,
    ) -> Result<Option<Box<Self>>, Rejection> {
        // Present if the request has Upgrade over HTTP/1.1, or is a CONNECT: no other request is searched.
        if head.extensions.is_empty() {
            return Ok(None);
        }
        let protocol = head.extensions.remove::<Protocol>();
        let is_http2 = protocol.is_some();
        let chosen = match &protocol {
            Some(protocol) => {
                upgrade::connected(protocol.as_ref(), lines(&head.headers), &rules.protocols)
            }
            None if head.extensions.remove::<OnUpgrade>().is_none() => return Ok(None),
            None if version != Version::HTTP_11 => return Ok(None),
            None if head.method != Method::GET => Err(SwitchObstacle::Method),
            None if has_body => Err(SwitchObstacle::Body),
            None => upgrade::requested(lines(&head.headers), &rules.protocols),
        };
        let chosen = match chosen {
            Ok(chosen) => chosen,
            Err(obstacle) => {
                metrics.tunnels.ignored(obstacle);
                return if is_http2 {
                    Err(refused(obstacle))
                } else {
                    Ok(None)
                };
            }
        };
        if peer.is_draining() {
            metrics.tunnels.switched(chosen, SwitchOutcome::Stopping);
            return Err(stopping());
        }
        let mut switch = Self {
            metrics: metrics.clone(),
            protocol: HeaderValue::from_str(chosen).expect("the configuration has only tokens"),
            accept: None,
            key: None,
            is_http2,
            limit: rules.idle,
        };
        switch.begin_handshake(chosen, &mut head.headers);
        Ok(Some(Box::new(switch)))
    }

    /// Prepares the handshake of WebSocket: the key of a client with HTTP/2 is made here.
    fn begin_handshake(&mut self, protocol: &str, headers: &mut HeaderMap) {
        if !protocol.eq_ignore_ascii_case(WEBSOCKET) {
            return;
        }
        if self.is_http2 {
            headers.remove(SEC_WEBSOCKET_KEY);
            let key = HeaderValue::from_str(&STANDARD.encode(nonce()));
            self.key = Some(key.expect("base64 is a field value"));
        }
        let key = self.key.as_ref().or(headers.get(SEC_WEBSOCKET_KEY));
        self.accept = key.map(|key| accept(key.as_bytes()));
    }

    fn protocol(&self) -> &str {
        self.protocol.to_str().unwrap_or_default()
    }

    /// Adds the switch to the request for the upstream, whose hop-by-hop fields have been removed.
    pub(crate) fn announce<B>(&self, request: &mut Request<B>) {
        request.extensions_mut().insert(Switches);
        let headers = request.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, self.protocol.clone());
        if let Some(key) = &self.key {
            headers.insert(SEC_WEBSOCKET_KEY, key.clone());
        }
    }

    /// Counts a switch without a reply of the upstream.
    pub(crate) fn failed(&self) {
        let outcome = SwitchOutcome::Failed;
        self.metrics.tunnels.switched(self.protocol(), outcome);
    }

    /// Takes the upstream's stream after its 101. `None` if the upstream does not switch.
    pub(crate) fn accepted(
        &self,
        reply: &mut Response<UpstreamBody>,
    ) -> Result<Option<SwitchedUpstream>, Rejection> {
        let count = |outcome| self.metrics.tunnels.switched(self.protocol(), outcome);
        if reply.status() != StatusCode::SWITCHING_PROTOCOLS {
            count(SwitchOutcome::Refused);
            if self.is_http2 && reply.status().is_success() {
                let reason = "the upstream did not switch protocols";
                return Err(Rejection::new(StatusCode::BAD_GATEWAY, reason));
            }
            return Ok(None);
        }
        let headers = reply.headers();
        let mut accepts = headers.get_all(SEC_WEBSOCKET_ACCEPT).iter();
        let has_key = self.accept.as_ref().is_none_or(|wanted| {
            let is_it = |value: &HeaderValue| value.as_bytes() == wanted.as_bytes();
            accepts.next().is_some_and(is_it) && accepts.next().is_none()
        });
        let switches = has_key
            && !has_content(headers)
            && upgrade::switches_to(lines(headers), self.protocol());
        let switched = reply.body_mut().take_switched();
        match switched.filter(|_| switches) {
            Some(switched) => Ok(Some(switched)),
            None => {
                count(SwitchOutcome::Invalid);
                self.metrics.failed(UpstreamError::Switched.kind());
                let reason = "the upstream switched to another protocol than requested";
                Err(Rejection::new(StatusCode::BAD_GATEWAY, reason))
            }
        }
    }

    /// Starts the tunnel after the reply to the client. `reply` has been prepared for the client.
    pub(crate) fn begin<B>(
        &self,
        reply: Response<B>,
        upstream: SwitchedUpstream,
        peer: &Peer,
    ) -> Result<Response<ReplyBody>, Rejection> {
        if peer.is_draining() {
            let protocol = self.protocol();
            self.metrics
                .tunnels
                .switched(protocol, SwitchOutcome::Stopping);
            return Err(stopping());
        }
        let mut reply = reply.map(|_| ReplyBody::Whole(bytes::Bytes::new()));
        let headers = reply.headers_mut();
        headers.remove(CONTENT_LENGTH);
        if self.is_http2 {
            headers.remove(SEC_WEBSOCKET_ACCEPT);
            *reply.status_mut() = StatusCode::OK;
        } else {
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(UPGRADE, self.protocol.clone());
        }
        let open = OpenTunnel::begin(&self.metrics, self.protocol());
        peer.switch(task(upstream, self.limit, open));
        Ok(reply)
    }
}

/// Makes the task of a tunnel. Without a client yet, so that the tunnel needs no space before.
fn task(upstream: SwitchedUpstream, limit: Duration, open: OpenTunnel) -> SwitchTask {
    type Running = Pin<Box<dyn Future<Output = Option<SwitchedStream>>>>;
    Box::new(move |client| -> Running { Box::pin(Tunnel::new(client, upstream, limit, open)) })
}

/// True if a reply 101 states content, which it cannot have (RFC 9110, section 8.6): its end would be in doubt.
fn has_content(headers: &HeaderMap) -> bool {
    let is_empty = |length: &HeaderValue| length.as_bytes() == b"0";
    headers.contains_key(TRANSFER_ENCODING) || !headers.get_all(CONTENT_LENGTH).iter().all(is_empty)
}

/// The lines of all fields.
fn lines(headers: &HeaderMap) -> impl Iterator<Item = (&[u8], &[u8])> {
    headers
        .iter()
        .map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
}

/// The refusal of an extended CONNECT, which cannot be forwarded as an ordinary request.
fn refused(obstacle: SwitchObstacle) -> Rejection {
    match obstacle {
        SwitchObstacle::Version => {
            let reason = "WebSocket needs Sec-WebSocket-Version: 13";
            let mut rejection = Rejection::new(StatusCode::BAD_REQUEST, reason);
            let field = ("sec-websocket-version", "13".to_owned());
            rejection.fields.push(field);
            rejection
        }
        _ => Rejection::new(
            StatusCode::NOT_IMPLEMENTED,
            "this protocol is not served here",
        ),
    }
}

fn stopping() -> Rejection {
    let reason = "the gateway is stopping and opens no tunnel";
    Rejection::new(StatusCode::SERVICE_UNAVAILABLE, reason)
}

/// The proof that a server has read a key (RFC 6455, section 4.2.2).
fn accept(key: &[u8]) -> String {
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, WEBSOCKET_ID].concat());
    STANDARD.encode(hash)
}

/// The nonce of a key (RFC 6455, section 4.1).
fn nonce() -> [u8; 16] {
    environment::random("websocket keys").expect("the system's random numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proof_is_that_of_the_standard() {
        let proof = accept(b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(proof, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
