//! Compressed requests: forwarded as sent, with their header read from a decoded copy.

use std::io::{Read as _, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use posthaste_gateway::{RunningGateway, start};

use crate::support::{OK, TestClient, config, field};

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn brotli(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    brotli::BrotliCompress(&mut &*data, &mut out, &Default::default()).unwrap();
    out
}

/// The head, in lower case, and the body of a request as its upstream receives it.
type Received = (String, Vec<u8>);

/// An upstream that reports each request. It needs Content-Length, or chunks and no trailer.
struct ByteOrigin {
    address: SocketAddr,
    received: Receiver<Received>,
}

impl ByteOrigin {
    fn start(reply: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (report, received) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (report, reply) = (report.clone(), reply.clone());
                std::thread::spawn(move || {
                    let mut stream = stream;
                    while let Some(request) = read_request(&mut stream) {
                        report.send(request).unwrap();
                        stream.write_all(reply.as_bytes()).unwrap();
                    }
                });
            }
        });
        Self { address, received }
    }
}

fn read_request(stream: &mut TcpStream) -> Option<Received> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let mut body = Vec::new();
    match field(&head, "content-length") {
        Some(length) => {
            body.resize(length.parse().unwrap(), 0);
            stream.read_exact(&mut body).ok()?;
        }
        None => {
            while !body.ends_with(b"\r\n0\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).ok()?;
                body.push(byte[0]);
            }
        }
    }
    Some((head, body))
}

fn post(gateway: &RunningGateway, fields: &str, body: &[u8]) -> (u16, String) {
    let head = format!(
        "POST / HTTP/1.1\r\nHost: s\r\n{fields}Content-Length: {}\r\n\r\n",
        body.len()
    );
    let mut client = TestClient::new(gateway);
    client.send([head.as_bytes(), body].concat());
    let reply = client.reply(false).unwrap();
    (reply.status, reply.head)
}

#[test]
fn coded_requests_reach_the_upstream_unchanged() {
    let origin = ByteOrigin::start(OK.to_owned());
    let gateway = start(config(&[origin.address], "")).unwrap();
    let text = "<book>".repeat(20_000);
    let zstd = zstd::encode_all(text.as_bytes(), 3).unwrap();
    for (coding, body) in [
        ("gzip", gzip(text.as_bytes())),
        ("x-gzip", gzip(text.as_bytes())),
        ("br", brotli(text.as_bytes())),
        ("zstd", zstd),
        ("gzip, gzip", gzip(&gzip(text.as_bytes()))),
        ("deflate", b"anything".to_vec()),
        ("identity", text.clone().into_bytes()),
        // The upstream judges bodies that do not match their coding.
        ("gzip", b"no gzip at all".to_vec()),
    ] {
        for more in ["", "Content-Type: text/xml\r\n"] {
            let fields = format!("Content-Encoding: {coding}\r\n{more}");
            assert_eq!(post(&gateway, &fields, &body).0, 200, "{coding}");
            let (head, received) = origin.received.recv().unwrap();
            assert_eq!(field(&head, "content-encoding"), Some(coding));
            let length = body.len().to_string();
            assert_eq!(field(&head, "content-length"), Some(&*length), "{coding}");
            assert_eq!(field(&head, "transfer-encoding"), None, "{coding}");
            assert!(received == body, "{coding}");
        }
    }
}

#[test]
fn chunks_with_a_coding_stay_chunks() {
    let origin = ByteOrigin::start(OK.to_owned());
    let gateway = start(config(&[origin.address], "")).unwrap();
    let body = gzip(b"{\"book\": 1}");
    let head = format!(
        "POST / HTTP/1.1\r\nHost: s\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n",
        body.len()
    );
    let mut client = TestClient::new(&gateway);
    client.send([head.as_bytes(), &body, b"\r\n0\r\n\r\n"].concat());
    assert_eq!(client.reply(false).unwrap().status, 200);
    let (head, received) = origin.received.recv().unwrap();
    assert_eq!(field(&head, "content-encoding"), Some("gzip"));
    assert_eq!(field(&head, "content-length"), None);
    assert!(received.windows(body.len()).any(|part| part == body));
}

#[test]
fn a_compressed_soap_header_counts() {
    let page = "<p>".repeat(2_000);
    let reply = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{page}",
        page.len()
    );
    let origin = ByteOrigin::start(reply);
    let gateway = start(config(&[origin.address], "")).unwrap();
    for (wish, coding) in [("always", Some("gzip")), ("never", None)] {
        let envelope = format!(
            "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Header>\
             <compression xmlns=\"urn:posthaste:wsqos\">{wish}</compression></s:Header>\
             <s:Body/></s:Envelope>"
        );
        let fields = "Content-Type: text/xml\r\nContent-Encoding: br\r\nAccept-Encoding: gzip\r\n\
                      Prefer: compression=if-possible\r\n";
        let body = brotli(envelope.as_bytes());
        let (status, head) = post(&gateway, fields, &body);
        assert_eq!(status, 200);
        assert_eq!(field(&head, "content-encoding"), coding, "{wish}");
        assert!(origin.received.recv().unwrap().1 == body, "{wish}");
    }
}

#[test]
fn the_limit_of_a_body_is_of_what_was_sent() {
    let origin = ByteOrigin::start(OK.to_owned());
    let limits = "[limits]\nbody = \"10kB\"";
    let gateway = start(config(&[origin.address], limits)).unwrap();
    let fields = "Content-Encoding: gzip\r\nContent-Type: text/xml\r\n";
    assert_eq!(post(&gateway, fields, &gzip(&vec![b'a'; 1 << 20])).0, 200);
    assert_eq!(post(&gateway, fields, &[b'a'; 11_000]).0, 413);
}
