//! Streams of events: first event, gaps, rate and end mark, and replies that break off.

use std::io::Write as _;
use std::time::Duration;

use posthaste_evaluation::report::{Report, TextTimes, text};
use posthaste_load::{EventFormat, EventPlan, Outcome, Plan, Run};
use posthaste_units::Span;

use crate::server::{carried_out, pause, plan, read_request, serve};

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";

/// A server that answers each request with these pieces, after a pause before each, and closes.
fn streaming(head: &'static str, pieces: &'static [(u64, &'static str)]) -> Plan {
    let address = serve(move |mut stream| {
        if read_request(&mut stream) && stream.write_all(head.as_bytes()).is_ok() {
            for (millis, piece) in pieces {
                pause(*millis);
                if stream.write_all(piece.as_bytes()).is_err() {
                    return;
                }
            }
        }
    });
    let mut plan = plan(address, 50.0, 200);
    plan.events = Some(EventPlan {
        format: EventFormat::Sse,
        end_mark: Some("[DONE]".to_owned()),
    });
    plan
}

/// Statistics in milliseconds.
fn at(times: &posthaste_stats::Recorder, quantile: f64) -> Option<f64> {
    let time = times.distribution().quantile(quantile).known();
    time.map(Span::as_millis_f64)
}

#[test]
fn first_event_and_gaps_are_measured_from_the_due_time() {
    const BODY: &[(u64, &str)] = &[
        (0, "Connection: close\r\n\r\n"),
        (60, "data: 1\n\n"),
        (30, "data: 2\n\n: comment\n\n"),
        (30, "data: 3\n\n"),
        (0, "data: [DONE]\n\n"),
    ];
    let run = carried_out(&streaming(HEAD, BODY));
    assert_eq!(run.outcomes[Outcome::Ok], 10, "{:?}", run.reasons);
    assert_eq!((run.events.events, run.events.with_end_mark), (30, 10));
    assert_eq!(run.events.first.distribution().count(), 10);
    assert_eq!(run.events.gaps.distribution().count(), 20);
    assert!(at(&run.events.first, 0.0).unwrap() >= 58.0);
    assert!(at(&run.events.gaps, 0.5).unwrap() >= 25.0);
    assert!(at(&run.events.periods, 0.5).unwrap() >= 25.0);
}

#[test]
fn a_reply_that_arrives_whole_has_no_gap_and_no_rate() {
    const BODY: &[(u64, &str)] = &[(
        60,
        "Connection: close\r\n\r\ndata: 1\n\ndata: 2\n\ndata: 3\n\ndata: [DONE]\n\n",
    )];
    let run = carried_out(&streaming(HEAD, BODY));
    assert_eq!(run.outcomes[Outcome::Ok], 10, "{:?}", run.reasons);
    assert_eq!((run.events.events, run.events.at_once), (30, 10));
    assert_eq!(run.events.first.distribution().count(), 10);
    assert_eq!(run.events.gaps.distribution().count(), 0);
    assert_eq!(run.events.periods.distribution().count(), 0);
}

#[test]
fn a_stream_that_stops_is_longer_than_any_bound() {
    const BODY: &[(u64, &str)] = &[(0, "Connection: close\r\n\r\ndata: 1\n\n"), (60_000, "")];
    let mut plan = streaming(HEAD, BODY);
    plan.timeout = Span::from_millis(500);
    let run = carried_out(&plan);
    assert_eq!(run.outcomes[Outcome::TimedOut], 10, "{:?}", run.reasons);
    assert_eq!(run.events.gaps.distribution().censored(), 10);
    assert_eq!(run.events.periods.distribution().censored(), 10);
    assert_eq!(run.events.first.distribution().censored(), 0);
    assert_eq!(run.events.with_end_mark + run.events.without_end_mark, 0);
}

#[test]
fn a_reply_without_events_has_no_first_event() {
    let none: fn() -> Run = || {
        carried_out(&streaming(
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            &[],
        ))
    };
    let refused: fn() -> Run = || {
        carried_out(&streaming(
            "HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\ndata: 1\n\n",
            &[],
        ))
    };
    for run in [none(), refused()] {
        assert_eq!(run.events.events, 0);
        assert_eq!(run.events.first.distribution().censored(), 10);
        assert_eq!(run.events.without_end_mark, 10);
    }
}

#[test]
fn events_of_one_reply_are_not_those_of_the_next_request() {
    let number = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let address = serve(move |mut stream| {
        let is_odd = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 2 == 1;
        if read_request(&mut stream) && !is_odd {
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndata: 1\n\ndata: 2\n\n");
        }
    });
    let mut plan = plan(address, 20.0, 500);
    plan.events = Some(EventPlan {
        format: EventFormat::Sse,
        end_mark: None,
    });
    let run = carried_out(&plan);
    assert_eq!(run.outcomes[Outcome::Ok], 5, "{:?}", run.outcomes);
    assert_eq!(run.events.events, 10);
    assert_eq!(run.events.first.distribution().censored(), 5);
}

#[test]
fn a_closed_port_counts_in_the_first_event() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut plan = plan(listener.local_addr().unwrap(), 50.0, 200);
    drop(listener);
    plan.events = Some(EventPlan {
        format: EventFormat::JsonLines,
        end_mark: None,
    });
    let run = carried_out(&plan);
    assert_eq!(run.events.first.distribution().censored(), 10);
    assert!(run.duration >= Duration::from_millis(200).into());
}

/// Codes an event, and the end of the stream with the last one.
type EventEncoder = dyn FnMut(&[u8], bool) -> Vec<u8>;

/// The pieces of a coded stream: each event is flushed by the encoder, as servers do.
fn coded_pieces(coding: &str, events: &[&str]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    let mut coded: Box<EventEncoder> = match coding {
        "gzip" => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            Box::new(move |event, is_last| {
                encoder.write_all(event).unwrap();
                encoder.flush().unwrap();
                if is_last {
                    encoder.try_finish().unwrap();
                }
                std::mem::take(encoder.get_mut())
            })
        }
        "zstd" => {
            let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
            Box::new(move |event, is_last| {
                encoder.write_all(event).unwrap();
                encoder.flush().unwrap();
                if is_last {
                    encoder.do_finish().unwrap();
                }
                std::mem::take(encoder.get_mut())
            })
        }
        _ => {
            let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
            Box::new(move |event, is_last| {
                encoder.write_all(event).unwrap();
                encoder.flush().unwrap();
                let piece = std::mem::take(encoder.get_mut());
                // Its end comes with the last event.
                if is_last {
                    let end = std::mem::replace(
                        &mut encoder,
                        brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22),
                    );
                    return [piece, end.into_inner()].concat();
                }
                piece
            })
        }
    };
    for (index, event) in events.iter().enumerate() {
        pieces.push(coded(event.as_bytes(), index + 1 == events.len()));
    }
    pieces
}

/// A plan for a server that sends a coded stream, an event every 40 ms.
fn coded_stream(coding: &'static str) -> Plan {
    let pieces = coded_pieces(
        coding,
        &["data: 1\n\n", "data: 2\n\n", "data: 3\n\ndata: [DONE]\n\n"],
    );
    let address = serve(move |mut stream| {
        read_request(&mut stream);
        let head = format!("{HEAD}Content-Encoding: {coding}\r\nConnection: close\r\n\r\n");
        let _ = stream.write_all(head.as_bytes());
        for piece in &pieces {
            pause(40);
            let _ = stream.write_all(piece);
        }
    });
    let mut plan = plan(address, 50.0, 200);
    plan.events = Some(EventPlan {
        format: EventFormat::Sse,
        end_mark: Some("[DONE]".to_owned()),
    });
    plan
}

#[test]
fn events_of_a_coded_stream_are_decoded_as_they_arrive() {
    for coding in ["gzip", "zstd", "br"] {
        let mut plan = coded_stream(coding);
        plan.decoding = Some(1);
        // A busy machine reads the events of some replies at once.
        let is_timely = |gap: Option<f64>| gap.is_some_and(|gap| gap >= 20.0);
        let timely = (0..6).any(|_| {
            let run = carried_out(&plan);
            assert_eq!(run.outcomes[Outcome::Ok], 10, "{coding}: {:?}", run.reasons);
            let found = (run.events.events, run.events.with_end_mark);
            assert_eq!(found, (30, 10), "{coding}");
            let first = at(&run.events.first, 0.0).unwrap();
            assert!(first >= 38.0, "{coding}: first after {first} ms");
            is_timely(at(&run.events.gaps, 0.3))
        });
        assert!(timely, "{coding}: events do not arrive one by one");
    }
}

#[test]
fn replies_without_events_are_said_with_their_reason() {
    let plan = coded_stream("gzip");
    let run = carried_out(&plan);
    let report = Report::new(&plan, &run);
    let description = report.eventless_in_words().unwrap();
    assert!(
        description.ends_with("coded with gzip; add --decode"),
        "{description}"
    );
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi";
    let mut plan = plan_of_page(page);
    plan.events = Some(EventPlan {
        format: EventFormat::Sse,
        end_mark: None,
    });
    let run = carried_out(&plan);
    let report = Report::new(&plan, &run);
    let description = report.eventless_in_words().unwrap();
    assert!(
        description.ends_with("which has Content-Type text/html"),
        "{description}"
    );
    let shown = text(&report, TextTimes::Differing);
    assert!(shown.contains(&description), "{shown}");
    assert_eq!(report.checks(false).checks[0].name, "replies have events");
}

fn plan_of_page(page: &'static str) -> Plan {
    plan(crate::server::answering(page, false), 50.0, 200)
}
