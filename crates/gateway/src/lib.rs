//! A reverse proxy that compresses as far as CPU time allows, for clients that want it.
//!
//! [`start`] runs it. Preferences, policies and admission are decided in the crate `wsqos`, which does no I/O. Each
//! thread serves independently: a request stays on its thread, and connections to upstreams are not shared. On the path
//! of a request threads share no lock, except those of the admission state and of the random numbers that sample
//! distributed traces.
//!
//! # Pipeline
//!
//! `path` contains the request pipeline. `docs/contributing/life-of-a-request.md` lists all phases in order.
//!
//! | phase | module | task |
//! |---|---|---|
//! | validate | `serve`, `admit` | reject ambiguous messages, and those that no upstream should get |
//! | route | `site` | select the route by the longest path prefix |
//! | decode | `decode` | decode a compressed request within bounds |
//! | read preferences | `preference` | read the head and the SOAP header; keep the bytes read ahead |
//! | admit | `protection` | apply a rate, a limit or prices |
//! | queue | `places` | limit the requests under way of this thread |
//! | forward | `upstream` | send to the upstream with the fewest requests in flight, and stream the reply |
//! | compress | `compress` | ask the policy and encode |
//! | mark | `marking` | select the code point |
//!
//! - A connection to an upstream has no task. The request that uses it drives it (`upstream::line`). A pooled
//!   connection is not polled; the next use detects that it was closed.
//! - Excess requests wait in `places` while replies arrive. As soon as the thread has nothing else to do, one more may
//!   go.
//! - A new configuration creates a new `Site`, for requests that begin after it.
//! - `serve` accepts four connections at a time and serves them before it accepts more. Clients without a reply open
//!   more connections, so accepting all of them first would only add more.
//! - `serve` sets the code point on the socket before the first byte of the reply, after the client has acknowledged
//!   all of the previous reply.
//!
//! # Compression
//!
//! - A reply of up to 64 KiB is encoded at once (`codec::whole`), a longer one as it arrives (`packed`,
//!   `codec::stream`).
//! - `cache` holds results of short replies. The key is the whole uncompressed content and nothing else. The policy
//!   only learns that a step has a cached result (`Question::at_hand`).
//! - `worker` holds the CPU token bucket, the cost model and the encoders of one thread.
//! - `demand` samples the load five times a second, outside the path of requests, and publishes the CPU time that
//!   optional compression may use until the next sample. By default each worker samples its own idle time. For a
//!   process, a cgroup, processors or the reports of an upstream, one thread samples for all workers.
//! - `demand::idle` measures the time since the last pause of a worker. It rises before any sample does.
//!
//! # Admission
//!
//! - All threads share one state, used before anything is sent to an upstream. A request takes its lock twice, for
//!   about a microsecond. Readers of the metrics or of the status page hold it while they visit the monitored clients,
//!   16,384 at most.
//! - The reply carries its price and the quote (`protection::pass`). A rejection states its reason and the current
//!   offer (`protection::tell`).
//! - The price moves outside the path of requests, every 200 ms by default (`protection::pricing`). Inputs are the load
//!   of the protected resource, the excess of response times over their minimum, and the rejected work. A separate task
//!   publishes the result at the broker, so that a slow broker delays nothing else.
//!
//! # Distributed traces
//!
//! `traces` gives a traced request its position in the distributed trace and queues the ended trace span for a thread.
//! That thread exports to the collector.

mod access;
mod admin;
mod admit;
mod body;
mod cache;
mod clock;
mod codec;
mod compress;
pub mod config;
mod context;
mod decode;
mod demand;
mod exposition;
mod headers;
mod marking;
mod metrics;
mod packed;
mod path;
mod places;
mod preference;
mod protection;
mod refusal;
mod site;
mod source;
mod spelling;
mod status;
mod traces;
mod upstream;
mod worker;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use posthaste_broker_client::Sink;
use posthaste_compression::LoadEstimate;
use posthaste_serve::{Background, Certificate, HttpServer, ServerTls, StartError, Timeouts};
use thiserror::Error;
use tokio::sync::watch;

use crate::access::AccessLog;
use crate::admin::Admin;
pub use crate::config::Config;
use crate::config::{Guard, Watch};
use crate::context::GatewayContext;
use crate::demand::{Watcher, sample_load};
use crate::metrics::Metrics;
use crate::path::Gateway;
use crate::places::Places;
use crate::protection::{Protection, start_pricing};
pub use crate::site::PlanError;
use crate::site::{Plan, Site};
use crate::traces::Traces;
pub use crate::upstream::TargetError;
use crate::worker::CompressionWorker;

/// Interval between searches for unused connections to upstreams.
const SWEEP: Duration = Duration::from_secs(1);

/// Accept queue of the admin address. Few clients monitor a gateway.
const ADMIN_BACKLOG: u32 = 64;

/// Errors of a start or of a new configuration.
#[derive(Debug, Error)]
pub enum Error {
    /// Cannot listen on an address.
    #[error(transparent)]
    Listen(#[from] posthaste_serve::ListenError),
    /// Cannot start the threads.
    #[error(transparent)]
    Start(#[from] posthaste_serve::StartError),
    /// The certificate or key is unusable.
    #[error(transparent)]
    Tls(#[from] posthaste_serve::TlsError),
    /// An upstream or a service description is unusable.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The access log cannot be opened.
    #[error("the access log {} cannot be written: {error}", file.display())]
    Log {
        /// Path of the log.
        file: PathBuf,
        /// Error of the system.
        error: std::io::Error,
    },
    /// The address of the trace collector is invalid.
    #[error("traces.collector: {0}")]
    Traces(posthaste_broker_client::UrlError),
    /// A setting that only a restart can change.
    #[error("{0} cannot change while the gateway runs: start it anew")]
    Fixed(&'static str),
}

/// A running gateway. Dropping it drains it and waits for the end.
pub struct Running {
    /// Address for clients. The port is the real one if 0 was configured.
    pub addr: SocketAddr,
    /// Address of `/status`, `/metrics` and `/healthz`.
    pub admin: SocketAddr,
    tls: Option<Arc<ServerTls>>,
    // Drop order: clients first, monitoring last.
    server: posthaste_serve::RunningServer,
    _watcher: Option<Watcher>,
    _pricing: Option<Background>,
    _admin: posthaste_serve::RunningServer,
    context: Arc<GatewayContext>,
}

/// Checks that `config` can be started: its upstreams resolve and its files can be read.
pub fn check(config: Config) -> Result<(), Error> {
    certificate(&config)?;
    config.traces.as_ref().map(collector).transpose()?;
    Plan::new(config)?;
    Ok(())
}

fn collector(traces: &config::Traces) -> Result<Sink, Error> {
    Sink::new(&traces.collector).map_err(Error::Traces)
}

/// Starts a gateway. It serves until the returned handle is stopped or dropped.
pub fn start(config: Config) -> Result<Running, Error> {
    let server = server(&config)?;
    let listener = posthaste_serve::listen(config.listen, config.backlog)?;
    let admin = posthaste_serve::listen(config.admin, ADMIN_BACKLOG)?;
    let log = match &config.access_log {
        Some(file) => Some(AccessLog::open(file).map_err(|error| Error::Log {
            file: file.clone(),
            error,
        })?),
        None => None,
    };
    let traces = match &config.traces {
        Some(config) => {
            let sink = collector(config)?;
            Some(Traces::start(sink, config).map_err(StartError::from)?)
        }
        None => None,
    };
    let plan = Plan::new(config)?;
    let context = Arc::new(GatewayContext {
        metrics: Metrics::new(plan.config.threads),
        estimate: watch::Sender::new(LoadEstimate::UNKNOWN),
        latest: AtomicU64::new(f64::NAN.to_bits()),
        protection: Protection::new(&plan),
        plan: watch::Sender::new(Arc::new(plan)),
        counters: server.counters.clone(),
        log,
        traces,
        start: Instant::now(),
    });
    let watcher = Watcher::start(context.clone()).map_err(StartError::from)?;
    let has_price = context.plan().config.protection.policy == Guard::Prices;
    let pricing = has_price.then(|| start_pricing(context.clone()));
    let pricing = pricing.transpose().map_err(StartError::from)?;
    let watched = context.clone();
    let admin = HttpServer::default().start(admin, move |_| Admin(watched.clone()))?;
    let shared = context.clone();
    let tls = server.tls.clone();
    let server = server.start(listener, move |thread| gateway(&shared, thread))?;
    tracing::info!(address = %server.addr, admin = %admin.addr, "the gateway is open");
    Ok(Running {
        addr: server.addr,
        admin: admin.addr,
        tls,
        server,
        _watcher: watcher,
        _pricing: pricing,
        _admin: admin,
        context,
    })
}

fn certificate(config: &Config) -> Result<Option<Certificate>, Error> {
    let read = |tls: &config::Tls| Certificate::read(&tls.certificate, &tls.key);
    Ok(config.tls.as_ref().map(read).transpose()?)
}

fn server(config: &Config) -> Result<HttpServer, Error> {
    let tls = certificate(config)?.map(ServerTls::new).transpose()?;
    let limits = config.timeouts;
    Ok(HttpServer {
        threads: config.threads,
        cpus: config.cpus.clone(),
        concurrency: config.connections,
        timeouts: Timeouts {
            idle: limits.idle,
            head: limits.head,
            body: limits.body,
            write: limits.write,
            grace: limits.grace,
        },
        tls: tls.map(Arc::new),
        hooks: demand::idle::hooks(),
        ..HttpServer::default()
    })
}

/// Creates the gateway of one thread and spawns its background tasks.
fn gateway(context: &Arc<GatewayContext>, thread: usize) -> Gateway {
    let worker = Rc::new(CompressionWorker::new(thread, context.clone()));
    let mut plans = context.plan.subscribe();
    let first = plans.borrow_and_update().clone();
    let site = Rc::new(RefCell::new(Rc::new(Site::new(
        context,
        first.clone(),
        thread == 0,
    ))));
    match first.config.demand.watch {
        Watch::Workers => tokio::task::spawn_local(sample_load(worker.clone())),
        _ => tokio::task::spawn_local(watch_load(context.estimate.subscribe(), worker.clone())),
    };
    tokio::task::spawn_local(watch_config(
        context.clone(),
        plans,
        site.clone(),
        thread == 0,
    ));
    tokio::task::spawn_local(sweep(site.clone()));
    let places = Rc::new(Places::new());
    tokio::task::spawn_local(places.clone().grow_while_idle());
    Gateway {
        site,
        worker,
        places,
    }
}

/// Applies each new configuration to the thread.
async fn watch_config(
    context: Arc<GatewayContext>,
    mut plans: watch::Receiver<Arc<Plan>>,
    site: Rc<RefCell<Rc<Site>>>,
    checks: bool,
) {
    while plans.changed().await.is_ok() {
        let plan = plans.borrow_and_update().clone();
        site.replace(Rc::new(Site::new(&context, plan, checks)));
    }
}

/// Passes each new load estimate to the thread's `CompressionWorker`.
async fn watch_load(mut estimates: watch::Receiver<LoadEstimate>, worker: Rc<CompressionWorker>) {
    while estimates.changed().await.is_ok() {
        let estimate = *estimates.borrow_and_update();
        worker.estimate.set(estimate);
    }
}

async fn sweep(site: Rc<RefCell<Rc<Site>>>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let site = site.borrow().clone();
        site.close_unused();
    }
}

impl Running {
    /// Applies `config` to new requests; requests in service keep their configuration. Reads the certificate again and
    /// presents it to connections from then on.
    pub fn reload(&self, config: Config) -> Result<(), Error> {
        let now = self.context.plan();
        let (old, new) = (now.config.timeouts, config.timeouts);
        let fixed = [
            ("admin", now.config.admin == config.admin),
            ("access_log", now.config.access_log == config.access_log),
            ("traces", now.config.traces == config.traces),
            ("demand", now.config.demand == config.demand),
            ("protection", now.config.protection == config.protection),
            ("prices", now.config.prices == config.prices),
            ("listen", now.config.listen == config.listen),
            ("threads", now.config.threads == config.threads),
            ("cpus", now.config.cpus == config.cpus),
            ("backlog", now.config.backlog == config.backlog),
            ("connections", now.config.connections == config.connections),
            ("tls", now.config.tls.is_some() == config.tls.is_some()),
            ("timeouts.idle", old.idle == new.idle),
            ("timeouts.head", old.head == new.head),
            ("timeouts.body", old.body == new.body),
            ("timeouts.write", old.write == new.write),
            ("timeouts.grace", old.grace == new.grace),
        ];
        if let Some((name, _)) = fixed.iter().find(|(_, same)| !same) {
            return Err(Error::Fixed(name));
        }
        let certificate = certificate(&config)?;
        let mut plan = Plan::new(config)?;
        plan.remember(&now);
        self.context.plan.send_replace(Arc::new(plan));
        if let (Some(tls), Some(certificate)) = (&self.tls, certificate) {
            tls.present(certificate);
        }
        Ok(())
    }

    /// Stops accepting and lets requests in service end, within the grace time. Returns at once.
    pub fn stop(&self) {
        self.server.stop();
    }

    /// Waits until every connection has ended after [`Running::stop`].
    pub fn join(self) {
        self.server.join();
    }
}
