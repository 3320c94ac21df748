//! The price loop, outside the path of requests: samples the load, adjusts the price, passes offers on.

use std::io;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use posthaste_admission::{Observed, Published};
use posthaste_serve::Background;
use posthaste_units::{Instant, Span};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::Admission;
use super::offering::Offering;
use super::publication::{DatedOffers, OfferPublisher, publish};
use super::state::{AdmissionPolicy, AdmissionState};
use crate::clock::now;

/// Share of the known capacity that may be quoted.
const QUOTED: f64 = 0.75;
/// Minimum busy share for a sample of the capacity.
const BUSY_ENOUGH: f64 = 0.3;
/// Divisor of the weight of a new sample of the capacity.
const MEMORY: f64 = 10.0;
/// Relative growth of the shortest mean time per sample, so that it is gradually forgotten.
const DRIFT: f64 = 0.002;

/// The running price loop. It pauses while there are no prices.
pub(crate) struct PriceLoop {
    settings: watch::Sender<Option<LoopSettings>>,
    _thread: Background,
}

#[derive(Clone)]
struct LoopSettings {
    /// Interval of price updates.
    every: Span,
    publisher: Option<OfferPublisher>,
}

impl PriceLoop {
    /// Starts the loop, paused. `measure` returns the busy share.
    pub(crate) fn start(
        admission: Arc<Admission>,
        measure: impl Fn() -> Option<f64> + Send + 'static,
    ) -> io::Result<Self> {
        let (settings, mut changes) = watch::channel(None::<LoopSettings>);
        let thread = Background::start("prices", move || async move {
            loop {
                let current = changes.borrow_and_update().clone();
                let change = tokio::select! {
                    change = changes.changed() => change,
                    () = run(&admission, current, &measure) => return,
                };
                if change.is_err() {
                    return;
                }
            }
        })?;
        Ok(Self {
            settings,
            _thread: thread,
        })
    }

    /// Adjusts the price `every` so often from now on and publishes the offers, or pauses. Offers at a broker are not
    /// withdrawn: they end on their own, as those of a gateway that fails.
    pub(crate) fn set(&self, every: Option<Span>, offering: &Offering) {
        let publisher = &offering.publisher;
        self.settings.send_replace(every.map(|every| LoopSettings {
            every,
            publisher: publisher.clone(),
        }));
    }
}

/// Adjusts the price and publishes offers, forever.
async fn run(
    admission: &Admission,
    settings: Option<LoopSettings>,
    measure: &impl Fn() -> Option<f64>,
) {
    let Some(LoopSettings { every, publisher }) = settings else {
        return std::future::pending().await;
    };
    let (out, published) = watch::channel(None);
    tokio::select! {
        () = adjust(admission, every, measure, &out) => {}
        () = publish(admission, publisher, published) => {}
    }
}

/// Adjusts the price forever and passes on the offers to publish.
async fn adjust(
    admission: &Admission,
    every: Span,
    measure: &impl Fn() -> Option<f64>,
    out: &watch::Sender<Option<DatedOffers>>,
) {
    let mut interval = interval(every.into());
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let mut state = admission.state();
        state.prices.every = every;
        let offers = state.sample_prices(now(), measure);
        let is_dry = state.is_dry;
        drop(state);
        if let Some(offer) = offers.first().filter(|_| !is_dry) {
            let life = i64::try_from(offer.life.as_nanos()).unwrap_or(i64::MAX);
            let expires = Timestamp::now() + SignedDuration::from_nanos(life);
            out.send_replace(Some((offers, expires)));
        }
    }
}

/// What the price loop knows of the service.
#[derive(Debug)]
pub(super) struct PriceSampler {
    /// Interval of price updates.
    pub(super) every: Span,
    last: Instant,
    /// The last sampled busy share.
    busy: f64,
    /// Known capacity, in requests per second.
    capacity: Option<f64>,
    /// Shortest recent mean time of a reply, in seconds.
    least: Option<f64>,
}

impl PriceSampler {
    pub(super) const fn new(at: Instant) -> Self {
        Self {
            every: Span::ZERO,
            last: at,
            busy: 0.0,
            capacity: None,
            least: None,
        }
    }
}

impl AdmissionState {
    /// Takes a sample, moves the price, and returns the offers at the new price. `measure` returns the busy share.
    fn sample_prices(
        &mut self,
        at: Instant,
        measure: impl FnOnce() -> Option<f64>,
    ) -> Vec<Published> {
        let sampler = &mut self.prices;
        let passed = at
            .saturating_since(std::mem::replace(&mut sampler.last, at))
            .as_secs_f64();
        let served = std::mem::take(&mut self.served) as f64;
        // An upstream without requests is idle and has no reply for a report.
        let is_idle = served == 0.0 && self.in_service == 0;
        let busy = if is_idle { Some(0.0) } else { measure() };
        // An unknown busy share does not mean idle: a stalled service reports nothing.
        let busy = busy.unwrap_or(sampler.busy);
        sampler.busy = busy;
        let waited = std::mem::take(&mut self.waited).as_secs_f64();
        let crowded_out = std::mem::take(&mut self.crowded_out) as f64;
        if busy >= BUSY_ENOUGH && passed > 0.0 {
            let sample = served / passed / busy;
            let known = sampler.capacity.get_or_insert(sample);
            *known += (sample - *known) / MEMORY;
        }
        let mean = (served > 0.0).then(|| waited / served);
        let least = mean.map(|mean| {
            let least = sampler.least.map_or(mean, |least| least * (1.0 + DRIFT));
            *sampler.least.insert(least.min(mean))
        });
        let waiting = mean.zip(least).map_or(0.0, |(mean, least)| mean - least);
        // If admitted, the rejected requests would have waited this long.
        let capacity = sampler.capacity.unwrap_or_default();
        let behind = if capacity > 0.0 {
            crowded_out / capacity
        } else {
            0.0
        };
        let delay = waiting + behind;
        let seen = Observed {
            at,
            busy,
            delay: Span::from_secs_f64(delay),
        };
        let AdmissionPolicy::Prices(_, market) = &mut self.policy else {
            return Vec::new();
        };
        market.rest(self.rest.at(at));
        let published = market.observe(seen, QUOTED * capacity).to_vec();
        for offer in &published {
            self.monitor.promise(at, &offer.name, self.promise);
        }
        published
    }
}
