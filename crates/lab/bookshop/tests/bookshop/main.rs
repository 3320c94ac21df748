//! The shop from outside: sizes, forms, hostile clients, service laws.

mod deadlines;
mod events;
mod forms;
mod hostile;
mod http2;
mod http3;
mod laws;
mod rpc;
mod services;
mod sizes;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use posthaste_bookshop::{BookshopConfig, Running, start};
use posthaste_soap::Version;

/// Starts a shop on a free port.
fn open(config: BookshopConfig) -> Running {
    let config = BookshopConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        ..config
    };
    start(config).unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream
}

/// A parsed HTTP reply.
#[derive(Debug)]
struct HttpReply {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl HttpReply {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    fn field(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .next()
    }
}

/// Sends a request on a new connection. `fields` are complete header lines.
fn send(
    address: SocketAddr,
    method: &str,
    target: &str,
    fields: &[&str],
    body: &[u8],
) -> HttpReply {
    let mut request =
        format!("{method} {target} HTTP/1.1\r\nHost: shop.example:8080\r\nConnection: close\r\n");
    for field in fields {
        request += &format!("{field}\r\n");
    }
    if !body.is_empty() {
        request += &format!("Content-Length: {}\r\n", body.len());
    }
    request += "\r\n";
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    parse(&reply)
}

/// Parses the bytes of a reply.
fn parse(reply: &[u8]) -> HttpReply {
    let end = reply
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    let head = String::from_utf8(reply[..end].to_vec()).unwrap();
    HttpReply {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        body: reply[end + 4..].to_vec(),
        head,
    }
}

fn get(address: SocketAddr, target: &str) -> HttpReply {
    send(address, "GET", target, &[], b"")
}

fn envelope(version: Version, operation: &str, isbn: &str) -> String {
    format!(
        "<e:Envelope xmlns:e=\"{}\"><e:Body><b:{operation} xmlns:b=\"urn:posthaste:bookshop\">\
         <b:isbn>{isbn}</b:isbn></b:{operation}></e:Body></e:Envelope>",
        version.namespace()
    )
}

fn call(address: SocketAddr, version: Version, operation: &str, isbn: &str) -> HttpReply {
    let body = envelope(version, operation, isbn);
    match version {
        Version::Soap11 => {
            let fields = ["Content-Type: text/xml; charset=utf-8", "SOAPAction: \"\""];
            send(address, "POST", "/soap", &fields, body.as_bytes())
        }
        Version::Soap12 => {
            let action = format!(
                "Content-Type: application/soap+xml; action=\"urn:posthaste:bookshop/{operation}\""
            );
            send(address, "POST", "/soap", &[&action], body.as_bytes())
        }
    }
}

/// The ISBNs that the shop lists.
fn isbns(address: SocketAddr) -> Vec<String> {
    let list = get(address, "/isbns.csv");
    let mut lines = list.text().lines();
    assert_eq!(lines.next(), Some("isbn"));
    lines.map(str::to_owned).collect()
}
