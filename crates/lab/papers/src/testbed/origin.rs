//! An origin with almost no cost: the same reply to every request.
//!
//! On two cores, the generator and the service behind the gateway share one, and the gateway has the other. A service
//! that computes each reply would be the bottleneck, and the gateway never busy. This origin reads a request and writes
//! prepared bytes of the bookshop: two system calls.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::time::Timespec;

use posthaste_study::Failure;

/// Send buffer of a connection, larger than any reply here.
const SEND_BUFFER: usize = 256 << 10;

/// Maximum delay of its end.
const GLANCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Number of the listening socket in events.
const LISTENER: u64 = 0;

/// A running origin. Dropping it stops it.
pub(crate) struct FixedOrigin {
    pub(crate) address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FixedOrigin {
    /// Answers every request with `message`, as SOAP. Runs on `cores`, if any.
    pub(crate) fn open(message: &[u8], cores: &[usize]) -> Result<Self, Failure> {
        let listener = posthaste_serve::listen(([127, 0, 0, 1], 0).into(), 4096)?;
        let address = listener.local_addr()?;
        let over = Arc::<AtomicBool>::default();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/xml; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
            message.len()
        );
        let origin = OriginLoop {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            listener,
            reply: [head.as_bytes(), message].concat(),
            connections: HashMap::new(),
            next: LISTENER + 1,
        };
        let (stop, cores) = (over.clone(), cores.to_vec());
        let serve = move || {
            // An origin that cannot be pinned still answers.
            let _ = posthaste_serve::pin_thread(&cores);
            origin.serve(&stop)
        };
        let thread = std::thread::Builder::new().name("origin".to_owned());
        Ok(Self {
            address,
            over,
            thread: Some(thread.spawn(serve)?),
        })
    }
}

impl Drop for FixedOrigin {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        // The thread has ended in any case.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// State of the thread.
struct OriginLoop {
    epoll: OwnedFd,
    listener: TcpListener,
    reply: Vec<u8>,
    connections: HashMap<u64, OriginConnection>,
    next: u64,
}

struct OriginConnection {
    stream: TcpStream,
    /// Bytes of an incomplete request.
    begun: Vec<u8>,
}

impl OriginLoop {
    fn serve(mut self, over: &AtomicBool) {
        let mut events = Vec::with_capacity(256);
        let flags = EventFlags::IN;
        let watched = epoll::add(
            &self.epoll,
            &self.listener,
            EventData::new_u64(LISTENER),
            flags,
        );
        while watched.is_ok() && !over.load(Relaxed) {
            events.clear();
            let spare = rustix::buffer::spare_capacity(&mut events);
            // If interrupted, the loop repeats.
            let _ = epoll::wait(&self.epoll, spare, Some(&GLANCE));
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    number => {
                        let connection = self.connections.get_mut(&number);
                        let goes_on = connection.is_some_and(|it| it.answer(&self.reply).is_ok());
                        if !goes_on {
                            self.connections.remove(&number);
                        }
                    }
                }
            }
        }
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let data = EventData::new_u64(self.next);
            let ready = stream.set_nonblocking(true).is_ok()
                && stream.set_nodelay(true).is_ok()
                && set_socket_send_buffer_size(&stream, SEND_BUFFER).is_ok()
                && epoll::add(&self.epoll, &stream, data, EventFlags::IN).is_ok();
            if ready {
                let begun = Vec::new();
                let connection = OriginConnection { stream, begun };
                self.connections.insert(self.next, connection);
                self.next += 1;
            }
        }
    }
}

impl OriginConnection {
    /// Reads available bytes and answers complete requests. An error ends the connection.
    fn answer(&mut self, reply: &[u8]) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => self.begun.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
        while let Some(length) = request(&self.begun) {
            self.begun.drain(..length);
            self.stream.write_all(reply)?;
        }
        Ok(())
    }
}

/// Length of the first request in `bytes` by its Content-Length, if it is complete.
fn request(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let lines = bytes[..head].split(|byte| *byte == b'\n');
    let mut length = lines.filter_map(|line| {
        let (name, value) = line.split_at_checked("content-length:".len())?;
        let named = name.eq_ignore_ascii_case(b"content-length:");
        let value = std::str::from_utf8(value).ok()?.trim();
        named.then(|| value.parse::<usize>().ok())?
    });
    let whole = head + 4 + length.next().unwrap_or(0);
    (bytes.len() >= whole).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole_when_its_body_is() {
        let post = b"POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 3\r\n\r\nabcGET";
        assert_eq!(request(post), Some(post.len() - 3));
        assert_eq!(request(&post[..post.len() - 4]), None);
        assert_eq!(request(b"GET / HTTP/1.1\r\n\r\n"), Some(18));
        assert_eq!(request(b"GET / HTTP/1.1\r\n"), None);
    }

    #[test]
    fn each_request_is_answered_whole() {
        let message = vec![b'm'; 50_000];
        let origin = FixedOrigin::open(&message, &[]).unwrap();
        let mut client = TcpStream::connect(origin.address).unwrap();
        client
            .write_all(b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n")
            .unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut replies = Vec::new();
        client.read_to_end(&mut replies).unwrap();
        let bodies = replies.iter().filter(|byte| **byte == b'm').count();
        // The "m" of the type "text/xml" counts, too.
        assert_eq!(bodies, 2 * (message.len() + 1));
        assert!(replies.starts_with(b"HTTP/1.1 200 OK\r\n"));
    }
}
