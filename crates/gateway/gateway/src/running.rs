//! A running gateway: start, reload, stop.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

use posthaste_admission::Amount;
use posthaste_broker_client::Sink;
use posthaste_compression::LoadEstimate;
use posthaste_gateway_config::{
    self as config, AccountsBroker, AdmissionSettings, GatewayConfig, Prices,
};
use posthaste_qos::Currency;
use posthaste_serve::{Background, HttpServer, Listener, ServerTls, StartError, Timeouts};
use posthaste_units::Span;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::accounts::GatewayAccounts;
use crate::accounts::report_loop::{ChargeReporter, ReportLoop};
use crate::admin::AdminHandler;
use crate::admission::Admission;
use crate::admission::offering::Offering;
use crate::admission::price_loop::{Measured, PriceLoop};
use crate::admission::terms::AdmissionTerms;
use crate::context::GatewayContext;
use crate::drain::Drain;
use crate::error::{GatewayError, ResolveError};
use crate::idle;
use crate::listening::{listeners, redirect_port, tls_settings};
use crate::load::resource;
use crate::record::access_log::AccessLog;
use crate::record::metrics::GatewayMetrics;
use crate::record::traces::Traces;
use crate::routing::resolved::ResolvedConfig;
use crate::routing::{offers, renewal};
use crate::worker::gateway;

/// Accept queue of the admin address. Few clients monitor a gateway.
const ADMIN_BACKLOG: u32 = 64;

/// A running gateway. Dropping it drains it and waits for the end.
pub struct RunningGateway {
    /// Address for clients. The port is the real one if 0 was configured.
    pub addr: SocketAddr,
    /// Address for plain HTTP next to HTTPS, if it is configured.
    pub http_addr: Option<SocketAddr>,
    /// Address of `/status`, `/metrics` and `/healthz`.
    pub admin: SocketAddr,
    tls: Option<Arc<ServerTls>>,
    // Drop order: clients first, monitoring last.
    server: posthaste_serve::RunningServer,
    drain: Drain,
    /// Reports the last charges after the last connection has ended.
    _reports: Option<ReportLoop>,
    _watcher: Option<Background>,
    /// Started with the first configuration that has prices. Held during a reload, so that there is one at a time.
    pricing: Mutex<Option<PriceLoop>>,
    _names: Background,
    _offers: Background,
    _admin: posthaste_serve::RunningServer,
    context: Arc<GatewayContext>,
}

impl RunningGateway {
    /// Applies `config` to new requests; requests in service keep their configuration, and stay counted. Reads all
    /// certificates again, those of the authorities of clients too, and uses them for connections from then on. Opens the
    /// access log again, so that a rotated file is released with the next line. An error changes nothing.
    pub fn reload(&self, config: GatewayConfig) -> Result<(), GatewayError> {
        let mut pricing = self.pricing.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.context.resolved();
        let (old, new) = (now.config.timeouts, config.timeouts);
        let fixed = [
            ("admin", now.config.admin == config.admin),
            (
                "access_log",
                now.config.access_log.is_some() == config.access_log.is_some(),
            ),
            ("traces", now.config.traces == config.traces),
            (
                "accounts.broker",
                reporting(&now.config) == reporting(&config),
            ),
            ("demand", now.config.demand == config.demand),
            ("listen", now.config.listen == config.listen),
            ("http", now.config.http == config.http),
            (
                "trust.proxy_protocol",
                now.config.trust.proxy_protocol == config.trust.proxy_protocol,
            ),
            ("threads", now.config.threads == config.threads),
            ("cpus", now.config.cpus == config.cpus),
            ("backlog", now.config.backlog == config.backlog),
            ("connections", now.config.connections == config.connections),
            ("tls", now.config.tls.is_some() == config.tls.is_some()),
            (
                "limits.fields",
                now.config.limits.fields == config.limits.fields,
            ),
            ("timeouts.idle", old.idle == new.idle),
            ("timeouts.head", old.head == new.head),
            ("timeouts.body", old.body == new.body),
            ("timeouts.write", old.write == new.write),
            ("timeouts.grace", old.grace == new.grace),
        ];
        if let Some((name, _)) = fixed.iter().find(|(_, same)| !same) {
            return Err(GatewayError::Fixed(name));
        }
        let tls = tls_settings(&config)?;
        let resolved = ResolvedConfig::following(config, &now)?;
        let terms = AdmissionTerms::from_config(&resolved.config);
        start_pricing(&self.context, &terms.policy, &mut pricing)?;
        // Last, because it creates the file.
        let file = access_log(&resolved.config, AccessLog::reopen)?;
        // Nothing fails from here on.
        let (admission, offering) = (&self.context.admission, &resolved.offering);
        admission.change(&terms, offering);
        let accounts = resolved.config.accounts.as_ref();
        self.context.accounts.change(accounts);
        set_pricing(&terms.policy, offering, &pricing);
        if let (Some(log), Some(file)) = (&self.context.log, file) {
            log.replace(file);
        }
        self.context.resolved.send_replace(Arc::new(resolved));
        if let (Some(server), Some(tls)) = (&self.tls, tls) {
            server.present(tls);
        }
        Ok(())
    }

    /// Makes `/healthz` answer 503, so that load balancers choose other gateways, and serves on. Returns `drain.delay`:
    /// the time to wait before [`RunningGateway::stop`].
    pub fn announce_stop(&self) -> Span {
        self.drain.announce()
    }

    /// Stops accepting and lets requests in service end, within the grace time. Returns at once.
    pub fn stop(&self) {
        self.drain.begin();
        self.server.stop();
    }

    /// Waits in a simulation until every connection has ended after [`RunningGateway::stop`].
    pub async fn ended(&mut self) {
        self.server.ended().await;
    }

    /// Waits until every connection has ended after [`RunningGateway::stop`].
    pub fn join(self) {
        drop(self);
    }
}

impl Drop for RunningGateway {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Checks that `config` can be started: its files can be read. Logs a warning for each upstream without an address, and
/// for each of its [`GatewayConfig::warnings`].
pub fn check(config: GatewayConfig) -> Result<(), GatewayError> {
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    tls_settings(&config)?;
    config.traces.as_ref().map(collector).transpose()?;
    reporter(&config)?;
    ResolvedConfig::new(config)?;
    Ok(())
}

/// Settings of accounts that only a restart can change: the broker, the reports to it, and the currency of charges.
fn reporting(config: &GatewayConfig) -> Option<(Option<&AccountsBroker>, Span, Amount, Currency)> {
    let (broker, every, unreported) = config.accounts.as_ref()?.fixed();
    broker?;
    let prices = config.prices.as_ref().map(|prices| prices.currency);
    let currency = prices.unwrap_or(Prices::default().currency);
    Some((broker, every, unreported, currency))
}

/// The reporter of charges, if there is a broker with accounts.
fn reporter(config: &GatewayConfig) -> Result<Option<ChargeReporter>, ResolveError> {
    match &config.accounts {
        Some(accounts) => ChargeReporter::new(accounts),
        None => Ok(None),
    }
}

fn collector(traces: &config::Traces) -> Result<Sink, GatewayError> {
    Sink::new(&traces.collector).map_err(GatewayError::Traces)
}

/// Starts a gateway. It serves until the returned handle is stopped or dropped.
pub fn start(config: GatewayConfig) -> Result<RunningGateway, GatewayError> {
    let server = server(&config)?;
    let listeners = listeners(&config)?;
    let redirect = redirect_port(&config, &listeners).map_err(StartError::from)?;
    let admin = Listener::open(config.admin, ADMIN_BACKLOG, false)?;
    let (log, traces) = (access_log(&config, AccessLog::open)?, traces(&config)?);
    let (reporter, accounts) = (reporter(&config)?, GatewayAccounts::new(&config));
    let resolved = ResolvedConfig::new(config)?;
    let terms = AdmissionTerms::from_config(&resolved.config);
    let context = Arc::new(GatewayContext {
        metrics: Arc::new(GatewayMetrics::new(resolved.config.threads)),
        estimate: watch::Sender::new(LoadEstimate::UNKNOWN),
        latest: AtomicU64::new(f64::NAN.to_bits()),
        admission: Arc::new(Admission::new(&terms, &resolved.offering)),
        accounts: Arc::new(accounts),
        resolved: watch::Sender::new(Arc::new(resolved)),
        counters: server.counters.clone(),
        redirect,
        log: log.map(Arc::new),
        traces,
        start: Instant::now(),
        is_stopping: AtomicBool::new(false),
    });
    let watcher = resource::start(context.clone()).map_err(StartError::from)?;
    let reports = reporter.map(|reporter| ReportLoop::start(context.accounts.clone(), reporter));
    let reports = reports.transpose().map_err(StartError::from)?;
    let mut pricing = None;
    start_pricing(&context, &terms.policy, &mut pricing)?;
    set_pricing(&terms.policy, &context.resolved().offering, &pricing);
    let names = renewal::start(context.resolved.subscribe()).map_err(StartError::from)?;
    let offers = offers::start(context.resolved.subscribe()).map_err(StartError::from)?;
    let watched = context.clone();
    let admin_server = HttpServer::default();
    let admin = admin_server.start_on(vec![admin], move |_| AdminHandler::new(watched.clone()))?;
    let shared = context.clone();
    let tls = server.tls.clone();
    let server = server.start_specialised(listeners, move |thread| gateway(&shared, thread))?;
    tracing::info!(address = %server.addr, admin = %admin.addr, "the gateway is open");
    Ok(RunningGateway {
        addr: server.addr,
        http_addr: server.addrs.get(1).copied(),
        admin: admin.addr,
        tls,
        server,
        drain: Drain::new(&context),
        _reports: reports,
        _watcher: watcher,
        pricing: Mutex::new(pricing),
        _names: names,
        _offers: offers,
        _admin: admin,
        context,
    })
}

/// Opens the access log with `open`, if there is one.
fn access_log<T>(
    config: &GatewayConfig,
    open: impl Fn(&Path) -> io::Result<T>,
) -> Result<Option<T>, GatewayError> {
    let open = |file: &PathBuf| {
        open(file).map_err(|error| GatewayError::Log {
            file: file.clone(),
            error,
        })
    };
    config.access_log.as_ref().map(open).transpose()
}

fn traces(config: &GatewayConfig) -> Result<Option<Traces>, GatewayError> {
    let Some(config) = &config.traces else {
        return Ok(None);
    };
    let traces = Traces::start(collector(config)?, config);
    Ok(Some(traces.map_err(StartError::from)?))
}

/// Starts the price loop, if there are prices and it does not run. It waits for its settings.
fn start_pricing(
    context: &Arc<GatewayContext>,
    settings: &AdmissionSettings,
    pricing: &mut Option<PriceLoop>,
) -> Result<(), StartError> {
    if pricing.is_none() && matches!(settings, AdmissionSettings::Prices { .. }) {
        let (admission, measured) = (context.admission.clone(), context.clone());
        *pricing = Some(PriceLoop::start(admission, move || Measured {
            busy: measured.busy(),
            is_reported: measured.is_reported(),
        })?);
    }
    Ok(())
}

/// Lets the price loop run with new settings, or pause.
fn set_pricing(settings: &AdmissionSettings, offering: &Offering, pricing: &Option<PriceLoop>) {
    let every = match settings {
        AdmissionSettings::Prices { prices, .. } => Some(prices.every),
        _ => None,
    };
    if let Some(pricing) = pricing {
        pricing.set(every, offering);
    }
}

fn server(config: &GatewayConfig) -> Result<HttpServer, GatewayError> {
    let tls = tls_settings(config)?.map(ServerTls::with);
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
        proxy_protocol: config.trust.proxy_protocol.clone(),
        max_fields: config.limits.fields,
        switches: true,
        hooks: idle::hooks(),
        ..HttpServer::default()
    })
}
