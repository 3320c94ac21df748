//! A scripted upstream and a client that speak HTTP/2.

use std::future::Future;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::client::SendRequest;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use hyper::{HeaderMap, Request, Response, StatusCode};
use posthaste_gateway::{GatewayConfig, RunningGateway, start};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::{LocalSet, spawn_local};

use crate::support::PATIENCE;

/// Settings of an upstream.
#[derive(Clone, Default)]
pub(crate) struct OriginSettings {
    /// Maximum number of requests in flight on a connection.
    pub(crate) streams: Option<u32>,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    /// The first connection refuses its first request by GOAWAY.
    pub(crate) first_goes_away: bool,
}

/// An upstream that runs the test's function for each request.
pub(crate) struct Http2Origin {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) open: Arc<AtomicUsize>,
    /// Heads of the requests, in order of arrival.
    pub(crate) requests: Arc<Mutex<Vec<Request<()>>>>,
}

/// An action of an upstream on a whole connection.
pub(crate) enum UpstreamAct {
    /// GOAWAY after the requests in flight.
    GoAway,
    /// Closes the socket.
    Close,
}

/// A request at the upstream.
pub(crate) struct Call {
    /// Number of the request, from 0.
    pub(crate) number: usize,
    pub(crate) head: Request<()>,
    pub(crate) body: RecvStream,
    pub(crate) respond: SendResponse<Bytes>,
    pub(crate) connection: mpsc::UnboundedSender<UpstreamAct>,
}

impl Http2Origin {
    pub(crate) fn start<F: Future<Output = ()> + 'static>(
        serve: impl Fn(Call) -> F + Send + Sync + 'static,
    ) -> Self {
        Self::with(OriginSettings::default(), serve)
    }

    pub(crate) fn with<F: Future<Output = ()> + 'static>(
        settings: OriginSettings,
        serve: impl Fn(Call) -> F + Send + Sync + 'static,
    ) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let origin = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            open: Arc::default(),
            requests: Arc::default(),
        };
        let (connections, open) = (origin.connections.clone(), origin.open.clone());
        let requests = origin.requests.clone();
        let serve = Arc::new(serve);
        std::thread::spawn(move || {
            block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let first = connections.fetch_add(1, SeqCst) == 0;
                    if first && settings.first_goes_away {
                        let stream = stream.into_std().unwrap();
                        std::thread::spawn(move || go_away(stream));
                        continue;
                    }
                    let (settings, open) = (settings.clone(), open.clone());
                    let (serve, requests) = (serve.clone(), requests.clone());
                    spawn_local(async move {
                        open.fetch_add(1, SeqCst);
                        match settings.tls {
                            None => connection(stream, settings.streams, &*serve, requests).await,
                            Some(tls) => {
                                let accepted = tokio_rustls::TlsAcceptor::from(tls).accept(stream);
                                if let Ok(stream) = accepted.await {
                                    connection(stream, settings.streams, &*serve, requests).await;
                                }
                            }
                        }
                        open.fetch_sub(1, SeqCst);
                    });
                }
            });
        });
        origin
    }

    pub(crate) fn request_count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// A gateway with this upstream, by HTTP/2.
    pub(crate) fn gateway(&self, more: &str) -> RunningGateway {
        start(http2_config(&self.address.to_string(), "http2", more)).unwrap()
    }
}

/// A configuration with a route by `protocol`. `more` comes before the route.
pub(crate) fn http2_config(upstream: &str, protocol: &str, more: &str) -> GatewayConfig {
    let text = format!(
        "listen = \"127.0.0.1:0\"\nthreads = 1\n{more}\n[[route]]\npath = \"/\"\nupstream = [{upstream:?}]\nprotocol = \"{protocol}\"\n"
    );
    GatewayConfig::read(&text).unwrap()
}

async fn connection<F: Future<Output = ()> + 'static>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    streams: Option<u32>,
    serve: &impl Fn(Call) -> F,
    requests: Arc<Mutex<Vec<Request<()>>>>,
) {
    let mut builder = h2::server::Builder::new();
    if let Some(streams) = streams {
        builder.max_concurrent_streams(streams);
    }
    let Ok(mut http) = builder.handshake(stream).await else {
        return;
    };
    let (send, mut acts) = mpsc::unbounded_channel();
    loop {
        tokio::select! {
            act = acts.recv() => match act {
                Some(UpstreamAct::GoAway) => http.graceful_shutdown(),
                Some(UpstreamAct::Close) | None => return,
            },
            accepted = http.accept() => {
                let Some(Ok((request, respond))) = accepted else {
                    return;
                };
                let (head, body) = request.into_parts();
                let mut all = requests.lock().unwrap();
                all.push(Request::from_parts(head.clone(), ()));
                let call = Call {
                    number: all.len() - 1,
                    head: Request::from_parts(head, ()),
                    body,
                    respond,
                    connection: send.clone(),
                };
                drop(all);
                spawn_local(serve(call));
            }
        }
    }
}

/// Refuses the first request of a connection by GOAWAY with 0 as last stream, and closes.
fn go_away(mut stream: std::net::TcpStream) {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).unwrap();
    stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).unwrap();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).unwrap();
        // HEADERS
        if head[3] == 1 {
            let frame = [&[0, 0, 8, 7, 0, 0, 0, 0, 0][..], &[0; 8]].concat();
            stream.write_all(&frame).unwrap();
            let _ = stream.read(&mut [0; 1024]);
            return;
        }
    }
}

impl Call {
    /// Starts a reply with status 200.
    pub(crate) fn reply(&mut self, fields: &[(&'static str, &str)]) -> SendStream<Bytes> {
        let mut reply = Response::new(());
        for (name, value) in fields {
            reply.headers_mut().insert(*name, value.parse().unwrap());
        }
        self.respond.send_response(reply, false).unwrap()
    }

    /// Answers with this body, without trailers.
    pub(crate) fn answer(&mut self, body: &'static str) {
        let mut stream = self.reply(&[]);
        stream
            .send_data(Bytes::from_static(body.as_bytes()), true)
            .unwrap();
    }

    /// Receives the whole body and the trailers.
    pub(crate) async fn receive(&mut self) -> Result<(Vec<u8>, Option<HeaderMap>), h2::Error> {
        receive(&mut self.body).await
    }

    /// Waits until the gateway resets the stream.
    pub(crate) async fn reset(&mut self) -> Reason {
        std::future::poll_fn(|cx| self.respond.poll_reset(cx))
            .await
            .unwrap()
    }
}

/// Receives a body to its end, and its trailers.
pub(crate) async fn receive(
    body: &mut RecvStream,
) -> Result<(Vec<u8>, Option<HeaderMap>), h2::Error> {
    let mut all = Vec::new();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        all.extend_from_slice(&data);
    }
    Ok((all, body.trailers().await?))
}

/// Receives the next piece of a body.
pub(crate) async fn next(body: &mut RecvStream) -> Bytes {
    let data = body.data().await.unwrap().unwrap();
    body.flow_control().release_capacity(data.len()).unwrap();
    data
}

/// Sends a whole body, as the window allows.
pub(crate) async fn send_all(stream: &mut SendStream<Bytes>, mut data: Bytes) {
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        let free = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
        let Some(Ok(free)) = free else { return };
        if stream
            .send_data(data.split_to(free.min(data.len())), false)
            .is_err()
        {
            return;
        }
    }
}

/// Fields of a head or of trailers.
pub(crate) fn fields(fields: &[(&'static str, &str)]) -> HeaderMap {
    let pairs = fields.iter().map(|(name, value)| (*name, *value));
    pairs
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect()
}

/// A client's connection.
#[derive(Clone)]
pub(crate) struct Http2Client(SendRequest<Bytes>);

/// A complete reply.
#[derive(Debug)]
pub(crate) struct Http2Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Http2Reply {
    /// The value of a field of the head, or empty.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The value of a trailer, or empty.
    pub(crate) fn trailer(&self, name: &str) -> &str {
        let trailer = self
            .trailers
            .as_ref()
            .and_then(|trailers| trailers.get(name));
        trailer.map_or("", |value| value.to_str().unwrap())
    }
}

impl Http2Client {
    pub(crate) async fn new(gateway: &RunningGateway) -> Self {
        let stream = TcpStream::connect(gateway.addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = h2::client::handshake(stream).await.unwrap();
        spawn_local(async move {
            let _ = connection.await;
        });
        Self(sender)
    }

    /// Starts a POST to `path` with a body.
    pub(crate) fn post(
        &mut self,
        path: &str,
        with: &[(&'static str, &str)],
    ) -> (h2::client::ResponseFuture, SendStream<Bytes>) {
        let mut request = Request::post(format!("http://shop{path}"))
            .body(())
            .unwrap();
        *request.headers_mut() = fields(with);
        self.0.send_request(request, false).unwrap()
    }

    /// Sends a POST with this body and returns the reply, or the error of its stream.
    pub(crate) async fn call(
        &mut self,
        path: &str,
        with: &[(&'static str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Http2Reply, h2::Error> {
        let (reply, mut stream) = self.post(path, with);
        stream.send_data(body.into(), true)?;
        complete(reply).await
    }

    /// Sends a GET.
    pub(crate) async fn get(&mut self, path: &str) -> Result<Http2Reply, h2::Error> {
        let request = Request::get(format!("http://shop{path}")).body(()).unwrap();
        let (reply, _) = self.0.send_request(request, true).unwrap();
        complete(reply).await
    }
}

/// Content type of a call of gRPC.
pub(crate) const GRPC: (&str, &str) = ("content-type", "application/grpc");

/// Echoes a call, with status 0.
pub(crate) async fn echo(mut call: Call) {
    let Ok((body, _)) = call.receive().await else {
        return;
    };
    let mut stream = call.reply(&[GRPC]);
    stream.send_data(body.into(), false).unwrap();
    stream
        .send_trailers(fields(&[("grpc-status", "0")]))
        .unwrap();
}

/// Never answers; returns at the reset.
pub(crate) async fn silent(mut call: Call) {
    assert_eq!(call.reset().await, Reason::CANCEL);
}

/// Waits for a complete reply.
pub(crate) async fn complete(
    reply: impl Future<Output = Result<Response<RecvStream>, h2::Error>>,
) -> Result<Http2Reply, h2::Error> {
    let (head, mut body) = reply.await?.into_parts();
    let (body, trailers) = receive(&mut body).await?;
    Ok(Http2Reply {
        status: head.status,
        headers: head.headers,
        body,
        trailers,
    })
}

/// Runs a test with its own event loop, within the time limit.
pub(crate) fn run(test: impl Future<Output = ()>) {
    block_on(async {
        tokio::time::timeout(PATIENCE, test).await.unwrap();
    });
}

/// Runs a task with its own event loop.
pub(crate) fn block_on<T>(task: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, task)
}

/// Spawns hyper's tasks on the event loop of the test.
#[derive(Clone)]
pub(crate) struct LocalExecutor;

impl<F: Future<Output: 'static> + 'static> hyper::rt::Executor<F> for LocalExecutor {
    fn execute(&self, task: F) {
        spawn_local(task);
    }
}

/// Waits until `holds`, while the event loop runs.
pub(crate) async fn until(event: &str, mut holds: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "in vain: {event}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
