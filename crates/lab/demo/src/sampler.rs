//! Sampler: samples the system once a second and publishes the result.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use posthaste_broker_client::{BrokerClient, Event};
use posthaste_load::Tick;
use posthaste_qos::Offer;
use rustix::time::{ClockId, clock_gettime};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::alerts::Alerts;
use crate::controller::SystemState;
use crate::controls::KINDS;
use crate::event_log::EventLog;
use crate::metrics::Metrics;
use crate::sample::{CounterValues, KindOutcomes, OfferRow, ResponseTimes, Sample, rounded};

/// Interval between two samples.
const EVERY: Duration = Duration::from_secs(1);
/// Wait before reconnecting to the broker.
const AGAIN: Duration = Duration::from_millis(500);
/// Maximum number of offers in the table, cheapest first.
const SHOWN: usize = 20;

/// Offers at the broker, by provider and name.
type Offers = RefCell<BTreeMap<(String, String), Offer>>;

/// Samples forever, on the thread that serves the page. The thread's CPU time is then the demo's own cost.
pub(crate) async fn run(state: Arc<SystemState>, log: Arc<EventLog>) {
    let offers = Rc::<Offers>::default();
    tokio::task::spawn_local(follow(state.broker.clone(), offers.clone()));
    let mut every = interval(EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sampler = Sampler::new();
    loop {
        every.tick().await;
        let Some(sample) = sampler.sample(&state, &log, &offers).await else {
            continue;
        };
        for news in sampler.alerts.observe(&sample, &state.controls()) {
            log.news(news);
        }
        log.tell("sample", &sample);
    }
}

/// Sampler: the state kept between two samples.
struct Sampler {
    kinds: [KindOutcomes; KINDS.len()],
    times: ResponseTimes,
    grown: CounterValues,
    /// Admin address of the gateway that `grown` belongs to.
    gateway: Option<std::net::SocketAddr>,
    alerts: Alerts,
    looked: (f64, f64),
}

impl Sampler {
    fn new() -> Self {
        Self {
            kinds: Default::default(),
            times: ResponseTimes::default(),
            grown: CounterValues::default(),
            gateway: None,
            alerts: Alerts::new(),
            looked: (0.0, used()),
        }
    }

    async fn sample(
        &mut self,
        state: &SystemState,
        log: &EventLog,
        offers: &Offers,
    ) -> Option<Sample> {
        let admin = state.admin();
        if self.gateway != Some(admin) {
            self.gateway = Some(admin);
            self.grown = CounterValues::default();
        }
        // A gateway that has just stopped returns nothing. The next one is sampled in a second.
        let metrics = Metrics::fetch(admin).await?;
        let controls = state.controls();
        self.count(state, controls.demand);
        let (at, used) = (log.now(), used());
        let passed = (at - self.looked.0).max(0.1);
        let own = (used - self.looked.1) / passed;
        self.looked = (at, used);
        Some(Sample {
            at,
            times: self.times,
            kinds: self.kinds,
            offers: rows(&offers.borrow(), Timestamp::now()),
            own: rounded(own, 4),
            ..Sample::from_metrics(&metrics, &mut self.grown, &controls)
        })
    }

    /// Collects the clients' outcomes. Clients report once a second too, so sometimes there is nothing new.
    fn count(&mut self, state: &SystemState, demand: u32) {
        let mut all = Tick::default();
        let mut is_new = false;
        for (ends, seen) in self.kinds.iter_mut().zip(&state.seen) {
            if let Some((span, tick)) = seen.take() {
                *ends = KindOutcomes::from_tick(span, &tick);
                all.merge(&tick);
                is_new = true;
            } else if demand == 0 {
                *ends = KindOutcomes::default();
            }
        }
        if is_new || demand == 0 {
            self.times = ResponseTimes::from_histogram(all.responses.ok());
        }
    }
}

/// Keeps `offers` in step with the broker.
async fn follow(broker: String, offers: Rc<Offers>) {
    let Ok(client) = BrokerClient::new(&broker) else {
        return;
    };
    loop {
        let following = client.follow(None, |event| {
            let mut offers = offers.borrow_mut();
            match event {
                Event::Begin => offers.clear(),
                Event::Changed { put, .. } => {
                    let key = (put.provider, put.name);
                    match put.offer {
                        Some(offer) => drop(offers.insert(key, offer)),
                        None => drop(offers.remove(&key)),
                    }
                }
                Event::Ready(_) | Event::Alive | Event::Late(_) => {}
            }
            ControlFlow::<Infallible>::Continue(())
        });
        let Err(error) = following.await;
        tracing::debug!(%error, "the broker's stream has ended");
        sleep(AGAIN).await;
    }
}

/// Valid offers, cheapest first.
fn rows(offers: &BTreeMap<(String, String), Offer>, now: Timestamp) -> Vec<OfferRow> {
    let mut holding: Vec<_> = offers
        .iter()
        .filter(|(_, offer)| offer.expires > now)
        .collect();
    holding.sort_by_key(|(_, offer)| offer.qos.price.map(|price| price.micros()));
    let row = |((provider, name), offer): (&(String, String), &Offer)| OfferRow {
        name: name.clone(),
        provider: provider.clone(),
        price: offer.qos.price.map_or_else(String::new, |p| p.to_string()),
        left: rounded(offer.expires.duration_since(now).as_secs_f64(), 1),
    };
    holding.into_iter().take(SHOWN).map(row).collect()
}

/// CPU time of this thread, in seconds.
fn used() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
