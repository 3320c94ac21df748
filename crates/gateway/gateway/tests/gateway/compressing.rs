//! Compression of replies: decisions, changes of the head, and lossless content.

use std::io::Read;
use std::time::Duration;

use base64::Engine as _;
use posthaste_gateway::{GatewayConfig, RunningGateway, start};

use crate::support::{ReceivedReply, SeenSignal, TestClient, TestOrigin, field, get, wait_until};

/// A text of at least `length` bytes with little repetition.
fn text(length: usize) -> String {
    let mut text = String::from("<books>");
    for number in 0_u64.. {
        if text.len() >= length {
            break;
        }
        let word = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        text.push_str(&format!(
            "<book><isbn>{word:x}</isbn><n>{number}</n></book>"
        ));
    }
    text.truncate(length);
    text
}

fn reply(fields: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
    )
}

fn chunked(fields: &str, body: &str) -> String {
    let mut text = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n{fields}\r\n"
    );
    for piece in body.as_bytes().chunks(5000) {
        let piece = std::str::from_utf8(piece).unwrap();
        text.push_str(&format!("{:x}\r\n{piece}\r\n", piece.len()));
    }
    text + "0\r\n\r\n"
}

fn gateway(origin: &TestOrigin, policy: &str) -> RunningGateway {
    let compression = format!("[compression]\npolicy = \"{policy}\"");
    start(crate::support::config(&[origin.address], &compression)).unwrap()
}

/// Decodes a reply by its Content-Encoding.
fn decoded(reply: &ReceivedReply) -> String {
    let mut text = Vec::new();
    match field(&reply.head, "content-encoding") {
        None => text.clone_from(&reply.body),
        Some("gzip") => {
            let mut decoder = flate2::read::GzDecoder::new(&*reply.body);
            decoder.read_to_end(&mut text).unwrap();
        }
        Some("zstd") => text = zstd::decode_all(&*reply.body).unwrap(),
        Some("br") => {
            let mut decoder = brotli::Decompressor::new(&*reply.body, 4096);
            decoder.read_to_end(&mut text).unwrap();
        }
        Some(other) => panic!("{other}"),
    }
    String::from_utf8(text).unwrap()
}

/// A repeated reply is served from the cache, for any path and any load, to clients that accept its coding.
#[test]
fn repeated_replies_are_served_from_the_cache() {
    let (book, other) = (text(16_055), text(9000));
    let origin = TestOrigin::start({
        let (book, other) = (book.clone(), other.clone());
        move |line| {
            while let Some(request) = line.request() {
                let field = "ETag: \"b\"\r\n";
                line.write(match request.split(' ').nth(1) {
                    Some("/other") => reply(field, &other),
                    Some("/pieces") => chunked(field, &book),
                    _ => reply(field, &book),
                });
            }
        }
    });
    let busy =
        "[compression]\nthreshold = \"0%\"\nrelease = \"0%\"\nsteps = [\"gzip-1\", \"zstd-1\"]";
    let config = || crate::support::config(&[origin.address], busy);
    let gateway = start(config()).unwrap();
    let ask = |path: &str, wish: &str, codings: &str| {
        let fields = format!("Accept-Encoding: {codings}\r\nPrefer: compression-reason{wish}\r\n");
        let got = get(&gateway, path, &fields);
        let reason = field(&got.head, "compression-decision").unwrap().to_owned();
        (reason, got)
    };
    let reason = |path: &str, wish: &str, codings: &str| ask(path, wish, codings).0;
    let asks = ", compression=always";
    wait_until("demand is known", || {
        reason("/", "", "gzip") == "demand-high"
    });
    // Clients that ask for compression fill the cache.
    let (_, first) = ask("/", asks, "gzip");
    let (_, second) = ask("/other", asks, "gzip");
    for _ in 0..2 {
        ask("/", asks, "gzip");
        ask("/other", asks, "gzip");
    }
    for (path, message, made) in [
        ("/", &book, &first),
        ("/pieces", &book, &first),
        ("/other", &other, &second),
    ] {
        // Cached at the first request, unless the body arrives later than the head.
        let mut got = None;
        wait_until("it is at hand", || {
            let (reason, reply) = ask(path, "", "gzip");
            got = Some(reply);
            reason == "cached"
        });
        let got = got.unwrap();
        assert_eq!(decoded(&got), *message);
        assert_eq!(field(&got.head, "etag"), field(&made.head, "etag"));
        assert_eq!(field(&got.head, "vary"), field(&made.head, "vary"));
    }
    // No other coding is cached, and refusals are respected.
    assert_eq!(reason("/", "", "zstd"), "demand-high");
    assert_eq!(reason("/", "", "identity"), "refused");
    // Another accepted coding is used if it is the cached one.
    let by_another = || reason("/", "", "zstd, gzip") == "cached";
    wait_until("it is at hand by another coding", by_another);
    // A new configuration starts with an empty cache.
    gateway.reload(config()).unwrap();
    let emptied = || reason("/", "", "gzip") == "demand-high";
    wait_until("the cache is empty", emptied);
}

#[test]
fn each_coding_comes_back_whole_and_as_a_stream() {
    for length in [600, 3366, 16_055, 65_536, 65_537, 300_000] {
        let body = text(length);
        for origin in [reply("", &body), chunked("", &body)].map(TestOrigin::answering) {
            let gateway = gateway(&origin, "always");
            for coding in ["gzip", "zstd", "br"] {
                let got = get(&gateway, "/", &format!("Accept-Encoding: {coding}\r\n"));
                assert!(got.whole);
                assert_eq!(
                    field(&got.head, "content-encoding"),
                    Some(coding),
                    "{length}"
                );
                assert_eq!(decoded(&got), body, "{coding} {length}");
                assert!(got.body.len() < length * 3 / 4);
                let framed = field(&got.head, "content-length").is_some();
                assert_eq!(framed, length <= 65_536, "{coding} {length}");
            }
        }
    }
}

#[test]
fn a_wish_counts_wherever_it_is_said() {
    let body = text(5000);
    let origin = TestOrigin::answering(reply("", &body));
    let gateway = gateway(&origin, "threshold");
    // Before the first sample the load is unknown: only clients that ask get compressed replies.
    for (fields, coding, reason) in [
        (
            "Accept-Encoding: gzip\r\nPrefer: compression=always, compression-reason\r\n",
            Some("gzip"),
            "asked",
        ),
        (
            "Accept-Encoding: gzip\r\nPrefer: compression=never, compression-reason\r\n",
            None,
            "refused",
        ),
        (
            "Accept-Encoding: identity\r\nPrefer: compression-reason\r\n",
            None,
            "refused",
        ),
        (
            "Accept-Encoding: gzip;q=0\r\nPrefer: compression-reason\r\n",
            None,
            "refused",
        ),
        (
            "Accept-Encoding: br;q=0.5, zstd\r\nSave-Data: on\r\nPrefer: compression-reason\r\n",
            Some("zstd"),
            "asked",
        ),
        ("Prefer: compression-reason\r\n", None, "not-acceptable"),
    ] {
        let got = get(&gateway, "/", fields);
        assert_eq!(field(&got.head, "content-encoding"), coding, "{fields}");
        assert_eq!(
            field(&got.head, "compression-decision"),
            Some(reason),
            "{fields}"
        );
        assert_eq!(decoded(&got), body);
        let mut vary = "accept-encoding, prefer".to_owned();
        if fields.contains("Save-Data") {
            vary += ", save-data";
        }
        assert_eq!(field(&got.head, "vary"), Some(&*vary), "{fields}");
    }
    let silent = get(&gateway, "/", "");
    assert_eq!(field(&silent.head, "vary"), Some("accept-encoding"));
    let always = "[compression]\nvary_always = true";
    let gateway = start(crate::support::config(&[origin.address], always)).unwrap();
    let silent = get(&gateway, "/", "");
    let all = Some("accept-encoding, prefer, save-data");
    assert_eq!(field(&silent.head, "vary"), all);
    let without_wish = get(&gateway, "/", "Accept-Encoding: gzip\r\n");
    assert_eq!(field(&without_wish.head, "compression-decision"), None);
}

#[test]
fn a_soap_header_overrides_prefer_and_is_forwarded_unchanged() {
    let body = text(5000);
    let origin = TestOrigin::answering(reply("", &body));
    let gateway = gateway(&origin, "threshold");
    for (wish, coding) in [("always", Some("gzip")), ("never", None)] {
        let filling = "x".repeat(200_000);
        let envelope = format!(
            "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Header>\
             <compression xmlns=\"urn:posthaste:wsqos\">{wish}</compression></s:Header>\
             <s:Body><a>{filling}</a></s:Body></s:Envelope>"
        );
        let head = format!(
            "POST / HTTP/1.1\r\nHost: s\r\nContent-Type: text/xml\r\nAccept-Encoding: gzip\r\nPrefer: compression=if-possible\r\nContent-Length: {}\r\n\r\n",
            envelope.len()
        );
        let mut client = TestClient::new(&gateway);
        // Cut in the middle of the element.
        let cut = envelope.find("urn:").unwrap();
        client.send(head).send(&envelope[..cut]);
        std::thread::sleep(Duration::from_millis(50));
        client.send(&envelope[cut..]);
        let got = client.reply(false).unwrap();
        assert_eq!(field(&got.head, "content-encoding"), coding, "{wish}");
        assert_eq!(decoded(&got), body);
        assert!(origin.last_request().ends_with(&envelope));
    }
}

#[test]
fn a_compressed_reply_is_another_representation() {
    let fields = "ETag: \"abc\"\r\nAccept-Ranges: bytes\r\nVary: Cookie\r\n";
    let origin = TestOrigin::answering(reply(fields, &text(5000)));
    let gateway = gateway(&origin, "always");
    let coded = get(&gateway, "/", "Accept-Encoding: gzip\r\n").head;
    assert_eq!(field(&coded, "etag"), Some("w/\"abc\""));
    assert_eq!(field(&coded, "accept-ranges"), None);
    assert!(
        coded.contains("vary: cookie\r\n") && coded.contains("vary: accept-encoding"),
        "{coded}"
    );
    let plain = get(&gateway, "/", "").head;
    assert_eq!(field(&plain, "etag"), Some("\"abc\""));
    assert_eq!(field(&plain, "accept-ranges"), Some("bytes"));
    assert!(plain.contains("vary: accept-encoding"), "{plain}");
}

#[test]
fn revalidation_works_for_compressed_replies() {
    let fields = "ETag: \"abc\"\r\nVary: Cookie\r\n";
    let origin = TestOrigin::answering(format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n"));
    let gateway = gateway(&origin, "always");
    // Upstreams that compare texts find their own validator.
    for (knows, tag, sent) in [
        ("W/\"abc\"", "w/\"abc\"", "w/\"abc\", \"abc\""),
        ("\"x\", W/\"abc\"", "w/\"abc\"", "\"x\", w/\"abc\", \"abc\""),
        ("\"abc\"", "\"abc\"", "\"abc\""),
        ("W/\"abc\", \"abc\"", "\"abc\"", "w/\"abc\", \"abc\""),
        ("*", "\"abc\"", "*"),
    ] {
        let got = get(&gateway, "/", &format!("If-None-Match: {knows}\r\n")).head;
        assert_eq!(field(&got, "etag"), Some(tag), "{knows}");
        assert!(got.contains("vary: accept-encoding"), "{got}");
        let request = origin.last_request().to_lowercase();
        assert_eq!(field(&request, "if-none-match"), Some(sent));
    }
    let gateway = self::gateway(&origin, "never");
    let got = get(
        &gateway,
        "/",
        "If-None-Match: W/\"abc\"\r\nIf-Match: W/\"abc\"\r\n",
    )
    .head;
    assert_eq!(field(&got, "etag"), Some("\"abc\""));
    let request = origin.last_request();
    assert!(
        request.contains(": W/\"abc\"\r\nif-match: W/\"abc\"\r\n"),
        "{request}"
    );
}

#[test]
fn replies_that_must_not_be_compressed_stay_unchanged() {
    let body = text(5000);
    for (reason, answer) in [
        (
            "no-transform",
            reply("Cache-Control: max-age=1, no-transform\r\n", &body),
        ),
        ("already-coded", reply("Content-Encoding: br\r\n", &body)),
        ("sealed", reply("Content-Digest: sha-256=:AA==:\r\n", &body)),
        ("too-small", reply("", "short")),
        ("too-small", chunked("", "short")),
        (
            "media-type",
            reply("", &body).replace("text/xml", "image/png"),
        ),
        (
            "event-stream",
            chunked("", &body).replace("text/xml", "text/event-stream"),
        ),
        (
            "range",
            reply("Content-Range: bytes 0-4999/9000\r\n", &body)
                .replace("200 OK", "206 Partial Content"),
        ),
    ] {
        let origin = TestOrigin::answering(answer);
        let gateway = gateway(&origin, "always");
        let fields = "Accept-Encoding: gzip\r\nPrefer: compression=always, compression-reason\r\n";
        let got = get(&gateway, "/", fields);
        assert_eq!(field(&got.head, "compression-decision"), Some(reason));
        let sent = if reason == "too-small" {
            "short"
        } else {
            &body
        };
        assert_eq!(got.body, sent.as_bytes(), "{reason}");
    }
}

#[test]
fn replies_compressed_without_a_coding_field_stay_unchanged() {
    let mut packed = vec![0x1f, 0x8b, 8];
    packed.extend(text(5000).into_bytes());
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\r\n",
        packed.len()
    );
    let origin = TestOrigin::answering([head.as_bytes(), &packed].concat());
    let gateway = gateway(&origin, "always");
    let fields = "Accept-Encoding: gzip\r\nPrefer: compression-reason\r\n";
    let got = get(&gateway, "/", fields);
    assert_eq!(
        field(&got.head, "compression-decision"),
        Some("already-coded")
    );
    assert_eq!(field(&got.head, "content-encoding"), None);
    assert_eq!(got.body, packed);
}

#[test]
fn a_route_can_opt_out() {
    let origin = TestOrigin::answering(reply("", &text(5000)));
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\ncompression = false\nupstream = [\"{}\"]",
        origin.address
    );
    let gateway = start(GatewayConfig::read(&text).unwrap()).unwrap();
    let fields = "Accept-Encoding: gzip\r\nPrefer: compression=always, compression-reason\r\n";
    let got = get(&gateway, "/", fields);
    assert_eq!(field(&got.head, "compression-decision"), Some("opted-out"));
}

#[test]
fn head_gets_the_head_of_the_plain_reply() {
    let origin = TestOrigin::answering(
        "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: 5000\r\n\r\n",
    );
    let gateway = gateway(&origin, "always");
    let mut client = TestClient::new(&gateway);
    client.send("HEAD / HTTP/1.1\r\nHost: s\r\nAccept-Encoding: gzip\r\n\r\n");
    let got = client.reply(true).unwrap();
    assert_eq!(field(&got.head, "content-length"), Some("5000"));
    assert!(got.head.contains("vary: accept-encoding"), "{got:?}");
    assert_eq!(field(&got.head, "content-encoding"), None);
}

#[test]
fn a_stream_can_be_read_as_far_as_it_has_come() {
    let (seen, may_go_on) = std::sync::mpsc::channel();
    let may_go_on = std::sync::Mutex::new(may_go_on);
    let origin = TestOrigin::start(move |line| {
        line.request();
        line.write("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n");
        line.write("7\r\nfirst, \r\n");
        let _ = may_go_on.lock().unwrap().recv();
        line.write("6\r\nsecond\r\n0\r\nX-Sum: 7\r\n\r\n");
    });
    let gateway = gateway(&origin, "always");
    let mut client = TestClient::new(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: s\r\nTE: trailers\r\nAccept-Encoding: gzip\r\n\r\n");
    let mut raw = Vec::new();
    while first_seven(&raw).is_none_or(|first| first != *b"first, ") {
        raw.extend(client.some());
    }
    seen.send(()).unwrap();
    while !raw.ends_with(b"\r\n\r\n") {
        raw.extend(client.some());
    }
    assert!(
        String::from_utf8_lossy(&raw)
            .to_lowercase()
            .contains("x-sum: 7")
    );
}

/// Decodes the first bytes of an incomplete chunked gzip reply.
pub(crate) fn first_seven(raw: &[u8]) -> Option<[u8; 7]> {
    let head = raw.windows(4).position(|window| window == b"\r\n\r\n")?;
    let mut rest = &raw[head + 4..];
    let mut packed = Vec::new();
    while let Some(line) = rest.windows(2).position(|window| window == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..line]).ok()?, 16).ok()?;
        packed.extend_from_slice(rest.get(line + 2..line + 2 + length)?);
        rest = rest.get(line + 4 + length..)?;
    }
    let mut first = [0; 7];
    flate2::read::GzDecoder::new(&*packed)
        .read_exact(&mut first)
        .ok()?;
    Some(first)
}

#[test]
fn a_reply_cut_off_during_compression_is_not_complete() {
    let begun = "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n";
    let half = text(100_000);
    let short = format!("{begun}Content-Length: 9000\r\n\r\n{}", &half[..4000]);
    let long = format!("{begun}Content-Length: 900000\r\n\r\n{half}");
    for (answer, early) in [(short, true), (long, false)] {
        let seen = SeenSignal::default();
        let is_seen = seen.clone();
        let origin = TestOrigin::start(move |line| {
            line.request();
            line.write(&answer);
            is_seen.wait();
        });
        let gateway = gateway(&origin, "always");
        let mut client = TestClient::new(&gateway);
        client.send("GET / HTTP/1.1\r\nHost: s\r\nAccept-Encoding: gzip\r\n\r\n");
        // A short reply is forwarded only when it is complete.
        if !early {
            client.wait_for_some();
        }
        seen.tell();
        let got = client.reply(false).unwrap();
        if early {
            assert_eq!(got.status, 502);
        } else {
            assert!(!got.whole);
        }
    }
}

#[test]
fn the_service_description_sets_the_default_of_its_calls() {
    const WSDL: &str = "<w:definitions xmlns:w='http://schemas.xmlsoap.org/wsdl/' \
        xmlns:s='http://schemas.xmlsoap.org/wsdl/soap/' xmlns:t='urn:t' \
        xmlns:p='urn:posthaste:wsqos' targetNamespace='urn:t'>\
        <w:portType name='P'><w:operation name='Small'/><w:operation name='Large'/></w:portType>\
        <w:binding name='B' type='t:P'><s:binding transport='http://schemas.xmlsoap.org/soap/http'/>\
        <w:operation name='Small'><s:operation soapAction='urn:t/Small'/>\
        <p:compression>never</p:compression></w:operation>\
        <w:operation name='Large'><s:operation soapAction='urn:t/Large'/>\
        <p:compression>always</p:compression></w:operation></w:binding>\
        <w:service name='S'><w:port name='P' binding='t:B'><s:address location='http://s/'/></w:port>\
        </w:service></w:definitions>";
    let origin = TestOrigin::answering(reply("", &text(5000)));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.wsdl");
    std::fs::write(&file, WSDL).unwrap();
    let config = |file: &std::path::Path| {
        let text = format!(
            "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\nupstream = [\"{}\"]\nwsdl = {file:?}",
            origin.address
        );
        GatewayConfig::read(&text).unwrap()
    };
    let gateway = start(config(&file)).unwrap();
    for (action, reason) in [("Small", "refused"), ("Large", "asked")] {
        let envelope = "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body/></s:Envelope>";
        let request = format!(
            "POST / HTTP/1.1\r\nHost: s\r\nContent-Type: text/xml\r\nSOAPAction: \"urn:t/{action}\"\r\nAccept-Encoding: gzip\r\nPrefer: compression-reason\r\nContent-Length: {}\r\n\r\n{envelope}",
            envelope.len()
        );
        let got = TestClient::new(&gateway)
            .send(request)
            .reply(false)
            .unwrap();
        assert_eq!(
            field(&got.head, "compression-decision"),
            Some(reason),
            "{action}"
        );
    }
    std::fs::write(&file, WSDL.replace("never", "seldom")).unwrap();
    let error = posthaste_gateway::check(config(&file))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("shop.wsdl") && error.contains("never"),
        "{error}"
    );
}

/// Sends an envelope that requests compression of its Body only.
fn post_for_body(gateway: &RunningGateway, wish: &str) -> ReceivedReply {
    let namespace = "http://schemas.xmlsoap.org/soap/envelope/";
    let message = format!(
        "<s:Envelope xmlns:s=\"{namespace}\"><s:Header><p:compression xmlns:p=\"urn:posthaste:wsqos\" \
         form=\"body\">{wish}</p:compression></s:Header><s:Body><a/></s:Body></s:Envelope>"
    );
    let length = message.len();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\nPrefer: compression-reason\r\n\
         Content-Length: {length}\r\n\r\n{message}"
    );
    TestClient::new(gateway).send(request).reply(false).unwrap()
}

#[test]
fn a_body_is_compressed_for_clients_that_cannot_decode() {
    let inner = text(9000) + "</books>";
    let around = "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body>";
    let end = "</s:Body></s:Envelope>";
    let message = format!("{around}{inner}{end}");
    let origin = TestOrigin::answering(reply("ETag: \"x\"\r\n", &message));
    let gateway_always = gateway(&origin, "threshold");
    let got = post_for_body(&gateway_always, "always");
    assert_eq!(field(&got.head, "compression-decision"), Some("asked"));
    assert_eq!(field(&got.head, "content-encoding"), None);
    assert_eq!(field(&got.head, "etag"), Some("w/\"x\""));
    assert!(got.body.len() < message.len() / 2);
    let text = String::from_utf8(got.body).unwrap();
    let packed = text
        .strip_prefix(around)
        .unwrap()
        .strip_suffix(end)
        .unwrap();
    let packed = packed.strip_suffix("</p:packed>").unwrap();
    let (_, packed) = packed.split_once('>').unwrap();
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(packed)
        .unwrap();
    let mut back = String::new();
    let mut decoder = flate2::read::GzDecoder::new(&*bytes);
    decoder.read_to_string(&mut back).unwrap();
    assert_eq!(back, inner);

    let refused = post_for_body(&gateway_always, "never");
    assert_eq!(
        field(&refused.head, "compression-decision"),
        Some("refused")
    );
    assert_eq!(refused.body, message.as_bytes());
    let page = TestOrigin::answering(reply("", &message.replace("s:Body>", "Body>")));
    let page_gateway = gateway(&page, "threshold");
    let odd = post_for_body(&page_gateway, "always");
    assert_eq!(
        field(&odd.head, "compression-decision"),
        Some("no-envelope")
    );
}
