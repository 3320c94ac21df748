//! A visitor without a browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use posthaste_demo::Controls;
use serde_json::Value;

/// A stream that is silent for this long counts as ended.
const SILENCE: Duration = Duration::from_secs(60);

/// A visitor with an open page.
pub(crate) struct Visitor {
    addr: SocketAddr,
    stream: BufReader<TcpStream>,
    news: Vec<String>,
}

impl Visitor {
    pub(crate) fn open(addr: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(SILENCE)).unwrap();
        write!(stream, "GET /events HTTP/1.1\r\nHost: {addr}\r\n\r\n").unwrap();
        Self {
            addr,
            stream: BufReader::new(stream),
            news: Vec::new(),
        }
    }

    /// Returns the next event: name and data. Skips the lines of the chunked coding, which never look like events.
    pub(crate) fn event(&mut self) -> (String, Value) {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            assert!(
                self.stream.read_line(&mut line).unwrap() > 0,
                "the stream has ended"
            );
            if let Some(event) = line.strip_prefix("event: ") {
                name = event.trim().to_owned();
            }
            if let Some(data) = line.strip_prefix("data: ") {
                let data: Value = serde_json::from_str(data).unwrap();
                if name == "news" {
                    self.news.push(data["text"].as_str().unwrap().to_owned());
                }
                return (name, data);
            }
        }
    }

    /// News received so far.
    pub(crate) fn news(&self) -> &[String] {
        &self.news
    }

    /// Sends controls. Returns the status of the reply.
    pub(crate) fn want(&self, controls: &Controls) -> u16 {
        let host = self.addr.to_string();
        let fields = [("Host", &*host), ("Content-Type", "application/json")];
        let body = serde_json::to_string(controls).unwrap();
        ask(self.addr, "POST /controls", &fields, &body).0
    }
}

/// Sends a request. Returns the status and the complete reply.
pub(crate) fn ask(
    addr: SocketAddr,
    request_line: &str,
    fields: &[(&str, &str)],
    body: &str,
) -> (u16, String) {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(SILENCE)).unwrap();
    let mut request = format!(
        "{request_line} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in fields {
        request += &format!("{name}: {value}\r\n");
    }
    stream
        .write_all(format!("{request}\r\n{body}").as_bytes())
        .unwrap();
    let mut reply = Vec::new();
    // A server that has rejected a long body may reset the connection after its reply.
    let _ = stream.read_to_end(&mut reply);
    let reply = String::from_utf8_lossy(&reply).into_owned();
    let status = reply.get(9..12).and_then(|digits| digits.parse().ok());
    (
        status.unwrap_or_else(|| panic!("{request_line}: {reply:?}")),
        reply,
    )
}
