//! HTTP client with one connection per request.

use std::future::Future;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use posthaste_serve::{ClientTls, TlsError, Trust, connect};
use serde::Deserialize;
use url::Url;

use crate::error::{Error, UrlError};

/// Time limit of each step: connect, reply head, and the body as a whole or per piece.
const LIMIT: Duration = Duration::from_secs(10);

/// Maximum bytes of a reply. A stream has no limit.
const ANSWER: usize = 64 << 20;

/// Maximum bytes of an error reply.
const REFUSAL: usize = 1 << 20;

/// Address of a broker or another server.
#[derive(Clone)]
pub(crate) struct Place {
    url: Url,
    host: String,
    port: u16,
    authority: HeaderValue,
    tls: Option<ClientTls>,
    /// Time limit of each step. A started stream has its own limit.
    pub(crate) limit: Duration,
}

impl Place {
    /// Parses a URL. The server's certificate must be trusted by this machine.
    pub(crate) fn new(written: &str) -> Result<Self, UrlError> {
        let wrong = |reason: String| UrlError::new(written, reason);
        let url: Url = written
            .parse()
            .map_err(|error: url::ParseError| wrong(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("only http and https are spoken here".to_owned()));
        }
        if url.authority().contains('@') {
            let reason = "it has a user in it, leave out what stands before the @";
            return Err(wrong(reason.to_owned()));
        }
        let host = url
            .host_str()
            .ok_or_else(|| wrong("it names no host".to_owned()))?;
        // A URL has an IPv6 address in brackets; other uses need it without them.
        let host = host.trim_matches(['[', ']']).to_owned();
        let tls = match url.scheme() {
            "https" => Some(ClientTls::new(&host, None).map_err(|error| wrong(error.to_string()))?),
            _ => None,
        };
        let port = url.port_or_known_default().unwrap_or(80);
        let authority = HeaderValue::from_str(url.authority());
        let authority = authority.map_err(|error| wrong(error.to_string()))?;
        Ok(Self {
            url,
            host,
            port,
            authority,
            tls,
            limit: LIMIT,
        })
    }

    /// Accepts the server certificates that `trust` accepts.
    pub(crate) fn trusting(self, trust: &Trust) -> Result<Self, TlsError> {
        let tls = match self.tls {
            Some(_) => Some(ClientTls::trusting(&self.host, trust)?),
            None => None,
        };
        Ok(Self { tls, ..self })
    }

    /// Sends a request. Returns a successful response with its unread body, or an error.
    pub(crate) async fn ask(
        &self,
        request: Request<Full<Bytes>>,
        token: Option<&str>,
    ) -> Result<Response<Incoming>, Error> {
        let response = self.send(request, token).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refused(response).await?)
    }

    /// Sends a request. Returns a response of any status with its unread body.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        token: Option<&str>,
    ) -> Result<Response<Incoming>, Error> {
        request.headers_mut().insert(HOST, self.authority.clone());
        if let Some(token) = token {
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            let mut value = value.map_err(|_| Error::Token)?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let stream = self.in_time(self.connect()).await??;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(self.in_time(sender.send_request(request)).await??)
    }

    /// Converts an error response.
    pub(crate) async fn refused(&self, response: Response<Incoming>) -> Result<Error, Error> {
        let status = response.status().as_u16();
        let body = self.short(response, REFUSAL).await?;
        Ok(Error::Refused {
            status,
            detail: detail(&body),
        })
    }

    /// Reads a body of at most `limit` bytes, all within the time limit of one step.
    pub(crate) async fn short(
        &self,
        response: Response<Incoming>,
        limit: usize,
    ) -> Result<Bytes, Error> {
        let body = Limited::new(response.into_body(), limit).collect();
        let body = self.in_time(body).await?.map_err(senseless)?;
        Ok(body.to_bytes())
    }

    /// Reads a body of at most [`ANSWER`] bytes, with the time limit for each piece.
    pub(crate) async fn long(&self, response: Response<Incoming>) -> Result<Bytes, Error> {
        let mut body = Limited::new(response.into_body(), ANSWER);
        let mut whole = BytesMut::new();
        while let Some(frame) = self.in_time(body.frame()).await? {
            if let Ok(piece) = frame.map_err(senseless)?.into_data() {
                whole.extend_from_slice(&piece);
            }
        }
        Ok(whole.freeze())
    }

    async fn connect(&self) -> Result<posthaste_serve::Stream, Error> {
        let unreachable = |error| Error::Unreachable {
            at: self.url.to_string(),
            error,
        };
        let addresses = tokio::net::lookup_host((&*self.host, self.port)).await;
        let mut last = io::Error::other("the name has no address");
        for address in addresses.map_err(unreachable)? {
            match connect(address, self.tls.as_ref()).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(unreachable(last))
    }

    /// URL of the server.
    pub(crate) const fn url(&self) -> &Url {
        &self.url
    }

    /// Runs `work` within the time limit of one step.
    pub(crate) async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        let late = |_| Error::Late {
            at: self.url.to_string(),
            seconds: self.limit.as_secs(),
        };
        tokio::time::timeout(self.limit, work).await.map_err(late)
    }
}

/// Builds a request for a path on the server.
pub(crate) fn request(
    method: Method,
    path: &str,
    kind: &'static str,
    body: Bytes,
) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    // Cannot fail: names in the path are percent-encoded.
    *request.uri_mut() = path.parse().unwrap_or_default();
    request
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    request
}

fn senseless(error: Box<dyn std::error::Error + Send + Sync>) -> Error {
    Error::Senseless(error.to_string())
}

/// Detail of a problem document (RFC 9457), or the start of the body.
fn detail(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Problem {
        detail: String,
    }
    match serde_json::from_slice::<Problem>(body) {
        Ok(problem) => problem.detail,
        Err(_) => String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned(),
    }
}
