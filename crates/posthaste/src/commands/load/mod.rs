//! `posthaste load`: converts options to a plan, and the run to a report.

#[cfg(feature = "agents")]
mod agents;
mod buying;
mod events;
mod find;
mod grpc;
mod measure;
mod protocol;
mod proxy;
mod requests;
mod retries;
mod runner;
mod values;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, ValueEnum};
use posthaste_evaluation::Assertion;
use posthaste_load::{
    Arrivals, Connections, Data, EventPlan, Pace, PemFile, Plan, RateStep, RequestError, Resolve,
    RunError, TargetError, TlsOptions,
};
use posthaste_soap::Version;
use posthaste_units::{Rate, Ratio, Seed, Span};

use self::buying::BuyingArgs;
use self::events::EventArgs;
use self::grpc::GrpcArgs;
use self::protocol::ProtocolArgs;
use self::retries::RetryArgs;
use self::runner::PlanRunner;
use self::values::{
    Header, Ramp, RateSteps, connections, mistyped_arrivals, precision, soap_version, threads, user,
};
use super::checks::CheckFiles;
use super::{Failure, print};

/// Load a web service and account for every request.
///
/// Open loop by default: requests are due at their times whatever the server does, and
/// response time counts from then. Every intended request ends in exactly one outcome.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("pace").args(["rate", "clients", "find", "steps", "ramp"]))]
pub(crate) struct Args {
    /// URL of the requests; placeholders {{column}} are filled from --data. With --wsdl: replaces the address in the
    /// document. Not with --mix
    #[arg(required_unless_present_any = ["mix", "wsdl"], conflicts_with_all = ["mix"])]
    url: Option<String>,

    /// Open loop at this rate, for example 500/s
    #[arg(long, help_heading = "Pace")]
    rate: Option<Rate>,
    /// Closed loop: this many clients, each sends its next request when the last has ended
    #[arg(short = 'c', long, help_heading = "Pace", conflicts_with = "arrivals", value_parser = clap::value_parser!(u32).range(1..))]
    clients: Option<u32>,
    /// Find the highest rate with this result, for example 'p99<200ms', or with --stream 'gap<50ms'. Takes
    /// 50s, or --duration
    #[arg(
        long,
        value_name = "OBJECTIVE",
        help_heading = "Pace",
        conflicts_with = "warm_up"
    )]
    find: Option<Assertion>,
    /// With --find: say so if half of the interval is wider than this share of the capacity [default: 5%]
    #[arg(long, value_name = "X%", value_parser = precision, help_heading = "Pace")]
    precision: Option<Ratio>,
    /// Rates from A to B in S steps (100/s..1000/s:10), or in steps of S (100/s..1000/s:100/s);
    /// they share the duration equally
    #[arg(long, value_name = "A..B:S", help_heading = "Pace")]
    steps: Option<RateSteps>,
    /// A rate that moves from A to B in a straight line, for example 100/s..1000/s
    #[arg(long, value_name = "A..B", help_heading = "Pace")]
    ramp: Option<Ramp>,
    /// Arrival process: constant, poisson, or a file with one time a line
    #[arg(
        long,
        value_name = "constant|poisson|FILE",
        default_value = "constant",
        help_heading = "Pace"
    )]
    arrivals: String,
    /// Time in which requests are due; with --find, the time for the whole search [default: 10s; with --find: 50s]
    #[arg(
        short = 'd',
        short_alias = 'z',
        long,
        value_name = "T",
        help_heading = "Pace"
    )]
    duration: Option<Span>,
    /// Length of the warm-up. Its requests are sent but not counted. Replies that arrive after it count in the achieved rate
    #[arg(long, value_name = "T", default_value = "0s", help_heading = "Pace")]
    warm_up: Span,
    /// Pause of a closed-loop client between a reply and its next request
    #[arg(long, value_name = "T", help_heading = "Pace")]
    think: Option<Span>,

    #[command(flatten)]
    protocol: ProtocolArgs,

    /// One connection per request, or connections kept and used again
    #[arg(
        long,
        value_enum,
        default_value = "keep-alive",
        help_heading = "Connections"
    )]
    connection: ConnectionArg,
    /// Abort a connection that is not established by then (keep it below 1s: one SYN each)
    #[arg(
        long,
        value_name = "T",
        default_value = "500ms",
        help_heading = "Connections"
    )]
    connect_timeout: Span,
    /// Time limit of an attempt, from sending to the complete reply
    #[arg(
        long,
        value_name = "T",
        default_value = "30s",
        help_heading = "Connections"
    )]
    timeout: Span,
    /// Maximum number of open connections; requests that need more are dropped and counted
    #[arg(
        long,
        value_name = "N",
        default_value_t = 16_384,
        value_parser = connections,
        help_heading = "Connections"
    )]
    max_connections: usize,
    /// Use this address for a host name
    #[arg(long, value_name = "HOST:PORT:ADDR", help_heading = "Connections")]
    resolve: Vec<Resolve>,

    /// The method [default: GET, or POST with a body]
    #[arg(long, value_name = "M", help_heading = "Request")]
    method: Option<String>,
    /// A header field, 'Name: value'; may be repeated
    #[arg(short = 'H', long, value_name = "H", help_heading = "Request")]
    header: Vec<Header>,
    /// A file to send as body; placeholders {{column}} are filled from --data, escaped where it is XML;
    /// write {{column|tojson}} in JSON, {{column|urlencode}} for a part of a query, and {{"{{"}} for two
    /// braces
    #[arg(long, value_name = "FILE", help_heading = "Request")]
    body: Option<PathBuf>,
    /// Send --body as the content of a SOAP Body
    #[arg(long, value_name = "1.1|1.2", value_parser = soap_version, help_heading = "Request")]
    soap: Option<Version>,
    /// The SOAPAction, or the action parameter of SOAP 1.2
    #[arg(
        long,
        value_name = "URI",
        requires = "soap",
        conflicts_with = "mix",
        help_heading = "Request"
    )]
    action: Option<String>,
    /// Make the request from a WSDL (URL or file); the operation's fields come from --data
    #[arg(long, value_name = "URL", requires = "operation", conflicts_with_all = ["mix", "body", "action"], help_heading = "Request")]
    wsdl: Option<String>,
    /// The operation to call
    #[arg(
        long,
        value_name = "NAME",
        requires = "wsdl",
        conflicts_with = "mix",
        help_heading = "Request"
    )]
    operation: Option<String>,
    /// CSV with column names in its first line; rows are used in turn. A column that is no identifier is written with _:
    /// {{ISBN_10}} for ISBN-10
    #[arg(long, value_name = "FILE.csv", help_heading = "Request")]
    data: Option<PathBuf>,
    /// Several requests with weights and think times, as TOML (see the example below)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["body", "soap"], help_heading = "Request")]
    mix: Option<PathBuf>,
    /// User and password, HTTP Basic
    #[arg(
        long,
        value_name = "U:P",
        value_parser = user,
        conflicts_with = "bearer",
        help_heading = "Request"
    )]
    user: Option<String>,
    /// A bearer token
    #[arg(long, value_name = "T", help_heading = "Request")]
    bearer: Option<String>,

    /// Request gzip, Brotli and Zstandard, unless a header has Accept-Encoding, and decode replies. A reply is complete
    /// when it is decoded; one that cannot be decoded is undecodable
    #[arg(long, help_heading = "Client")]
    decode: bool,
    /// Decode like a machine N times slower than this one: reported times contain N times the processor time of decoding
    /// here
    #[arg(long, value_name = "N", help_heading = "Client", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    slowdown: Option<u32>,

    #[command(flatten)]
    grpc: GrpcArgs,

    #[command(flatten)]
    events: EventArgs,

    #[command(flatten)]
    retries: RetryArgs,

    #[command(flatten)]
    buying: BuyingArgs,

    /// Accept any server certificate
    #[arg(long, help_heading = "TLS")]
    insecure: bool,
    /// Trust these certificates as well (PEM)
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    ca: Option<PathBuf>,
    /// Show this certificate to the server (PEM)
    #[arg(long, value_name = "FILE", requires = "key", help_heading = "TLS")]
    cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "TLS")]
    key: Option<PathBuf>,
    /// Resume TLS sessions, like returning clients. Without it each connection has a whole handshake, at several times
    /// the cost for the server
    #[arg(long, help_heading = "TLS")]
    tls_resumption: bool,

    /// Fail (exit 1) unless this holds, for example 'p99<200ms' (of all requests due: one without a reply is longer
    /// than any bound), 'ok-p99<200ms' (of good replies), 'errors<1%', with --find 'capacity>150/s'; may be repeated
    #[arg(long, value_name = "BOUND", help_heading = "Outcome")]
    assert: Vec<Assertion>,
    /// Judge --assert with few requests, too. Without it a bound is unknown below 300 requests for p99, 3 / P for a share P
    #[arg(long, help_heading = "Outcome")]
    allow_few: bool,
    /// Print all phases of the time and the times of good replies, also where they say nothing new
    #[arg(long, conflicts_with = "find", help_heading = "Outcome")]
    phases: bool,
    /// Print one JSON document
    #[arg(long, help_heading = "Outcome")]
    json: bool,
    #[command(flatten, next_help_heading = "Outcome")]
    files: CheckFiles,
    /// Write records, report, histograms and a page to this folder; not to one that holds a finished run or other files
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "find",
        help_heading = "Outcome"
    )]
    out: Option<PathBuf>,
    /// Replace the records of an earlier run in --out
    #[arg(long, requires = "out", help_heading = "Outcome")]
    force: bool,
    /// Accept a run that was limited by the generator, with its own delay in response times. Without it: exit 3
    #[arg(long, help_heading = "Outcome")]
    allow_late: bool,

    #[cfg(feature = "agents")]
    #[command(flatten)]
    agents: agents::AgentArgs,

    /// Event loops, each with a thread of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads, help_heading = "Generator")]
    threads: usize,
    /// Cores for those threads, for example 1 or 2,3
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = "Generator"
    )]
    cpus: Vec<usize>,
    /// Seed of arrivals, mix and back-offs
    #[arg(long, value_name = "N", default_value_t = Seed::default(), help_heading = "Generator")]
    seed: Seed,
}

const EXAMPLES: &str = "\
Examples:
  500 requests per second for 10 seconds, and a figure a build can fail on:
    posthaste load http://127.0.0.1:8080/ --rate 500/s --assert 'p99<200ms' --assert 'errors<0.1%'
  Past the limit: Poisson arrivals, a connection each, aborted after 50 ms as in the papers:
    posthaste load http://127.0.0.1:8080/ --rate 20k/s --arrivals poisson --connection new --connect-timeout 50ms
  What can it take?
    posthaste load http://127.0.0.1:8080/ --find 'p99<20ms' --assert 'capacity>150/s'
  A SOAP operation from its WSDL, the fields from a file:
    posthaste load --wsdl http://127.0.0.1:8080/soap?wsdl --operation BookLite --data isbns.csv --rate 100/s
  Several requests with their shares and pauses, from a file (name, weight, think and headers are optional):
    posthaste load --mix mix.toml --clients 20 --data isbns.csv, where mix.toml holds
      [[request]]
      name = \"page\"
      weight = 3
      url = \"http://127.0.0.1:8080/page/{{isbn}}\"
      think = \"200ms\"
      [[request]]
      method = \"POST\"
      url = \"http://127.0.0.1:8080/soap\"
      headers = { \"Content-Type\" = \"text/xml\", SOAPAction = '\"\"' }
      body-file = \"request.xml\"
  A handheld on GPRS, which unpacks a reply 10,000 times slower than this machine, with a service of this
  machine (docs/guides/slow-phone.md states the source of the number):
    posthaste net --profile gprs --to localhost:8080 -- posthaste load http://10.0.0.2:8080/ \\
      --clients 1 --connect-timeout 10s --timeout 2m --decode --slowdown 10000
  Clients that pay 0.40 EUR at most, by the offers of a broker; what is due while all are dearer is declined:
    posthaste load http://127.0.0.1:8080/ --rate 100/s --broker http://127.0.0.1:8090 --max-price 0.40EUR --type books
  Clients that retry three times, after random waits of up to 100, 200 and 400 ms:
    posthaste load http://127.0.0.1:8080/ --rate 300/s --timeout 1s --retries 3 --backoff exp:100ms
  HTTP/2: requests of 4 connections, at most 100 at a time on each; how long they wait for a stream is the phase queue:
    posthaste load https://127.0.0.1:8443/ --rate 5k/s --http 2 --connections 4 --streams 100
  HTTP/3, a connection for each request, with qlog files; first the server:
    posthaste bookshop --listen 127.0.0.1:8443 --cert cert.pem --key key.pem --http3
    posthaste load https://127.0.0.1:8443/ --rate 50/s --http 3 --ca cert.pem --connection new --qlog qlog
  The same with early data, if the server accepts it (saves a round trip of later connections):
    posthaste load https://shop.example/ --rate 50/s --http 3 --connection new --early-data
  A gRPC method, its schema by server reflection and its messages from rows; a status other than OK is a grpc-error:
    posthaste load http://127.0.0.1:8080 --rate 500/s --grpc bookshop.v1.Bookshop/GetBook \\
      --message '{\"isbn\": \"{{isbn}}\"}' --data isbns.csv --timeout 1s --assert 'grpc-error<1%'
  A service that streams tokens: first event within 500 ms of the due time, gaps below 50 ms, and a complete end:
    posthaste load http://127.0.0.1:8080/v1/chat/completions --rate 20/s --duration 20s \
      -H 'Content-Type: application/json' --body chat.json --stream sse --end-mark '[DONE]' --assert 'first<500ms' --assert 'gap<50ms' \
      --assert 'events>20/s' --assert 'no-end-mark<1%'
  A check of a build: the assertions as a file for the build server, and as a table for a pull request:
    posthaste load http://127.0.0.1:8080/ --rate 500/s --assert 'p99<200ms' --junit load.xml --markdown load.md
  From three agents, each started with `posthaste agent --nats URL`, as if from one machine:
    posthaste load https://shop.example/ --rate 12k/s --agents 3 --nats tls://conductor:PASSWORD@nats.example
  Keep everything, and compare three runs with three of last week:
    posthaste load http://127.0.0.1:8080/ --rate 500/s --out new1
    posthaste compare old1 old2 old3 -- new1 new2 new3";

/// Default precision of a search: half of the interval, as a share of the capacity.
const PRECISION: f64 = 0.05;
/// Default time in which requests are due.
const DURATION: Span = Span::from_secs(10);

impl Args {
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        let mut plan = self.plan()?;
        if let Some(note) = proxy::unused(&plan.requests, |name| std::env::var(name).ok()) {
            note!("{note}");
        }
        let mut runner = self.runner(&mut plan)?;
        match self.find.take() {
            Some(_) if self.files.any() => Err(Failure::usage(
                "--markdown and --junit are for --assert: a search has its result as text or --json",
            )),
            Some(objective) => self.search(&plan, &objective, &mut runner),
            None => self.measure(&plan, &mut runner),
        }
    }

    #[cfg(feature = "agents")]
    fn runner(&self, plan: &mut Plan) -> Result<PlanRunner, Failure> {
        self.agents.runner(plan)
    }

    #[cfg(not(feature = "agents"))]
    fn runner(&self, _: &mut Plan) -> Result<PlanRunner, Failure> {
        Ok(PlanRunner::Local)
    }

    fn plan(&self) -> Result<Plan, Failure> {
        for (option, time) in [
            ("--timeout", self.timeout),
            ("--connect-timeout", self.connect_timeout),
        ] {
            if time == Span::ZERO {
                return Err(Failure::Usage(format!(
                    "{option} 0s: every request would time out; leave {option} out for its default"
                )));
            }
        }
        // clap drops a requirement that conflicts with given options, so it is checked here.
        if self.think.is_some() && self.clients.is_none() {
            return Err(Failure::Usage(
                "--think goes with --clients: in an open loop no client waits".to_owned(),
            ));
        }
        if self.precision.is_some() && self.find.is_none() {
            return Err(Failure::Usage(
                "--precision goes with --find: only a search has an interval of rates".to_owned(),
            ));
        }
        let data = match &self.data {
            Some(path) => read_data(path)?,
            None => Data::none(),
        };
        let tls = TlsOptions {
            insecure: self.insecure,
            certificate: pem(self.cert.as_deref())?,
            key: pem(self.key.as_deref())?,
            roots: pem(self.ca.as_deref())?,
            resumption: self.tls_resumption,
        };
        let call = self.call(&tls)?;
        self.check_assertions(call.as_ref())?;
        self.check_search_assertions()?;
        let requests = self.requests(&data, &tls, call.as_ref())?;
        let plan = Plan {
            data,
            resolve: self.resolve.clone(),
            warm_up: self.warm_up,
            protocol: self.protocol.protocol(self.threads, self.grpc.is_given())?,
            connections: match self.connection {
                ConnectionArg::New => Connections::New,
                ConnectionArg::KeepAlive => Connections::KeepAlive,
            },
            connect_timeout: self.connect_timeout,
            timeout: self.timeout,
            threads: self.threads,
            cpus: self.cpus.clone(),
            connection_limit: self.max_connections,
            seed: self.seed,
            tls,
            retries: self.retries.policy(),
            decoding: self.decoding(),
            events: match &call {
                Some(call) => EventPlan::of_call(call),
                None => self.events.events()?,
            },
            buying: self.buying.buying(),
            qlog: self.protocol.qlog(),
            ..Plan::new(requests, self.pace()?)
        };
        plan.validate().map_err(Failure::usage)?;
        Ok(plan)
    }

    fn pace(&self) -> Result<Pace, Failure> {
        let length = self.duration.unwrap_or(DURATION);
        if let Some(clients) = self.clients {
            return Ok(Pace::Closed { clients, length });
        }
        if let Some(error) = mistyped_arrivals(&self.arrivals) {
            return Err(Failure::Usage(error));
        }
        let arrivals = match self.arrivals.as_str() {
            "constant" => Arrivals::Constant,
            "poisson" => Arrivals::Poisson,
            file => {
                let paced = self.rate.is_some() || self.steps.is_some() || self.ramp.is_some();
                if paced || self.find.is_some() || self.duration.is_some() {
                    let absent = if Path::new(file).exists() {
                        ""
                    } else {
                        "; there is no file of that name"
                    };
                    return Err(Failure::Usage(format!(
                        "--arrivals {file} is a file with due times: leave --rate, --steps, --ramp, --find and --duration out{absent}"
                    )));
                }
                let text = read(Path::new(file))?;
                let times = posthaste_load::read_trace(&text)
                    .map_err(|error| Failure::usage(format!("{file}: {error}")))?;
                return Ok(Pace::Open {
                    arrivals: Arrivals::Trace(times),
                    steps: Vec::new(),
                });
            }
        };
        let steps = match (self.rate, &self.steps, &self.ramp) {
            (Some(rate), ..) => vec![RateStep::steady(rate, length)],
            (_, Some(steps), _) => steps.over(length),
            (.., Some(ramp)) => {
                vec![RateStep {
                    from: ramp.from,
                    to: ramp.to,
                    length,
                }]
            }
            _ if self.find.is_some() => Vec::new(),
            _ => {
                return Err(Failure::Usage(
                    "how fast? add --rate 100/s, --clients 10, --steps 100/s..1000/s:10, \
                     --ramp 0/s..500/s or --find 'p99<200ms'"
                        .to_owned(),
                ));
            }
        };
        Ok(Pace::Open { arrivals, steps })
    }

    /// Slowdown of decoding, if replies are decoded.
    fn decoding(&self) -> Option<u32> {
        self.slowdown.or(self.decode.then_some(1))
    }
}

/// A name without an address is no mistake of the command line: the same one works once the name is known.
fn from_run(error: RunError) -> Failure {
    match error {
        RunError::System(_)
        | RunError::Thread(_)
        | RunError::Qlog { .. }
        | RunError::Broker { .. }
        | RunError::Request(RequestError::Target(TargetError::Unresolved { .. })) => {
            Failure::run(error)
        }
        _ => Failure::usage(error),
    }
}

fn print_json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(document).map_err(Failure::run)?;
    print(&(json + "\n"))
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

fn pem(path: Option<&Path>) -> Result<Option<PemFile>, Failure> {
    path.map(PemFile::read).transpose().map_err(Failure::usage)
}

fn read_data(path: &Path) -> Result<Data, Failure> {
    let named =
        |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", path.display()));
    let file = fs::File::open(path).map_err(|error| named(&error))?;
    Data::read(file).map_err(|error| named(&error))
}

#[derive(Clone, Copy, ValueEnum)]
enum ConnectionArg {
    New,
    KeepAlive,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct LoadLine {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_typed_header_replaces_the_one_made_for_soap() {
        let line = "load http://127.0.0.1/ --rate 5/s --soap 1.1 -H content-type:text/plain";
        let parsed = LoadLine::parse_from(line.split(' '));
        let requests = parsed.args.plan().unwrap().requests;
        let types: Vec<&str> = requests[0]
            .headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("content-type"))
            .map(|(_, value)| value.as_str())
            .collect();
        assert_eq!(types, ["text/plain"]);
    }

    #[test]
    fn decode_requests_codings_unless_a_header_does() {
        let plan = |options: &str| {
            let line = format!("load http://127.0.0.1/ --rate 5/s {options}");
            LoadLine::parse_from(line.split_whitespace())
                .args
                .plan()
                .unwrap()
        };
        let decoding = |options: &str| {
            let plan = plan(options);
            let headers = plan.requests[0].headers.clone().into_iter();
            let mut asks = headers.filter(|(name, _)| name.eq_ignore_ascii_case("accept-encoding"));
            (
                plan.decoding,
                asks.next().map(|(_, value)| value),
                asks.next(),
            )
        };
        let all = || Some("gzip, br, zstd".to_owned());
        assert_eq!(decoding(""), (None, None, None));
        assert_eq!(decoding("--decode"), (Some(1), all(), None));
        assert_eq!(decoding("--slowdown 400"), (Some(400), all(), None));
        let given = "--decode -H accept-encoding:br";
        assert_eq!(decoding(given), (Some(1), Some("br".to_owned()), None));
    }
}
