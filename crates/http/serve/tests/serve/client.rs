//! The one-shot client: replies, and each of its limits.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use posthaste_serve::HttpServer;
use posthaste_serve::client::{ClientError, ClientLimits, HttpClient, block_on, request};

use crate::{PATIENCE, start};

const LIMITS: ClientLimits = ClientLimits {
    step: PATIENCE,
    total: PATIENCE,
    body: 5,
};

fn fetch(address: SocketAddr, limits: ClientLimits, body: &str) -> Result<String, ClientError> {
    let request = request("POST", "/", [("accept", "*/*")], body.to_owned())?;
    let reply = block_on(HttpClient::at(address, limits).fetch(request)).unwrap()?;
    assert_eq!(reply.status().as_u16(), 200);
    Ok(String::from_utf8(reply.into_body().into()).unwrap())
}

/// Replies to one request with a head and `body`, and then with nothing more.
fn stalls_after(body: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let head = BufReader::new(socket.try_clone().unwrap()).lines();
        head.map(Result::unwrap)
            .take_while(|line| !line.is_empty())
            .for_each(drop);
        write!(socket, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{body}").unwrap();
        std::thread::sleep(PATIENCE);
    });
    address
}

#[test]
fn a_reply_has_at_most_the_bytes_of_its_limit() {
    let running = start(HttpServer::default(), 16);
    assert_eq!(fetch(running.addr, LIMITS, "12345").unwrap(), "12345");
    let error = fetch(running.addr, LIMITS, "123456").unwrap_err();
    assert!(matches!(error, ClientError::TooLong(5)), "{error}");
}

#[test]
fn a_reply_that_stalls_is_given_up() {
    let short = Duration::from_millis(500);
    for (step, total, message) in [
        (short, PATIENCE, "no more bytes for 0 s"),
        (PATIENCE, short, "not complete after 0 s"),
    ] {
        let limits = ClientLimits {
            step,
            total,
            ..LIMITS
        };
        let error = fetch(stalls_after("1234"), limits, "").unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn an_error_of_the_connection_keeps_its_source() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = gone.local_addr().unwrap();
    drop(gone);
    let error = fetch(address, LIMITS, "").unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(error.to_string(), source.to_string());
    assert!(matches!(error, ClientError::Connect(_)), "{error}");
}
