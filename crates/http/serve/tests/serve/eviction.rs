//! Eviction of unused connections when all connection slots are taken.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use posthaste_serve::{HttpServer, RunningServer};

use crate::{connect, eventually, start};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

fn with_places(count: usize) -> RunningServer {
    let server = HttpServer {
        concurrency: Some(count),
        ..HttpServer::default()
    };
    start(server, 64)
}

/// Sends a request and waits for the start of the reply.
fn ask(stream: &mut TcpStream) {
    stream.write_all(REQUEST).unwrap();
    assert!(stream.read(&mut [0; 1024]).unwrap() > 0, "no reply");
}

fn is_closed(stream: &mut TcpStream) -> bool {
    !matches!(stream.read(&mut [0; 1024]), Ok(1..))
}

/// Connects, and waits until the server has accepted `number` connections.
fn accepted(running: &RunningServer, number: u64) -> TcpStream {
    let stream = connect(running.addr);
    eventually("accepting", || {
        running.counters.snapshot().accepted == number
    });
    stream
}

#[test]
fn the_oldest_silent_connection_is_evicted_before_idle_ones() {
    let running = with_places(3);
    let mut idle = accepted(&running, 1);
    ask(&mut idle);
    let mut silent = accepted(&running, 2);
    let mut younger = accepted(&running, 3);
    younger.write_all(&REQUEST[..9]).unwrap();

    let mut first = connect(running.addr);
    ask(&mut first);
    assert!(is_closed(&mut silent));
    let mut second = connect(running.addr);
    ask(&mut second);
    assert!(is_closed(&mut younger), "half a head is no request");
    // All have sent requests now. The oldest sends one more, in another sweep than the others.
    std::thread::sleep(Duration::from_secs(1));
    ask(&mut idle);
    let mut third = connect(running.addr);
    ask(&mut third);
    assert!(is_closed(&mut first));
    assert_eq!(running.counters.snapshot().evicted, 3);
    ask(&mut idle);
}

/// Silent clients replace one client with a request, and then each other.
#[test]
fn silent_connections_do_not_close_one_that_asked_after_another() {
    let running = with_places(3);
    let mut served: Vec<TcpStream> = (1..=3)
        .map(|number| {
            let mut stream = accepted(&running, number);
            ask(&mut stream);
            stream
        })
        .collect();
    std::thread::sleep(Duration::from_secs(1));
    let mut silent: Vec<TcpStream> = (4..=7).map(|number| accepted(&running, number)).collect();
    assert_eq!(running.counters.snapshot().evicted, 4);
    assert!(is_closed(&mut served[0]));
    assert!(silent[..3].iter_mut().all(is_closed));
    ask(&mut served[1]);
    ask(&mut served[2]);
}

#[test]
fn a_connection_in_use_is_not_closed_for_another() {
    let running = with_places(1);
    let mut busy = accepted(&running, 1);
    busy.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab")
        .unwrap();
    let mut other = connect(running.addr);
    other.write_all(REQUEST).unwrap();
    // Time for the first connection to be evicted if it counted as unused.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(running.counters.snapshot().accepted, 1);
    busy.write_all(b"cd").unwrap();
    assert!(busy.read(&mut [0; 1024]).unwrap() > 0);
    assert!(other.read(&mut [0; 1024]).unwrap() > 0);
    assert_eq!(running.counters.snapshot().evicted, 1);
}
