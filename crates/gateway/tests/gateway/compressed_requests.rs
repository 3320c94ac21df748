//! Compressed requests, valid and invalid.

use std::io::Write;

use posthaste_gateway::{RunningGateway, start};

use crate::support::{OK, TestClient, TestOrigin, config, field};

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

/// Data that a decoder holds back until the end comes before the trailers.
#[test]
fn trailers_come_behind_all_that_was_compressed() {
    let origin = TestOrigin::answering(OK);
    let gateway = start(config(&[origin.address], "")).unwrap();
    let text = "{\"book\": 1}";
    let whole = [
        gzip(text.as_bytes()),
        brotli(text.as_bytes()),
        zstd::encode_all(text.as_bytes(), 3).unwrap(),
    ];
    for (coding, body) in ["gzip", "br", "zstd"].into_iter().zip(whole) {
        let send = |body: &[u8]| {
            let head = format!(
                "POST / HTTP/1.1\r\nHost: s\r\nContent-Encoding: {coding}\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n",
                body.len()
            );
            let mut client = TestClient::new(&gateway);
            client.send([head.as_bytes(), body, b"\r\n0\r\nX-Sum: 1\r\n\r\n"].concat());
            client.reply(false).unwrap().status
        };
        assert_eq!(send(&body), 200);
        assert!(
            origin.last_request().contains(text),
            "{coding}: {}",
            origin.last_request()
        );
        assert_eq!(send(&body[..body.len() - 2]), 400, "{coding}, cut");
    }
}

fn post(gateway: &RunningGateway, fields: &str, body: &[u8]) -> u16 {
    let head = format!(
        "POST / HTTP/1.1\r\nHost: s\r\n{fields}Content-Length: {}\r\n\r\n",
        body.len()
    );
    let mut client = TestClient::new(gateway);
    client.send([head.as_bytes(), body].concat());
    client.reply(false).unwrap().status
}

#[test]
fn the_upstream_gets_them_as_if_they_had_not_been() {
    let origin = TestOrigin::answering(OK);
    let gateway = start(config(&[origin.address], "")).unwrap();
    let text = "<book>".repeat(20_000);
    let zstd = zstd::encode_all(text.as_bytes(), 3).unwrap();
    let (gzip, brotli) = (gzip(text.as_bytes()), brotli(text.as_bytes()));
    for (coding, body) in [
        ("gzip", gzip),
        ("x-gzip", self::gzip(text.as_bytes())),
        ("br", brotli),
        ("zstd", zstd),
    ] {
        assert_eq!(
            post(&gateway, &format!("Content-Encoding: {coding}\r\n"), &body),
            200
        );
        let request = origin.last_request();
        let (head, chunks) = request.split_once("\r\n\r\n").unwrap();
        assert_eq!(
            field(&head.to_lowercase(), "content-encoding"),
            None,
            "{coding}"
        );
        assert_eq!(chunks.matches("<book>").count(), 20_000, "{coding}");
    }
}

#[test]
fn what_is_not_known_here_goes_on_as_it_is() {
    let origin = TestOrigin::answering(OK);
    let gateway = start(config(&[origin.address], "")).unwrap();
    for fields in [
        "Content-Encoding: compress\r\n",
        "Content-Encoding: gzip, br\r\n",
        "Content-Encoding: gzip\r\nContent-Digest: sha-256=:AA==:\r\n",
    ] {
        assert_eq!(post(&gateway, fields, b"whatever"), 200);
        let request = origin.last_request();
        assert!(
            request.ends_with("whatever") && request.to_lowercase().contains("content-encoding")
        );
    }
}

#[test]
fn what_is_broken_or_explodes_is_refused() {
    let origin = TestOrigin::answering(OK);
    let gateway = start(config(&[origin.address], "")).unwrap();
    let bomb = vec![0; 64 << 20];
    let whole = gzip(b"hello, hello, hello");
    let zstd = zstd::encode_all(&b"hello, hello, hello"[..], 3).unwrap();
    for (status, coding, body) in [
        (413, "gzip", gzip(&bomb)),
        (413, "br", brotli(&bomb)),
        (413, "zstd", zstd::encode_all(&bomb[..], 3).unwrap()),
        (400, "gzip", b"no gzip at all".to_vec()),
        (400, "br", vec![0xff; 100]),
        (400, "zstd", b"no zstd at all".to_vec()),
        (400, "gzip", whole[..whole.len() - 4].to_vec()),
        (400, "zstd", zstd[..zstd.len() - 4].to_vec()),
    ] {
        let fields = format!("Content-Encoding: {coding}\r\n");
        assert_eq!(
            post(&gateway, &fields, &body),
            status,
            "{coding}, {} bytes",
            body.len()
        );
    }
}

#[test]
fn the_limit_of_a_body_is_of_what_it_becomes() {
    let origin = TestOrigin::answering(OK);
    let limits = "[limits]\nbody = \"10kB\"";
    let gateway = start(config(&[origin.address], limits)).unwrap();
    let fields = "Content-Encoding: gzip\r\n";
    assert_eq!(post(&gateway, fields, &gzip(&[b'a'; 9_000])), 200);
    assert_eq!(post(&gateway, fields, &gzip(&[b'a'; 11_000])), 413);
}
