//! Following another broker: its changes, as they happen, on a thread of their own.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use posthaste_offers::{Client, Event, Put};
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, sleep};

use crate::change::{Change, Key};
use crate::filling::Filling;
use crate::registry::Registry;

/// How long to wait before the first and at most before any further try.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// A stream that has lasted for so long was a good one.
const GOOD: Duration = Duration::from_secs(30);

/// The thread that follows. Dropping it ends it.
pub(crate) struct Follower {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What has been told so far.
struct Told {
    registry: Arc<Registry>,
    last: Option<u64>,
    /// What there is, while it is being told.
    beginning: Option<Filling>,
}

impl Follower {
    /// Begins to follow the broker at `url`, whether it is there yet or not.
    pub(crate) fn start(url: &str, registry: Arc<Registry>) -> Result<Self, crate::Error> {
        let client = Client::new(url)?;
        let url = url.to_owned();
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let body = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = follow(&client, &url, registry.clone()) => {}
                    () = expire(&registry) => {}
                    // Dropped or told: either is the end.
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new()
            .name("follow".to_owned())
            .spawn(body)?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            tracing::error!("the thread that follows has panicked");
        }
    }
}

/// Follows for ever.
async fn follow(client: &Client, url: &str, registry: Arc<Registry>) {
    let mut told = Told {
        registry,
        last: None,
        beginning: None,
    };
    let mut wait = BACK_OFF.0;
    loop {
        let begun = Instant::now();
        let told_until = client.follow(told.last, |event| {
            told.take(event);
            ControlFlow::<Infallible>::Continue(())
        });
        let Err(error) = told_until.await;
        if begun.elapsed() > GOOD {
            wait = BACK_OFF.0;
        }
        tracing::warn!(%error, upstream = url, ?wait, "no longer in step");
        told.beginning = None;
        sleep(wait).await;
        wait = (wait * 2).min(BACK_OFF.1);
    }
}

/// Drops for ever what has expired, by this machine's clock.
async fn expire(registry: &Registry) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    second.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        second.tick().await;
        registry.expire(Timestamp::now());
    }
}

impl Told {
    fn take(&mut self, event: Event) {
        match event {
            Event::Begin => self.beginning = Some(Filling::of(self.registry.empty())),
            Event::Ready(number) => {
                if let Some(offers) = self.beginning.take() {
                    self.registry.replace(offers.done(), number);
                }
                tracing::info!(number, "in step");
                self.last = Some(number);
            }
            Event::Changed { number, put } => self.change(number, *put),
            Event::Alive => {}
        }
        if self.beginning.is_none() {
            self.registry.in_step();
        }
    }

    fn change(&mut self, number: Option<u64>, put: Put) {
        let Put {
            kind,
            provider,
            name,
            at,
            offer,
        } = put;
        let key = Key {
            kind,
            provider,
            name,
        };
        match (&mut self.beginning, offer, number) {
            (Some(offers), Some(offer), _) => offers.take(key, offer),
            (None, offer, Some(number)) => {
                let at = at.unwrap_or_else(Timestamp::now);
                self.registry.apply(vec![Change {
                    number,
                    at,
                    key,
                    offer,
                }]);
                self.last = Some(number);
            }
            // Nothing else is told.
            _ => {}
        }
    }
}
