//! Servers over real sockets: time limits, connection limits, TLS, shutdown.

mod burst;
mod client;
mod echo;
mod eviction;
mod framing;
mod http2;
mod identity;
mod marks;
mod memory_network;
mod proxying;
mod simulated;
mod switching;
mod trusting;

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use posthaste_serve::{
    Certificate, HttpServer, RunningServer, ServerTls, StartError, Timeouts, listen,
};
use posthaste_units::Span;
use socket2::{Domain, Socket, Type};

use crate::echo::{DRAINS, Echo};

/// Time limit of a test, longer than any step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Short limits, but longer than a client on a busy machine needs to send after connecting.
fn quick() -> Timeouts {
    let short = Span::from_secs(1);
    Timeouts {
        idle: short,
        head: short,
        body: short,
        write: short,
        grace: Span::from_secs(5),
    }
}

fn start(server: HttpServer, backlog: u32) -> RunningServer {
    let listener = listen(([127, 0, 0, 1], 0).into(), backlog).unwrap();
    server
        .start(listener, |_| Echo {
            served: Cell::new(0),
        })
        .unwrap()
}

fn start_with(timeouts: Timeouts) -> RunningServer {
    let server = HttpServer {
        timeouts,
        ..HttpServer::default()
    };
    start(server, 64)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends `text` and returns everything until the server closes or resets.
fn exchange(address: SocketAddr, text: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(text.as_bytes()).unwrap();
    let mut reply = Vec::new();
    let mut buffer = [0; 65_536];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => reply.extend_from_slice(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error}"),
        }
    }
    String::from_utf8_lossy(&reply).into_owned()
}

/// Waits until `condition` holds. Fails the test after the time limit.
fn eventually(event: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{event} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn requests_are_answered_by_every_thread_and_counted() {
    let running = start(
        HttpServer {
            threads: 2,
            ..HttpServer::default()
        },
        64,
    );
    for n in 0..20 {
        let text = format!(
            "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n\r\n{n:04}"
        );
        let reply = exchange(running.addr, &text);
        assert!(
            reply.starts_with("HTTP/1.1 200") && reply.ends_with(&format!("{n:04}")),
            "{reply}"
        );
    }
    eventually("closing", || running.counters.snapshot().open == 0);
    assert_eq!(running.counters.snapshot().accepted, 20);
}

#[test]
fn bodies_come_in_pieces_and_are_bounded() {
    let running = start(HttpServer::default(), 64);
    let head =
        "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    let reply = exchange(
        running.addr,
        &format!("{head}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
    );
    assert!(reply.ends_with("abcde"), "{reply}");
    let long = format!(
        "{head}{}0\r\n\r\n",
        format!("64\r\n{}\r\n", "y".repeat(100)).repeat(11)
    );
    assert!(exchange(running.addr, &long).contains("longer than 1000 bytes"));
    let announced = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n";
    assert!(exchange(running.addr, announced).contains("longer than 1000 bytes"));
    let nonsense = exchange(running.addr, &format!("{head}zz\r\nabc\r\n"));
    assert!(nonsense.starts_with("HTTP/1.1 400"), "{nonsense}");
}

/// Like many clients, sends everything before it reads: more than the buffers of the server and the network hold.
#[test]
fn a_refusal_reaches_a_client_that_is_still_sending() {
    let running = start(HttpServer::default(), 64);
    let body = vec![b'y'; 32 << 20];
    let head = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let garbage = "GET / HTTP/1.1\r\nbad header\r\n\r\n".to_owned();
    for (head, expected) in [(head, "longer than 1000 bytes"), (garbage, "HTTP/1.1 400")] {
        let mut client = connect(running.addr);
        client.write_all(head.as_bytes()).unwrap();
        client.write_all(&body).unwrap();
        let mut reply = String::new();
        client.read_to_string(&mut reply).unwrap();
        assert!(reply.contains(expected), "{reply}");
    }
    eventually("closing", || running.counters.snapshot().open == 0);
}

#[test]
fn every_phase_has_its_time_limit() {
    let running = start_with(quick());
    let snapshot = || running.counters.snapshot();
    assert_eq!(exchange(running.addr, ""), "");
    assert_eq!(snapshot().timed_out_idle, 1, "nothing was sent");
    let after_one = exchange(running.addr, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(after_one.starts_with("HTTP/1.1 200"));
    assert_eq!(snapshot().timed_out_idle, 2, "idle after a reply");
    assert_eq!(exchange(running.addr, "GET / HT"), "");
    assert_eq!(snapshot().timed_out_reading, 1, "half a head");
    assert_eq!(
        exchange(
            running.addr,
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab"
        ),
        ""
    );
    assert_eq!(snapshot().timed_out_reading, 2, "half a body");
    // A slowly sent head has the same limit as an incomplete one.
    let mut dripping = connect(running.addr);
    eventually("the end of a dripping head", || {
        let _ = dripping.write_all(b"G");
        snapshot().timed_out_reading == 3
    });
    // A peer that does not read.
    let mut deaf = connect(running.addr);
    deaf.write_all(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    eventually("the end of a deaf peer", || {
        snapshot().timed_out_writing == 1
    });
    // None of these limits applies to a slow handler.
    let slow = exchange(
        running.addr,
        "GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    assert!(slow.ends_with("slept"), "{slow}");
    eventually("closing", || snapshot().open == 0);
}

#[test]
fn a_reader_that_is_slow_but_reads_gets_everything() {
    let running = start_with(Timeouts {
        write: Span::from_secs(1),
        ..quick()
    });
    let mut stream = connect(running.addr);
    stream
        .write_all(b"GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .unwrap();
    let begin = Instant::now();
    let mut total = 0;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => total += n,
            Err(error) => panic!("after {total} bytes: {error}"),
        }
        std::thread::sleep(Duration::from_millis(60));
    }
    assert!(total > 32 << 20);
    assert!(
        begin.elapsed() > Duration::from_millis(1600),
        "it was quick"
    );
}

#[test]
fn a_reply_in_kernel_buffers_is_not_idle_while_it_is_read() {
    let running = start_with(Timeouts {
        write: Span::from_secs(5),
        ..quick()
    });
    let mut stream = connect(running.addr);
    stream
        .write_all(b"GET /bytes/1048576 HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    // The kernels buffer the whole reply. Reading it takes more than twice the limit.
    let mut reply = vec![0; 1 << 20];
    for piece in reply.chunks_mut(1 << 16) {
        std::thread::sleep(Duration::from_millis(150));
        stream.read_exact(piece).unwrap();
    }
    assert_eq!(running.counters.snapshot().timed_out_writing, 0);
    // Afterwards the idle limit applies again.
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(running.counters.snapshot().timed_out_idle, 1);
}

#[test]
fn a_reply_that_comes_slowly_is_not_idle() {
    let running = start_with(quick());
    let reply = exchange(
        running.addr,
        "GET /drops HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    assert!(reply.ends_with("4\r\ndrop\r\n0\r\n\r\n"), "{reply}");
    assert_eq!(running.counters.snapshot().timed_out_idle, 0);
}

#[test]
fn a_connection_that_rested_goes_on_and_has_its_limits() {
    let timeouts = Timeouts {
        idle: Span::from_secs(3),
        ..Timeouts::default()
    };
    let running = start_with(timeouts);
    let mut stream = connect(running.addr);
    let mut reply = [0; 1024];
    let mut answered = |stream: &mut TcpStream| {
        let length = stream.read(&mut reply).unwrap();
        assert!(reply[..length].starts_with(b"HTTP/1.1 200"), "{length}");
    };
    let rest = || std::thread::sleep(Duration::from_millis(1200));
    let whole = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    // The start of the second request arrives with the first and survives the release of buffers.
    stream.write_all(whole).unwrap();
    stream.write_all(&whole[..9]).unwrap();
    answered(&mut stream);
    rest();
    stream.write_all(&whole[9..]).unwrap();
    answered(&mut stream);
    rest();
    stream.write_all(whole).unwrap();
    answered(&mut stream);
    let begin = Instant::now();
    let end = stream.read(&mut [0; 16]);
    assert!(!matches!(end, Ok(n) if n > 0), "{end:?}");
    assert!(begin.elapsed() > Duration::from_millis(2900), "too early");
    assert_eq!(running.counters.snapshot().timed_out_idle, 1);
    assert_eq!(running.counters.snapshot().accepted, 1);
}

#[test]
fn beyond_its_concurrency_a_server_does_not_accept() {
    let running = start(
        HttpServer {
            concurrency: Some(2),
            evicts_unused: false,
            ..HttpServer::default()
        },
        64,
    );
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut first = connect(running.addr);
    let mut second = connect(running.addr);
    let mut buffer = [0; 1024];
    for stream in [&mut first, &mut second] {
        stream.write_all(request).unwrap();
        assert!(stream.read(&mut buffer).unwrap() > 0);
    }
    let mut third = connect(running.addr);
    third.write_all(request).unwrap();
    third
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    assert!(
        third.read(&mut buffer).is_err(),
        "it waits in the kernel's queue"
    );
    assert_eq!(running.counters.snapshot().accepted, 2);
    drop(first);
    third.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(third.read(&mut buffer).unwrap() > 0, "a place is free");
}

#[test]
fn a_drain_finishes_what_has_begun_and_closes_the_rest() {
    let running = start_with(Timeouts {
        grace: Span::from(2 * PATIENCE),
        ..Timeouts::default()
    });
    let address = running.addr;
    let silent = connect(address);
    let mut idle = connect(address);
    let mut buffer = [0; 1024];
    idle.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    assert!(idle.read(&mut buffer).unwrap() > 0);
    // Time for idle connections to release their buffers.
    std::thread::sleep(Duration::from_millis(800));
    let mut busy = connect(address);
    busy.write_all(b"GET /drain HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    eventually("beginning", || DRAINS.load(SeqCst));
    assert_eq!(running.counters.snapshot().open, 3);
    let begin = Instant::now();
    running.stop();
    let mut reply = String::new();
    busy.read_to_string(&mut reply).unwrap();
    assert!(reply.ends_with("slept"), "{reply}");
    assert!(matches!(idle.read(&mut buffer), Ok(0)), "closed");
    assert!(matches!((&silent).read(&mut buffer), Ok(0)), "closed");
    let counters = running.counters.clone();
    running.join();
    // The drain ends with the last reply, not with the grace time.
    assert!(begin.elapsed() < PATIENCE);
    assert_eq!(
        (counters.snapshot().open, counters.snapshot().cut_off),
        (0, 0)
    );
    assert!(
        TcpStream::connect(address).is_err(),
        "nobody listens any more"
    );
}

#[test]
fn a_drain_cuts_off_what_outlasts_the_grace_time() {
    let timeouts = Timeouts {
        grace: Span::from_millis(200),
        write: Span::from(2 * PATIENCE),
        ..Timeouts::default()
    };
    let running = start_with(timeouts);
    let mut deaf = connect(running.addr);
    deaf.write_all(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    // The reply has begun, and its other limits are far away.
    assert_eq!(deaf.peek(&mut [0]).unwrap(), 1);
    let (begin, counters) = (Instant::now(), running.counters.clone());
    drop(running);
    assert!(begin.elapsed() < PATIENCE);
    assert_eq!(counters.snapshot().cut_off, 1);
}

#[test]
fn start_errors_state_the_reason() {
    let listener = || listen(([127, 0, 0, 1], 0).into(), 8).unwrap();
    let make = |_| Echo {
        served: Cell::new(0),
    };
    let none = HttpServer {
        threads: 0,
        ..HttpServer::default()
    }
    .start(listener(), make);
    assert!(matches!(none, Err(StartError::Zero(_))));
    let nowhere = HttpServer {
        cpus: vec![1000],
        ..HttpServer::default()
    }
    .start(listener(), make);
    assert!(
        nowhere
            .unwrap_err()
            .to_string()
            .contains("no processor 1000")
    );
}

#[test]
fn tls_from_pem_files_and_failed_handshakes_counted() {
    let directory = std::env::temp_dir().join(format!("serve-tls-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (certificate, key) = (directory.join("cert.pem"), directory.join("key.pem"));
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let swapped = Certificate::read(&key, &certificate)
        .unwrap_err()
        .to_string();
    assert!(
        swapped.contains("key.pem") && swapped.contains("certificate chain"),
        "{swapped}"
    );
    let tls = ServerTls::new(Certificate::read(&certificate, &key).unwrap()).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    let running = start(
        HttpServer {
            tls: Some(Arc::new(tls)),
            timeouts: quick(),
            ..HttpServer::default()
        },
        64,
    );

    let mut stream = secured(made.cert.der(), connect(running.addr));
    stream
        .write_all(
            b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
        )
        .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.ends_with("abc"), "{reply}");

    let plain = connect(running.addr);
    (&plain).write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    eventually("a failed handshake", || {
        running.counters.snapshot().tls_failures == 1
    });
    let _half = connect(running.addr)
        .write_all(&[22, 3, 1, 2])
        .map(|()| plain.shutdown(Shutdown::Both));
    let silent = connect(running.addr);
    (&silent).write_all(&[22, 3, 1, 2]).unwrap();
    eventually("the end of half a handshake", || {
        running.counters.snapshot().timed_out_reading == 1
    });
}

/// Runs itself again with few descriptors, because the limit applies to the whole process.
#[test]
fn without_descriptors_it_waits_and_counts_and_recovers() {
    const CHILD: &str = "POSTHASTE_FEW_DESCRIPTORS";
    if std::env::var_os(CHILD).is_none() {
        let test = "without_descriptors_it_waits_and_counts_and_recovers";
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let report = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{report}");
        return;
    }
    let running = start(HttpServer::default(), 128);
    let request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert!(exchange(running.addr, request).starts_with("HTTP/1.1 200"));
    eventually("closing", || running.counters.snapshot().open == 0);
    // The client has its socket before every other descriptor is taken, so that only the server lacks one.
    let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let limit = rustix::process::Rlimit {
        current: Some(64),
        maximum: Some(64),
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let mut others = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        others.push(file);
    }
    client.connect(&running.addr.into()).unwrap();
    let mut client = TcpStream::from(client);
    eventually("an accept error", || {
        running.counters.snapshot().accept_errors > 0
    });
    let (begin, errors) = (Instant::now(), running.counters.snapshot().accept_errors);
    std::thread::sleep(Duration::from_millis(500));
    let more = running.counters.snapshot().accept_errors - errors;
    let seconds = begin.elapsed().as_secs_f64();
    assert!(
        (more as f64) < 40.0 * seconds,
        "{more} tries in {seconds} s are a busy loop"
    );
    drop(others);
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    client.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
}

/// A TLS client that trusts this certificate.
fn secured(
    certificate: &rustls_pki_types::CertificateDer<'static>,
    stream: TcpStream,
) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let session = rustls::ClientConnection::new(Arc::new(client), name).unwrap();
    rustls::StreamOwned::new(session, stream)
}

/// A connection with a long handshake does not release its buffers when the first request arrives with its end.
#[test]
fn a_request_with_the_end_of_the_handshake_is_answered() {
    let directory = std::env::temp_dir().join(format!("serve-late-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (certificate, key) = (directory.join("cert.pem"), directory.join("key.pem"));
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = ServerTls::new(Certificate::read(&certificate, &key).unwrap()).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    let server = HttpServer {
        tls: Some(Arc::new(tls)),
        ..HttpServer::default()
    };
    let running = start(server, 64);
    let mut client = secured(made.cert.der(), connect(running.addr));
    std::thread::sleep(Duration::from_millis(1200));
    client.conn.write_tls(&mut client.sock).unwrap();
    while client.conn.is_handshaking() {
        client.conn.read_tls(&mut client.sock).unwrap();
        client.conn.process_new_packets().unwrap();
    }
    let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    client.conn.writer().write_all(request).unwrap();
    while client.conn.wants_write() {
        client.conn.write_tls(&mut client.sock).unwrap();
    }
    let mut status = [0; 12];
    client.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
}
