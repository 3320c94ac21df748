//! Temporary PostgreSQL databases for tests.
//!
//! They are created on the server in `POSTHASTE_POSTGRES`, as `postgres://USER@HOST:PORT`, by a user with the right to
//! create databases. The tests that need one are ignored; `cargo xtask test` starts a server and runs them.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::{NoTls, SimpleQueryMessage};

/// A temporary database.
#[derive(Debug)]
pub(crate) struct Database {
    server: String,
    name: String,
}

impl Database {
    /// Creates an empty database.
    pub(crate) fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let server =
            std::env::var("POSTHASTE_POSTGRES").expect("POSTHASTE_POSTGRES names a server");
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("posthaste_{}_{number}", std::process::id());
        ask(
            &format!("{server}/postgres"),
            &format!("CREATE DATABASE {name}"),
        );
        Self { server, name }
    }

    /// URL of the database.
    pub(crate) fn url(&self) -> String {
        format!("{}/{}", self.server, self.name)
    }

    /// First value of the result of `sql`, or an empty string.
    pub(crate) fn ask(&self, sql: &str) -> String {
        ask(&self.url(), sql)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        ask(&format!("{}/postgres", self.server), &drop);
    }
}

fn ask(url: &str, sql: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let answer = runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.simple_query(sql).await.unwrap()
    });
    let row = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    row.unwrap_or_default().to_owned()
}
