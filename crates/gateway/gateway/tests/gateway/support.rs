//! A scripted upstream, and a client that sends arbitrary bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use posthaste_gateway::{GatewayConfig, RunningGateway, start};

/// Time limit of a test, longer than any step on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A short reply.
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// An upstream that runs the test's function in one thread per connection.
pub(crate) struct TestOrigin {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
    /// Every request as received, head and body.
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
}

/// One connection of an upstream.
pub(crate) struct OriginConnection {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
}

impl TestOrigin {
    pub(crate) fn start(serve: impl Fn(&mut OriginConnection) + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), serve)
    }

    pub(crate) fn on(
        listener: TcpListener,
        serve: impl Fn(&mut OriginConnection) + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let connections = Arc::<AtomicUsize>::default();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let serve = Arc::new(serve);
        let (count, log) = (connections.clone(), requests.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, SeqCst);
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                stream.set_nodelay(true).unwrap();
                let mut line = OriginConnection {
                    stream,
                    buffer: Vec::new(),
                    requests: log.clone(),
                };
                let serve = serve.clone();
                std::thread::spawn(move || serve(&mut line));
            }
        });
        Self {
            address,
            connections,
            requests,
        }
    }

    /// Answers every request on every connection with `reply`.
    pub(crate) fn answering(reply: impl Into<Vec<u8>>) -> Self {
        let reply = reply.into();
        Self::start(move |line| {
            while line.request().is_some() {
                if line.stream.write_all(&reply).is_err() {
                    return;
                }
            }
        })
    }

    /// Answers requests for `/slow` after the signal, and others at once.
    pub(crate) fn holding() -> (Self, SeenSignal) {
        let release = SeenSignal::default();
        let released = release.clone();
        let origin = Self::start(move |line| {
            while let Some(request) = line.request() {
                if request.contains("/slow") {
                    released.wait();
                }
                line.write(OK);
            }
        });
        (origin, release)
    }

    pub(crate) fn last_request(&self) -> String {
        self.requests
            .lock()
            .unwrap()
            .last()
            .cloned()
            .unwrap_or_default()
    }

    pub(crate) fn request_count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

impl OriginConnection {
    /// Reads a complete request. `None` after the gateway has closed.
    pub(crate) fn request(&mut self) -> Option<String> {
        let end = read_until(&mut self.stream, &mut self.buffer, b"\r\n\r\n")?;
        let mut request: Vec<u8> = self.buffer.drain(..end).collect();
        let head = String::from_utf8_lossy(&request).to_lowercase();
        if head.contains("transfer-encoding: chunked") {
            let end = read_until(&mut self.stream, &mut self.buffer, b"0\r\n\r\n")?;
            request.extend(self.buffer.drain(..end));
        } else if let Some(length) = field(&head, "content-length") {
            let length: usize = length.parse().unwrap();
            while self.buffer.len() < length {
                read_some(&mut self.stream, &mut self.buffer)?;
            }
            request.extend(self.buffer.drain(..length));
        }
        let request = String::from_utf8_lossy(&request).into_owned();
        self.requests.lock().unwrap().push(request.clone());
        Some(request)
    }

    /// The list of requests, for further entries.
    pub(crate) fn requests(&self) -> &Mutex<Vec<String>> {
        &self.requests
    }

    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref());
    }
}

/// Signal from the test to its upstream: the data has reached the client, and the connection may end.
#[derive(Clone, Default)]
pub(crate) struct SeenSignal(Arc<AtomicBool>);

impl SeenSignal {
    pub(crate) fn tell(&self) {
        self.0.store(true, SeqCst);
    }

    pub(crate) fn wait(&self) {
        wait_until("the client has seen it", || self.0.load(SeqCst));
    }
}

/// The value of a field in a lower-case head.
pub(crate) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .map(str::trim)
}

fn read_until(stream: &mut TcpStream, buffer: &mut Vec<u8>, end: &[u8]) -> Option<usize> {
    loop {
        if let Some(at) = buffer.windows(end.len()).position(|window| window == end) {
            return Some(at + end.len());
        }
        read_some(stream, buffer)?;
    }
}

fn read_some(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 4096];
    let length = stream.read(&mut piece).ok().filter(|length| *length > 0)?;
    buffer.extend_from_slice(&piece[..length]);
    Some(())
}

/// A configuration with one route to `upstreams`, and `more` before the route.
pub(crate) fn config(upstreams: &[SocketAddr], more: &str) -> GatewayConfig {
    let upstreams: Vec<_> = upstreams.iter().map(SocketAddr::to_string).collect();
    let text = format!(
        "listen = \"127.0.0.1:0\"\n{more}\n[[route]]\npath = \"/\"\nupstream = {upstreams:?}\n"
    );
    GatewayConfig::read(&text).unwrap()
}

/// An address without a listener.
pub(crate) fn closed_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

pub(crate) fn gateway(origin: &TestOrigin) -> RunningGateway {
    start(config(&[origin.address], "")).unwrap()
}

/// A client's connection.
pub(crate) struct TestClient(TcpStream);

/// A reply, read according to its framing.
#[derive(Debug)]
pub(crate) struct ReceivedReply {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The body is complete according to its framing.
    pub(crate) whole: bool,
}

impl TestClient {
    pub(crate) fn new(gateway: &RunningGateway) -> Self {
        Self::to(gateway.addr)
    }

    pub(crate) fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.0.write_all(bytes.as_ref());
        self
    }

    /// A second handle, to write while another thread reads.
    pub(crate) fn clone_stream(&self) -> TcpStream {
        self.0.try_clone().unwrap()
    }

    /// Reads at least one byte.
    pub(crate) fn some(&mut self) -> Vec<u8> {
        let mut piece = vec![0; 65536];
        let length = self.0.read(&mut piece).unwrap_or(0);
        assert!(length > 0, "the gateway has closed");
        piece.truncate(length);
        piece
    }

    /// Waits for the first byte of a reply without reading it.
    pub(crate) fn wait_for_some(&self) {
        let length = self.0.peek(&mut [0]).unwrap();
        assert!(length > 0, "the gateway has closed");
    }

    /// Reads until the gateway closes.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut piece = [0; 65536];
        while let Ok(length @ 1..) = self.0.read(&mut piece) {
            all.extend_from_slice(&piece[..length]);
        }
        all
    }

    /// Reads the next reply; `head_only` for a reply to HEAD.
    pub(crate) fn reply(&mut self, head_only: bool) -> Option<ReceivedReply> {
        let mut buffer = Vec::new();
        // Byte by byte, so that nothing after the head is consumed.
        let mut byte = [0];
        while !buffer.ends_with(b"\r\n\r\n") {
            if self.0.read(&mut byte).ok()? == 0 {
                return None;
            }
            buffer.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&buffer).to_lowercase();
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let mut body = Vec::new();
        let whole = if head_only || matches!(status, 204 | 304) {
            true
        } else if field(&head, "transfer-encoding").is_some() {
            self.chunks(&mut body).is_some()
        } else if let Some(length) = field(&head, "content-length") {
            let length: usize = length.parse().ok()?;
            body.resize(length, 0);
            self.fill(&mut body)
        } else {
            body = self.rest();
            true
        };
        Some(ReceivedReply {
            status,
            head,
            body,
            whole,
        })
    }

    fn fill(&mut self, body: &mut Vec<u8>) -> bool {
        let mut filled = 0;
        while filled < body.len() {
            match self.0.read(&mut body[filled..]) {
                Ok(length @ 1..) => filled += length,
                _ => {
                    body.truncate(filled);
                    return false;
                }
            }
        }
        true
    }

    /// Reads chunks, and appends trailers to the body on lines of their own.
    fn chunks(&mut self, body: &mut Vec<u8>) -> Option<()> {
        loop {
            let line = self.line()?;
            let length = usize::from_str_radix(line.trim(), 16).ok()?;
            let mut data = vec![0; length];
            if !self.fill(&mut data) {
                body.extend(data);
                return None;
            }
            body.extend(data);
            if length == 0 {
                loop {
                    let line = self.line()?;
                    if line.is_empty() {
                        return Some(());
                    }
                    body.extend(format!("\n{line}").into_bytes());
                }
            }
            self.line()?;
        }
    }

    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let mut byte = [0];
        while !line.ends_with(b"\r\n") {
            if self.0.read(&mut byte).ok()? == 0 {
                return None;
            }
            line.push(byte[0]);
        }
        line.truncate(line.len() - 2);
        String::from_utf8(line).ok()
    }
}

/// Sends a GET for `path` on a new connection.
pub(crate) fn get(gateway: &RunningGateway, path: &str, fields: &str) -> ReceivedReply {
    let request = format!("GET {path} HTTP/1.1\r\nHost: shop\r\n{fields}\r\n");
    TestClient::new(gateway).send(request).reply(false).unwrap()
}

/// Waits until `holds`, within the time limit.
pub(crate) fn wait_until(event: &str, mut holds: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "in vain: {event}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
