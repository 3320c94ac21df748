//! The stream of notes and the bucket of sealed files. Conductors create them, agents only use them.

use std::time::Duration;

use async_nats::jetstream::context::{
    CreateStreamError, CreateStreamErrorKind, GetStreamErrorKind,
};
use async_nats::jetstream::object_store::ObjectStore;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{self, Context, ErrorCode, object_store};
use thiserror::Error;
use tokio::io::AsyncReadExt as _;

use crate::nats::connection::Connection;
use crate::protocol::names::RunId;
use crate::protocol::sealed::{Opener, Sealer, SealingKey};
use crate::protocol::subjects::Subjects;

/// Maximum size of the stream of notes. The oldest are discarded, because conductors read them live.
const NOTES_BYTES: i64 = 1 << 30;

/// The same for servers and accounts with less.
const FEWER_NOTES_BYTES: i64 = 64 << 20;

/// Maximum age of notes and files.
const MAX_AGE: Duration = Duration::from_secs(3600);

/// Time in which a note with the same number is a duplicate.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// Time limit of a request to JetStream.
const LIMIT: Duration = Duration::from_secs(5);

/// Bytes of a file that are opened at once.
const PIECE: usize = 64 << 10;

/// Storage of a fleet.
#[derive(Clone, Debug)]
pub struct Storage {
    context: Context,
    subjects: Subjects,
}

/// Failure of the storage.
#[derive(Debug, Error)]
pub enum StorageError {
    /// No JetStream.
    #[error("the NATS server stores nothing: start it with JetStream (nats-server -js)")]
    NoJetStream,
    /// A failed request.
    #[error("the NATS server did not {action}: {reason}")]
    Failed {
        /// The action.
        action: &'static str,
        /// The reason.
        reason: String,
    },
    /// A file that is longer than permitted.
    #[error("the file {name} has more than {most} bytes")]
    TooLong {
        /// Its name.
        name: String,
        /// The limit.
        most: u64,
    },
    /// A file that is not what was sealed.
    #[error("the file {name}: {source}")]
    Unseal {
        /// Its name.
        name: String,
        /// The reason.
        source: crate::protocol::sealed::UnsealError,
    },
}

impl Storage {
    /// The storage of this fleet.
    pub fn new(connection: &Connection, subjects: Subjects) -> Self {
        let mut context = jetstream::new(connection.client().clone());
        context.set_timeout(LIMIT);
        Self { context, subjects }
    }

    /// Creates the stream and the bucket unless they exist. For conductors, after each connection.
    pub async fn ensure(&self) -> Result<(), StorageError> {
        self.ensure_notes().await?;
        self.ensure_files().await
    }

    /// The stream of notes.
    pub async fn notes(&self) -> Result<Stream, StorageError> {
        let stream = self.context.get_stream(self.subjects.notes_stream()).await;
        stream.map_err(failed("find the stream of notes"))
    }

    /// Removes the notes of a run.
    pub async fn purge(&self, run: RunId) -> Result<(), StorageError> {
        let stream = self.notes().await?;
        let purge = stream.purge().filter(self.subjects.notes_of_run(run));
        purge.await.map(drop).map_err(failed("remove notes"))
    }

    /// Seals content and stores it under this name.
    pub async fn put(
        &self,
        name: &str,
        key: &SealingKey,
        content: &[u8],
    ) -> Result<(), StorageError> {
        let mut sealed = Vec::with_capacity(content.len() + PIECE);
        let mut sealer = Sealer::new(key, name, &mut sealed);
        sealer.push(content, &mut sealed);
        sealer.finish(&mut sealed);
        let bucket = self.bucket().await?;
        let stored = bucket.put(name, &mut &*sealed).await;
        stored.map(drop).map_err(failed("store a file"))
    }

    /// Fetches and opens the file of this name, of at most `most` bytes when sealed.
    pub async fn get(
        &self,
        name: &str,
        key: &SealingKey,
        most: u64,
    ) -> Result<Vec<u8>, StorageError> {
        let bucket = self.bucket().await?;
        let object = bucket.get(name).await.map_err(failed("find a file"))?;
        let mut object = object.take(most.saturating_add(1));
        let unseal = |source| StorageError::Unseal {
            name: name.to_owned(),
            source,
        };
        let (mut opener, mut content) = (Opener::new(key, name), Vec::new());
        let (mut piece, mut length) = (vec![0; PIECE], 0);
        loop {
            let read = object
                .read(&mut piece)
                .await
                .map_err(failed("send a file"))?;
            length += read as u64;
            if length > most {
                return Err(StorageError::TooLong {
                    name: name.to_owned(),
                    most,
                });
            }
            if read == 0 {
                break;
            }
            opener.push(&piece[..read], &mut content).map_err(unseal)?;
        }
        opener.finish(&mut content).map_err(unseal)?;
        assert!(content.len() as u64 <= most, "a seal only adds bytes");
        Ok(content)
    }

    /// Removes the file of this name.
    pub async fn remove(&self, name: &str) -> Result<(), StorageError> {
        let bucket = self.bucket().await?;
        bucket.delete(name).await.map_err(failed("remove a file"))
    }

    async fn ensure_notes(&self) -> Result<(), StorageError> {
        let config = |max_bytes| Config {
            name: self.subjects.notes_stream(),
            subjects: vec![self.subjects.all_notes()],
            retention: RetentionPolicy::Limits,
            storage: StorageType::File,
            discard: DiscardPolicy::Old,
            num_replicas: 1,
            max_age: MAX_AGE,
            duplicate_window: DUPLICATE_WINDOW,
            max_bytes,
            ..Config::default()
        };
        let most = self.context.get_or_create_stream(config(NOTES_BYTES)).await;
        let created = match most {
            Ok(_) => return Ok(()),
            // The account or the disk permits less.
            Err(_) => {
                self.context
                    .get_or_create_stream(config(FEWER_NOTES_BYTES))
                    .await
            }
        };
        created.map(drop).map_err(|error| uncreated(&error))
    }

    async fn ensure_files(&self) -> Result<(), StorageError> {
        let bucket = self.subjects.files_bucket();
        match self.context.get_object_store(&bucket).await {
            Ok(_) => return Ok(()),
            Err(error) if is_unknown(&error) => {}
            Err(error) => return Err(failed("find the bucket of files")(error)),
        }
        let created = self.context.create_object_store(object_store::Config {
            bucket,
            max_age: MAX_AGE,
            storage: StorageType::File,
            num_replicas: 1,
            ..object_store::Config::default()
        });
        created
            .await
            .map(drop)
            .map_err(failed("create the bucket of files"))
    }

    async fn bucket(&self) -> Result<ObjectStore, StorageError> {
        let bucket = self
            .context
            .get_object_store(&self.subjects.files_bucket())
            .await;
        bucket.map_err(failed("find the bucket of files"))
    }
}

/// True if the server has no such stream.
fn is_unknown(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<jetstream::context::GetStreamError>()
            && let GetStreamErrorKind::JetStream(error) = error.kind()
        {
            return error.error_code() == ErrorCode::STREAM_NOT_FOUND;
        }
        next = error.source();
    }
    false
}

fn failed<E: std::fmt::Display>(action: &'static str) -> impl FnOnce(E) -> StorageError {
    move |error| StorageError::Failed {
        action,
        reason: error.to_string(),
    }
}

/// The error of a stream that could not be created.
fn uncreated(error: &CreateStreamError) -> StorageError {
    let is_absent = match error.kind() {
        CreateStreamErrorKind::JetStreamUnavailable => true,
        CreateStreamErrorKind::JetStream(error) => {
            let code = error.error_code();
            code == ErrorCode::JETSTREAM_NOT_ENABLED
                || code == ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT
        }
        _ => false,
    };
    if is_absent {
        StorageError::NoJetStream
    } else {
        failed("create the stream of notes")(error)
    }
}
