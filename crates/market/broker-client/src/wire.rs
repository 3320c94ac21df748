//! Requests to a broker or another server.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::{Method, Response};
use posthaste_serve::client::{self, ClientError, ClientLimits, ClientRequest, HttpClient};
use posthaste_serve::{ClientTls, TlsError, Trust};
use serde::Deserialize;
use url::Url;

use crate::error::{Error, UrlError};

/// Time limit of each step: connect, reply head, and the body as a whole or per piece.
const LIMIT: Duration = Duration::from_secs(10);

/// Maximum bytes of a reply. A stream has no limit.
const ANSWER: usize = 64 << 20;

/// Maximum bytes of an error reply.
const REFUSAL: usize = 1 << 20;

/// A broker or another server.
#[derive(Clone)]
pub(crate) struct RemoteServer {
    url: Url,
    /// A started stream has its own time limit.
    pub(crate) client: HttpClient,
}

impl RemoteServer {
    /// Parses a URL. The server's certificate must be trusted by this machine.
    pub(crate) fn new(written: &str) -> Result<Self, UrlError> {
        let wrong = |reason: String| UrlError::new(written, reason);
        let url: Url = written
            .parse()
            .map_err(|error: url::ParseError| match error {
                url::ParseError::RelativeUrlWithoutBase => wrong("it has no http://".to_owned()),
                error => wrong(error.to_string()),
            })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("its scheme is not http or https".to_owned()));
        }
        if url.authority().contains('@') {
            let reason = "it names a user, remove the part before the @";
            return Err(wrong(reason.to_owned()));
        }
        let host = url
            .host_str()
            .ok_or_else(|| wrong("it has no host".to_owned()))?;
        // A URL has an IPv6 address in brackets; other uses need it without them.
        let host = host.trim_matches(['[', ']']).to_owned();
        let tls = match url.scheme() {
            "https" => Some(ClientTls::new(&host, None).map_err(|error| wrong(error.to_string()))?),
            _ => None,
        };
        let port = url.port_or_known_default().unwrap_or(80);
        let authority = HeaderValue::from_str(url.authority());
        let authority = authority.map_err(|error| wrong(error.to_string()))?;
        let limits = ClientLimits {
            step: LIMIT,
            total: Duration::MAX,
            body: ANSWER,
        };
        Ok(Self {
            url,
            client: HttpClient {
                host,
                port,
                authority,
                tls,
                limits,
            },
        })
    }

    /// Accepts the server certificates that `trust` accepts.
    pub(crate) fn trusting(mut self, trust: &Trust) -> Result<Self, TlsError> {
        if self.client.tls.is_some() {
            self.client.tls = Some(ClientTls::trusting(&self.client.host, trust)?);
        }
        Ok(self)
    }

    /// Builds a request for a path on the server.
    pub(crate) fn request(
        &self,
        method: &Method,
        path: &str,
        kind: &str,
        body: Bytes,
    ) -> Result<ClientRequest, Error> {
        debug_assert!(path.starts_with('/'), "{path:?} is not a path on a server");
        let request = client::request(method.as_str(), path, [("content-type", kind)], body);
        request.map_err(|error| self.failed(error))
    }

    /// Sends a request. Returns a successful response with its unread body, or an error.
    pub(crate) async fn ask(
        &self,
        request: ClientRequest,
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
        mut request: ClientRequest,
        token: Option<&str>,
    ) -> Result<Response<Incoming>, Error> {
        if let Some(token) = token {
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            let mut value = value.map_err(|_| Error::Token)?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let response = self.client.send(request).await;
        response.map_err(|error| self.failed(error))
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
        let step = self.client.limits.step;
        let body = tokio::time::timeout(step, self.client.read(response.into_body(), limit)).await;
        body.unwrap_or(Err(ClientError::Incomplete(step)))
            .map_err(|error| self.failed(error))
    }

    /// Reads a body of at most [`ANSWER`] bytes, with the time limit for each piece.
    pub(crate) async fn long(&self, response: Response<Incoming>) -> Result<Bytes, Error> {
        let body = self
            .client
            .read(response.into_body(), self.client.limits.body);
        body.await.map_err(|error| self.failed(error))
    }

    /// URL of the server.
    pub(crate) const fn url(&self) -> &Url {
        &self.url
    }

    /// The error of a request to this server.
    fn failed(&self, error: ClientError) -> Error {
        let at = self.url.to_string();
        match error {
            ClientError::Connect(error) => Error::Unreachable { at, error },
            ClientError::Request(error) => Error::Unreachable {
                at,
                error: io::Error::new(io::ErrorKind::InvalidInput, error),
            },
            ClientError::ConnectTimedOut(limit)
            | ClientError::Stalled(limit)
            | ClientError::Incomplete(limit) => Error::Late {
                at,
                seconds: limit.as_secs(),
            },
            ClientError::Broken(error) => Error::Broken(error),
            ClientError::Body(error) => Error::Senseless(error.into()),
            ClientError::TooLong(_) => Error::Senseless("length limit exceeded".into()),
        }
    }
}

/// Detail of a problem document (RFC 9457), or the start of the body.
fn detail(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct ProblemDetail {
        detail: String,
    }
    match serde_json::from_slice::<ProblemDetail>(body) {
        Ok(problem) => problem.detail,
        Err(_) => String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned(),
    }
}
