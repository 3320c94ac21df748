//! The price loop, outside the path of requests: samples the load, adjusts the price, publishes offers.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use posthaste_admission::{Observed, Promise, Published};
use posthaste_broker_client::BrokerClient;
use posthaste_qos::{Definition, Document, Offer, Priorities};
use posthaste_serve::Background;
use posthaste_units::{Instant, Span};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::By;
use crate::clock::now;
use crate::config::{Prices, Publish};
use crate::context::GatewayContext;

/// Share of the known capacity that may be quoted.
const QUOTED: f64 = 0.75;
/// Minimum busy share for a sample of the capacity.
const BUSY_ENOUGH: f64 = 0.3;
/// Divisor of the weight of a new sample of the capacity.
const MEMORY: f64 = 10.0;
/// Relative growth of the shortest mean time per sample, so that it is gradually forgotten.
const DRIFT: f64 = 0.002;
/// Delay before a failed publication is repeated.
const AGAIN: Duration = Duration::from_millis(500);

/// Adjusts the price of the gateway until the returned handle is dropped.
pub(crate) fn start(context: Arc<GatewayContext>) -> io::Result<Background> {
    let plan = context.plan();
    let publisher = plan.offering.publisher.clone();
    let every = plan.config.prices.clone().unwrap_or_default().every;
    Background::start("prices", move || async move {
        let (out, published) = watch::channel(None);
        tokio::select! {
            () = look(&context, every, &out) => {}
            () = publish(&context, publisher, published) => {}
        }
    })
}

/// Offers published together, and their expiry.
type Dated = (Vec<Published>, Timestamp);

/// Runs the price loop forever and passes on the offers to publish.
async fn look(context: &GatewayContext, every: Span, out: &watch::Sender<Option<Dated>>) {
    let mut every = interval(every.into());
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut eye = Eye::new(now());
    loop {
        every.tick().await;
        let offers = eye.look(context);
        if let Some(offer) = offers.first() {
            let life = i64::try_from(offer.life.as_nanos()).unwrap_or(i64::MAX);
            let expires = Timestamp::now() + SignedDuration::from_nanos(life);
            out.send_replace(Some((offers, expires)));
        }
    }
}

/// State of the price loop.
struct Eye {
    last: Instant,
    /// The last sampled busy share.
    busy: f64,
    /// Known capacity, in requests per second.
    capacity: Option<f64>,
    /// Shortest recent mean time of a reply, in seconds.
    least: Option<f64>,
}

impl Eye {
    const fn new(at: Instant) -> Self {
        Self {
            last: at,
            busy: 0.0,
            capacity: None,
            least: None,
        }
    }

    fn look(&mut self, context: &GatewayContext) -> Vec<Published> {
        let at = now();
        let passed = at
            .since(std::mem::replace(&mut self.last, at))
            .as_secs_f64();
        let mut door = context.protection.door();
        let served = std::mem::take(&mut door.served) as f64;
        // An upstream without requests is idle and has no reply for a report.
        let is_idle = served == 0.0 && door.in_service == 0;
        let busy = if is_idle { Some(0.0) } else { context.busy() };
        // An unknown busy share does not mean idle: a stalled service reports nothing.
        let busy = busy.unwrap_or(self.busy);
        self.busy = busy;
        let waited = std::mem::take(&mut door.waited).as_secs_f64();
        let crowded_out = std::mem::take(&mut door.crowded_out) as f64;
        if busy >= BUSY_ENOUGH && passed > 0.0 {
            let shown = served / passed / busy;
            let known = self.capacity.get_or_insert(shown);
            *known += (shown - *known) / MEMORY;
        }
        let mean = (served > 0.0).then(|| waited / served);
        let least = mean.map(|mean| {
            let least = self.least.map_or(mean, |least| least * (1.0 + DRIFT));
            *self.least.insert(least.min(mean))
        });
        let waiting = mean.zip(least).map_or(0.0, |(mean, least)| mean - least);
        // If admitted, the rejected requests would have waited this long.
        let behind = self.capacity.map_or(0.0, |capacity| crowded_out / capacity);
        let delay = waiting + behind;
        let seen = Observed {
            at,
            busy,
            delay: Span::from_secs_f64(delay),
        };
        let quotable = QUOTED * self.capacity.unwrap_or_default();
        let By::Prices(_, market) = &mut door.by else {
            return Vec::new();
        };
        let published = market.observe(seen, quotable).to_vec();
        for offer in &published {
            let promise = context.protection.promise;
            door.monitor.promise(at, &offer.name, promise);
        }
        published
    }
}

/// Promises of the offers, and their publisher, if any.
#[derive(Default)]
pub(crate) struct Offering {
    pub(crate) promise: Promise,
    /// Promised network priorities, if stated.
    pub(crate) priorities: Option<Priorities>,
    publisher: Option<Publisher>,
}

/// The destination of offers and their content.
#[derive(Clone)]
struct Publisher {
    client: BrokerClient,
    kind: String,
    provider: String,
    endpoint: Option<String>,
    qos: Definition,
}

impl Offering {
    /// Builds the offering from `prices`. Errors are messages for the user.
    pub(crate) fn new(prices: &Prices) -> Result<Self, String> {
        let qos = prices.promise.as_deref().map(promised).transpose()?;
        let qos = qos.unwrap_or_default();
        let server = &qos.default.server;
        let promise = Promise {
            processing_time: server.processing_time,
            rate: server.requests_per_second.map(|rate| rate.as_per_second()),
            reliability: server.reliability,
            availability: server.availability,
        };
        let transport = &qos.default.transport;
        let states_some = *transport != Priorities::default();
        Ok(Self {
            promise,
            priorities: states_some.then(|| transport.clone()),
            publisher: match &prices.broker {
                Some(broker) => Some(Publisher::new(broker, qos)?),
                None => None,
            },
        })
    }
}

/// Reads the promises from a document with one offer.
fn promised(file: &Path) -> Result<Definition, String> {
    let wrong = |error: String| format!("prices.promise, {}: {error}", file.display());
    let bytes = fs::read(file).map_err(|error| wrong(error.to_string()))?;
    match Document::read(&bytes).map_err(|error| wrong(error.to_string()))? {
        Document::Offers(offers) if offers.offers.len() == 1 => {
            let mut offers = offers.offers;
            Ok(offers.remove(0).qos)
        }
        _ => Err(wrong(
            "want one offer, whose price does not count".to_owned(),
        )),
    }
}

/// Publishes offers forever, always the newest. Failed publications are repeated.
async fn publish(
    context: &GatewayContext,
    publisher: Option<Publisher>,
    mut offers: watch::Receiver<Option<Dated>>,
) {
    let mut was_well = true;
    loop {
        if offers.changed().await.is_err() {
            return;
        }
        let Some(publisher) = &publisher else {
            continue;
        };
        let present = offers.borrow_and_update().clone();
        let Some((present, expires)) = present else {
            continue;
        };
        let done = publisher.put(present, expires).await;
        context.protection.counts.published(done.is_ok());
        match &done {
            Ok(()) if !was_well => tracing::info!("offers are published again"),
            Err(error) if was_well => tracing::warn!(%error, "no offer can be published"),
            _ => {}
        }
        if done.is_err() {
            sleep(AGAIN).await;
            offers.mark_changed();
        }
        was_well = done.is_ok();
    }
}

impl Publisher {
    fn new(broker: &Publish, qos: Definition) -> Result<Self, String> {
        let Publish {
            url,
            kind,
            provider,
            token,
            endpoint,
        } = broker;
        let client = BrokerClient::new(url).map_err(|error| error.to_string())?;
        let secret = fs::read_to_string(token)
            .map_err(|error| format!("prices.broker.token, {}: {error}", token.display()))?;
        Ok(Self {
            client: client.with_token(Some(secret.trim().to_owned())),
            kind: kind.clone(),
            provider: provider.clone(),
            endpoint: endpoint.clone(),
            qos,
        })
    }

    /// Replaces all offers of this provider for the service type.
    async fn put(
        &self,
        offers: Vec<Published>,
        expires: Timestamp,
    ) -> Result<(), posthaste_broker_client::Error> {
        let offers = offers.into_iter().map(|offer| {
            let mut qos = self.qos.clone();
            qos.price = Some(offer.price);
            qos.default.security.extend(offer.condition());
            Offer {
                name: offer.name,
                expires,
                endpoint: self.endpoint.clone(),
                qos,
            }
        });
        let put = self
            .client
            .put_all(&self.kind, &self.provider, offers.collect());
        put.await
    }
}
