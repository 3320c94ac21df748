//! A blocking call of server reflection, before the run begins.
//!
//! Version 1 is called first, then v1alpha, each on a connection of its own. The call uses the run's addresses for names,
//! its trusted certificates and its header fields.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use posthaste_grpc_schema::Schema;
use posthaste_grpc_schema::reflection::{
    REFLECTION_METHOD, REFLECTION_SERVICES, ReflectionClient, ReflectionStep,
};
use posthaste_http::grpc::{Code, FramedMessage, MessageReader, decode_message, write_frame};
use posthaste_http::streams::catalogue::{FieldCatalogue, RequestField};
use posthaste_http::streams::http2::hpack::FieldPlan;
use posthaste_http::streams::http2::{Http2StreamClient, StreamId};
use posthaste_http::streams::{EventSink, StreamEnd, StreamRequest};
use rustls::{ClientConnection, StreamOwned};

use super::{GrpcCallError, ReflectedServer};
use crate::request::has_placeholders_in;
use crate::target::RequestTarget;
use crate::transport::tls;

/// Time limit of a connection, of a write and of a read.
const STEP: Duration = Duration::from_secs(10);
/// Time limit of a version.
const TOTAL: Duration = Duration::from_secs(60);
/// Maximum size of a message.
const MESSAGE_LIMIT: usize = 16 << 20;

/// Fetches the schema of a service.
pub(super) fn schema(server: &ReflectedServer<'_>, service: &str) -> Result<Schema, GrpcCallError> {
    let target = RequestTarget::look_up(server.url, server.resolve)?;
    let name = || target.origin.authority();
    let mut reason = String::new();
    for version in REFLECTION_SERVICES {
        let path = format!("/{version}/{REFLECTION_METHOD}");
        let socket = connect(server, &target)?;
        let failed = |reason: io::Error| GrpcCallError::Connect {
            server: name(),
            reason: reason.into(),
        };
        let mut call = Call::open(socket, server, &target, &path).map_err(failed)?;
        match call.ask(service) {
            Ok(schema) => return Ok(schema),
            Err(Failed::Io(error)) => return Err(failed(error)),
            Err(Failed::Answer(error)) => {
                let server = name();
                let reason = error;
                return Err(GrpcCallError::Reflection { server, reason });
            }
            Err(Failed::Ended(end)) if reason.is_empty() => reason = end,
            Err(Failed::Ended(_)) => {}
        }
    }
    let server = name();
    Err(GrpcCallError::NoReflection { server, reason })
}

/// A socket, with or without TLS.
trait Socket: Read + Write {}

impl<S: Read + Write> Socket for S {}

fn connect(
    server: &ReflectedServer<'_>,
    target: &RequestTarget,
) -> Result<Box<dyn Socket>, GrpcCallError> {
    let origin = &target.origin;
    let failed = |reason: io::Error| GrpcCallError::Connect {
        server: origin.authority(),
        reason: reason.into(),
    };
    let socket = TcpStream::connect_timeout(&origin.reachable(), STEP).map_err(failed)?;
    socket.set_read_timeout(Some(STEP)).map_err(failed)?;
    socket.set_write_timeout(Some(STEP)).map_err(failed)?;
    socket.set_nodelay(true).map_err(failed)?;
    if !origin.tls {
        return Ok(Box::new(socket));
    }
    let name = tls::server_name(&origin.host)?;
    let config = server.tls.config(b"h2")?;
    let connection = ClientConnection::new(config, name).map_err(tls::TlsError::from)?;
    let mut stream = StreamOwned::new(connection, socket);
    while stream.conn.is_handshaking() {
        let done = stream.conn.complete_io(&mut stream.sock);
        done.map_err(|error| failed(tls::with_remedy(error)))?;
    }
    if stream.conn.alpn_protocol() != Some(b"h2") {
        return Err(failed(io::Error::other(
            "by ALPN the server did not choose h2",
        )));
    }
    Ok(Box::new(stream))
}

/// Reasons why a version of reflection has no schema.
enum Failed {
    Io(io::Error),
    /// The call ended before the schema was complete.
    Ended(String),
    Answer(posthaste_grpc_schema::reflection::ReflectionError),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A call of reflection.
struct Call {
    socket: Box<dyn Socket>,
    client: Http2StreamClient,
    stream: StreamId,
    reply: ReflectionReply,
    until: Instant,
}

impl Call {
    fn open(
        socket: Box<dyn Socket>,
        server: &ReflectedServer<'_>,
        target: &RequestTarget,
        path: &str,
    ) -> io::Result<Self> {
        let mut catalogue = FieldCatalogue::default();
        let scheme = if target.origin.tls { "https" } else { "http" };
        let authority = target.origin.authority();
        let agent = concat!("posthaste/", env!("CARGO_PKG_VERSION"));
        let mut fields = vec![
            (":method".to_owned(), "POST"),
            (":scheme".to_owned(), scheme),
            (":authority".to_owned(), &*authority),
            (":path".to_owned(), path),
            ("content-type".to_owned(), "application/grpc"),
            ("te".to_owned(), "trailers"),
            ("user-agent".to_owned(), agent),
        ];
        // A field with a placeholder has no value before the run.
        let own = server.headers.iter().filter(|(name, value)| {
            !has_placeholders_in(value)
                && !["host", "user-agent"].contains(&&*name.to_ascii_lowercase())
        });
        fields.extend(own.map(|(name, value)| (name.to_ascii_lowercase(), value.as_str())));
        let fields: Vec<RequestField<'_>> = fields
            .iter()
            .map(|(name, value)| {
                let field = catalogue.constant(name.as_bytes(), value.trim().as_bytes());
                field.map(RequestField::Constant).map_err(io::Error::other)
            })
            .collect::<io::Result<_>>()?;
        let mut client = Http2StreamClient::new(Arc::new(FieldPlan::new(&catalogue)));
        let request = StreamRequest {
            fields: &fields,
            is_head: false,
            has_body: true,
        };
        let stream = client.open(0, &request).map_err(io::Error::other)?;
        Ok(Self {
            socket,
            client,
            stream,
            reply: ReflectionReply::default(),
            until: Instant::now() + TOTAL,
        })
    }

    /// Asks for the files of a service until all are there.
    fn ask(&mut self, service: &str) -> Result<Schema, Failed> {
        let (mut questions, mut message) = ReflectionClient::begin(service);
        loop {
            self.send(&message)?;
            let answer = self.receive()?;
            match questions.answer(&answer.data).map_err(Failed::Answer)? {
                ReflectionStep::Ask(next) => message = next,
                ReflectionStep::Complete(schema) => {
                    // The GOAWAY is a courtesy: the server need not take it.
                    self.client.close();
                    let _ = self.flush();
                    return Ok(schema);
                }
            }
        }
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Failed> {
        let mut framed = Vec::new();
        write_frame(&mut framed, message);
        let taken = self.client.send_body(self.stream, &framed, false);
        if taken < framed.len() {
            return Err(Failed::Ended("the server takes no message".to_owned()));
        }
        Ok(self.flush()?)
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.client.output().is_empty() {
            let sent = self.socket.write(self.client.output())?;
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.client.sent(sent);
        }
        self.socket.flush()
    }

    /// Reads until a message is complete.
    fn receive(&mut self) -> Result<FramedMessage, Failed> {
        let mut buffer = vec![0; 16 << 10];
        loop {
            if let Some(message) = self.reply.messages.pop_front() {
                return Ok(message);
            }
            if let Some(reason) = self.reply.ended() {
                return Err(Failed::Ended(reason));
            }
            if Instant::now() > self.until {
                return Err(Failed::Io(io::ErrorKind::TimedOut.into()));
            }
            let length = match self.socket.read(&mut buffer) {
                Ok(0) => {
                    let reason = "the connection ended before the answer";
                    return Err(Failed::Ended(reason.to_owned()));
                }
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(Failed::Io(io::Error::other("no answer within 10 s")));
                }
                Err(error) => return Err(error.into()),
            };
            let received = self.client.receive(&buffer[..length], &mut self.reply);
            self.flush()?;
            received.map_err(|error| Failed::Ended(error.to_string()))?;
        }
    }
}

/// The reply of the server, as far as it has come.
struct ReflectionReply {
    http: u16,
    reader: MessageReader,
    messages: VecDeque<FramedMessage>,
    status: Option<Code>,
    text: String,
    error: Option<String>,
    is_over: bool,
}

impl Default for ReflectionReply {
    fn default() -> Self {
        Self {
            http: 0,
            reader: MessageReader::new(MESSAGE_LIMIT),
            messages: VecDeque::new(),
            status: None,
            text: String::new(),
            error: None,
            is_over: false,
        }
    }
}

impl ReflectionReply {
    /// The reason of the end, if the reply has ended.
    fn ended(&self) -> Option<String> {
        if let Some(error) = &self.error {
            return Some(error.clone());
        }
        self.is_over.then(|| match (self.status, self.http) {
            (Some(code), _) if self.text.is_empty() => code.to_string(),
            (Some(code), _) => format!("{code}: {}", self.text),
            (None, 200) => "the reply ended without grpc-status".to_owned(),
            (None, status) => format!("status {status}"),
        })
    }
}

impl EventSink for ReflectionReply {
    fn head(&mut self, _: u32, status: u16) {
        self.http = status;
    }

    fn field(&mut self, token: u32, name: &[u8], value: &[u8]) {
        self.trailer(token, name, value);
    }

    fn body(&mut self, _: u32, mut bytes: &[u8]) {
        while self.error.is_none() && self.http == 200 {
            match self.reader.next(&mut bytes) {
                Ok(Some(message)) if message.compressed => {
                    self.error = Some("a compressed message".to_owned());
                }
                Ok(Some(message)) => self.messages.push_back(message),
                Ok(None) => return,
                Err(error) => self.error = Some(error.to_string()),
            }
        }
    }

    fn trailer(&mut self, _: u32, name: &[u8], value: &[u8]) {
        match name {
            b"grpc-status" => self.status = Code::read(value),
            b"grpc-message" => self.text = decode_message(value),
            _ => {}
        }
    }

    fn end(&mut self, _: u32, end: StreamEnd) {
        self.is_over = true;
        match end {
            StreamEnd::Complete => {}
            StreamEnd::Reset(code) => self.error = Some(format!("RST_STREAM with {code}")),
            StreamEnd::Rejected(_) => self.error = Some("the stream was rejected".to_owned()),
            StreamEnd::Malformed { reason, .. } => self.error = Some(reason.to_owned()),
        }
    }
}
