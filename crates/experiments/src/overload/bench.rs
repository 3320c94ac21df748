//! One bookshop and one generator side by side: what every study of this paper measures with.
//!
//! Both live in this process, each on a core of its own, so that one network namespace holds all
//! traffic and its counters hold nothing else. A run here is one run of the generator with what
//! the kernel says about it: what became of SYNs, and what the server's thread used.

use std::fs;
use std::sync::atomic::AtomicBool;

use posthaste_bookshop::{Catalogue, Config, Running, start};
use posthaste_load::{
    Connections, Outcome, Outcomes, Pace, Plan, RequestSpec, Run, run, soap_request,
};
use posthaste_stats::Histogram;
use posthaste_units::{Seed, Span};

use crate::figure::{Conditions, Failure};
use crate::lab::{Cores, Counters, starting};
use crate::records::{Records, Table, Value};
use crate::sweep;

/// The server is a machine this many times slower than the one it runs on.
pub(super) const SLOWDOWN: u32 = 12;

/// Books in the catalogue; one of them is asked for.
const BOOKS: usize = 1000;

/// In which form the book is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A plain HTML page.
    Page,
    /// SOAP 1.1 over HTTP.
    Service,
    /// The same, its reply compressed.
    Compressed,
}

/// A shop that is open, and how to load it.
pub(super) struct Bench {
    shop: Running,
    isbn: String,
    cores: Cores,
    /// The server's thread.
    thread: Option<String>,
}

/// How the shop is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shop {
    /// How many times slower than this machine.
    pub(super) slowdown: u32,
    /// Connections that wait in the kernel.
    pub(super) backlog: u32,
    /// Connections in service at most.
    pub(super) concurrency: Option<usize>,
}

/// One run of the generator.
pub(super) struct Measured {
    pub(super) run: Run,
    closed: bool,
    /// Requests that the plan has.
    planned: f64,
    /// What the kernel counted meanwhile.
    pub(super) kernel: Counters,
    /// What the server's thread used and waited for.
    pub(super) server: Thread,
}

/// A thread's time on its core and in the queue for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    /// Processor time in seconds.
    pub(super) used: f64,
    /// Time it was ready to run and did not, in seconds.
    pub(super) waited: f64,
}

impl Form {
    /// The two that the paper compares.
    pub(super) const PAIR: [Self; 2] = [Self::Service, Self::Page];
    /// All.
    pub(super) const ALL: [Self; 3] = [Self::Service, Self::Page, Self::Compressed];

    /// Its name in pictures and sentences.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Page => "server page",
            Self::Service => "Web service",
            Self::Compressed => "Web service, compressed",
        }
    }

    /// Its name in records.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Service => "service",
            Self::Compressed => "compressed",
        }
    }
}

impl Bench {
    /// Opens a shop on a core of its own.
    pub(super) fn open(seed: Seed, shop: Shop) -> Result<Self, Failure> {
        let cores = Cores::here();
        let turn = starting();
        let before = server_threads();
        let running = start(Config {
            listen: ([127, 0, 0, 1], 0).into(),
            cpus: cores.server.into_iter().collect(),
            backlog: shop.backlog,
            concurrency: shop.concurrency,
            slowdown: shop.slowdown,
            books: BOOKS,
            seed,
            compression: Some(GZIP_LEVEL),
            ..Config::default()
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

    /// The address it listens on.
    pub(super) fn address(&self) -> std::net::SocketAddr {
        self.shop.addr
    }

    /// What is sent to `address` for the book in this form.
    pub(super) fn request(&self, form: Form, address: std::net::SocketAddr) -> RequestSpec {
        if form == Form::Page {
            return RequestSpec::get(format!("http://{address}/page/{}", self.isbn));
        }
        let content = format!(
            "<BookLite xmlns=\"{NAMESPACE}\"><isbn>{}</isbn></BookLite>",
            self.isbn
        );
        let action = format!("{NAMESPACE}/BookLite");
        let url = format!("http://{address}/soap");
        let mut request = soap_request(&url, posthaste_soap::Version::Soap11, &action, &content);
        if form == Form::Compressed {
            let field = ("Accept-Encoding".to_owned(), "gzip".to_owned());
            request.headers.push(field);
        }
        request
    }

    /// A plan for this bench: a new connection per request, aborted after 50 ms.
    pub(super) fn plan(&self, form: Form, pace: Pace) -> Plan {
        Plan {
            connections: Connections::New,
            connect_timeout: CONNECT_TIMEOUT,
            cpus: self.cores.generator.into_iter().collect(),
            ..Plan::new(vec![self.request(form, self.address())], pace)
        }
    }

    /// Carries out `plan`; `None` when it was stopped early, since half a run proves nothing.
    pub(super) fn measure(
        &self,
        plan: &Plan,
        stop: &AtomicBool,
    ) -> Result<Option<Measured>, Failure> {
        let (kernel, server) = (Counters::read()?, self.server());
        let run = run(plan, stop, &mut ())?;
        let after = self.server();
        Ok((!run.stopped).then_some(Measured {
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

    /// What the server's thread has used so far: the first two fields of schedstat, nanoseconds.
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

    /// Writes down what holds for every run on this bench.
    pub(super) fn describe(&self, records: &mut Records, conditions: &Conditions<'_>, shop: Shop) {
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
        let own = *conditions.lab == crate::lab::Lab::Own;
        records.set_number("own namespace", f64::from(u8::from(own)));
        let shared = self.cores.server.is_none();
        records.set_number("shared core", f64::from(u8::from(shared)));
    }
}

const NAMESPACE: &str = posthaste_bookshop::NAMESPACE;
/// The level that servers use by default.
const GZIP_LEVEL: u32 = 6;
/// S-Client's: longer waits count as rejected.
pub(super) const CONNECT_TIMEOUT: Span = Span::from_millis(50);

/// Threads of this process that serve.
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

impl Measured {
    /// The part of the run that counts, with the response times of its complete replies: its last step, or all of it where
    /// there is one only.
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

    /// The 99th percentile of all requests that were due in the part that counts, in ms; infinite among requests without
    /// a reply.
    fn due_p99(&self) -> f64 {
        let p99 = match self.run.steps.last() {
            Some(step) => step.part.responses.all().quantile(0.99),
            None => self.run.response.distribution().quantile(0.99),
        };
        p99.known().map_or(f64::INFINITY, |p99| p99.as_millis_f64())
    }

    /// Good replies per second: to the requests due in the part that counts. In a closed loop, which ends with a
    /// request of each client under way, those that came in its time.
    pub(super) fn throughput(&self) -> f64 {
        if self.closed {
            return self.run.served as f64 / self.run.duration.as_secs_f64();
        }
        let (outcomes, _, seconds) = self.part();
        outcomes[Outcome::Ok] as f64 / seconds
    }

    /// Good replies that came in the part that counts.
    fn served(&self) -> u64 {
        let last = self.run.steps.last();
        last.map_or(self.run.served, |step| step.part.served)
    }

    /// Requests without a connection or an acknowledgement, per second.
    pub(super) fn rejected(&self) -> f64 {
        let (outcomes, _, seconds) = self.part();
        (outcomes[Outcome::ConnectAborted] + outcomes[Outcome::Unanswered]) as f64 / seconds
    }

    /// Processor time of the server per reply, in microseconds.
    pub(super) fn cpu_us(&self) -> f64 {
        self.server.used * 1e6 / self.run.outcomes[Outcome::Ok] as f64
    }

    /// A row of [`runs`]: which run it was, then everything measured.
    pub(super) fn row(&self, form: Form, load: f64, repetition: u64) -> Vec<Value> {
        let (outcomes, response, seconds) = self.part();
        let summary = response.summary();
        let lateness = self.run.lateness.summary();
        let mut row: Vec<Value> = vec![form.key().into(), load.into(), repetition.into()];
        row.extend(
            [
                seconds,
                self.run.intended as f64,
                self.run.attempted() as f64,
            ]
            .map(Value::from),
        );
        row.extend(
            self.run
                .outcomes
                .iter()
                .map(|(_, count)| Value::from(count)),
        );
        row.extend([
            Value::from(outcomes.total() as f64 / seconds),
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

/// The table of runs, without rows. Rates and times are of the part that counts, counts of the
/// whole run.
pub(super) fn runs() -> Table {
    Table::new([
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
        table.push((0..64u64).map(Value::from));
        let row = table.rows().next().unwrap();
        for (place, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(row.number(outcome.name()), 6.0 + place as f64, "{outcome}");
        }
    }
}
