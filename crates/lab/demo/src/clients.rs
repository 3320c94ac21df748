//! Clients: each kind is an open-loop run of the load generator, restarted when its settings change.
//!
//! With prices, a client takes the broker's cheapest offer before each request. It sends nothing without one in budget.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use posthaste_compression::Wish;
use posthaste_load::{
    Arrivals, Buying, Data, Observer, Pace, Plan, RateStep, RequestSpec, Tick, WithoutOffers, run,
};
use posthaste_qos::{Definition, Money};
use posthaste_units::{Dscp, Rate, Seed, Span};

use crate::DemoError;
use crate::controls::{ClientControls, Controls, KINDS};
use crate::event_log::EventLog;
use crate::networks::NetworkRelays;
use crate::products::KIND;

/// Timeout of a request.
const PATIENCE: Span = Span::from_secs(6);
/// Maximum number of connections per kind. Requests beyond it are dropped.
const CONNECTIONS: usize = 300;
/// Duration of a run, which is then repeated.
const RUN: Span = Span::from_secs(3600);
/// Interval without outcomes that is reported as empty.
const SILENCE: Span = Span::from_secs(3);

/// All kinds of clients. Dropping them stops them.
pub(crate) struct DemoClients {
    kinds: [ClientKind; KINDS.len()],
    broker: String,
    data: Data,
    seed: Seed,
    log: Arc<EventLog>,
}

/// One kind of client.
struct ClientKind {
    workload: Option<Workload>,
    run: Option<LoadRun>,
    seen: Arc<ClientOutcomes>,
}

/// Workload of a kind.
#[derive(Clone, Copy, PartialEq)]
struct Workload {
    client: ClientControls,
    /// Address of its network's relay.
    at: SocketAddr,
    /// Requests per second.
    rate: f64,
    /// True if it buys offers at the broker.
    buys: bool,
}

struct LoadRun {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// Outcomes of a kind's requests since the last sample.
#[derive(Default)]
pub(crate) struct ClientOutcomes(Mutex<(Span, Tick)>);

impl DemoClients {
    /// Creates idle clients that request the books in `isbns` and buy at the broker with this URL.
    pub(crate) fn new(
        isbns: &str,
        broker: String,
        seed: Seed,
        log: &Arc<EventLog>,
    ) -> Result<Self, DemoError> {
        let kind = || ClientKind {
            workload: None,
            run: None,
            seen: Arc::default(),
        };
        Ok(Self {
            kinds: std::array::from_fn(|_| kind()),
            broker,
            data: Data::read(isbns.as_bytes())?,
            seed,
            log: log.clone(),
        })
    }

    /// Outcomes of the requests, by kind.
    pub(crate) fn seen(&self) -> [Arc<ClientOutcomes>; KINDS.len()] {
        self.kinds.each_ref().map(|kind| kind.seen.clone())
    }

    /// Applies `controls`. A kind with changed settings aborts its requests in flight.
    pub(crate) fn apply(
        &mut self,
        controls: &Controls,
        networks: &NetworkRelays,
    ) -> Result<(), DemoError> {
        let rate = f64::from(controls.demand) / KINDS.len() as f64;
        for (index, kind) in self.kinds.iter_mut().enumerate() {
            let client = controls.clients[index];
            let workload = Workload {
                client,
                at: networks.address(client.network),
                rate,
                buys: controls.protection.is_priced(),
            };
            if kind.workload == Some(workload) {
                continue;
            }
            kind.stop();
            if rate > 0.0 {
                let seed = self.seed.numbered("kind", index as u64);
                let plan = Plan {
                    data: self.data.clone(),
                    seed,
                    buying: workload.buys.then(|| buying(&self.broker, &client)),
                    ..plan(KINDS[index], &workload)
                };
                kind.run = Some(LoadRun::start(plan, &kind.seen, &self.log)?);
            }
            kind.workload = Some(workload);
        }
        Ok(())
    }
}

impl Drop for DemoClients {
    fn drop(&mut self) {
        for kind in &self.kinds {
            kind.request_stop();
        }
        self.kinds.iter_mut().for_each(ClientKind::stop);
    }
}

impl ClientKind {
    fn request_stop(&self) {
        if let Some(run) = &self.run {
            run.stop.store(true, Relaxed);
        }
    }

    fn stop(&mut self) {
        self.request_stop();
        if let Some(run) = self.run.take() {
            // A panic has been reported already.
            let _ = run.thread.join();
        }
        *self.seen.seen() = Default::default();
    }
}

impl LoadRun {
    fn start(
        plan: Plan,
        seen: &Arc<ClientOutcomes>,
        log: &Arc<EventLog>,
    ) -> Result<Self, DemoError> {
        let stop = Arc::<AtomicBool>::default();
        let (stopped, seen, log) = (stop.clone(), seen.clone(), log.clone());
        let body = move || {
            while !stopped.load(Relaxed) {
                let mut watching = OutcomeObserver {
                    seen: &seen,
                    last: Span::ZERO,
                };
                if let Err(error) = run(&plan, &stopped, &mut watching) {
                    log.news(format!("Clients cannot go on: {error}"));
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("clients".to_owned())
            .spawn(body)
            .map_err(DemoError::Thread)?;
        Ok(Self { stop, thread })
    }
}

impl ClientOutcomes {
    /// Returns and resets the outcomes and their duration. A run reports once a second, but sometimes nothing and then
    /// two seconds at once, so an empty second is added to the next.
    pub(crate) fn take(&self) -> Option<(Span, Tick)> {
        let mut seen = self.seen();
        let is_told = seen.1.outcomes.total() > 0 || seen.0 >= SILENCE;
        is_told.then(|| std::mem::take(&mut *seen))
    }

    fn seen(&self) -> MutexGuard<'_, (Span, Tick)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct OutcomeObserver<'a> {
    seen: &'a ClientOutcomes,
    last: Span,
}

impl Observer for OutcomeObserver<'_> {
    fn tick(&mut self, at: Span, tick: &Tick) {
        let mut seen = self.seen.seen();
        seen.0 += at.saturating_sub(self.last);
        seen.1.merge(tick);
        self.last = at;
    }
}

/// Wanted offer and maximum price.
fn buying(broker: &str, client: &ClientControls) -> Buying {
    let euros = |cents| Money::from_micros(u64::from(cents) * 10_000, "EUR".parse().ok()?);
    Buying {
        broker: broker.to_owned(),
        kind: Some(KIND.to_owned()),
        wanted: Definition {
            price: client.budget.and_then(euros),
            ..Definition::default()
        },
        without: WithoutOffers::Decline,
        ask_every: None,
    }
}

/// Requests and arrivals of a kind.
fn plan(name: &str, workload: &Workload) -> Plan {
    let Workload {
        client, at, rate, ..
    } = workload;
    let field = |name: &str, value: String| (name.to_owned(), value);
    let mut headers = vec![
        field("X-Client", name.to_owned()),
        field("Accept-Encoding", "gzip".to_owned()),
    ];
    if client.wish != Wish::Unstated {
        headers.push(field("Prefer", format!("compression={}", client.wish)));
    }
    if client.mark != Dscp::DEFAULT {
        headers.push(field("Prefer", format!("mark={}", client.mark)));
    }
    let request = RequestSpec {
        headers,
        ..RequestSpec::get(format!("http://{at}/json/{{{{isbn}}}}?size=heavy1"))
    };
    let rate = Rate::per_second(*rate).unwrap_or_default();
    let pace = Pace::Open {
        arrivals: Arrivals::Poisson,
        steps: vec![RateStep::steady(rate, RUN)],
    };
    Plan {
        timeout: PATIENCE,
        connect_timeout: PATIENCE,
        connection_limit: CONNECTIONS,
        ..Plan::new(vec![request], pace)
    }
}
