//! Replies of known length that arrive in parts, to clients that get them compressed.

use std::io::Read as _;

use posthaste_gateway::start;

use crate::compressing::first_seven;
use crate::support::{SeenSignal, TestClient, TestOrigin, config};

#[test]
fn each_part_of_a_reply_of_known_length_arrives_when_it_is_sent() {
    let first = format!("first, {}", " ".repeat(1000));
    let whole = format!("{first}second");
    let seen = SeenSignal::default();
    let (first_part, is_seen, length) = (first.clone(), seen.clone(), whole.len());
    let origin = TestOrigin::start(move |line| {
        line.request();
        line.write(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n"
        ));
        line.write(&first_part);
        is_seen.wait();
        line.write("second");
        line.request();
    });
    let policy = "[compression]\npolicy = \"always\"";
    let gateway = start(config(&[origin.address], policy)).unwrap();
    let mut client = TestClient::new(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: s\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n");
    let mut raw = Vec::new();
    while first_seven(&raw).is_none_or(|first| first != *b"first, ") {
        raw.extend(client.some());
    }
    seen.tell();
    raw.extend(client.rest());
    assert!(raw.ends_with(b"0\r\n\r\n"));
}

#[test]
fn a_reply_that_is_there_is_compressed_whole() {
    let text = "first, second ".repeat(1000);
    let reply = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
    let origin = TestOrigin::answering(reply);
    let policy = "[compression]\npolicy = \"always\"";
    let gateway = start(config(&[origin.address], policy)).unwrap();
    let mut client = TestClient::new(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: s\r\nAccept-Encoding: gzip\r\n\r\n");
    let reply = client.reply(false).unwrap();
    let mut plain = String::new();
    flate2::read::GzDecoder::new(&*reply.body)
        .read_to_string(&mut plain)
        .unwrap();
    assert!(plain == text && reply.head.contains("content-length"));
}
