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

use crate::Error;
use crate::controls::{Client, Controls, KINDS};
use crate::lines::Lines;
use crate::products::KIND;
use crate::story::Story;

/// Timeout of a request.
const PATIENCE: Span = Span::from_secs(6);
/// Maximum number of connections per kind. Requests beyond it are dropped.
const CONNECTIONS: usize = 300;
/// Duration of a run, which is then repeated.
const RUN: Span = Span::from_secs(3600);
/// Interval without outcomes that is reported as empty.
const SILENCE: Span = Span::from_secs(3);

/// All kinds of clients. Dropping them stops them.
pub(crate) struct Crowd {
    kinds: [Kind; KINDS.len()],
    broker: String,
    data: Data,
    seed: Seed,
    story: Arc<Story>,
}

/// One kind of client.
struct Kind {
    does: Option<Deed>,
    run: Option<Running>,
    seen: Arc<Seen>,
}

/// Workload of a kind.
#[derive(Clone, Copy, PartialEq)]
struct Deed {
    client: Client,
    /// Address of its network's relay.
    at: SocketAddr,
    /// Requests per second.
    rate: f64,
    /// True if it buys offers at the broker.
    buys: bool,
}

struct Running {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// Outcomes of a kind's requests since the last sample.
#[derive(Default)]
pub(crate) struct Seen(Mutex<(Span, Tick)>);

impl Crowd {
    /// Creates idle clients that request the books in `isbns` and buy at the broker with this URL.
    pub(crate) fn new(
        isbns: &str,
        broker: String,
        seed: Seed,
        story: &Arc<Story>,
    ) -> Result<Self, Error> {
        let kind = || Kind {
            does: None,
            run: None,
            seen: Arc::default(),
        };
        Ok(Self {
            kinds: std::array::from_fn(|_| kind()),
            broker,
            data: Data::read(isbns.as_bytes())?,
            seed,
            story: story.clone(),
        })
    }

    /// Outcomes of the requests, by kind.
    pub(crate) fn seen(&self) -> [Arc<Seen>; KINDS.len()] {
        self.kinds.each_ref().map(|kind| kind.seen.clone())
    }

    /// Applies `controls`. A kind with changed settings aborts its requests in flight.
    pub(crate) fn obey(&mut self, controls: &Controls, lines: &Lines) -> Result<(), Error> {
        let rate = f64::from(controls.demand) / KINDS.len() as f64;
        for (place, kind) in self.kinds.iter_mut().enumerate() {
            let client = controls.clients[place];
            let deed = Deed {
                client,
                at: lines.address(client.network),
                rate,
                buys: controls.protection.is_priced(),
            };
            if kind.does == Some(deed) {
                continue;
            }
            kind.stop();
            if rate > 0.0 {
                let seed = self.seed.numbered("kind", place as u64);
                let plan = Plan {
                    data: self.data.clone(),
                    seed,
                    buying: deed.buys.then(|| buying(&self.broker, &client)),
                    ..plan(KINDS[place], &deed)
                };
                kind.run = Some(Running::start(plan, &kind.seen, &self.story)?);
            }
            kind.does = Some(deed);
        }
        Ok(())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for kind in &self.kinds {
            kind.tell_to_stop();
        }
        self.kinds.iter_mut().for_each(Kind::stop);
    }
}

impl Kind {
    fn tell_to_stop(&self) {
        if let Some(run) = &self.run {
            run.stop.store(true, Relaxed);
        }
    }

    fn stop(&mut self) {
        self.tell_to_stop();
        if let Some(run) = self.run.take() {
            // A panic has been reported already.
            let _ = run.thread.join();
        }
        *self.seen.seen() = Default::default();
    }
}

impl Running {
    fn start(plan: Plan, seen: &Arc<Seen>, story: &Arc<Story>) -> Result<Self, Error> {
        let stop = Arc::<AtomicBool>::default();
        let (stopped, seen, story) = (stop.clone(), seen.clone(), story.clone());
        let body = move || {
            while !stopped.load(Relaxed) {
                let mut watching = Watching {
                    seen: &seen,
                    last: Span::ZERO,
                };
                if let Err(error) = run(&plan, &stopped, &mut watching) {
                    story.news(format!("Clients cannot go on: {error}"));
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("clients".to_owned())
            .spawn(body)
            .map_err(Error::Thread)?;
        Ok(Self { stop, thread })
    }
}

impl Seen {
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

struct Watching<'a> {
    seen: &'a Seen,
    last: Span,
}

impl Observer for Watching<'_> {
    fn tick(&mut self, at: Span, tick: &Tick) {
        let mut seen = self.seen.seen();
        seen.0 += at.saturating_sub(self.last);
        seen.1.merge(tick);
        self.last = at;
    }
}

/// Wanted offer and maximum price.
fn buying(broker: &str, client: &Client) -> Buying {
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
fn plan(name: &str, deed: &Deed) -> Plan {
    let Deed {
        client, at, rate, ..
    } = deed;
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
