//! Sealed files in the store of the server.

use std::path::Path;

use posthaste_fleet::sealed::SealingKey;
use posthaste_fleet::storage::{Storage, StorageError};

use super::server::{NatsServer, on_one_thread, subjects};

/// A secret text.
pub(super) const CANARY: &str = "CANARY-8d3f";

/// True if a file in the folder contains the text.
pub(super) fn contains(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contains(&path, text)
        } else {
            let bytes = std::fs::read(&path).unwrap();
            bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        }
    })
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn files_are_stored_sealed_and_opened_by_agents() {
    let server = NatsServer::deployed();
    on_one_thread(async {
        let conductor = Storage::new(&server.connect("conductor").await, subjects());
        let agent = Storage::new(&server.connect("agent-1").await, subjects());
        conductor.ensure().await.unwrap();
        // Exists already.
        conductor.ensure().await.unwrap();
        let key = SealingKey::random();
        let content = CANARY.repeat(100_000).into_bytes();
        conductor.put("rows", &key, &content).await.unwrap();
        assert_eq!(agent.get("rows", &key, 2 << 20).await.unwrap(), content);
        assert!(contains(&server.store(), "OBJ_ph1-default-files"));
        assert!(!contains(&server.store(), CANARY));
        let other = agent.get("rows", &SealingKey::random(), 2 << 20).await;
        assert!(
            matches!(other, Err(StorageError::Unseal { .. })),
            "{other:?}"
        );
        let long = agent.get("rows", &key, 1 << 20).await;
        assert!(
            matches!(long, Err(StorageError::TooLong { .. })),
            "{long:?}"
        );
        conductor.remove("rows").await.unwrap();
        let gone = agent.get("rows", &key, 2 << 20).await;
        assert!(matches!(gone, Err(StorageError::Failed { .. })), "{gone:?}");
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn a_server_without_jetstream_is_named() {
    let server = NatsServer::without_jetstream();
    on_one_thread(async {
        let storage = Storage::new(&server.connect("conductor").await, subjects());
        let error = storage.ensure().await.unwrap_err();
        assert!(matches!(error, StorageError::NoJetStream), "{error}");
        assert!(error.to_string().contains("nats-server -js"));
    });
}
