//! The price loop, outside the path of requests: samples the load, adjusts the price, passes offers on.

use std::io;
use std::sync::Arc;

use jiff::SignedDuration;
use posthaste_admission::{Observed, Published};
use posthaste_serve::Background;
use posthaste_units::{Instant, Span};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::Admission;
use super::offering::Offering;
use super::publication::{DatedOffers, OfferPublisher, Publication};
use super::state::{AdmissionPolicy, AdmissionState};
use crate::clock::{now, timestamp};

/// Share of the known capacity that may be quoted.
const QUOTED: f64 = 0.75;
/// Minimum busy share for a sample of the capacity.
const BUSY_ENOUGH: f64 = 0.3;
/// Divisor of the weight of a new sample of the capacity.
const MEMORY: f64 = 10.0;
/// Relative growth of the shortest mean time per sample, so that it is gradually forgotten.
const DRIFT: f64 = 0.002;

/// Busy share above which a service without requests is not at rest: it may still work on requests that have been
/// given up, or on those of others.
const AT_WORK: f64 = 0.3;

/// The busy share of the service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// `None` if unknown.
    pub(crate) busy: Option<f64>,
    /// It comes with replies. A service without requests reports nothing.
    pub(crate) is_reported: bool,
}

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
    /// Starts the loop, paused.
    pub(crate) fn start(
        admission: Arc<Admission>,
        measure: impl Fn() -> Measured + Send + 'static,
    ) -> io::Result<Self> {
        let (settings, mut changes) = watch::channel(None::<LoopSettings>);
        let thread = Background::start("prices", move || async move {
            let publication = Publication::new();
            loop {
                let current = changes.borrow_and_update().clone();
                let change = tokio::select! {
                    biased;
                    change = changes.changed() => change,
                    () = run(&admission, current, &measure, &publication) => return,
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
    measure: &impl Fn() -> Measured,
    publication: &Publication,
) {
    let Some(LoopSettings { every, publisher }) = settings else {
        return std::future::pending().await;
    };
    tokio::select! {
        biased;
        () = adjust(admission, every, measure, publication) => {}
        () = publication.run(admission, publisher) => {}
    }
}

/// Adjusts the price forever and passes on the offers to publish.
async fn adjust(
    admission: &Admission,
    every: Span,
    measure: &impl Fn() -> Measured,
    publication: &Publication,
) {
    let mut interval = interval(every.into());
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let mut state = admission.state();
        state.prices.every = every;
        let offers = state.sample_prices(now(), measure);
        let changes = state.changes;
        drop(state);
        if let Some(offer) = offers.first() {
            let life = i64::try_from(offer.life.as_nanos()).unwrap_or(i64::MAX);
            publication.offer(DatedOffers {
                expires: timestamp() + SignedDuration::from_nanos(life),
                offers,
                changes,
            });
        }
    }
}

impl AdmissionState {
    /// Takes a sample, moves the price, and returns the offers at the new price.
    fn sample_prices(&mut self, at: Instant, measure: impl FnOnce() -> Measured) -> Vec<Published> {
        let sampler = &mut self.prices;
        let passed = at
            .saturating_since(std::mem::replace(&mut sampler.last, at))
            .as_secs_f64();
        let served = std::mem::take(&mut self.served) as f64;
        let unpaid = std::mem::take(&mut self.unpaid) as f64;
        // Requests for nothing take what is left. They make the service busy, and are no reason to charge the others.
        // Without a reply, the proportion is that of the last ones.
        if served > 0.0 {
            sampler.paid = 1.0 - unpaid / served;
        }
        let paid = sampler.paid;
        debug_assert!((0.0..=1.0).contains(&paid), "a proportion of {paid}");
        let is_idle = served == 0.0 && self.services.in_service() == 0;
        let measured = measure();
        let busy = match measured.busy {
            // The last report is that of the load.
            _ if is_idle && measured.is_reported => 0.0,
            Some(busy) => busy,
            None if is_idle => 0.0,
            // An unknown busy share does not mean idle: a stalled service reports nothing.
            None => sampler.busy,
        };
        sampler.busy = busy;
        let waited = std::mem::take(&mut self.waited).as_secs_f64();
        let crowded_out = std::mem::take(&mut self.crowded_out) as f64;
        // A full limit is demand, too: the processor that is measured may be another one than that of the service.
        let busy = if crowded_out > 0.0 { 1.0 } else { busy };
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
        let delay = waiting * paid + behind;
        let seen = Observed {
            at,
            busy: busy * paid,
            delay: Span::from_secs_f64(delay),
        };
        let AdmissionPolicy::Prices(market) = &mut self.policy else {
            return Vec::new();
        };
        if busy < AT_WORK {
            market.rest(self.rest.at(at));
        }
        let published = market.observe(seen, QUOTED * capacity).to_vec();
        for offer in &published {
            self.monitor.promise(at, &offer.name, self.promise);
        }
        published
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use posthaste_admission::Payer;

    use super::*;
    use crate::admission::offer_fields::OfferFields;
    use crate::admission::route_location::PlacedTicket;
    use crate::admission::state::{AdmissionClient, AdmissionOutcome};
    use crate::admission::terms::AdmissionTerms;
    use posthaste_gateway_config::GatewayConfig;

    /// A state at price 0.
    fn cheap() -> AdmissionState {
        let text = "listen = \"127.0.0.1:0\"\n[protection]\npolicy = \"prices\"\n\
                    [[route]]\npath = \"/\"\nupstream = [\"127.0.0.1:9\"]\n";
        let terms = AdmissionTerms::from_config(&GatewayConfig::read(text).unwrap());
        AdmissionState::new(Instant::ORIGIN, &terms, &Offering::default())
    }

    /// A request in service.
    fn enter(state: &mut AdmissionState) -> PlacedTicket {
        let location = state.services.find(Instant::ORIGIN, "/");
        let service = &mut state.services.at(location).service;
        let ticket = service.enter(Instant::ORIGIN, location.kind, 0, 0);
        PlacedTicket { location, ticket }
    }

    /// A state whose price is at its maximum, 10 s after the origin.
    fn expensive() -> AdmissionState {
        let mut state = cheap();
        let ticket = enter(&mut state);
        let busy = measured(1.0, true);
        for sample in 0..300 {
            let at = at(sample as f64 / 30.0);
            (state.served, state.waited) = (1, Span::from_millis(10));
            state.rest.enter();
            state.rest.replied(Span::from_millis(10));
            // Rejected requests count as a queue.
            state.crowded_out = 50;
            state.sample_prices(at, || busy);
        }
        state.leave(&ticket, at(10.0));
        assert!(price(&state) > 0.9, "{}", price(&state));
        state
    }

    fn at(seconds: f64) -> Instant {
        Instant::ORIGIN + Span::from_secs_f64(seconds)
    }

    const fn measured(busy: f64, is_reported: bool) -> Measured {
        Measured {
            busy: Some(busy),
            is_reported,
        }
    }

    fn price(state: &AdmissionState) -> f64 {
        let AdmissionPolicy::Prices(market) = &state.policy else {
            panic!("no prices");
        };
        market.current(false).price.micros() as f64 / 1e6
    }

    /// The price so many seconds after the load.
    fn after(seconds: f64, measured: Measured) -> f64 {
        let mut state = expensive();
        let samples = (seconds / 0.2).round() as u64;
        for sample in 1..=samples {
            state.sample_prices(at(10.0 + sample as f64 * 0.2), || measured);
        }
        price(&state)
    }

    #[test]
    fn an_idle_service_is_free_one_second_after_any_report() {
        assert!(after(0.4, measured(1.0, true)) > 0.8);
        assert_eq!(after(1.2, measured(1.0, true)), 0.0);
        assert_eq!(after(1.2, measured(0.1, false)), 0.0);
    }

    #[test]
    fn a_full_limit_raises_the_price_whatever_the_processor_does() {
        let price_after = |crowded_out: u64| {
            let mut state = cheap();
            enter(&mut state);
            for sample in 0..100 {
                state.served = 10;
                state.waited = Span::from_millis(100);
                state.crowded_out = crowded_out;
                state.sample_prices(at(sample as f64 * 0.2), || measured(0.02, false));
            }
            price(&state)
        };
        assert_eq!(price_after(0), 0.0);
        assert!(price_after(10) > 0.1, "{}", price_after(10));
    }

    #[test]
    fn a_load_of_unpaid_requests_costs_the_others_nothing() {
        let prices_after = |unpaid: u64| {
            let mut state = cheap();
            enter(&mut state);
            for sample in 0..100 {
                (state.served, state.unpaid) = (10, unpaid);
                state.waited = Span::from_millis(100);
                let at = at(sample as f64 * 0.2);
                state.sample_prices(at, || measured(1.0, true));
                // Between replies the proportion is known, too.
                state.sample_prices(at + Span::from_millis(100), || measured(1.0, true));
            }
            price(&state)
        };
        assert_eq!(prices_after(10), 0.0);
        assert!(prices_after(0) > 0.1, "{} if they pay", prices_after(0));
    }

    /// A broker that answers nothing, and the settings of a gateway that publishes there.
    struct SilentBroker {
        listener: TcpListener,
        every: Span,
        offering: Offering,
        terms: AdmissionTerms,
    }

    impl SilentBroker {
        fn new(offer: &str) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let token = tempfile::NamedTempFile::new().unwrap();
            let text = format!(
                "listen = \"127.0.0.1:0\"\n[protection]\npolicy = \"prices\"\n\
                 [prices]\noffer = \"{offer}\"\nevery = \"1ms\"\nlife = \"600s\"\n\
                 [prices.broker]\nurl = \"http://{}/\"\ntype = \"shop\"\nprovider = \"p\"\n\
                 token = {:?}\n[[route]]\npath = \"/\"\nupstream = [\"127.0.0.1:9\"]\n",
                listener.local_addr().unwrap(),
                token.path()
            );
            let config = GatewayConfig::read(&text).unwrap();
            let prices = config.prices.as_ref().unwrap();
            Self {
                listener,
                every: prices.every,
                offering: Offering::new(prices).unwrap(),
                terms: AdmissionTerms::from_config(&config),
            }
        }

        /// The next request, until it has `part`, with its connection: a closed one would be a failure, which is repeated.
        fn next_request(&self, part: &str) -> (TcpStream, String) {
            self.listener.set_nonblocking(true).unwrap();
            let begin = std::time::Instant::now();
            let patience = Duration::from_secs(60);
            let mut stream = loop {
                match self.listener.accept() {
                    Ok((stream, _)) => break stream,
                    Err(_) => assert!(begin.elapsed() < patience, "no request"),
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            stream.set_nonblocking(false).unwrap();
            stream.set_read_timeout(Some(patience)).unwrap();
            let mut request = String::new();
            let mut buffer = [0; 4096];
            while !request.contains(part) {
                let count = stream.read(&mut buffer).unwrap();
                assert!(count > 0, "it ends without {part}: {request}");
                request += str::from_utf8(&buffer[..count]).unwrap();
            }
            (stream, request)
        }
    }

    #[test]
    fn a_publication_that_a_change_of_settings_cuts_off_is_repeated() {
        let broker = SilentBroker::new("a");
        let admission = Arc::new(Admission::new(&broker.terms, &broker.offering));
        let pricing = PriceLoop::start(admission, || measured(0.0, true)).unwrap();
        pricing.set(Some(broker.every), &broker.offering);
        let _held = broker.next_request("a@0");
        // The offers do not change, so that they would not be passed on again for half their lifetime.
        pricing.set(Some(broker.every), &broker.offering);
        broker.next_request("a@0");
    }

    #[test]
    fn offers_of_an_earlier_configuration_are_not_published() {
        let (before, after) = (SilentBroker::new("before"), SilentBroker::new("after"));
        let admission = Arc::new(Admission::new(&before.terms, &before.offering));
        let pricing = PriceLoop::start(admission.clone(), || measured(0.0, true)).unwrap();
        pricing.set(Some(before.every), &before.offering);
        let _held = before.next_request("before@0");
        admission.change(&after.terms, &after.offering);
        pricing.set(Some(after.every), &after.offering);
        let (_, first) = after.next_request("@0");
        assert!(first.contains("after@0"), "{first}");
    }

    /// A thread may still have the accounts of the configuration before.
    #[test]
    fn requests_without_an_account_pass_once_accounts_are_removed() {
        let mut state = expensive();
        let sender = AdmissionClient {
            name: "192.0.2.1",
            hash: 1,
            tier: 0,
        };
        let fields = OfferFields::default();
        let outcome = state.admit(at(10.0), &fields, sender, Payer::Nobody, "/");
        assert!(matches!(outcome, Ok(AdmissionOutcome::Admitted(..))));
    }

    /// It may still work on requests that clients have given up.
    #[test]
    fn a_service_measured_at_work_without_requests_is_not_free() {
        assert!(after(10.0, measured(1.0, false)) > 0.9);
    }
}
