//! Doubtful messages to us, nginx and HAProxy in front of one server that records the requests reaching it.
//!
//! The gateway is never more permissive than the stricter of the other two: if one of them stops a request, or the
//! request after it, the gateway does too.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::super::doubtful::{Doubtful, FIRST, NEXT, messages};
use super::super::start;
use super::super::strict::{haproxy, nginx};
use crate::error::{Outcome, TaskError, check};
use crate::site::Site;

/// Time limit for an answer. A proxy that waits for more of the request gives none.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time for a request to reach the server after its answer, for the case that one was refused and the other forwarded.
const SETTLING: Duration = Duration::from_millis(50);

/// Correct messages that another proxy refuses: the end of their description, and the reason of the refusal.
const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "\"host: s\" None",
        "nginx refuses a Host that is the same as :authority",
    ),
    ("Some(\"a: b\")", "nginx takes no trailers of HTTP/2"),
    (
        "Some(\"a: b \")",
        "nginx takes no trailers of HTTP/2, and HAProxy this one as it is",
    ),
    (
        "Some(\"content-length: 7\")",
        "nginx takes no trailers of HTTP/2; this one goes no further than here",
    ),
];

/// A server that accepts and keeps every request in any form.
struct RecordingOrigin {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<u8>>>,
}

/// Result for a message: requests that reached the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Passed {
    first: bool,
    next: bool,
}

/// A proxy: its name, and its addresses for HTTP/1 and HTTP/2.
struct ComparedProxy {
    name: &'static str,
    http1: SocketAddr,
    http2: SocketAddr,
}

impl RecordingOrigin {
    fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let seen = Arc::<Mutex<Vec<u8>>>::default();
        let log = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = log.clone();
                std::thread::spawn(move || answer(stream, &log));
            }
        });
        Ok(Self { address, seen })
    }

    /// Result since the last call.
    fn take(&self) -> Passed {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        let seen = String::from_utf8_lossy(&seen);
        Passed {
            first: seen.contains(FIRST),
            next: seen.contains(NEXT),
        }
    }
}

/// Reads a request by the length that a proxy states, and answers.
fn answer(mut stream: TcpStream, seen: &Mutex<Vec<u8>>) {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    while !is_whole(&String::from_utf8_lossy(&request)) {
        match stream.read(&mut piece) {
            Ok(length @ 1..) => request.extend_from_slice(&piece[..length]),
            // A request that breaks off is not answered.
            _ => return,
        }
    }
    let mut log = seen.lock().unwrap_or_else(PoisonError::into_inner);
    log.extend_from_slice(&request);
    drop(log);
    let _ =
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
}

fn is_whole(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return false;
    };
    let head = head.to_ascii_lowercase();
    if head.contains("transfer-encoding:") {
        // Trailers may appear between the last chunk and the empty line.
        let is_last = body.starts_with("0\r\n") || body.contains("\r\n0\r\n");
        return is_last && body.ends_with("\r\n\r\n");
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse().ok());
    body.len() >= length.unwrap_or(0)
}

/// Sends a message and waits for its answer.
fn send(
    proxy: &ComparedProxy,
    message: &Doubtful,
    origin: &RecordingOrigin,
) -> std::io::Result<Passed> {
    origin.take();
    let address = if message.is_http2 {
        proxy.http2
    } else {
        proxy.http1
    };
    let mut stream = TcpStream::connect(address)?;
    // A proxy that refuses may close before reading everything.
    let _ = stream.write_all(&message.bytes);
    let end = Instant::now() + PATIENCE;
    let mut reply = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || message.is_http2 && is_over(&reply) {
            break;
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(length @ 1..) => reply.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    std::thread::sleep(SETTLING);
    Ok(origin.take())
}

/// True if frames of HTTP/2 end stream 1, or the connection.
fn is_over(mut frames: &[u8]) -> bool {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const RST_STREAM: u8 = 3;
    const GOAWAY: u8 = 7;
    while let [l1, l2, l3, kind, flags, _, _, _, stream, ..] = *frames {
        match (kind, stream) {
            (GOAWAY, _) | (RST_STREAM, 1) => return true,
            (DATA | HEADERS, 1) if flags & 1 == 1 => return true,
            _ => {}
        }
        let length = 9 + u32::from_be_bytes([0, l1, l2, l3]) as usize;
        frames = frames.get(length..).unwrap_or_default();
    }
    false
}

/// Sends every message to every proxy, ours first. Returns one line for each request that ours wrongly forwarded, and
/// the number of messages.
fn compare(
    proxies: &[ComparedProxy],
    origin: &RecordingOrigin,
) -> std::io::Result<(Vec<String>, usize)> {
    let messages = messages();
    let mut wrong = Vec::new();
    for message in &messages {
        let mut passed = Vec::new();
        for proxy in proxies {
            passed.push(send(proxy, message, origin)?);
        }
        let [ours, others @ ..] = &*passed else {
            continue;
        };
        let first = ours.first && others.iter().any(|other| !other.first);
        let next = ours.next && others.iter().any(|other| !other.next);
        let is_excepted = EXCEPTIONS
            .iter()
            .any(|(about, _)| message.about.ends_with(about));
        if (first || next) && !is_excepted {
            let names = proxies.iter().map(|proxy| proxy.name);
            let readings: Vec<_> = names
                .zip(&passed)
                .map(|(name, passed)| format!("{name} {passed:?}"))
                .collect();
            wrong.push(format!("{}: {}", message.about, readings.join(", ")));
        }
    }
    Ok((wrong, messages.len()))
}

/// Starts all of them and compares.
pub(crate) fn differ(site: &Site) -> Outcome<()> {
    let failed =
        |error: std::io::Error| TaskError::Failed(format!("the comparison broke off: {error}"));
    let origin = RecordingOrigin::start().map_err(failed)?;
    let ours = start(site, &origin.address.to_string(), "", "")?;
    let (nginx, nginx_http2) = nginx(site, origin.address)?;
    let (haproxy, haproxy_http2) = haproxy(site, origin.address)?;
    let proxy = |name, http1, http2| ComparedProxy { name, http1, http2 };
    let proxies = [
        proxy("posthaste", ours.address, ours.address),
        proxy("nginx", nginx.address, nginx_http2),
        proxy("haproxy", haproxy.address, haproxy_http2),
    ];
    let (wrong, count) = compare(&proxies, &origin).map_err(failed)?;
    println!("  differ: {count} messages");
    check(wrong.is_empty(), || wrong.join("\n"))
}
