//! Connections that open, and errors that name the remedy.

use std::net::TcpListener;

use posthaste_fleet::connection::{Connection, ConnectionError, UnsafeServer};

use super::server::{NatsServer, eventually, on_one_thread};

/// The error of a connection.
fn error(options: &posthaste_fleet::connection::NatsOptions) -> ConnectionError {
    let mut error = None;
    on_one_thread(async {
        error = Connection::open(options).await.err();
    });
    error.expect("it does not connect")
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn an_absent_server_is_named_with_the_command_that_starts_one() {
    let server = NatsServer::open();
    let mut options = server.options("a");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    options.url = format!("nats://a:s3cret@{address}").parse().unwrap();
    let text = error(&options).to_string();
    assert!(
        text.starts_with(&format!("cannot connect to NATS at nats://{address}: ")),
        "{text}"
    );
    assert!(
        text.contains("nats-server -js") && !text.contains("s3cret"),
        "{text}"
    );
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn a_wrong_password_is_a_refused_login() {
    let server = NatsServer::deployed();
    let mut options = server.options("conductor");
    let right = options.url.to_string();
    options.url = right
        .replace("nats://", "nats://conductor:wrong@")
        .parse()
        .unwrap();
    let error = error(&options);
    assert!(matches!(error, ConnectionError::Login { .. }), "{error}");
    assert!(error.to_string().contains("--nats-creds") && !error.to_string().contains("wrong"));
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn an_unknown_authority_is_an_error_of_tls() {
    let server = NatsServer::deployed();
    let mut options = server.options("conductor");
    let other = NatsServer::deployed();
    options.authority = other.certificate.clone();
    let error = error(&options);
    assert!(matches!(error, ConnectionError::Tls { .. }), "{error:?}");
    assert!(error.to_string().contains("--nats-ca"), "{error}");
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn a_client_that_insists_on_tls_does_not_talk_to_a_plain_server() {
    let secured = NatsServer::deployed();
    let plain = NatsServer::open();
    let mut options = plain.options("a");
    options.authority = secured.certificate.clone();
    let error = error(&options);
    let reason = UnsafeServer::NoTls;
    let is_plain =
        matches!(error, ConnectionError::Unsafe { reason: found, .. } if found == reason);
    assert!(is_plain, "{error:?}");
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn a_connection_comes_back_by_itself() {
    let mut server = NatsServer::open();
    on_one_thread(async {
        let connection = server.connect("a").await;
        assert!(connection.is_connected() && connection.max_message() == 512 << 10);
        let before = *connection.connects().borrow();
        server.kill();
        eventually("the client notices", || !connection.is_connected()).await;
        server.start();
        connection.wait().await;
        assert!(connection.is_connected());
        eventually("the event is counted", || {
            *connection.connects().borrow() > before
        })
        .await;
    });
}
