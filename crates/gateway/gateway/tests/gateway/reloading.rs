//! Changes of the configuration and the shutdown lose no request.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use posthaste_gateway::{GatewayError, start};

use posthaste_serve::{ClientTls, Stream};
use posthaste_units::Span;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{TestClient, TestOrigin, closed_port, config, get, wait_until};

const OLD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold";
const NEW: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnew";

#[test]
fn a_reload_affects_new_requests_and_not_those_in_service() {
    let old = TestOrigin::start(|line| {
        while line.request().is_some() {
            std::thread::sleep(Duration::from_millis(300));
            line.write(OLD);
        }
    });
    let new = TestOrigin::answering(NEW);
    let gateway = start(config(&[old.address], "")).unwrap();
    let mut before = TestClient::new(&gateway);
    before.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
    wait_until("the old upstream is asked", || old.request_count() == 1);
    gateway.reload(config(&[new.address], "")).unwrap();
    wait_until("the new way is taken", || {
        get(&gateway, "/", "").body == b"new"
    });
    assert_eq!(before.reply(false).unwrap().body, b"old");
    before.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
    assert_eq!(before.reply(false).unwrap().body, b"new");
}

#[test]
fn no_request_is_lost_during_constant_reloads() {
    let (a, b) = (TestOrigin::answering(OLD), TestOrigin::answering(NEW));
    let gateway = Arc::new(start(config(&[a.address], "")).unwrap());
    let over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (gateway, over) = (gateway.clone(), over.clone());
            std::thread::spawn(move || {
                let mut client = TestClient::new(&gateway);
                let mut replies = 0;
                while replies <= 10 || !over.load(SeqCst) {
                    client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
                    assert_eq!(client.reply(false).unwrap().status, 200);
                    replies += 1;
                }
                replies
            })
        })
        .collect();
    let mut turns = 0;
    // A busy machine needs more changes.
    wait_until("both are asked", || {
        turns += 1;
        let origin = if turns % 2 == 0 { &b } else { &a };
        gateway.reload(config(&[origin.address], "")).unwrap();
        turns >= 50 && a.request_count() > 10 && b.request_count() > 10
    });
    over.store(true, SeqCst);
    for client in clients {
        assert!(client.join().unwrap() > 10);
    }
}

/// Writes a new certificate and key, and a copy of the certificate for clients.
fn renew(folder: &Path, copy: &str) -> PathBuf {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    write("cert.pem", made.cert.pem());
    write("key.pem", made.signing_key.serialize_pem());
    write(copy, made.cert.pem());
    folder.join(copy)
}

#[test]
fn renewed_certificates_are_used_for_new_connections() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name| folder.path().join(name);
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let tls = format!("[tls]\ncertificate = {cert:?}\nkey = {key:?}");
    let origin = TestOrigin::answering(OLD);
    let first = renew(folder.path(), "first.pem");
    let gateway = start(config(&[origin.address], &tls)).unwrap();
    let connect = async |trusted: &Path| {
        let trust = ClientTls::new("localhost", Some(trusted)).unwrap();
        posthaste_serve::connect(gateway.addr, Some(&trust)).await
    };
    let is_served = async |stream: &mut Stream| {
        let request = b"GET / HTTP/1.1\r\nHost: s\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        &status == b"HTTP/1.1 200"
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let mut before = connect(&first).await.unwrap();
        // An incomplete renewal changes nothing.
        std::fs::write(&cert, "").unwrap();
        let error = gateway.reload(config(&[origin.address], &tls)).unwrap_err();
        assert!(error.to_string().contains("certificate"), "{error}");
        assert!(is_served(&mut connect(&first).await.unwrap()).await);
        let second = renew(folder.path(), "second.pem");
        gateway.reload(config(&[origin.address], &tls)).unwrap();
        assert!(is_served(&mut connect(&second).await.unwrap()).await);
        connect(&first).await.unwrap_err();
        // Existing connections continue.
        assert!(is_served(&mut before).await);
    });
    let plain = gateway.reload(config(&[origin.address], "")).unwrap_err();
    assert!(matches!(plain, GatewayError::Fixed("tls")), "{plain}");
}

#[test]
fn settings_fixed_at_the_start_are_named_at_a_reload() {
    let origin = TestOrigin::answering(OLD);
    let gateway = start(config(&[origin.address], "")).unwrap();
    let mut other = config(&[origin.address], "");
    other.threads = 2;
    let error = gateway.reload(other).unwrap_err();
    assert!(matches!(error, GatewayError::Fixed("threads")), "{error}");
    for name in ["idle", "head", "body", "write", "grace"] {
        let other = config(&[origin.address], &format!("[timeouts]\n{name} = \"7s\""));
        let error = gateway.reload(other).unwrap_err().to_string();
        assert!(error.starts_with(&format!("timeouts.{name} ")), "{error}");
    }
    let other = config(&[origin.address], "[timeouts]\nreply = \"7s\"");
    gateway.reload(other).unwrap();
}

#[test]
fn routes_to_one_server_keep_apart_what_is_known_of_each() {
    let origin = TestOrigin::start(|line| {
        while let Some(request) = line.request() {
            line.write(if request.starts_with("GET /sick/health") {
                "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"
            } else {
                NEW
            });
        }
    });
    let mut both = config(&[origin.address], "");
    // A failed check excludes for three times this interval, long enough for a repeated check on a busy machine.
    both.routes[0].health.every = Span::from_secs(1);
    both.routes[0].health.failures = 2;
    both.routes.push(both.routes[0].clone());
    for (route, path) in both.routes.iter_mut().zip(["/sick", "/well"]) {
        route.path = path.to_owned();
        route.health.path = Some(format!("{path}/health"));
    }
    let gateway = start(both.clone()).unwrap();
    wait_until("it is left out", || {
        get(&gateway, "/sick", "").status == 503
    });
    gateway.reload(both).unwrap();
    for _ in 0..30 {
        assert_eq!(get(&gateway, "/well", "").status, 200);
        assert_eq!(get(&gateway, "/sick", "").status, 503);
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn upstream_health_survives_a_reload_with_equal_rules() {
    // The status is 503 if no upstream is tried.
    let mut first = config(&[closed_port()], "");
    first.routes[0].health.every = Span::from_secs(600);
    let gateway = start(first.clone()).unwrap();
    let lost = || {
        (0..5)
            .filter(|_| get(&gateway, "/", "").status == 502)
            .count()
    };
    assert_eq!(lost(), 3);
    gateway.reload(first.clone()).unwrap();
    // Time for the thread to apply the configuration.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(lost(), 0);
    // Different health rules reset the state.
    let mut other = first;
    other.routes[0].health.failures = 2;
    gateway.reload(other).unwrap();
    let mut again = 0;
    wait_until("it is asked again", || {
        again += lost();
        again >= 2
    });
    assert_eq!((again, lost()), (2, 0));
}

#[test]
fn the_end_waits_for_replies_under_way() {
    let origin = TestOrigin::start(|line| {
        line.request();
        std::thread::sleep(Duration::from_millis(400));
        line.write(OLD);
    });
    let gateway = start(config(&[origin.address], "")).unwrap();
    let mut client = TestClient::new(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
    wait_until("the upstream is asked", || origin.request_count() == 1);
    gateway.stop();
    assert_eq!(client.reply(false).unwrap().body, b"old");
    gateway.join();
}
