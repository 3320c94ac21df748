//! Connections of load balancers that state their clients (PROXY protocol), and several listeners.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::{Request, Response};
use posthaste_serve::{
    Certificate, Handler, HttpServer, Incoming, Listener, Networks, Peer, RunningServer, ServerTls,
    Snapshot, Timeouts, listen,
};
use posthaste_units::Span;
use serde::Deserialize as _;
use serde::de::value::{Error, SeqDeserializer};

use crate::echo::Whole;
use crate::{PATIENCE, connect, eventually, exchange, quick, secured, start};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/// A statement in version 1.
const LINE: &str = "PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\n";

/// Replies with the properties of the peer.
pub(crate) struct Reporting;

impl Handler for Reporting {
    type Body = Whole;

    async fn handle(self: Rc<Self>, _: Request<Incoming>, peer: Rc<Peer>) -> Response<Whole> {
        let scheme = if peer.is_encrypted() { "https" } else { "http" };
        let certificate = peer
            .certificate()
            .map_or("none", |text| text.to_str().unwrap());
        let text = format!(
            "{scheme} {} as {} by {}, certificate {certificate}",
            peer.address,
            peer.ip().to_str().unwrap(),
            peer.sender().ip()
        );
        Response::new(Whole(Some(text.into())))
    }
}

fn networks(list: &[&str]) -> Networks {
    let list = list.iter().map(ToString::to_string);
    Networks::deserialize(SeqDeserializer::<_, Error>::new(list)).unwrap()
}

/// A server that believes `trusted`.
fn believing(trusted: &[&str], server: HttpServer) -> RunningServer {
    let server = HttpServer {
        proxy_protocol: networks(trusted),
        ..server
    };
    let listener = listen(([127, 0, 0, 1], 0).into(), 64).unwrap();
    server.start(listener, |_| Reporting).unwrap()
}

/// A statement in version 2, with a vector of this length unless it is 0.
fn binary(command: u8, family: u8, addresses: &[u8], vectors: usize) -> Vec<u8> {
    let length = u16::try_from(addresses.len() + vectors).unwrap();
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend([command, family]);
    header.extend(length.to_be_bytes());
    header.extend(addresses);
    if vectors > 0 {
        let values = u16::try_from(vectors - 3).unwrap();
        header.push(0xea);
        header.extend(values.to_be_bytes());
        header.extend(vec![b'G'; usize::from(values)]);
    }
    header
}

/// The statement of [`LINE`] in version 2.
fn binary_line(vectors: usize) -> Vec<u8> {
    binary(
        0x21,
        0x11,
        &[192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x67, 1, 187],
        vectors,
    )
}

/// Everything that the server sends until it closes.
fn rest(stream: &mut impl Read) -> String {
    let (mut all, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = stream.read(&mut piece) {
        all.extend_from_slice(&piece[..length]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn send(address: SocketAddr, pieces: &[&[u8]]) -> TcpStream {
    let mut stream = connect(address);
    stream.set_nodelay(true).unwrap();
    for piece in pieces {
        // The server may have closed already.
        let _ = stream.write_all(piece);
    }
    stream
}

fn counters(running: &RunningServer) -> Snapshot {
    running.counters.snapshot()
}

#[test]
fn a_stated_client_counts_as_the_peer() {
    let running = believing(&["127.0.0.0/8"], HttpServer::default());
    let v6 = {
        let mut addresses = [0; 36];
        addresses[..4].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
        addresses[15] = 7;
        addresses
    };
    for (header, stated) in [
        (LINE.into(), "192.0.2.7:4711 as 192.0.2.7"),
        (
            "PROXY TCP6 2001:db8::7 ::1 4711 443\r\n".into(),
            "[2001:db8::7]:4711 as 2001:db8::7",
        ),
        (binary_line(0), "192.0.2.7:4711 as 192.0.2.7"),
        (binary_line(4084), "192.0.2.7:4711 as 192.0.2.7"),
        (binary(0x21, 0x21, &v6, 3), "[2001:db8::7]:0 as 2001:db8::7"),
    ] {
        let header: Vec<u8> = header;
        let together = [&header[..], REQUEST.as_bytes()].concat();
        let expected = format!("http {stated} by 127.0.0.1, certificate none");
        for pieces in [vec![&*together], vec![&*header, REQUEST.as_bytes()]] {
            let reply = rest(&mut send(running.addr, &pieces));
            assert!(reply.ends_with(&expected), "{reply}");
        }
    }
    assert_eq!(counters(&running).proxy_header_errors, 0);
    assert_eq!(counters(&running).protocol_errors, 0);
}

#[test]
fn a_header_may_come_byte_by_byte() {
    let running = believing(&["127.0.0.1"], HttpServer::default());
    for header in [LINE.as_bytes().to_vec(), binary_line(20)] {
        let whole = [&header[..], REQUEST.as_bytes()].concat();
        let mut stream = connect(running.addr);
        stream.set_nodelay(true).unwrap();
        for byte in whole {
            stream.write_all(&[byte]).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        let reply = rest(&mut stream);
        assert!(reply.contains("http 192.0.2.7:4711"), "{reply}");
    }
}

#[test]
fn without_a_stated_client_the_socket_counts() {
    let running = believing(&["127.0.0.1"], HttpServer::default());
    for header in [
        b"PROXY UNKNOWN\r\n".to_vec(),
        binary(0x20, 0x11, &[192, 0, 2, 7, 10, 0, 0, 1, 0, 1, 0, 2], 0),
        binary(0x20, 0, &[], 0),
        binary(0x21, 0, &[], 9),
        binary(0x21, 0x31, &[b'x'; 216], 0),
    ] {
        let mut stream = send(running.addr, &[&header, REQUEST.as_bytes()]);
        let own = stream.local_addr().unwrap();
        let reply = rest(&mut stream);
        let expected = format!("http {own} as 127.0.0.1 by 127.0.0.1");
        assert!(reply.contains(&expected), "{reply}");
    }
}

#[test]
fn a_trusted_sender_without_a_header_is_cut_off_and_counted() {
    let running = believing(&["127.0.0.1"], HttpServer::default());
    let mut expected = 0;
    for bytes in [
        REQUEST.as_bytes().to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.7 10.0.0.1 4711\r\n".to_vec(),
        b"PROXY UNKNOWN\n".to_vec(),
        [b"PROXY UNKNOWN ".to_vec(), vec![b'x'; 100]].concat(),
        binary(0x31, 0x11, &[0; 12], 0),
        binary(0x21, 0x11, &[0; 11], 0),
        binary(0x20, 0, &[], 4097),
    ] {
        let whole = [&bytes[..], REQUEST.as_bytes()].concat();
        assert_eq!(rest(&mut send(running.addr, &[&whole])), "");
        expected += 1;
        eventually("the count", || {
            counters(&running).proxy_header_errors == expected
        });
    }
    // An incomplete header is no header either.
    send(running.addr, &[b"PROXY TC"])
        .shutdown(Shutdown::Write)
        .unwrap();
    expected += 1;
    eventually("the count", || {
        counters(&running).proxy_header_errors == expected
    });
    eventually("closing", || counters(&running).open == 0);
    assert_eq!(counters(&running).protocol_errors, 0);
}

#[test]
fn only_one_header_is_read() {
    let running = believing(&["127.0.0.1"], HttpServer::default());
    let reply = rest(&mut send(
        running.addr,
        &[LINE.as_bytes(), LINE.as_bytes(), REQUEST.as_bytes()],
    ));
    assert!(reply.starts_with("HTTP/1.1 400"), "{reply}");
    assert_eq!(counters(&running).proxy_header_errors, 0);
}

#[test]
fn from_others_a_header_is_no_http() {
    let running = believing(&["127.0.0.2", "10.0.0.0/8"], HttpServer::default());
    for header in [LINE.as_bytes().to_vec(), binary_line(0)] {
        let reply = rest(&mut send(running.addr, &[&header, REQUEST.as_bytes()]));
        assert!(!reply.contains("192.0.2.7"), "{reply}");
        assert!(!reply.contains(" 200 "), "{reply}");
    }
    let reply = exchange(running.addr, REQUEST);
    assert!(reply.contains("http 127.0.0.1:"), "{reply}");
    assert_eq!(counters(&running).proxy_header_errors, 0);
}

#[test]
fn health_checks_of_load_balancers_are_no_errors() {
    let running = believing(&["127.0.0.1"], HttpServer::default());
    for bytes in [
        Vec::new(),
        binary(0x20, 0, &[], 0),
        LINE.as_bytes().to_vec(),
    ] {
        drop(send(running.addr, &[&bytes]));
        let reset = send(running.addr, &[&bytes]);
        let linger = Some(Duration::ZERO);
        socket2::SockRef::from(&reset).set_linger(linger).unwrap();
    }
    eventually("closing", || {
        counters(&running).accepted == 6 && counters(&running).open == 0
    });
    let expected = Snapshot {
        accepted: 6,
        ..Snapshot::default()
    };
    assert_eq!(counters(&running), expected);
}

#[test]
fn the_header_has_the_time_limit_of_heads() {
    let timeouts = Timeouts {
        idle: Span::from(2 * PATIENCE),
        ..quick()
    };
    let server = HttpServer {
        timeouts,
        ..HttpServer::default()
    };
    let running = believing(&["127.0.0.1"], server);
    for (bytes, count) in [(&b""[..], 1), (b"PROXY TCP4 192", 2)] {
        assert_eq!(rest(&mut send(running.addr, &[bytes])), "");
        assert_eq!(counters(&running).timed_out_reading, count);
    }
    // Behind the header the client may take its time.
    let mut stream = send(running.addr, &[LINE.as_bytes()]);
    std::thread::sleep(Duration::from_millis(1600));
    stream.write_all(REQUEST.as_bytes()).unwrap();
    let reply = rest(&mut stream);
    assert!(reply.contains("http 192.0.2.7:4711"), "{reply}");
}

#[test]
fn a_drain_does_not_wait_for_headers() {
    let timeouts = Timeouts {
        grace: Span::from(2 * PATIENCE),
        ..Timeouts::default()
    };
    let server = HttpServer {
        timeouts,
        ..HttpServer::default()
    };
    let running = believing(&["127.0.0.1"], server);
    let mut half = send(running.addr, &[b"PROXY TCP4 192"]);
    eventually("accepting", || counters(&running).open == 1);
    running.stop();
    assert_eq!(rest(&mut half), "");
    running.join();
}

/// The option for the mark is that of the socket's family, not of the stated client's.
#[test]
fn the_mark_is_set_on_the_socket_as_it_is() {
    let server = HttpServer {
        proxy_protocol: networks(&["127.0.0.1"]),
        ..HttpServer::default()
    };
    let running = start(server, 64);
    let header = "PROXY TCP6 2001:db8::7 ::1 4711 443\r\n";
    let request = "GET / HTTP/1.1\r\nHost: x\r\nMark: af11\r\nConnection: close\r\n\r\n";
    let reply = exchange(running.addr, &format!("{header}{request}"));
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    assert_eq!(
        (
            counters(&running).marks_set,
            counters(&running).marks_refused
        ),
        (1, 0)
    );
}

#[test]
fn plain_and_encrypted_connections_share_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = ServerTls::new(Certificate::read(&certificate, &key).unwrap()).unwrap();
    let server = HttpServer {
        threads: 2,
        concurrency: Some(2),
        tls: Some(Arc::new(tls)),
        proxy_protocol: networks(&["127.0.0.1"]),
        ..HttpServer::default()
    };
    let listener = |is_plain| {
        let socket = listen(([127, 0, 0, 1], 0).into(), 64);
        Listener::new(socket.unwrap(), is_plain)
    };
    let listeners = vec![listener(false), listener(true)];
    let running = server.start_on(listeners, |_| Reporting).unwrap();
    let [https, http] = running.addrs[..] else {
        panic!("two addresses: {:?}", running.addrs);
    };
    assert_eq!(https, running.addr);
    for _ in 0..20 {
        let reply = exchange(http, &format!("{LINE}{REQUEST}"));
        assert!(reply.contains("http 192.0.2.7:4711"), "{reply}");
        // The header comes before TLS, in the segment of the handshake's first bytes or before it.
        for header in [LINE.as_bytes().to_vec(), binary_line(7)] {
            let mut stream = secured(made.cert.der(), send(https, &[&header]));
            stream.write_all(REQUEST.as_bytes()).unwrap();
            let reply = rest(&mut stream);
            assert!(reply.contains("https 192.0.2.7:4711"), "{reply}");
        }
    }
    let snapshot = counters(&running);
    assert_eq!((snapshot.tls_failures, snapshot.accepted), (0, 60));
    // A plain request to HTTPS fails, and TLS to plain HTTP.
    assert_eq!(
        exchange(https, &format!("{LINE}{REQUEST}")).find("HTTP"),
        None
    );
    eventually("the count", || counters(&running).tls_failures == 1);
}

#[test]
fn a_server_needs_a_listener() {
    let none = HttpServer::default().start_on(Vec::new(), |_| Reporting);
    assert!(none.is_err());
}
