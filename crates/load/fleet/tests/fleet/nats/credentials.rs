//! A login by a file of credentials: the server challenges, and the key of a user signs.
//!
//! The server has an operator and trusts whom the operator's account has signed for (JWT of NATS, version 2).

use nkeys::KeyPair;
use posthaste_fleet::connection::{Connection, ConnectionError, NatsOptions};
use serde_json::{Value, json};

use super::server::{NatsServer, on_one_thread};

const OPERATOR: &str = "SOAHA536QWGJHGVBVCX3NPOEZPJNTYHH5327YAYKCEMB6JRNGQ5UESINBU";
const ACCOUNT: &str = "SAAAABYOCUOCGKRRHA7UMTKULNRGS4DXP2CYZE42UGUK7NV5YTF5FWPEQA";
const USER: &str = "SUAKBJ5OWW6MHSWR3DP6N3PU7MBASEAXDYSSYMZ2IFEE6VS5MRVXE6INOI";

fn key(seed: &str) -> KeyPair {
    KeyPair::from_seed(seed).unwrap()
}

/// A statement about `subject`, signed by `issuer`.
fn token(issuer: &str, subject: &str, claims: &Value) -> String {
    let issuer = key(issuer);
    let part = |value: &Value| base64_url(value.to_string().as_bytes());
    let header = part(&json!({"typ": "JWT", "alg": "ed25519-nkey"}));
    let claims = part(&json!({
        "jti": subject,
        "iat": 1_700_000_000,
        "iss": issuer.public_key(),
        "name": "test",
        "sub": key(subject).public_key(),
        "nats": claims,
    }));
    let text = format!("{header}.{claims}");
    let signature = issuer.sign(text.as_bytes()).unwrap();
    format!("{text}.{}", base64_url(&signature))
}

fn base64_url(bytes: &[u8]) -> String {
    data_encoding::BASE64URL_NOPAD.encode(bytes)
}

/// A server that only knows the operator and the account.
fn server() -> NatsServer {
    let operator = token(
        OPERATOR,
        OPERATOR,
        &json!({"type": "operator", "version": 2}),
    );
    let limits = json!({
        "subs": -1, "data": -1, "payload": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1,
        "wildcards": true,
    });
    let account = json!({"limits": limits, "type": "account", "version": 2});
    let account = token(OPERATOR, ACCOUNT, &account);
    NatsServer::by_operator(&operator, &key(ACCOUNT).public_key(), &account)
}

/// Options of a client with a file of credentials that has this seed.
fn options(server: &NatsServer, seed: &str) -> NatsOptions {
    let user = json!({
        "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2,
    });
    let user = token(ACCOUNT, USER, &user);
    let path = server.store().with_file_name("user.creds");
    let text = format!(
        "-----BEGIN NATS USER JWT-----\n{user}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    );
    std::fs::write(&path, text).unwrap();
    NatsOptions {
        credentials: Some(path),
        ..server.options("user")
    }
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn a_file_of_credentials_opens_a_connection() {
    let server = server();
    on_one_thread(async {
        let connection = Connection::open(&options(&server, USER)).await.unwrap();
        connection.client().flush().await.unwrap();
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn the_key_of_another_is_a_refused_login() {
    let server = server();
    on_one_thread(async {
        let opened = Connection::open(&options(&server, ACCOUNT)).await;
        let error = opened.expect_err("the server refuses it");
        assert!(matches!(error, ConnectionError::Login { .. }), "{error}");
    });
}
