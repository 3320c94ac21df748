//! The testbed of this paper's load studies: one bookshop and one generator.
//!
//! Both run in this process, each on a core of its own. One network namespace then holds all traffic, and its counters
//! count nothing else. A measurement is one run of the generator with the kernel's data: the outcomes of SYNs, and the
//! CPU time of the server's thread.

use std::sync::atomic::AtomicBool;

use posthaste_bookshop::{BookshopConfig, Catalogue, Running, start};
use posthaste_load::{Connections, Pace, Plan, RequestSpec, run, soap_request};
use posthaste_study::lab::Cores;
use posthaste_study::{Conditions, Failure, RecordTable, RecordValue, Records};
use posthaste_units::Seed;

use crate::testbed::measured::{self, MeasuredRun, runs_with};
use crate::testbed::threads::ServingThreads;
use crate::testbed::{CONNECT_TIMEOUT, describe, describe_slowdown};

/// Slowdown of the server, compared with this machine.
pub(super) const SLOWDOWN: u32 = 12;

/// Books in the catalogue. Requests concern one of them.
const BOOKS: usize = 1000;

/// Form of a request for the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestForm {
    /// A plain HTML page.
    Page,
    /// SOAP 1.1 over HTTP.
    Service,
    /// SOAP 1.1 over HTTP, with a compressed reply.
    Compressed,
}

/// A running shop and the load for it.
pub(super) struct ShopTestbed {
    shop: Running,
    isbn: String,
    cores: Cores,
    threads: ServingThreads,
}

/// Configuration of the shop.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShopSettings {
    /// Slowdown, compared with this machine.
    pub(super) slowdown: u32,
    /// Backlog of the listening socket.
    pub(super) backlog: u32,
    /// Maximum number of connections in service.
    pub(super) concurrency: Option<usize>,
}

impl RequestForm {
    /// The two forms that the paper compares.
    pub(super) const PAIR: [Self; 2] = [Self::Service, Self::Page];
    /// All forms.
    pub(super) const ALL: [Self; 3] = [Self::Service, Self::Page, Self::Compressed];

    /// Name in pictures and sentences.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Page => "server page",
            Self::Service => "Web service",
            Self::Compressed => "Web service, compressed",
        }
    }

    /// Name in records.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Service => "service",
            Self::Compressed => "compressed",
        }
    }
}

impl ShopTestbed {
    /// Starts a shop on a core of its own.
    pub(super) fn open(seed: Seed, shop: ShopSettings) -> Result<Self, Failure> {
        let cores = Cores::here();
        let config = BookshopConfig {
            listen: ([127, 0, 0, 1], 0).into(),
            cpus: cores.server.into_iter().collect(),
            backlog: shop.backlog,
            concurrency: shop.concurrency,
            slowdown: shop.slowdown,
            books: BOOKS,
            seed,
            compression: Some(GZIP_LEVEL),
            ..BookshopConfig::default()
        };
        let (running, threads) = ServingThreads::started_by(|| Ok(start(config)?))?;
        Ok(Self {
            shop: running,
            isbn: Catalogue::new(BOOKS, seed).books()[0].isbn.clone(),
            cores,
            threads,
        })
    }

    /// The address of the shop.
    pub(super) fn address(&self) -> std::net::SocketAddr {
        self.shop.addr
    }

    /// The ISBN of the book that all requests concern.
    pub(super) fn isbn(&self) -> &str {
        &self.isbn
    }

    /// The request to `address` for the book in this form.
    pub(super) fn request(&self, form: RequestForm, address: std::net::SocketAddr) -> RequestSpec {
        if form == RequestForm::Page {
            return RequestSpec::get(format!("http://{address}/page/{}", self.isbn));
        }
        let content = format!(
            "<BookLite xmlns=\"{NAMESPACE}\"><isbn>{}</isbn></BookLite>",
            self.isbn
        );
        let action = format!("{NAMESPACE}/BookLite");
        let url = format!("http://{address}/soap");
        let mut request = soap_request(&url, posthaste_soap::Version::Soap11, &action, &content);
        if form == RequestForm::Compressed {
            let field = ("Accept-Encoding".to_owned(), "gzip".to_owned());
            request.headers.push(field);
        }
        request
    }

    /// A plan for this testbed: a new connection per request, aborted after 50 ms.
    pub(super) fn plan(&self, form: RequestForm, pace: Pace) -> Plan {
        Plan {
            connections: Connections::New,
            connect_timeout: CONNECT_TIMEOUT,
            cpus: self.cores.generator.into_iter().collect(),
            ..Plan::new(vec![self.request(form, self.address())], pace)
        }
    }

    /// Runs `plan`. `None` if it was stopped early, because a partial run proves nothing.
    pub(super) fn measure(
        &self,
        plan: &Plan,
        stop: &AtomicBool,
    ) -> Result<Option<MeasuredRun>, Failure> {
        let run = || Ok(run(plan, stop, &mut ())?);
        measured::measure(plan, || self.threads.done(), run)
    }

    /// Records the parameters that all runs on this testbed share.
    pub(super) fn describe(
        &self,
        records: &mut Records,
        conditions: &Conditions<'_>,
        shop: ShopSettings,
    ) {
        describe(records, conditions, self.cores);
        records.set_parameter("connection", "a new one for each request");
        records.set_parameter("server threads", 1);
        records.set_parameter("backlog", shop.backlog);
        let concurrency = shop
            .concurrency
            .map_or("no limit".to_owned(), |n| n.to_string());
        records.set_parameter("connections in service", concurrency);
        describe_slowdown(records, shop.slowdown);
        records.set_parameter("gzip level", GZIP_LEVEL);
    }
}

const NAMESPACE: &str = posthaste_bookshop::NAMESPACE;
/// The default level of servers.
const GZIP_LEVEL: u32 = 6;

/// The table of runs, without rows.
pub(super) fn runs() -> RecordTable {
    let own = [
        "server_cpu_us",
        "server_waited_ms",
        "listen_drops",
        "syn_retransmits",
        "bytes_sent",
        "bytes_received",
    ];
    runs_with("form", &own)
}

/// CPU time of the server per reply, in microseconds.
pub(super) fn cpu_us(measured: &MeasuredRun) -> f64 {
    1e6 * measured.cost()
}

/// A row of [`runs`].
pub(super) fn row(
    measured: &MeasuredRun,
    form: RequestForm,
    load: f64,
    repetition: u64,
) -> Vec<RecordValue> {
    let own = [
        cpu_us(measured),
        1e3 * measured.done.waited,
        measured.kernel.listen_drops as f64,
        measured.kernel.syn_retransmits as f64,
        measured.run.bytes_sent as f64,
        measured.run.bytes_received as f64,
    ];
    measured.row_with(form.key(), load, repetition, &own)
}
