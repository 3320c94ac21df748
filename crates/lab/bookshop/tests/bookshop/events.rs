//! Event streams: orders as events and lines, and the tokens of a chat.

use std::io::{Read as _, Write as _};

use posthaste_bookshop::{BookshopConfig, EventLaw, GapLaw, Running};
use posthaste_serve::sse::{SseEvent, SseReader};
use posthaste_units::Span;
use serde_json::Value;

use crate::{HttpReply, connect, get, open, send};

fn shop() -> Running {
    open(BookshopConfig {
        books: 20,
        ..BookshopConfig::default()
    })
}

/// The content of a chunked body.
fn unchunked(reply: &HttpReply) -> Vec<u8> {
    assert_eq!(reply.field("transfer-encoding"), Some("chunked"));
    let (mut rest, mut content) = (&reply.body[..], Vec::new());
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").unwrap();
        let length = std::str::from_utf8(&rest[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            assert_eq!(&rest[end..], b"\r\n\r\n", "nothing follows the last chunk");
            return content;
        }
        content.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 2 + length + 2..];
    }
}

fn events(reply: &HttpReply) -> Vec<SseEvent> {
    assert_eq!(
        (
            reply.status,
            reply.field("content-type"),
            reply.field("cache-control")
        ),
        (200, Some("text/event-stream"), Some("no-store"))
    );
    let content = unchunked(reply);
    let (mut reader, mut bytes) = (SseReader::new(1 << 20), &content[..]);
    std::iter::from_fn(|| reader.next(&mut bytes).unwrap()).collect()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Checks numbers and moments of events against their law.
fn check(moments: &[Value], law: EventLaw) {
    assert_eq!(moments.len(), law.events as usize);
    let offsets: Vec<u64> = law.offsets().collect();
    let field = |at: usize, name: &str| moments[at][name].as_u64().unwrap();
    let start = field(0, "due_ns") - offsets[0];
    for (at, offset) in offsets.iter().enumerate() {
        assert_eq!(field(at, "number"), at as u64 + 1);
        assert_eq!(field(at, "due_ns") - start, *offset);
        assert!(field(at, "sent_ns") >= field(at, "due_ns"));
        assert!(at == 0 || field(at, "sent_ns") >= field(at - 1, "sent_ns"));
    }
}

fn law(events: u32, first: u64, gap: GapLaw, seed: u64) -> EventLaw {
    EventLaw {
        events,
        first: Span::from_millis(first),
        gap,
        seed,
    }
}

#[test]
fn orders_are_events_with_a_known_law_and_an_end_mark() {
    let running = shop();
    let ms = Span::from_millis;
    for (query, law) in [
        ("?events=5&gap=2ms", law(5, 0, GapLaw::Constant(ms(2)), 0)),
        (
            "?events=7&gap=exp:1ms&seed=9&first=10ms",
            law(7, 10, GapLaw::Exponential(ms(1)), 9),
        ),
        ("", EventLaw::new(10)),
        ("?events=1", EventLaw::new(1)),
    ] {
        let mut events = events(&get(running.addr, &format!("/orders{query}")));
        let end = events.pop().unwrap();
        assert_eq!((&*end.data, end.id), ("[DONE]", None), "{query}");
        for (number, event) in (1..).zip(&events) {
            assert_eq!((&*event.name, event.id), ("order", Some(number)));
        }
        let moments: Vec<Value> = events.iter().map(|event| json(&event.data)).collect();
        check(&moments, law);
        assert!(moments[0]["isbn"].is_string() && moments[0]["copies"].is_u64());
    }
    let metrics = get(running.addr, "/metrics");
    for line in [
        "bookshop_events_total{form=\"orders\"} 23\n",
        "bookshop_streams_total{form=\"orders\",end=\"complete\"} 4\n",
        "bookshop_requests_total{form=\"orders\",answer=\"ok\"} 4\n",
    ] {
        assert!(metrics.text().contains(line), "{line} {}", metrics.text());
    }
}

#[test]
fn orders_are_lines_of_json_for_clients_that_want_these() {
    let running = shop();
    let by_field = send(
        running.addr,
        "GET",
        "/orders?events=4&gap=1ms",
        &["Accept: application/x-ndjson"],
        b"",
    );
    let by_query = get(running.addr, "/orders?events=4&gap=1ms&format=ndjson");
    for reply in [by_field, by_query] {
        assert_eq!(reply.field("content-type"), Some("application/x-ndjson"));
        let content = String::from_utf8(unchunked(&reply)).unwrap();
        assert!(content.ends_with('\n'));
        let moments: Vec<Value> = content.lines().map(json).collect();
        check(
            &moments,
            law(4, 0, GapLaw::Constant(Span::from_millis(1)), 0),
        );
    }
    let lines = ["Accept: application/x-ndjson"];
    let target = "/orders?format=sse&events=1";
    let query_wins = send(running.addr, "GET", target, &lines, b"");
    assert_eq!(events(&query_wins).len(), 2);
}

/// An event arrives although the next one is far away.
#[test]
fn an_event_is_sent_when_it_is_due() {
    let running = shop();
    let mut stream = connect(running.addr);
    let request = "GET /orders?events=2&gap=600s HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = Vec::new();
    while !reply.windows(9).any(|part| part == b"\"number\":") {
        let mut piece = [0; 4096];
        let length = stream.read(&mut piece).unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&reply));
        reply.extend_from_slice(&piece[..length]);
    }
    drop(stream);
    let line = "bookshop_streams_total{form=\"orders\",end=\"cancelled\"} 1\n";
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !get(running.addr, "/metrics").text().contains(line) {
        assert!(std::time::Instant::now() < end, "the stream has not ended");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn wrong_parameters_are_refused_with_the_remedy() {
    let running = shop();
    for (query, message) in [
        ("events=0", "1 to 100000"),
        ("events=x", "1 to 100000"),
        ("gap=never", "gap="),
        ("gap=601s", "maximum"),
        ("first=-1s", "first="),
        ("seed=-1", "whole number"),
        ("events=100000&gap=1s", "fewer"),
        ("format=xml", "format=ndjson"),
        ("count=3", "there are events"),
        ("gap=1ms&gap=2ms", "twice"),
        ("events", "1 to 100000"),
    ] {
        let reply = get(running.addr, &format!("/orders?{query}"));
        assert_eq!(
            (reply.status, reply.field("content-type")),
            (400, Some("application/problem+json")),
            "{query}"
        );
        assert!(reply.text().contains(message), "{query}: {}", reply.text());
    }
    let wrong = send(running.addr, "POST", "/orders", &[], b"x");
    assert_eq!((wrong.status, wrong.field("allow")), (405, Some("GET")));
}

fn chat(running: &Running, query: &str, body: &str) -> HttpReply {
    let target = format!("/v1/chat/completions{query}");
    let kind = ["Content-Type: application/json"];
    send(running.addr, "POST", &target, &kind, body.as_bytes())
}

#[test]
fn streamed_and_whole_chats_have_the_same_requested_tokens() {
    let running = shop();
    let body = |more: &str| {
        format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"tell me more"}}],"max_tokens":6{more}}}"#
        )
    };
    let stream = chat(&running, "?gap=1ms&first=5ms", &body(",\"stream\":true"));
    let mut events = events(&stream);
    assert_eq!(events.pop().unwrap().data, "[DONE]");
    let chunks: Vec<Value> = events.iter().map(|event| json(&event.data)).collect();
    let moments: Vec<Value> = chunks
        .iter()
        .map(|chunk| chunk["bookshop"].clone())
        .collect();
    check(
        &moments,
        law(6, 5, GapLaw::Constant(Span::from_millis(1)), 0),
    );
    let mut text = String::new();
    for (at, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert_eq!(
            (&chunk["model"], &chunk["id"]),
            (&json("\"m\""), &chunks[0]["id"])
        );
        let choice = &chunk["choices"][0];
        text += choice["delta"]["content"].as_str().unwrap();
        assert_eq!(choice["delta"]["role"].is_string(), at == 0);
        let reason = if at == 5 {
            json("\"length\"")
        } else {
            Value::Null
        };
        assert_eq!(choice["finish_reason"], reason);
    }
    let whole = chat(&running, "", &body(""));
    assert_eq!(whole.field("content-type"), Some("application/json"));
    let whole = json(whole.text());
    assert_eq!(whole["object"], "chat.completion");
    assert_eq!(whole["choices"][0]["message"]["content"], *text);
    assert_eq!(whole["choices"][0]["finish_reason"], "length");
    assert_eq!(
        whole["usage"],
        json(r#"{"prompt_tokens":3,"completion_tokens":6,"total_tokens":9}"#)
    );
}

#[test]
fn a_chat_reports_its_usage_when_asked() {
    let running = shop();
    let body = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a b"}]}],
        "max_completion_tokens":2,"stream":true,"stream_options":{"include_usage":true},"temperature":0.5}"#;
    let events = events(&chat(&running, "", body));
    assert_eq!(events.len(), 4);
    let usage = json(&events[2].data);
    assert_eq!(usage["choices"], json("[]"));
    assert_eq!(usage["usage"]["prompt_tokens"], 2);
    assert_eq!(usage["usage"]["completion_tokens"], 2);
}

#[test]
fn wrong_chats_are_refused_in_the_form_of_the_interface() {
    let running = shop();
    let one = r#""messages":[{"role":"user","content":"x"}]"#;
    for (query, body, message, field) in [
        ("", "{".to_owned(), "no request for a chat", Value::Null),
        ("", "{}".to_owned(), "messages", Value::Null),
        (
            "",
            r#"{"messages":[]}"#.to_owned(),
            "at least one",
            json("\"messages\""),
        ),
        (
            "",
            format!("{{{one},\"max_tokens\":0}}"),
            "1 to 100000",
            json("\"max_tokens\""),
        ),
        (
            "",
            format!("{{{one},\"max_tokens\":-1}}"),
            "no request",
            Value::Null,
        ),
        (
            "",
            format!("{{{one},\"n\":2}}"),
            "leave n out",
            json("\"n\""),
        ),
        ("?gap=x", format!("{{{one}}}"), "gap=", Value::Null),
        (
            "?events=3",
            format!("{{{one}}}"),
            "max_tokens",
            json("\"max_tokens\""),
        ),
        ("?format=sse", format!("{{{one}}}"), "unknown", Value::Null),
    ] {
        let reply = chat(&running, query, &body);
        assert_eq!(
            (reply.status, reply.field("content-type")),
            (400, Some("application/json"))
        );
        let error = json(reply.text())["error"].clone();
        assert_eq!(error["type"], "invalid_request_error");
        assert_eq!(error["param"], field, "{body}");
        assert!(
            error["message"].as_str().unwrap().contains(message),
            "{body}: {error}"
        );
    }
    let long = chat(&running, "", &" ".repeat(300 << 10));
    assert_eq!(long.status, 413);
    let wrong = get(running.addr, "/v1/chat/completions");
    assert_eq!((wrong.status, wrong.field("allow")), (405, Some("POST")));
}

/// The shop serves under a law at once; a busy share in the head shows it. Other tests measure the time.
#[test]
fn a_stream_and_a_chat_have_a_service_time_before_their_head() {
    let running = open(BookshopConfig {
        service: Some("md1:5ms".parse().unwrap()),
        books: 10,
        ..BookshopConfig::default()
    });
    let stream = get(running.addr, "/orders?events=2");
    assert!(stream.field("x-busy").is_some());
    assert_eq!(events(&stream).len(), 3);
    let body = r#"{"messages":[{"role":"user","content":"x"}]}"#;
    for body in [body, "{}"] {
        assert!(chat(&running, "", body).field("x-busy").is_some(), "{body}");
    }
}
