//! Every misbehaviour of a server has an outcome of its own.

use std::io::Write as _;
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::sync::atomic::AtomicBool;

use posthaste_evaluation::report::Report;
use posthaste_evaluation::{Effort, FindVerdict, TrialReport};
use posthaste_load::{Connections, Outcome, Pace, RequestSpec, Run, RunError};
use posthaste_units::Span;

use crate::server::{all_end_as, answering, carried_out, ok, pause, plan, read_request, serve};

#[test]
fn an_ordinary_server_is_ok() {
    let address = answering(ok("fine"), false);
    assert_eq!(all_end_as(address, Outcome::Ok).statuses[&200], 10);
    let mut plan = crate::server::plan(address, 1.0, 1);
    plan.pace = Pace::Closed {
        clients: 1,
        length: Span::from_millis(100),
    };
    assert_eq!(crate::server::carried_out(&plan).connections, 1);
}

#[test]
fn errors_and_faults_are_told_apart_whatever_the_status() {
    let missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    all_end_as(answering(missing, false), Outcome::StatusError);
    let fault = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><s:Fault>\
                 <faultcode>s:Client</faultcode><faultstring>no such book</faultstring></s:Fault>\
                 </s:Body></s:Envelope>";
    for status in ["200 OK", "500 Internal Server Error"] {
        let reply = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\r\n{fault}",
            fault.len()
        );
        let run = all_end_as(answering(reply, false), Outcome::SoapFault);
        assert_eq!(run.reasons[&Outcome::SoapFault], "Client: no such book");
    }
}

#[test]
fn garbage_and_lies_are_protocol_errors() {
    let replies = [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
    ];
    for reply in replies {
        all_end_as(answering(reply, true), Outcome::ProtocolError);
    }
}

/// The first reason, and a question only where the server may speak something else.
#[test]
fn hints_of_silent_runs_give_the_reason() {
    let hint = |address| {
        let plan = plan(address, 100.0, 100);
        Report::new(&plan, &carried_out(&plan)).hint.unwrap()
    };
    let other = hint(answering("SSH-2.0-OpenSSH_9.2\r\n", true));
    assert!(other.contains("speak HTTP/1.1?"), "{other}");
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort";
    assert_eq!(hint(answering(cut, true)), "body shorter than announced");
    let closing = hint(serve(|mut stream| {
        let _ = read_request(&mut stream);
    }));
    assert!(closing.contains("write https://"), "{closing}");
}

/// As in curl, whether they come with the reply or after it.
#[test]
fn bytes_behind_a_reply_end_the_connection_only() {
    let replies = [
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlonger than announced",
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nabc",
        "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\n\r\nbody",
    ];
    for reply in replies {
        all_end_as(answering(reply, true), Outcome::Ok);
        all_end_as(answering(reply, false), Outcome::Ok);
    }
}

/// As in curl: blanks that belong to nothing, and lines without CR.
#[test]
fn unusual_blanks_and_line_ends_are_ok() {
    let replies = [
        "HTTP/1.1  200  OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nok\n0\n\n",
    ];
    for reply in replies {
        all_end_as(answering(reply, false), Outcome::Ok);
    }
}

#[test]
fn an_endless_header_ends_at_the_limit() {
    let address = serve(|mut stream| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX-Endless: ");
        while stream.write_all(&[b'x'; 4096]).is_ok() {}
    });
    all_end_as(address, Outcome::ProtocolError);
}

#[test]
fn no_reply_is_a_reset_or_a_timeout() {
    let closes = serve(|mut stream| {
        read_request(&mut stream);
        let _ = stream.shutdown(Shutdown::Both);
    });
    all_end_as(closes, Outcome::Reset);
    let silent = serve(|mut stream| {
        read_request(&mut stream);
        pause(20_000);
    });
    all_end_as(silent, Outcome::TimedOut);
    let stalls = serve(|mut stream| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
        pause(20_000);
    });
    all_end_as(stalls, Outcome::TimedOut);
}

#[test]
fn a_closed_port_refuses() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    all_end_as(address, Outcome::Refused);
    let effort = Effort {
        budget: Span::from_secs(1),
        ..Effort::default()
    };
    let objective = "p99<1s".parse().unwrap();
    let plan = crate::server::plan(address, 1.0, 1);
    let found = posthaste_evaluation::find(
        &plan,
        &objective,
        effort,
        &mut posthaste_evaluation::LocalRunner(&AtomicBool::new(false)),
        &mut |_: &TrialReport| (),
    );
    let found = found.unwrap();
    assert_eq!(found.verdict(), FindVerdict::Fails, "{found}");
    assert!(found.to_string().contains("100.00 %"), "{found}");
}

#[test]
fn a_core_beyond_all_machines_is_refused() {
    let mut plan = crate::server::plan("127.0.0.1:9".parse().unwrap(), 1.0, 1);
    plan.cpus = vec![1 << 20];
    let run = posthaste_load::run(&plan, &AtomicBool::new(false), &mut ());
    assert!(matches!(run, Err(RunError::Plan(_))));
}

#[test]
fn a_reply_in_single_bytes_is_a_reply() {
    let address = serve(|mut stream| {
        let _ = stream.set_nodelay(true);
        while read_request(&mut stream) {
            for byte in ok("slow").bytes() {
                let _ = stream.write_all(&[byte]);
            }
        }
    });
    all_end_as(address, Outcome::Ok);
}

#[test]
fn a_server_that_closes_between_requests_loses_none() {
    let address = serve(|mut stream| {
        for _ in 0..3 {
            if !read_request(&mut stream) {
                return;
            }
            let _ = stream.write_all(ok("three each").as_bytes());
        }
    });
    let run = all_end_as(address, Outcome::Ok);
    assert!(run.connections >= 4, "{}", run.connections);
}

#[test]
fn a_large_request_is_sent_whole_to_a_slow_reader() {
    use std::io::Read as _;
    let address = serve(|mut stream| {
        pause(30);
        // Reads all of it. With unread bytes the end would be a reset, which can overtake the reply.
        if !read_request(&mut stream) {
            return;
        }
        let mut body = (&stream).take(3_000_000);
        let _ = std::io::copy(&mut body, &mut std::io::sink());
        let _ = stream.write_all(ok("all of it").as_bytes());
    });
    let mut plan = crate::server::plan(address, 20.0, 100);
    plan.timeout = Span::from_secs(60);
    // The server closes after one reply without announcing it.
    plan.connections = Connections::New;
    let url = format!("http://{address}/");
    plan.requests = vec![RequestSpec::post(url, "text/plain", "x".repeat(3_000_000))];
    let run = crate::server::carried_out(&plan);
    assert_eq!(run.outcomes[Outcome::Ok], 2, "{:?}", run.reasons);
}

/// More than any socket buffers at once, so that the rest waits for an epoll event.
const LARGE: usize = 12_000_000;

/// One client with small and large requests.
fn large_and_small_in_turns(address: SocketAddr) -> Run {
    let mut plan = crate::server::plan(address, 1.0, 1);
    plan.timeout = Span::from_secs(60);
    plan.pace = Pace::Closed {
        clients: 1,
        length: Span::from_secs(1),
    };
    let url = format!("http://{address}/");
    let large = RequestSpec::post(url, "text/plain", "x".repeat(LARGE));
    plan.requests.push(large);
    crate::server::carried_out(&plan)
}

#[test]
fn large_and_small_requests_are_sent_whole_on_one_connection() {
    use std::io::Read as _;
    let address = serve(|mut stream| {
        let mut first = [0];
        while stream.read_exact(&mut first).is_ok() && read_request(&mut stream) {
            if first == *b"P" {
                pause(30);
                let mut body = (&stream).take(LARGE as u64);
                let _ = std::io::copy(&mut body, &mut std::io::sink());
            }
            let _ = stream.write_all(ok("all of it").as_bytes());
        }
    });
    let run = large_and_small_in_turns(address);
    assert_eq!(run.outcomes[Outcome::Ok], run.intended, "{:?}", run.reasons);
    assert!(run.requests[1].part.outcomes.total() > 0);
    assert_eq!(run.connections, 1);
    // The server begins to read after 30 ms. Until then the request is being sent.
    assert!(run.phases.send.max() > Span::from_millis(20));
}

/// A server may refuse a request before reading it, and read it then. No rest of it may precede the next request.
#[test]
fn no_rest_of_an_answered_request_precedes_the_next() {
    use std::io::Read as _;
    let address = serve(|mut stream| {
        let mut first = [0];
        while stream.read_exact(&mut first).is_ok() && read_request(&mut stream) {
            if first == *b"P" {
                let _ = stream.write_all(ok("enough").as_bytes());
                // Longer than a busy machine delays the client's reaction.
                pause(5_000);
                let mut body = (&stream).take(LARGE as u64);
                let _ = std::io::copy(&mut body, &mut std::io::sink());
            } else {
                let _ = stream.write_all(ok("fine").as_bytes());
            }
        }
    });
    let run = large_and_small_in_turns(address);
    assert_eq!(run.outcomes[Outcome::Ok], run.intended, "{:?}", run.reasons);
    let large = run.requests[1].part.outcomes.total();
    // Each large request costs its connection.
    assert!(
        large > 0 && run.connections >= large,
        "{large} of {}",
        run.connections
    );
}

/// A server that refuses a large request and closes at once resets the connection. Its reply has arrived before.
#[test]
fn an_answer_counts_although_the_request_was_not_taken() {
    let address = serve(|mut stream| {
        let _ = read_request(&mut stream);
        let reply = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
        let _ = stream.write_all(reply.as_bytes());
    });
    let mut plan = plan(address, 40.0, 500);
    let url = format!("http://{address}/");
    let body = "x".repeat(8 << 20);
    plan.requests = vec![RequestSpec::post(url, "text/plain", body)];
    plan.timeout = Span::from_secs(60);
    let run = carried_out(&plan);
    assert_eq!(
        run.outcomes[Outcome::StatusError],
        run.intended,
        "{:?}",
        run.reasons
    );
}

/// Other connections get their turn while a large reply comes, and it still arrives complete.
#[test]
fn a_reply_of_many_turns_comes_whole() {
    const LENGTH: usize = 24 << 20;
    let address = serve(|mut stream| {
        while read_request(&mut stream) {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n");
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(&vec![b'x'; LENGTH]);
        }
    });
    let mut plan = plan(address, 1000.0, 8);
    plan.timeout = Span::from_secs(60);
    let run = carried_out(&plan);
    assert_eq!(run.outcomes[Outcome::Ok], 8, "{:?}", run.reasons);
    assert!(run.bytes_received > 8 * LENGTH as u64);
}
