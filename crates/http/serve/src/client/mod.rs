//! A one-shot HTTP/1.1 client: one connection for each request, with limits on time and size.
//!
//! Redirects and content codings are left to callers.

pub(crate) mod connect;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::time::timeout;

use crate::client::connect::{ClientTls, connect};
use crate::environment::{self, is_simulated};
use crate::socket::stream::Stream;

/// A request with its whole body.
pub type ClientRequest = Request<Full<Bytes>>;

/// A server, and the limits of requests to it.
#[derive(Clone)]
pub struct HttpClient {
    /// Name or address for connections, an IPv6 address without brackets.
    pub host: String,
    /// Port for connections.
    pub port: u16,
    /// Value of the field `Host`.
    pub authority: HeaderValue,
    /// Trusted certificates, if the server uses TLS.
    pub tls: Option<ClientTls>,
    /// Limits of each request.
    pub limits: ClientLimits,
}

/// Limits of a request.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// Time for each step: to connect, for the head of the reply, and for each piece of its body.
    pub step: Duration,
    /// Time for the whole exchange of [`HttpClient::fetch`].
    pub total: Duration,
    /// Maximum bytes of a body for [`HttpClient::fetch`].
    pub body: usize,
}

/// Reasons why a request has no reply.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The method, the path or a field is invalid.
    #[error("{0}")]
    Request(#[from] hyper::http::Error),
    /// The name has no address, or the connection or its TLS handshake failed.
    #[error("{0}")]
    Connect(#[source] io::Error),
    /// No connection within the time of a step.
    #[error("connection timed out")]
    ConnectTimedOut(Duration),
    /// No progress of the reply within the time of a step.
    #[error("no more bytes for {} s", .0.as_secs())]
    Stalled(Duration),
    /// The whole exchange takes too long.
    #[error("not complete after {} s", .0.as_secs())]
    Incomplete(Duration),
    /// The connection broke, or the head of the reply is invalid.
    #[error("{0}")]
    Broken(#[from] hyper::Error),
    /// The body of the reply is invalid or incomplete.
    #[error("{0}")]
    Body(#[source] hyper::Error),
    /// The body of the reply exceeds its limit.
    #[error("longer than {0} bytes")]
    TooLong(usize),
}

/// Builds a request for a path and query, with these fields.
pub fn request<'a>(
    method: &str,
    path: &str,
    fields: impl IntoIterator<Item = (&'a str, &'a str)>,
    body: impl Into<Bytes>,
) -> Result<ClientRequest, ClientError> {
    let builder = Request::builder().method(method).uri(path);
    let fields = fields.into_iter();
    let builder = fields.fold(builder, |builder, (name, value)| {
        builder.header(name, value)
    });
    Ok(builder.body(Full::new(body.into()))?)
}

/// Runs `work` on this thread, for callers without a runtime. Sockets belong to this thread's network namespace.
pub fn block_on<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(work))
}

impl HttpClient {
    /// Creates a client for plain HTTP at `address`.
    pub fn at(address: SocketAddr, limits: ClientLimits) -> Self {
        let authority = HeaderValue::try_from(address.to_string());
        Self {
            host: address.ip().to_string(),
            port: address.port(),
            authority: authority.expect("addresses have no control characters"),
            tls: None,
            limits,
        }
    }

    /// Exchanges a request for a complete reply of any status, within all limits.
    pub async fn fetch(&self, request: ClientRequest) -> Result<Response<Bytes>, ClientError> {
        let ClientLimits { total, body, .. } = self.limits;
        let exchange = async {
            let (parts, incoming) = self.send(request).await?.into_parts();
            let body = self.read(incoming, body).await?;
            Ok(Response::from_parts(parts, body))
        };
        let late = |_| ClientError::Incomplete(total);
        timeout(total, exchange).await.map_err(late)?
    }

    /// Sends a request. Returns a reply of any status with its unread body.
    pub async fn send(
        &self,
        mut request: ClientRequest,
    ) -> Result<Response<Incoming>, ClientError> {
        let fields = request.headers_mut();
        fields.entry(HOST).or_insert_with(|| self.authority.clone());
        let step = self.limits.step;
        let late = |_| ClientError::ConnectTimedOut(step);
        let stream = timeout(step, self.connect()).await.map_err(late)??;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        // Ends with the request and its reply, which report its errors.
        if is_simulated() {
            // With the host, too.
            drop(tokio::task::spawn_local(connection));
        } else {
            drop(tokio::spawn(connection));
        }
        Ok(self.step(sender.send_request(request)).await??)
    }

    /// Reads a body of at most `limit` bytes, with the time of a step for each piece.
    pub async fn read(&self, mut body: Incoming, limit: usize) -> Result<Bytes, ClientError> {
        if body.size_hint().lower() > limit as u64 {
            return Err(ClientError::TooLong(limit));
        }
        let mut whole = BytesMut::new();
        while let Some(frame) = self.step(body.frame()).await? {
            let Ok(piece) = frame.map_err(ClientError::Body)?.into_data() else {
                continue;
            };
            if piece.len() > limit - whole.len() {
                return Err(ClientError::TooLong(limit));
            }
            whole.extend_from_slice(&piece);
            debug_assert!(
                whole.len() <= limit,
                "a body of at most {limit} bytes is kept"
            );
        }
        Ok(whole.freeze())
    }

    /// Connects to the first address of the host that accepts.
    async fn connect(&self) -> Result<Stream, ClientError> {
        let addresses = look_up(&self.host, self.port).await;
        let mut last = io::Error::other("the name has no address");
        for address in addresses.map_err(ClientError::Connect)? {
            match connect(address, self.tls.as_ref()).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(ClientError::Connect(last))
    }

    /// Runs `work` within the time of a step.
    async fn step<T>(&self, work: impl Future<Output = T>) -> Result<T, ClientError> {
        let late = |_| ClientError::Stalled(self.limits.step);
        timeout(self.limits.step, work).await.map_err(late)
    }
}

/// The addresses of a host, given by its name or as an address.
async fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let Some(environment) = environment::current() else {
        return Ok(tokio::net::lookup_host((host, port)).await?.collect());
    };
    let addresses = match host.parse() {
        Ok(address) => vec![address],
        Err(_) => environment.look_up(host).await?.0,
    };
    let addresses = addresses.into_iter();
    Ok(addresses.map(|ip| (ip, port).into()).collect())
}
