//! The deployed configuration: an agent does its part and nothing else.

use std::time::Duration;

use async_nats::jetstream;
use futures_util::StreamExt as _;
use posthaste_fleet::connection::Connection;
use posthaste_fleet::names::RunId;
use posthaste_fleet::sealed::SealingKey;
use posthaste_fleet::storage::Storage;

use super::server::{NatsServer, eventually, on_one_thread, subjects};

/// Asserts that the server denies this publication, by its complaint.
pub(super) async fn assert_publication_denied(connection: &Connection, subject: &str) {
    let client = connection.client();
    client
        .publish(subject.to_owned(), "x".into())
        .await
        .unwrap();
    let text = format!("Permissions Violation for Publish to \"{subject}\"");
    let is_said = || {
        let message = connection.last_error().unwrap_or_default();
        message.to_lowercase().contains(&text.to_lowercase())
    };
    eventually(&text, is_said).await;
}

/// Asserts that the server denies this subscription, by its complaint.
pub(super) async fn assert_subscription_denied(connection: &Connection, subject: &str) {
    let _subscriber = connection
        .client()
        .subscribe(subject.to_owned())
        .await
        .unwrap();
    let text = format!("Permissions Violation for Subscription to \"{subject}\"");
    let is_said = || {
        let message = connection.last_error().unwrap_or_default();
        message.to_lowercase().contains(&text.to_lowercase())
    };
    eventually(&text, is_said).await;
}

/// True if a request to the store has no success: a denied one has no reply.
async fn fails<T, E>(request: impl Future<Output = Result<T, E>>) -> bool {
    let done = tokio::time::timeout(Duration::from_secs(1), request).await;
    !matches!(done, Ok(Ok(_)))
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn an_agent_cannot_publish_as_another_or_command_anybody() {
    let server = NatsServer::deployed();
    on_one_thread(async {
        let conductor = server.connect("conductor").await;
        Storage::new(&conductor, subjects()).ensure().await.unwrap();
        let mut heard = conductor.client().subscribe("ph1.default.>").await.unwrap();
        conductor.client().flush().await.unwrap();
        let agent = server.connect("agent-1").await;
        let (subjects, run) = (subjects(), RunId::from_bits(1));
        let other = "agent-2".parse().unwrap();
        for subject in [
            subjects.notes(run, &other),
            subjects.prepare(&other),
            subjects.arm(&other),
            subjects.clock(&other),
            subjects.prepare(&"agent-1".parse().unwrap()),
            subjects.run(run),
            "$SRV.INFO.posthaste-agent".to_owned(),
            "_INBOX_conductor.x.y".to_owned(),
            "_INBOX_agent-2.x".to_owned(),
            "anything".to_owned(),
        ] {
            assert_publication_denied(&agent, &subject).await;
        }
        // Its own notes are the first that the conductor hears.
        let own = subjects.notes(run, &"agent-1".parse().unwrap());
        agent
            .client()
            .publish(own.clone(), "x".into())
            .await
            .unwrap();
        assert_eq!(heard.next().await.unwrap().subject.as_str(), own);
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn an_agent_cannot_read_what_others_get() {
    let server = NatsServer::deployed();
    on_one_thread(async {
        let agent = server.connect("agent-1").await;
        for subject in [
            "ph1.default.agent.agent-2.prepare",
            "ph1.default.agent.*.prepare",
            "ph1.default.notes.>",
            "ph1.default.>",
            "ph1.>",
            "_INBOX_conductor.>",
            "_INBOX_agent-2.>",
            "_INBOX.>",
            "$JS.API.>",
            ">",
        ] {
            assert_subscription_denied(&agent, subject).await;
        }
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn an_agent_cannot_change_the_store() {
    let server = NatsServer::deployed();
    on_one_thread(async {
        let conductor = server.connect("conductor").await;
        let storage = Storage::new(&conductor, subjects());
        storage.ensure().await.unwrap();
        let key = SealingKey::random();
        storage.put("rows", &key, b"content").await.unwrap();
        let agent = server.connect("agent-1").await;
        let context = jetstream::new(agent.client().clone());
        let (notes, bucket) = (subjects().notes_stream(), subjects().files_bucket());
        let files = context.get_object_store(&bucket).await.unwrap();
        assert!(fails(context.delete_stream(&notes)).await);
        assert!(fails(context.get_stream(&notes)).await);
        assert!(fails(context.delete_object_store(&bucket)).await);
        assert!(fails(files.put("more", &mut &*b"x".to_vec())).await);
        assert!(fails(files.delete("rows")).await);
        for subject in [
            format!("$JS.API.STREAM.DELETE.{notes}"),
            format!("$JS.API.STREAM.PURGE.{notes}"),
            format!("$JS.API.STREAM.DELETE.OBJ_{bucket}"),
            format!("$JS.API.STREAM.MSG.DELETE.OBJ_{bucket}"),
            format!("$O.{bucket}.C.x"),
            format!("$O.{bucket}.M.x"),
        ] {
            assert_publication_denied(&agent, &subject).await;
        }
        assert_eq!(
            storage.notes().await.unwrap().cached_info().config.name,
            notes
        );
        assert_eq!(
            storage.get("rows", &key, 1 << 20).await.unwrap(),
            b"content"
        );
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn strangers_are_refused() {
    let server = NatsServer::deployed();
    on_one_thread(async {
        for user in ["agent-3", "root"] {
            assert!(
                Connection::open(&server.options(user)).await.is_err(),
                "{user}"
            );
        }
    });
}
