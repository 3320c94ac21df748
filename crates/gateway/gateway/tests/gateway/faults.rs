//! Faulty upstreams: crashes, wrong framing, stalls, silence.

use std::io::Write as _;
use std::io::{ErrorKind, Read};
use std::net::TcpListener;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Barrier, mpsc};
use std::time::{Duration, Instant};

use posthaste_gateway::start;

use crate::support::{
    OK, OriginConnection, SeenSignal, TestClient, TestOrigin, config, field, gateway, get,
    wait_until,
};

/// An upstream that answers each request with `reply` and then closes.
fn once(reply: &'static str) -> TestOrigin {
    TestOrigin::start(move |line| {
        line.request();
        line.write(reply);
    })
}

/// Ends a connection with a reset instead of a FIN.
fn reset(line: &OriginConnection) {
    rustix::net::sockopt::set_socket_linger(&line.stream, Some(Duration::ZERO)).unwrap();
}

#[test]
fn an_upstream_that_gives_no_reply_is_a_bad_gateway() {
    let gateway = start(config(&[crate::support::closed_port()], "")).unwrap();
    assert_eq!(get(&gateway, "/", "").status, 502);
    for nonsense in [
        "",
        "HTTP/1.1",
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n",
    ] {
        let origin = once(nonsense);
        let gateway = crate::support::gateway(&origin);
        assert_eq!(get(&gateway, "/", "").status, 502, "{nonsense:?}");
    }
    let origin = TestOrigin::start(|line| {
        line.request();
        line.write("HTTP/1.1 200 OK\r\n");
        for _ in 0..200 {
            line.write(format!("X: {}\r\n", "y".repeat(1000)));
        }
    });
    assert_eq!(get(&crate::support::gateway(&origin), "/", "").status, 502);
}

#[test]
fn a_reply_that_ends_early_does_not_look_whole() {
    for reply in [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n",
    ] {
        let origin = once(reply);
        let gateway = gateway(&origin);
        let mut client = TestClient::new(&gateway);
        client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
        // If the fault arrives with the head, there may be no reply at all.
        if let Some(reply) = client.reply(false) {
            assert!(!reply.whole, "{reply:?}");
        }
    }
    let seen = SeenSignal::default();
    let is_seen = seen.clone();
    let origin = TestOrigin::start(move |line| {
        line.request();
        line.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        is_seen.wait();
        reset(line);
    });
    let gateway = gateway(&origin);
    let mut client = TestClient::new(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
    client.wait_for_some();
    seen.tell();
    assert!(!client.reply(false).unwrap().whole);
}

#[test]
fn an_early_reply_costs_only_its_own_connections() {
    let origin = TestOrigin::start(|line| {
        // Answers after the head, like a server that rejects, and keeps reading.
        let mut some = [0; 1024];
        while line.stream.read(&mut some).is_ok_and(|length| length > 0) {
            if some.starts_with(b"POST") || some.starts_with(b"GET") {
                line.write("HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno");
            }
        }
    });
    let gateway = gateway(&origin);
    let mut client = TestClient::new(&gateway);
    client.send("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 1000000\r\n\r\nbeginning");
    assert_eq!(client.reply(false).unwrap().status, 401);
    // The rest of the body has no receiver: the connection ends at once, not after a timeout.
    let ended = client
        .clone_stream()
        .read(&mut [0])
        .map_err(|error| error.kind());
    assert!(
        matches!(ended, Ok(0) | Err(ErrorKind::ConnectionReset)),
        "{ended:?}"
    );
    assert_eq!(get(&gateway, "/", "").status, 401);
    assert_eq!(origin.connections.load(SeqCst), 2);
}

#[test]
fn a_client_whose_reply_ends_early_is_reset() {
    // In HTTP/1.0 the end of the connection is the end of the reply.
    for version in ["1.0", "1.1"] {
        let seen = SeenSignal::default();
        let is_seen = seen.clone();
        let origin = TestOrigin::start(move |line| {
            line.request();
            line.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
            // The connection ends after the head has been forwarded.
            is_seen.wait();
        });
        let gateway = gateway(&origin);
        let mut client = TestClient::new(&gateway);
        client.send(format!("GET / HTTP/{version}\r\nHost: s\r\n\r\n"));
        let mut reply = client.some();
        seen.tell();
        let ended = client.clone_stream().read_to_end(&mut reply);
        let ended = ended.map_err(|error| error.kind());
        assert_eq!(
            ended,
            Err(ErrorKind::ConnectionReset),
            "HTTP/{version}: {reply:?}"
        );
    }
}

#[test]
fn bytes_after_a_reply_are_never_used_as_the_next_reply() {
    let origin = TestOrigin::start(|line| {
        while line.request().is_some() {
            line.write(format!(
                "{OK}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
            ));
        }
    });
    let gateway = gateway(&origin);
    let mut client = TestClient::new(&gateway);
    for _ in 0..10 {
        client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
        assert_eq!(client.reply(false).unwrap().body, b"ok");
    }
}

#[test]
fn a_silent_upstream_is_a_timeout_and_a_stalled_one_is_cut_off() {
    let limits = "[timeouts]\nreply = \"1s\"\nreply_body = \"1s\"\nconnect = \"1s\"";
    let silent = TestOrigin::start(|line| {
        line.request();
        line.request();
    });
    let behind_silent = start(config(&[silent.address], limits)).unwrap();
    let begin = Instant::now();
    assert_eq!(get(&behind_silent, "/", "").status, 504);
    assert!(begin.elapsed() >= Duration::from_secs(1));

    let stalled = TestOrigin::start(|line| {
        line.request();
        line.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        line.request();
    });
    let behind_stalled = start(config(&[stalled.address], limits)).unwrap();
    let reply = get(&behind_stalled, "/", "");
    assert_eq!((&*reply.body, reply.whole), (&b"half"[..], false));

    // A full accept queue: the third handshake gets no answer.
    let full = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&full, 0).unwrap();
    let address = full.local_addr().unwrap();
    let _waiting: Vec<_> = (0..2)
        .filter_map(|_| {
            std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok()
        })
        .collect();
    let behind_full = start(config(&[address], limits)).unwrap();
    assert_eq!(get(&behind_full, "/", "").status, 504);
}

#[test]
fn an_early_reply_arrives_despite_a_reset_behind_it() {
    let origin = TestOrigin::start(|line| {
        // The rest of the request is not read, so the kernel resets the connection.
        let _ = line.stream.read(&mut [0; 1024]).unwrap();
        line.write("HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\n\r\nauth");
    });
    let gateway = gateway(&origin);
    let body = vec![b'x'; 5_000_000];
    for round in 0..20 {
        let mut client = TestClient::new(&gateway);
        let head = format!(
            "POST / HTTP/1.1\r\nHost: s\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = client.send(head).clone_stream();
        let upload = body.clone();
        let sending = std::thread::spawn(move || drop(stream.write_all(&upload)));
        let reply = client.reply(false).unwrap();
        assert_eq!((reply.status, &*reply.body), (401, &b"auth"[..]), "{round}");
        sending.join().unwrap();
    }
}

#[test]
fn endless_interim_replies_are_bounded_in_number_and_time() {
    let origin = TestOrigin::start(|line| {
        let Some(request) = line.request() else {
            return;
        };
        let is_slow = request.contains("/slow");
        let interim = b"HTTP/1.1 102 Processing\r\n\r\n";
        while line.stream.write_all(interim).is_ok() {
            if is_slow {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    });
    let gateway = start(config(&[origin.address], "[timeouts]\nreply = \"1s\"")).unwrap();
    assert_eq!(get(&gateway, "/fast", "").status, 502);
    let begin = Instant::now();
    assert_eq!(get(&gateway, "/slow", "").status, 504);
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn a_quiet_event_stream_goes_on_up_to_the_limit_of_tunnels() {
    let origin = TestOrigin::start(|line| {
        while line.request().is_some() {
            line.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
            line.write("b\r\ndata: one\n\n\r\n");
            std::thread::sleep(Duration::from_millis(500));
            line.write("b\r\ndata: two\n\n\r\n0\r\n\r\n");
        }
    });
    for (tunnel, whole) in [("5s", true), ("200ms", false)] {
        let limits = format!("[timeouts]\nreply_body = \"100ms\"\ntunnel = \"{tunnel}\"");
        let gateway = start(config(&[origin.address], &limits)).unwrap();
        let reply = get(&gateway, "/", "");
        assert_eq!(reply.whole, whole, "{tunnel}: {reply:?}");
    }
}

#[test]
fn each_request_on_a_kept_connection_has_the_whole_of_its_time() {
    let origin = TestOrigin::start(|line| {
        for _ in 0..2 {
            line.request();
            std::thread::sleep(Duration::from_millis(1200));
            line.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
        // The third gets no answer.
        line.request();
        line.request();
    });
    // Less than both take together, and far more than one.
    let gateway = start(config(&[origin.address], "[timeouts]\nreply = \"2200ms\"")).unwrap();
    for status in [200, 200, 504] {
        let begin = Instant::now();
        assert_eq!(get(&gateway, "/", "").status, status);
        let least = if status == 504 { 2200 } else { 1200 };
        assert!(begin.elapsed() >= Duration::from_millis(least));
    }
    assert_eq!(origin.connections.load(SeqCst), 1);
}

#[test]
fn a_slow_client_is_not_a_timeout_but_a_stalled_upstream_is() {
    let origin = TestOrigin::answering(OK);
    let gateway = start(config(&[origin.address], "[timeouts]\nreply = \"1s\"")).unwrap();
    let mut client = TestClient::new(&gateway);
    client.send("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 5\r\n\r\n");
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(400));
        client.send("x");
    }
    assert_eq!(client.reply(false).unwrap().status, 200);

    let deaf = TestOrigin::start(|line| {
        // Accepts the connection and reads nothing.
        let _ = line.stream.peek(&mut [0]);
        std::thread::sleep(crate::support::PATIENCE);
    });
    let gateway = start(config(&[deaf.address], "[timeouts]\nreply = \"1s\"")).unwrap();
    let mut client = TestClient::new(&gateway);
    let length = 64 << 20;
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: s\r\nContent-Length: {length}\r\n\r\n"
    ));
    let body = client.clone_stream();
    let sender = std::thread::spawn(move || {
        let _ = std::io::Write::write_all(&mut &body, &vec![0; length]);
    });
    assert_eq!(client.reply(false).unwrap().status, 504);
    drop(client);
    sender.join().unwrap();
}

#[test]
fn replies_broken_after_the_head_are_counted() {
    let seen = SeenSignal::default();
    let is_seen = seen.clone();
    let origin = TestOrigin::start(move |line| {
        line.request();
        line.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        is_seen.wait();
    });
    let gateway = gateway(&origin);
    let mut client = TestClient::new(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
    client.wait_for_some();
    seen.tell();
    assert!(!client.reply(false).unwrap().whole);
    let metrics = crate::watching::fetch_admin(&gateway, "/metrics").body;
    let metrics = String::from_utf8(metrics).unwrap();
    assert!(
        metrics.contains("upstream_failures_total{kind=\"broken\"} 1.0"),
        "{metrics}"
    );
}

/// Upgrade is not forwarded, so no client has asked for another protocol.
#[test]
fn protocols_that_are_switched_unasked_are_a_bad_gateway() {
    let origin = once(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    );
    let gateway = gateway(&origin);
    let reply = get(&gateway, "/", "Connection: upgrade\r\nUpgrade: x\r\n");
    assert_eq!(reply.status, 502);
    assert_eq!(field(&reply.head, "upgrade"), None, "{}", reply.head);
}

/// The upstream replies while the client still sends. The connection cannot serve another request.
#[test]
fn an_early_answer_says_that_it_is_the_last() {
    let refusal = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno";
    let origin = TestOrigin::start(move |line| {
        let mut head = [0; 64];
        let _ = std::io::Read::read(&mut line.stream, &mut head);
        line.write(refusal);
        std::thread::sleep(crate::support::PATIENCE);
    });
    let gateway = gateway(&origin);
    let mut client = TestClient::new(&gateway);
    client.send("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 100000\r\n\r\nhello");
    let reply = client.reply(false).unwrap();
    assert_eq!(reply.status, 413);
    assert_eq!(field(&reply.head, "connection"), Some("close"));
    assert!(client.rest().is_empty());
}

#[test]
fn informational_replies_come_before_the_one_that_counts() {
    let origin = once(
        "HTTP/1.1 102 Processing\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    );
    assert_eq!(get(&gateway(&origin), "/", "").status, 200);
}

#[test]
fn a_client_that_vanishes_takes_its_request_along() {
    let (gone, seen) = mpsc::channel();
    let origin = TestOrigin::start(move |line| {
        line.request();
        // The gateway closes the connection, because its client has gone.
        let _ = gone.send(line.request().is_none());
    });
    let gateway = gateway(&origin);
    let mut client = TestClient::new(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
    wait_until("the upstream is asked", || origin.request_count() == 1);
    drop(client);
    assert_eq!(seen.recv_timeout(crate::support::PATIENCE), Ok(true));
}

#[test]
fn a_request_that_changes_something_is_not_repeated() {
    // Each connection answers one request and closes at the second without a reply.
    let origin = TestOrigin::start(|line| {
        line.request();
        line.write(OK);
        line.request();
    });
    let gateway = gateway(&origin);
    let mut client = TestClient::new(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
    assert_eq!(client.reply(false).unwrap().status, 200);
    client.send("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 1\r\n\r\nx");
    // The client sees that of its own kept connection, and may repeat the request.
    assert!(client.rest().is_empty());
    assert_eq!(origin.request_count(), 2);
    let mut client = TestClient::new(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
    assert_eq!(client.reply(false).unwrap().status, 200);
    client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
    assert_eq!(
        client.reply(false).unwrap().status,
        200,
        "asked again, on a new connection"
    );
    assert_eq!(origin.request_count(), 5);
}

#[test]
fn unanswerable_requests_are_not_tried_on_every_connection() {
    const LINES: usize = 5;
    for (answer, most) in [("nonsense\r\n\r\n", 1), ("", 2)] {
        let all = Barrier::new(LINES);
        let origin = TestOrigin::start(move |line| {
            while let Some(request) = line.request() {
                if request.starts_with("GET /bad") {
                    return line.write(answer);
                }
                all.wait();
                line.write(OK);
            }
        });
        let gateway = gateway(&origin);
        let mut clients: Vec<_> = (0..LINES).map(|_| TestClient::new(&gateway)).collect();
        for client in &mut clients {
            client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
        }
        for client in &mut clients {
            assert_eq!(client.reply(false).unwrap().status, 200);
        }
        assert_eq!(get(&gateway, "/bad", "").status, 502);
        assert_eq!(origin.request_count() - LINES, most, "{answer:?}");
    }
}

#[test]
fn a_reader_that_does_not_read_is_let_go() {
    let (over, is_over) = mpsc::channel();
    let origin = TestOrigin::start(move |line| {
        line.request();
        line.write("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..95 {
            line.write(&piece);
        }
        // The gateway stops reading because it has dropped its client.
        let _ = over.send(());
    });
    let gateway = start(config(&[origin.address], "[timeouts]\nwrite = \"500ms\"")).unwrap();
    let mut client = TestClient::new(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
    assert_eq!(is_over.recv_timeout(crate::support::PATIENCE), Ok(()));
    assert!(client.rest().len() < 90_000_000);
}
