//! Clients that decode replies, fast and slow, with real sockets.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use posthaste_load::{Connections, Outcome, Pace, Run};
use posthaste_units::Span;

use crate::server::{answering, carried_out, pause, plan, read_request, serve};

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn brotli(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    brotli::BrotliCompress(&mut &*plain, &mut out, &Default::default()).unwrap();
    out
}

/// A reply with these fields and this body.
fn reply(fields: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn coded(coding: &str, body: &[u8]) -> Vec<u8> {
    reply(&format!("Content-Encoding: {coding}\r\n"), body)
}

/// Sends ten requests and decodes their replies with this slowdown.
fn decoding(reply: Vec<u8>, slowdown: u32) -> Run {
    let mut plan = plan(answering(reply, false), 100.0, 100);
    plan.timeout = Span::from_secs(60);
    plan.decoding = Some(slowdown);
    let run = carried_out(&plan);
    assert_eq!(run.intended, 10);
    run
}

fn text() -> Vec<u8> {
    b"<title>The same, and the same again.</title>".repeat(500)
}

#[test]
fn coded_replies_are_decoded_and_counted() {
    let text = text();
    let zstd = zstd::encode_all(&text[..], 3).unwrap();
    for (coding, body) in [("gzip", gzip(&text)), ("br", brotli(&text)), ("zstd", zstd)] {
        let run = decoding(coded(coding, &body), 1);
        assert_eq!(run.outcomes[Outcome::Ok], 10, "{coding}: {:?}", run.reasons);
        let decoded = run.decoded;
        assert_eq!(decoded.replies, 10);
        assert_eq!(decoded.bytes_coded, 10 * body.len() as u64);
        assert_eq!(decoded.bytes, 10 * text.len() as u64);
        assert_eq!(run.phases.decode.count(), 10);
    }
    for reply in [
        reply("", &text),
        coded("identity", &text),
        coded("gzip", b""),
    ] {
        let run = decoding(reply, 1);
        assert_eq!(run.outcomes[Outcome::Ok], 10, "{:?}", run.reasons);
        assert_eq!((run.decoded.replies, run.phases.decode.count()), (0, 0));
    }
}

#[test]
fn undecodable_replies_have_an_outcome_and_a_reason() {
    let whole = gzip(&text());
    for (reply, word) in [
        (coded("gzip", b"no gzip at all"), "gzip: "),
        (coded("gzip", &whole[..whole.len() - 4]), "gzip: "),
        (coded("zstd", &whole), "zstd: "),
        (coded("br", &[0xff; 50]), "br: "),
        (coded("deflate", &whole), "\"deflate\""),
        (coded("gzip, br", &whole), "\"gzip, br\""),
    ] {
        let run = decoding(reply.clone(), 1);
        assert_eq!(
            run.outcomes[Outcome::Undecodable],
            10,
            "{word}: {:?}",
            run.outcomes
        );
        let reason = &run.reasons[&Outcome::Undecodable];
        assert!(reason.contains(word), "{reason}");
        assert_eq!(run.response.histogram().count(), 0);
        // The connection stays usable. A client that does not decode is unaffected.
        for (decoding, outcome) in [(Some(1), Outcome::Undecodable), (None, Outcome::Ok)] {
            let mut plan = plan(answering(reply.clone(), false), 1.0, 1);
            plan.pace = Pace::Closed {
                clients: 1,
                length: Span::from_millis(50),
            };
            plan.timeout = Span::from_secs(60);
            plan.decoding = decoding;
            let run = carried_out(&plan);
            assert_eq!(run.outcomes[outcome], run.intended, "{word}");
            assert_eq!(run.connections, 1, "{word}");
        }
    }
}

/// The slow machine's time is part of every reported time, and delays nothing else.
#[test]
fn a_slow_client_takes_longer_and_nobody_waits_for_it() {
    const SLOWDOWN: u32 = 10_000;
    let body = gzip(&text());
    let begun = std::time::Instant::now();
    let run = decoding(coded("gzip", &body), SLOWDOWN);
    let took = Span::from(begun.elapsed());
    assert_eq!(run.outcomes[Outcome::Ok], 10);
    let (decode, service) = (run.phases.decode.mean(), run.service.histogram().mean());
    // Nothing decodes 20 kB in a microsecond.
    assert!(decode > Span::from_millis(10), "{decode}");
    assert!(service >= decode, "{service} {decode}");
    let parts: Span = run
        .phases
        .iter()
        .map(|(_, times)| times.mean() * times.count())
        .sum();
    let whole = service * 10;
    let apart = parts.as_secs_f64() - whole.as_secs_f64();
    assert!(
        apart.abs() < 1e-3 * whole.as_secs_f64() + 1e-5,
        "{parts} {whole}"
    );
    assert!(took < whole, "{took}: ten times {service} were waited for");
    // Open loop: a reply decoded after the end of the run was not completed in it.
    assert!(run.completed < 10, "{}", run.completed);
}

#[test]
fn a_closed_loop_waits_for_decoding_before_the_next_request() {
    let body = gzip(&text());
    let mut plan = plan(answering(coded("gzip", &body), false), 1.0, 1);
    plan.connections = Connections::KeepAlive;
    plan.pace = Pace::Closed {
        clients: 1,
        length: Span::from_millis(500),
    };
    plan.decoding = Some(2_000);
    let run = carried_out(&plan);
    assert_eq!(run.outcomes[Outcome::Ok], run.intended, "{:?}", run.reasons);
    let times = &run.phases.decode;
    let all = times.mean() * run.intended;
    let but_one = all.saturating_sub(times.max());
    assert!(but_one <= Span::from_millis(500), "{but_one} of 500 ms");
    assert!(
        all >= Span::from_millis(50),
        "{all}: {} requests",
        run.intended
    );
}

#[test]
fn a_fault_shows_in_any_coding_whether_or_not_it_is_decoded() {
    // A coded reply longer than the part inspected first.
    let numbers = (0..500_u32).map(|n| n.wrapping_mul(2_654_435_761).to_string());
    let long = format!("<s:Header>{}</s:Header>", numbers.collect::<String>());
    for header in ["", &long] {
        let fault = format!(
            "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'>{header}<s:Body><s:Fault>\
             <faultcode>s:Server</faultcode><faultstring>closed</faultstring></s:Fault></s:Body></s:Envelope>"
        );
        let fault = fault.as_bytes();
        let zstd = zstd::encode_all(fault, 3).unwrap();
        for (coding, body) in [("gzip", gzip(fault)), ("br", brotli(fault)), ("zstd", zstd)] {
            assert!(header.is_empty() || body.len() > 2_000, "{}", body.len());
            let fields = format!("Content-Type: text/xml\r\nContent-Encoding: {coding}\r\n");
            for decoding in [None, Some(1)] {
                let mut plan = plan(answering(reply(&fields, &body), false), 100.0, 50);
                plan.decoding = decoding;
                let run = carried_out(&plan);
                let outcomes = &run.outcomes;
                assert_eq!(outcomes[Outcome::SoapFault], 5, "{coding} {outcomes:?}");
                assert_eq!(run.reasons[&Outcome::SoapFault], "Server: closed");
            }
        }
    }
}

#[test]
fn a_coded_reply_may_come_in_pieces() {
    let whole = coded("gzip", &gzip(&text()));
    let address = serve(move |mut stream| {
        let _ = stream.set_nodelay(true);
        while read_request(&mut stream) {
            for piece in whole.chunks(7) {
                let _ = stream.write_all(piece);
            }
        }
    });
    let mut plan = plan(address, 100.0, 50);
    plan.decoding = Some(1);
    let run = carried_out(&plan);
    assert_eq!(run.outcomes[Outcome::Ok], 5, "{:?}", run.reasons);
    assert_eq!(run.decoded.bytes, 5 * text().len() as u64);
}

/// Thirty replies nearly fill the memory for coded replies. Their connections stay open, and a longer reply still gets
/// memory.
#[test]
fn replies_that_were_decoded_hold_no_memory() {
    let stored = |mebibytes: usize| {
        let none = flate2::Compression::none();
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), none);
        encoder.write_all(&vec![0; mebibytes << 20]).unwrap();
        coded("gzip", &encoder.finish().unwrap())
    };
    let (short, long) = (Arc::new(stored(2)), Arc::new(stored(8)));
    let (requested, answered) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let wait = |counter: &AtomicU64| {
        while counter.load(SeqCst) < 30 {
            pause(1);
        }
    };
    let address = serve(move |mut stream| {
        while read_request(&mut stream) {
            // All at once, so that each has a connection. The long one comes after they have been read.
            let reply = match requested.fetch_add(1, SeqCst) {
                ..30 => {
                    wait(&requested);
                    &short
                }
                _ => {
                    wait(&answered);
                    pause(1000);
                    &long
                }
            };
            stream.write_all(reply).unwrap();
            answered.fetch_add(1, SeqCst);
        }
    });
    let mut plan = plan(address, 1000.0, 31);
    plan.timeout = Span::from_secs(60);
    plan.decoding = Some(1);
    let run = carried_out(&plan);
    assert_eq!(run.outcomes[Outcome::Ok], 31, "{:?}", run.reasons);
    assert_eq!(run.connections, 31);
}

/// Nothing else is done while a reply is decoded, so a decompression bomb is given up.
#[test]
fn a_reply_that_explodes_is_undecodable() {
    let zeros = std::io::Read::take(std::io::repeat(0), 300 << 20);
    let bomb = zstd::encode_all(zeros, 1).unwrap();
    let mut plan = plan(answering(coded("zstd", &bomb), false), 10.0, 100);
    plan.timeout = Span::from_secs(60);
    plan.decoding = Some(1);
    let run = carried_out(&plan);
    let reason = &run.reasons[&Outcome::Undecodable];
    assert!(reason.contains("more than 268435456 bytes"), "{reason}");
}
