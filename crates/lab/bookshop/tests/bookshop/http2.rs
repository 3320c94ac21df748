//! A client that speaks HTTP/2 to a shop.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use hyper::{HeaderMap, Request};
use posthaste_grpc_schema::{Method, Schema};
use posthaste_http::grpc::{MessageReader, write_frame};
use tokio::net::TcpStream;
use tokio::task::{LocalSet, spawn_local};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Content type of a call.
pub(crate) const GRPC: (&str, &str) = ("content-type", "application/grpc");

/// A connection.
#[derive(Clone)]
pub(crate) struct Http2Client(SendRequest<Bytes>);

/// The end of a call.
#[derive(Debug)]
pub(crate) struct CallEnd {
    pub(crate) http: u16,
    pub(crate) head: HeaderMap,
    /// Messages without their prefix.
    pub(crate) messages: Vec<Vec<u8>>,
    pub(crate) trailers: Option<HeaderMap>,
}

impl CallEnd {
    /// Status and text, from the trailers or, without messages, from the head.
    pub(crate) fn status(&self) -> (&str, String) {
        let fields = self.trailers.as_ref().unwrap_or(&self.head);
        let field = |name: &str| fields.get(name).map_or("", |v| v.to_str().unwrap());
        let text = posthaste_http::grpc::decode_message(field("grpc-message").as_bytes());
        (field("grpc-status"), text)
    }

    /// True if the status is in the head and nothing follows.
    pub(crate) fn is_trailers_only(&self) -> bool {
        self.head.contains_key("grpc-status") && self.trailers.is_none() && self.messages.is_empty()
    }

    /// The messages as JSON.
    pub(crate) fn json(&self, method: &Method) -> Vec<serde_json::Value> {
        let decode = |message: &Vec<u8>| {
            serde_json::from_str(&method.decode_reply(message).unwrap()).unwrap()
        };
        self.messages.iter().map(decode).collect()
    }
}

impl Http2Client {
    pub(crate) async fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = h2::client::handshake(stream).await.unwrap();
        spawn_local(async move {
            let _ = connection.await;
        });
        Self(sender)
    }

    /// Starts a request with a body.
    pub(crate) async fn start(
        &self,
        request: hyper::http::request::Builder,
        fields: &[(&str, &str)],
    ) -> (ResponseFuture, SendStream<Bytes>) {
        let mut request = request;
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let mut ready = self.0.clone().ready().await.unwrap();
        ready
            .send_request(request.body(()).unwrap(), false)
            .unwrap()
    }

    /// Starts a call.
    pub(crate) async fn begin(
        &self,
        path: &str,
        fields: &[(&str, &str)],
    ) -> (ResponseFuture, SendStream<Bytes>) {
        let request = Request::post(format!("http://shop{path}"));
        let all = [&[GRPC], fields].concat();
        self.start(request, &all).await
    }

    /// Sends a call with this body and waits for its end.
    pub(crate) async fn call_with(
        &self,
        path: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> CallEnd {
        let (reply, mut stream) = self.begin(path, fields).await;
        stream
            .send_data(Bytes::copy_from_slice(body), true)
            .unwrap();
        end(reply).await
    }

    /// Sends a call with messages in JSON and waits for its end.
    pub(crate) async fn call(&self, method: &Method, json: &str) -> CallEnd {
        self.call_with(&method.path(), &[], &requests(method, json))
            .await
    }
}

/// The body of a call with these messages.
pub(crate) fn requests(method: &Method, json: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for message in method.encode_requests(json).unwrap() {
        write_frame(&mut body, &message);
    }
    body
}

/// Waits for the end of a call.
pub(crate) async fn end(reply: ResponseFuture) -> CallEnd {
    let (head, mut body) = reply.await.unwrap().into_parts();
    let mut reader = MessageReader::new(1 << 20);
    let mut messages = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        if head.status != 200 {
            continue;
        }
        let mut bytes = &data[..];
        while let Some(message) = reader.next(&mut bytes).unwrap() {
            messages.push(message.data);
        }
    }
    if head.status == 200 {
        reader.end().unwrap();
    }
    CallEnd {
        http: head.status.as_u16(),
        head: head.headers,
        messages,
        trailers: body.trailers().await.unwrap(),
    }
}

/// Receives a message, in any number of frames. No frame has bytes of two messages in these tests.
pub(crate) async fn next_message(body: &mut RecvStream) -> Vec<u8> {
    let mut reader = MessageReader::new(1 << 20);
    loop {
        let data = body.data().await.unwrap().unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        if let Some(message) = reader.next(&mut &data[..]).unwrap() {
            return message.data;
        }
    }
}

/// The shop's services.
pub(crate) fn schema() -> Schema {
    posthaste_bookshop::schema().unwrap()
}

/// A method of the shop's own service.
pub(crate) fn method(name: &str) -> Method {
    schema()
        .find(&format!("bookshop.v1.Bookshop/{name}"))
        .unwrap()
}

/// Runs a test with its own event loop, within the time limit.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        tokio::time::timeout(PATIENCE, test).await.unwrap();
    });
}

/// Waits until `holds`, while the event loop runs.
pub(crate) async fn until(condition: &str, mut holds: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "in vain: {condition}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
