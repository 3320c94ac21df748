//! Moments of mark changes. `crates/lab/papers/tests/marks` checks the packets themselves on a network.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use posthaste_serve::{HttpServer, RunningServer};
use socket2::{Domain, Socket, Type};

use crate::echo::BLOCKS;
use crate::{PATIENCE, connect, eventually, exchange, quick, start, start_with};

/// Longer than the interval between two checks of acknowledgements.
const A_WHILE: Duration = Duration::from_millis(100);

/// A request for `path`, and a pipelined one with a mark.
fn two(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\nMark: af11\r\n\r\n")
}

/// A client that takes only a few KiB until it reads.
pub(crate) fn reluctant(address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&address.into()).unwrap();
    socket.into()
}

fn set(running: &RunningServer) -> u64 {
    running.counters.snapshot().marks_set
}

/// Reads until no data arrives for `moment`. Returns the number of bytes.
fn read_some(stream: &mut TcpStream, moment: Duration) -> usize {
    stream.set_read_timeout(Some(moment)).unwrap();
    let (mut all, mut buffer) = (0, vec![0; 1 << 20]);
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        all += length;
    }
    all
}

/// Reads more than `bytes` bytes.
fn read_beyond(stream: &mut TcpStream, bytes: usize) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut all, mut buffer) = (0, vec![0; 1 << 20]);
    while all <= bytes {
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0, "it ends after {all} bytes");
        all += length;
    }
}

#[test]
fn a_mark_changes_only_after_the_former_reply_is_acknowledged() {
    let running = start(HttpServer::default(), 64);
    let mut stream = reluctant(running.addr);
    stream.write_all(two("/bytes/49152").as_bytes()).unwrap();
    eventually("waiting", || running.counters.snapshot().marks_waited == 1);
    std::thread::sleep(A_WHILE);
    assert_eq!(set(&running), 0);
    read_beyond(&mut stream, 48 << 10);
    eventually("the change", || set(&running) == 1);
}

/// A query of the kernel is enough because the next request starts after the reply is in the socket.
#[test]
fn a_mark_waits_until_the_former_reply_is_in_the_socket() {
    let running = start(HttpServer::default(), 64);
    let mut stream = connect(running.addr);
    stream.write_all(two("/big").as_bytes()).unwrap();
    assert_eq!(stream.peek(&mut [0]).unwrap(), 1);
    std::thread::sleep(A_WHILE);
    // The socket becomes empty while the server is busy.
    let address = running.addr;
    let blocked = std::thread::spawn(move || {
        let request = "GET /block HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        exchange(address, request)
    });
    eventually("blocking", || BLOCKS.load(SeqCst));
    let begun = read_some(&mut stream, Duration::from_millis(50));
    BLOCKS.store(false, SeqCst);
    assert!(blocked.join().unwrap().ends_with("blocked"));
    std::thread::sleep(A_WHILE);
    assert!((1..32 << 20).contains(&begun), "{begun}");
    assert_eq!(set(&running), 0, "after {begun} bytes");
    read_beyond(&mut stream, (32 << 20) - begun);
    eventually("the change", || set(&running) == 1);
}

#[test]
fn waits_for_missing_acknowledgements_end_with_a_timeout() {
    let running = start_with(quick());
    let mut stream = reluctant(running.addr);
    stream.write_all(two("/bytes/49152").as_bytes()).unwrap();
    eventually("the end", || {
        running.counters.snapshot().timed_out_writing == 1
    });
    let counted = running.counters.snapshot();
    assert_eq!((counted.marks_waited, counted.marks_set), (1, 0));
}

#[test]
fn the_same_mark_again_is_not_set_again() {
    let running = start(HttpServer::default(), 64);
    let marked = |mark: &str| format!("GET / HTTP/1.1\r\nHost: x\r\nMark: {mark}\r\n");
    let end = "Connection: close\r\n\r\n";
    let text = format!(
        "{0}\r\n{0}\r\n{1}\r\n{1}{end}",
        marked("af11"),
        marked("default")
    );
    assert_eq!(
        exchange(running.addr, &text)
            .matches("HTTP/1.1 200")
            .count(),
        4
    );
    assert_eq!(set(&running), 2);
}
