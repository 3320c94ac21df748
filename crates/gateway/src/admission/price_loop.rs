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
use super::publication::{DatedOffers, publish};
use super::state::AdmissionPolicy;
use crate::clock::now;

/// Share of the known capacity that may be quoted.
const QUOTED: f64 = 0.75;
/// Minimum busy share for a sample of the capacity.
const BUSY_ENOUGH: f64 = 0.3;
/// Divisor of the weight of a new sample of the capacity.
const MEMORY: f64 = 10.0;
/// Relative growth of the shortest mean time per sample, so that it is gradually forgotten.
const DRIFT: f64 = 0.002;

/// Adjusts the price `every` so often until the returned handle is dropped. `measure` returns the busy share.
pub(crate) fn start(
    admission: Arc<Admission>,
    offering: &Offering,
    every: Span,
    measure: impl Fn() -> Option<f64> + Send + 'static,
) -> io::Result<Background> {
    let publisher = offering.publisher.clone();
    Background::start("prices", move || async move {
        let (out, published) = watch::channel(None);
        tokio::select! {
            () = run(&admission, every, measure, &out) => {}
            () = publish(&admission, publisher, published) => {}
        }
    })
}

/// Runs the price loop forever and passes on the offers to publish.
async fn run(
    admission: &Admission,
    every: Span,
    measure: impl Fn() -> Option<f64>,
    out: &watch::Sender<Option<DatedOffers>>,
) {
    let mut every = interval(every.into());
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut price_loop = PriceLoop::new(now());
    loop {
        every.tick().await;
        let offers = price_loop.tick(admission, &measure);
        if let Some(offer) = offers.first() {
            let life = i64::try_from(offer.life.as_nanos()).unwrap_or(i64::MAX);
            let expires = Timestamp::now() + SignedDuration::from_nanos(life);
            out.send_replace(Some((offers, expires)));
        }
    }
}

/// State of the price loop.
struct PriceLoop {
    last: Instant,
    /// The last sampled busy share.
    busy: f64,
    /// Known capacity, in requests per second.
    capacity: Option<f64>,
    /// Shortest recent mean time of a reply, in seconds.
    least: Option<f64>,
}

impl PriceLoop {
    const fn new(at: Instant) -> Self {
        Self {
            last: at,
            busy: 0.0,
            capacity: None,
            least: None,
        }
    }

    /// Takes a sample, moves the price, and returns the offers at the new price. `measure` returns the busy share.
    fn tick(
        &mut self,
        admission: &Admission,
        measure: impl FnOnce() -> Option<f64>,
    ) -> Vec<Published> {
        let at = now();
        let passed = at
            .since(std::mem::replace(&mut self.last, at))
            .as_secs_f64();
        let mut state = admission.state();
        let served = std::mem::take(&mut state.served) as f64;
        // An upstream without requests is idle and has no reply for a report.
        let is_idle = served == 0.0 && state.in_service == 0;
        let busy = if is_idle { Some(0.0) } else { measure() };
        // An unknown busy share does not mean idle: a stalled service reports nothing.
        let busy = busy.unwrap_or(self.busy);
        self.busy = busy;
        let waited = std::mem::take(&mut state.waited).as_secs_f64();
        let crowded_out = std::mem::take(&mut state.crowded_out) as f64;
        if busy >= BUSY_ENOUGH && passed > 0.0 {
            let sample = served / passed / busy;
            let known = self.capacity.get_or_insert(sample);
            *known += (sample - *known) / MEMORY;
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
        let AdmissionPolicy::Prices(_, market) = &mut state.policy else {
            return Vec::new();
        };
        let published = market.observe(seen, quotable).to_vec();
        for offer in &published {
            let promise = admission.promise;
            state.monitor.promise(at, &offer.name, promise);
        }
        published
    }
}
