//! The testbed of this paper's load studies: one bookshop and one generator.
//!
//! Both run in this process, each on a core of its own. One network namespace then holds all traffic, and its counters
//! count nothing else. A measurement is one run of the generator with the kernel's data: the outcomes of SYNs, and the
//! CPU time of the server's thread.

use std::fs;
use std::sync::atomic::AtomicBool;

use posthaste_bookshop::{BookshopConfig, Catalogue, Running, start};
use posthaste_load::{
    Connections, Outcome, Outcomes, Pace, Plan, RequestSpec, Run, run, soap_request,
};
use posthaste_stats::Histogram;
use posthaste_study::{
    Conditions, Failure, RecordTable, RecordValue, Records,
    lab::{Cores, Counters, starting},
};
use posthaste_units::{Seed, Span};

use crate::testbed::sweep;

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
    /// The server's thread.
    thread: Option<String>,
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

/// One run of the generator.
pub(super) struct MeasuredRun {
    pub(super) run: Run,
    closed: bool,
    /// Requests in the plan.
    planned: f64,
    /// Kernel counters of the run.
    pub(super) kernel: Counters,
    /// CPU time of the server's thread and its wait for the core.
    pub(super) server: Thread,
}

/// CPU time of a thread and its wait for the core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    /// CPU time in seconds.
    pub(super) used: f64,
    /// Time ready to run without a core, in seconds.
    pub(super) waited: f64,
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
        let turn = starting();
        let before = server_threads();
        let running = start(BookshopConfig {
            listen: ([127, 0, 0, 1], 0).into(),
            cpus: cores.server.into_iter().collect(),
            backlog: shop.backlog,
            concurrency: shop.concurrency,
            slowdown: shop.slowdown,
            books: BOOKS,
            seed,
            compression: Some(GZIP_LEVEL),
            ..BookshopConfig::default()
        })?;
        let thread = server_threads()
            .into_iter()
            .find(|thread| !before.contains(thread));
        drop(turn);
        Ok(Self {
            shop: running,
            isbn: Catalogue::new(BOOKS, seed).books()[0].isbn.clone(),
            cores,
            thread,
        })
    }

    /// The address of the shop.
    pub(super) fn address(&self) -> std::net::SocketAddr {
        self.shop.addr
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
        let (kernel, server) = (Counters::read()?, self.server());
        let run = run(plan, stop, &mut ())?;
        let after = self.server();
        Ok((!run.stopped).then_some(MeasuredRun {
            closed: matches!(plan.pace, Pace::Closed { .. }),
            planned: sweep::planned(plan),
            run,
            kernel: Counters::read()? - kernel,
            server: Thread {
                used: after.used - server.used,
                waited: after.waited - server.waited,
            },
        }))
    }

    /// CPU time and waits of the server's thread so far, from the first two fields of schedstat (nanoseconds).
    fn server(&self) -> Thread {
        let read = |thread| fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok();
        let text = self.thread.as_ref().and_then(read).unwrap_or_default();
        let mut fields = text
            .split_whitespace()
            .map(|field| field.parse().unwrap_or(f64::NAN));
        let mut next = || fields.next().unwrap_or(f64::NAN) / 1e9;
        Thread {
            used: next(),
            waited: next(),
        }
    }

    /// Records the parameters that all runs on this testbed share.
    pub(super) fn describe(
        &self,
        records: &mut Records,
        conditions: &Conditions<'_>,
        shop: ShopSettings,
    ) {
        records.set_parameter("cores", self.cores.describe());
        records.set_parameter("network", conditions.lab.describe());
        records.set_parameter("connection", "a new one for each request");
        records.set_parameter("connect timeout", CONNECT_TIMEOUT);
        records.set_parameter("server threads", 1);
        records.set_parameter("backlog", shop.backlog);
        let concurrency = shop
            .concurrency
            .map_or("no limit".to_owned(), |n| n.to_string());
        records.set_parameter("connections in service", concurrency);
        let words = format!("{} times this machine's processor time", shop.slowdown);
        records.set_parameter("cost of a request", words);
        records.set_parameter("gzip level", GZIP_LEVEL);
        let own = *conditions.lab == posthaste_study::lab::Lab::Own;
        records.set_number("own namespace", f64::from(u8::from(own)));
        let shared = self.cores.server.is_none();
        records.set_number("shared core", f64::from(u8::from(shared)));
    }
}

const NAMESPACE: &str = posthaste_bookshop::NAMESPACE;
/// The default level of servers.
const GZIP_LEVEL: u32 = 6;
/// S-Client's timeout. Longer waits count as rejected.
pub(super) const CONNECT_TIMEOUT: Span = Span::from_millis(50);

/// Threads of this process that serve requests.
fn server_threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let serves = |task: &fs::DirEntry| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "serve-0")
    };
    tasks
        .filter(serves)
        .map(|task| task.file_name().to_string_lossy().into_owned())
        .collect()
}

impl MeasuredRun {
    /// The measured part of the run, with the response times of its complete replies and its duration in seconds: the
    /// last step, or the whole run without steps.
    pub(super) fn part(&self) -> (&Outcomes, Histogram, f64) {
        match self.run.steps.last() {
            Some(step) => (
                &step.part.outcomes,
                step.part.responses.answered(),
                step.duration.as_secs_f64(),
            ),
            None => (
                &self.run.outcomes,
                self.run.response.histogram().clone(),
                self.run.duration.as_secs_f64(),
            ),
        }
    }

    /// The 99th percentile of all requests due in the measured part, in ms. Infinite if it falls among requests without
    /// a reply.
    fn due_p99(&self) -> f64 {
        let p99 = match self.run.steps.last() {
            Some(step) => step.part.responses.all().quantile(0.99),
            None => self.run.response.distribution().quantile(0.99),
        };
        p99.known().map_or(f64::INFINITY, |p99| p99.as_millis_f64())
    }

    /// Successful replies per second to the requests due in the measured part. A closed loop ends with one request of
    /// each client under way; there, the replies that arrived during the run.
    pub(super) fn throughput(&self) -> f64 {
        if self.closed {
            return self.run.served as f64 / self.run.duration.as_secs_f64();
        }
        let (outcomes, _, seconds) = self.part();
        outcomes[Outcome::Ok] as f64 / seconds
    }

    /// Successful replies that arrived in the measured part.
    fn served(&self) -> u64 {
        let last = self.run.steps.last();
        last.map_or(self.run.served, |step| step.part.served)
    }

    /// Requests without a connection or without an acknowledgement, per second.
    pub(super) fn rejected(&self) -> f64 {
        let (outcomes, _, seconds) = self.part();
        (outcomes[Outcome::ConnectAborted] + outcomes[Outcome::Unanswered]) as f64 / seconds
    }

    /// CPU time of the server per reply, in microseconds.
    pub(super) fn cpu_us(&self) -> f64 {
        self.server.used * 1e6 / self.run.outcomes[Outcome::Ok] as f64
    }

    /// A row of [`runs`]: the identification of the run, then all measurements.
    pub(super) fn row(&self, form: RequestForm, load: f64, repetition: u64) -> Vec<RecordValue> {
        let (outcomes, response, seconds) = self.part();
        let summary = response.summary();
        let lateness = self.run.lateness.summary();
        let mut row: Vec<RecordValue> = vec![form.key().into(), load.into(), repetition.into()];
        row.extend(
            [
                seconds,
                self.run.intended as f64,
                self.run.attempted() as f64,
            ]
            .map(RecordValue::from),
        );
        row.extend(
            self.run
                .outcomes
                .iter()
                .map(|(_, count)| RecordValue::from(count)),
        );
        row.extend([
            RecordValue::from(outcomes.total() as f64 / seconds),
            self.throughput().into(),
            self.rejected().into(),
            summary.mean.into(),
            summary.p50.into(),
            summary.p99.into(),
            lateness.p99.into(),
            lateness.max.into(),
            self.cpu_us().into(),
            (self.server.waited * 1e3).into(),
            self.kernel.listen_drops.into(),
            self.kernel.syn_retransmits.into(),
            self.run.bytes_sent.into(),
            self.run.bytes_received.into(),
            self.planned.into(),
            (self.served() as f64 / seconds).into(),
            self.due_p99().into(),
        ]);
        row
    }
}

/// The table of runs, without rows. Rates and times are of the measured part, counts of the whole run.
pub(super) fn runs() -> RecordTable {
    RecordTable::new([
        "form",
        "load",
        "repetition",
        "seconds",
        "intended",
        "attempted",
        "ok",
        "soap-fault",
        "status-error",
        "connect-aborted",
        "unanswered",
        "refused",
        "reset",
        "timed-out",
        "tls-failed",
        "protocol-error",
        "undecodable",
        "memory-limit",
        "dropped",
        "client-failed",
        "declined",
        "in-flight",
        "offered_per_s",
        "throughput_per_s",
        "rejected_per_s",
        "response_ms",
        "response_p50_ms",
        "response_p99_ms",
        "lateness_p99_ms",
        "lateness_max_ms",
        "server_cpu_us",
        "server_waited_ms",
        "listen_drops",
        "syn_retransmits",
        "bytes_sent",
        "bytes_received",
        "planned",
        "served_per_s",
        "due_p99_ms",
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_runs_names_every_outcome_in_its_order() {
        let mut table = runs();
        table.push((0..64u64).map(RecordValue::from));
        let row = table.rows().next().unwrap();
        for (place, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(row.number(outcome.name()), 6.0 + place as f64, "{outcome}");
        }
    }
}
