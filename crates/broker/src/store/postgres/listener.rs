//! Hears, on a connection of its own, that somebody has changed something.
//!
//! What is missed while there is no connection, the keeper finds with its next look.

use std::convert::Infallible;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_postgres::Config;

use super::super::{StoreError, Wake};
use super::session::{connect, in_time, runtime};

/// How often a connection on which nothing happens is tried, and how long after its end another is made.
const PAUSE: Duration = Duration::from_secs(2);

/// A thread that listens; dropping this ends it.
pub(super) struct Listener {
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Calls `wake` for each notification, and where some may have been missed.
    pub(super) fn start(config: Config, wake: Wake) -> Result<Self, StoreError> {
        let (stop, stopped) = oneshot::channel();
        let runtime = runtime()?;
        let listen = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    never = listen(&config, &wake) => match never {},
                }
            });
        };
        let thread = std::thread::Builder::new().name("listener".to_owned());
        let thread = thread.spawn(listen);
        let thread = thread.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A fault of the thread has been told by its panic.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn listen(config: &Config, wake: &Wake) -> Infallible {
    let mut hears = true;
    loop {
        if let Err(error) = listen_once(config, wake, &mut hears).await
            && std::mem::take(&mut hears)
        {
            tracing::warn!("changes of other brokers are seen a second later: {error}");
        }
        sleep(PAUSE).await;
    }
}

/// Listens until the connection ends; says in `hears` that it had one.
async fn listen_once(config: &Config, wake: &Wake, hears: &mut bool) -> Result<(), StoreError> {
    let (client, connection) = in_time(connect(config, wake)).await?;
    let client = &client;
    let tried = |sql| in_time(async move { Ok(client.batch_execute(sql).await?) });
    let listening = async {
        tried("LISTEN posthaste_offers").await?;
        *hears = true;
        wake();
        loop {
            sleep(PAUSE).await;
            tried("").await?;
        }
    };
    tokio::select! {
        ended = connection => ended,
        failed = listening => failed,
    }
}
