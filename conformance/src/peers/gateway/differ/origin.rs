//! A server that records all bytes of its connections, and answers each path as its case says.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Outcome, TaskError};

/// OriginReply to a path without one of its own.
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A server that accepts every request.
pub(super) struct CaseOrigin {
    pub(super) address: SocketAddr,
    shared: Arc<OriginRecord>,
}

/// The reply to a path.
#[derive(Clone, Copy)]
pub(super) struct OriginReply {
    /// Sent if the request has `Upgrade`, or if `always`.
    pub(super) text: &'static str,
    /// True if requests without `Upgrade` get this reply, too.
    pub(super) always: bool,
}

#[derive(Default)]
struct OriginRecord {
    replies: Mutex<HashMap<String, OriginReply>>,
    /// Received text, one entry per connection.
    connections: Mutex<Vec<String>>,
}

impl CaseOrigin {
    pub(super) fn start() -> Outcome<Self> {
        let failed = |error| TaskError::Failed(format!("the origin does not listen: {error}"));
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::<OriginRecord>::default();
        let of_threads = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = of_threads.clone();
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Ok(Self { address, shared })
    }

    /// Sets the reply to `path`.
    pub(super) fn answer(&self, path: String, reply: OriginReply) {
        lock(&self.shared.replies).insert(path, reply);
    }

    /// True if a connection has received `text`.
    pub(super) fn has_received(&self, text: &str) -> bool {
        let connections = lock(&self.shared.connections);
        connections.iter().any(|received| received.contains(text))
    }

    /// Head of the first request for `path`.
    pub(super) fn head(&self, path: &str) -> Option<String> {
        let connections = lock(&self.shared.connections);
        let line = format!(" {path} HTTP/1.");
        connections.iter().find_map(|received| {
            let (_, behind) = received.split_once(&line)?;
            Some(behind.split("\r\n\r\n").next()?.to_owned())
        })
    }
}

impl OriginRecord {
    /// Records a connection to its end, and answers its requests until one is answered by 101.
    fn serve(&self, mut stream: TcpStream) {
        let number = {
            let mut connections = lock(&self.connections);
            connections.push(String::new());
            connections.len() - 1
        };
        let (mut request, mut piece) = (Vec::new(), [0; 4096]);
        let mut is_switched = false;
        while let Ok(length @ 1..) = stream.read(&mut piece) {
            let text = String::from_utf8_lossy(&piece[..length]);
            lock(&self.connections)[number].push_str(&text);
            if is_switched {
                continue;
            }
            request.extend_from_slice(&piece[..length]);
            while let Some(end) = end_of(&request) {
                let reply = self.reply(&String::from_utf8_lossy(&request[..end]));
                if stream.write_all(reply.as_bytes()).is_err() {
                    return;
                }
                request.drain(..end);
                is_switched = reply.starts_with("HTTP/1.1 101");
                if is_switched {
                    break;
                }
            }
        }
    }

    fn reply(&self, request: &str) -> &'static str {
        let path = request.split(' ').nth(1).unwrap_or_default();
        let reply = lock(&self.replies).get(path).copied();
        let upgrades = field(request, "upgrade").is_some();
        reply
            .filter(|reply| reply.always || upgrades)
            .map_or(OK, |reply| reply.text)
    }
}

/// Value of a field in a head. Names have no case.
pub(super) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.split("\r\n").skip(1).take_while(|l| !l.is_empty());
    let mut fields = lines.filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(field, _)| field.eq_ignore_ascii_case(name))?;
    Some(value.trim())
}

/// Length of the first request in `bytes`. `None` if it is incomplete.
fn end_of(bytes: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(bytes).ok()?;
    let head = text.find("\r\n\r\n")? + 4;
    if field(text, "transfer-encoding").is_some() {
        let last = text[head..].find("0\r\n\r\n")?;
        return Some(head + last + 5);
    }
    let length = field(text, "content-length").and_then(|length| length.parse().ok());
    let end = head + length.unwrap_or(0);
    (end <= bytes.len()).then_some(end)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
