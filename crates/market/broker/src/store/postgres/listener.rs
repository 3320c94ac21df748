//! Listens, on its own connection, for changes by other brokers.
//!
//! The store writer's next check finds notifications missed without a connection.

use std::convert::Infallible;
use std::time::Duration;

use posthaste_serve::Background;
use tokio::time::sleep;
use tokio_postgres::Config;

use super::super::{StoreError, Wake};
use super::session::{connect, in_time};

/// Interval of checks of an idle connection, and delay before a reconnect.
const PAUSE: Duration = Duration::from_secs(2);

/// Calls `wake` after each connect and for each notification, until the result is dropped.
pub(super) fn start(config: Config, wake: Wake) -> Result<Background, StoreError> {
    let listening = Background::start("listener", move || async move {
        match listen(&config, &wake).await {}
    });
    listening.map_err(|error| StoreError::Unavailable(error.to_string()))
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

/// Listens until the connection ends. Sets `hears` once listening works.
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
