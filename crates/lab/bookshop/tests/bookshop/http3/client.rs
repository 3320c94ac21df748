//! A client that speaks HTTP/3 to a shop: our own state machine on a QUIC connection of quinn.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use posthaste_http::streams::catalogue::{FieldCatalogue, RequestField, VariableField};
use posthaste_http::streams::http3::qpack::FieldPlan;
use posthaste_http::streams::http3::{ErrorCode, Http3StreamClient, OutputAction, StreamId};
use posthaste_http::streams::{ConnectionEvent, EventSink, StreamEnd, StreamRequest};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection, Endpoint, RecvStream, TransportConfig, VarInt};
use rustls::{ClientConfig, RootCertStore};
use tokio::task::spawn_local;

/// Names of the fields that a request can have.
const NAMES: [&str; 7] = [
    ":method",
    ":scheme",
    ":authority",
    ":path",
    "content-type",
    "soapaction",
    "x-long",
];

/// TLS of a client with these protocols, which trusts one certificate.
pub(crate) fn tls(certificate: &[u8], protocols: &[&str]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.to_vec().into()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    config
}

/// A reply, as far as it has arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Http3Reply {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) end: Option<StreamEnd>,
}

impl Http3Reply {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields
            .find(|field| field.0 == name)
            .map(|field| &field.1[..])
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

#[derive(Default)]
struct Replies {
    by_token: HashMap<u32, Http3Reply>,
    has_goaway: bool,
}

impl Replies {
    fn reply_of(&mut self, token: u32) -> &mut Http3Reply {
        self.by_token.entry(token).or_default()
    }
}

impl EventSink for Replies {
    fn head(&mut self, token: u32, status: u16) {
        self.reply_of(token).status = status;
    }

    fn field(&mut self, token: u32, name: &[u8], value: &[u8]) {
        let text = |bytes| String::from_utf8(Vec::from(bytes)).unwrap();
        self.reply_of(token).fields.push((text(name), text(value)));
    }

    fn body(&mut self, token: u32, bytes: &[u8]) {
        self.reply_of(token).body.extend_from_slice(bytes);
    }

    fn end(&mut self, token: u32, end: StreamEnd) {
        self.reply_of(token).end = Some(end);
    }

    fn connection(&mut self, event: ConnectionEvent<'_>) {
        self.has_goaway |= matches!(event, ConnectionEvent::GoAway { .. });
    }
}

struct State {
    client: Http3StreamClient,
    replies: Replies,
    tokens: u32,
}

impl State {
    /// Bytes for a stream. All output is for one stream at a time here.
    fn output(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(action) = self.client.output() {
            if let OutputAction::Write { stream, bytes, .. } = action {
                all.extend_from_slice(bytes);
                let count = bytes.len();
                self.client.sent(stream, count);
            }
        }
        all
    }
}

/// A connection.
#[derive(Clone)]
pub(crate) struct Http3Client {
    pub(crate) connection: Connection,
    state: Rc<RefCell<State>>,
    fields: [VariableField; NAMES.len()],
}

/// A request whose reply has not been read.
pub(crate) struct OpenRequest {
    token: u32,
    id: StreamId,
    pub(crate) receive: RecvStream,
    state: Rc<RefCell<State>>,
}

/// Connects by QUIC. `window` is the number of bytes that the server may send before they are read.
pub(crate) async fn connect_quic(
    address: SocketAddr,
    certificate: &[u8],
    window: u32,
) -> Connection {
    let tls = QuicClientConfig::try_from(tls(certificate, &["h3"])).unwrap();
    let mut config = quinn::ClientConfig::new(Arc::new(tls));
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(VarInt::from_u32(window))
        .keep_alive_interval(Some(Duration::from_millis(200)));
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let connecting = endpoint.connect_with(config, address, "localhost").unwrap();
    connecting.await.unwrap()
}

impl Http3Client {
    pub(crate) async fn new(address: SocketAddr, certificate: &[u8]) -> Self {
        Self::on(connect_quic(address, certificate, 1 << 20).await).await
    }

    /// Begins HTTP/3 on a connection.
    pub(crate) async fn on(connection: Connection) -> Self {
        let mut catalogue = FieldCatalogue::default();
        let fields = NAMES.map(|name| catalogue.variable(name.as_bytes()).unwrap());
        let mut client = Http3StreamClient::new(Arc::new(FieldPlan::new(&catalogue)));
        client.permit_streams(1_000_000);
        let mut state = State {
            client,
            replies: Replies::default(),
            tokens: 0,
        };
        let mut control = connection.open_uni().await.unwrap();
        control.write_all(&state.output()).await.unwrap();
        let state = Rc::new(RefCell::new(state));
        let (accepting, shared) = (connection.clone(), state.clone());
        spawn_local(async move {
            let _control = control;
            while let Ok(mut receive) = accepting.accept_uni().await {
                let shared = shared.clone();
                spawn_local(async move {
                    let id = StreamId::new(VarInt::from(receive.id()).into());
                    while let Ok(Some(chunk)) = receive.read_chunk(4096, true).await {
                        let State {
                            client, replies, ..
                        } = &mut *shared.borrow_mut();
                        client.receive(id, &chunk.bytes, false, replies).unwrap();
                    }
                });
            }
        });
        Self {
            connection,
            state,
            fields,
        }
    }

    /// Closes the connection. The server then waits for no acknowledgements at its end.
    pub(crate) async fn close(&self) {
        let code = ErrorCode::H3_NO_ERROR.0.try_into().unwrap();
        self.connection.close(code, b"");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    /// True if the server has sent GOAWAY.
    pub(crate) fn has_goaway(&self) -> bool {
        self.state.borrow().replies.has_goaway
    }

    /// Sends a request.
    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> OpenRequest {
        let (mut send, receive) = self.connection.open_bi().await.unwrap();
        let begin = [
            (":method", method),
            (":scheme", "https"),
            (":authority", "shop.example:8080"),
            (":path", path),
        ];
        let all: Vec<_> = begin.iter().chain(fields).collect();
        let all = all.iter().map(|(name, value)| {
            let position = NAMES.iter().position(|known| known == name).unwrap();
            RequestField::Variable(self.fields[position], value.as_bytes())
        });
        let (token, id, mut bytes) = {
            let state = &mut *self.state.borrow_mut();
            state.tokens += 1;
            let request = StreamRequest {
                fields: &all.collect::<Vec<_>>(),
                has_body: !body.is_empty(),
                is_head: method == "HEAD",
            };
            let id = state.client.open(state.tokens, &request).unwrap();
            let mut bytes = state.output();
            let mut rest = body;
            while !rest.is_empty() {
                let taken = state.client.send_body(id, rest, true);
                rest = &rest[taken..];
                bytes.extend(state.output());
            }
            (state.tokens, id, bytes)
        };
        assert_eq!(id.number(), u64::from(VarInt::from(receive.id())));
        // A server that rejects a body may stop the stream.
        let _ = send.write_all(&std::mem::take(&mut bytes)).await;
        let _ = send.finish();
        OpenRequest {
            token,
            id,
            receive,
            state: self.state.clone(),
        }
    }

    /// Sends a request and reads its reply.
    pub(crate) async fn send(
        &self,
        begin: (&str, &str),
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Http3Reply {
        self.open(begin.0, begin.1, fields, body)
            .await
            .finish()
            .await
    }

    pub(crate) async fn get(&self, path: &str) -> Http3Reply {
        self.send(("GET", path), &[], b"").await
    }
}

impl OpenRequest {
    /// The reply as far as it has arrived.
    pub(crate) fn reply(&self) -> Http3Reply {
        let mut state = self.state.borrow_mut();
        state.replies.reply_of(self.token).clone()
    }

    /// Reads the next piece. False at the end.
    pub(crate) async fn read(&mut self) -> bool {
        let chunk = self.receive.read_chunk(1 << 20, true).await.unwrap();
        let State {
            client, replies, ..
        } = &mut *self.state.borrow_mut();
        let bytes = chunk.as_ref().map_or(&b""[..], |chunk| &chunk.bytes);
        client
            .receive(self.id, bytes, chunk.is_none(), replies)
            .unwrap();
        chunk.is_some()
    }

    /// Reads the whole reply.
    pub(crate) async fn finish(mut self) -> Http3Reply {
        while self.read().await {}
        let reply = self.reply();
        assert_eq!(reply.end, Some(StreamEnd::Complete));
        reply
    }
}
