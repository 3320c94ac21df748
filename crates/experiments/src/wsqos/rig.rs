//! The testbed of all studies of load on a gateway: a proxy between a generator and an origin, on two cores.
//!
//! The proxy has a core of its own. Generator and origin share the other, where the origin has priority (the generator
//! runs at nice 19). All of them run in this process, except third-party proxies, which are programs. The gateway
//! counts its compressed replies itself. Those of third-party proxies are derived from the bytes of the replies.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use posthaste_bookshop::Size;
use posthaste_broker::OfferSearch;
use posthaste_compression::Wish;
use posthaste_load::{Connections, Pace, Plan, RequestSpec, Run, RunError, run};
use posthaste_serve::SlowMachine;
use posthaste_units::Span;

use super::front::{Front, fetch};
use super::measured::{Done, Measured};
use super::origin::Origin;
use crate::figure::{Conditions, Failure};
use crate::lab::{Cores, Counters, Lab, starting};
use crate::records::Records;
use crate::sweep;

/// The paper's reply.
pub(super) const REPLY: Size = Size::Heavy1;

/// Timeout of a new connection, as with sclient.
const CONNECT_TIMEOUT: Span = Span::from_millis(50);

/// Timeout of a reply, so that a slow proxy does not delay the end of a run.
const TIMEOUT: Span = Span::from_secs(2);

/// The origin, and the requests.
pub(super) struct Rig {
    pub(super) origin: Origin,
    pub(super) cores: Cores,
    /// Address of gateways, with any port.
    pub(super) listen: Ipv4Addr,
    /// Bytes of the reply.
    pub(super) length: usize,
    /// Requests by preference, in the order of [`Wish::ALL`].
    requests: Vec<RequestSpec>,
}

/// A running proxy under test. Dropping it stops it.
pub(super) struct Stand {
    pub(super) address: SocketAddr,
    /// Folders of its threads in /proc.
    tasks: Vec<PathBuf>,
    works: Works,
}

enum Works {
    Gateway(Box<posthaste_gateway::Running>),
    Broker {
        _works: Box<posthaste_broker::Broker>,
    },
    Peer(Child),
    Nothing,
}

/// Compression by a gateway so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed {
    pub(super) replies: f64,
    /// Bytes of compressed output.
    pub(super) bytes: f64,
    /// Seconds of CPU time.
    pub(super) seconds: f64,
}

impl Rig {
    /// Starts an origin with the bookshop's reply of this size, for clients that accept these codings.
    pub(super) fn open(
        conditions: &Conditions<'_>,
        reply: Size,
        codings: &str,
    ) -> Result<Self, Failure> {
        let front = Front::open(([127, 0, 0, 1], 0).into(), conditions.seed)?;
        let request = |wish| {
            let mut request = front.request(reply, wish);
            let field = ("Accept-Encoding".to_owned(), codings.to_owned());
            request.headers.push(field);
            request
        };
        let requests = Wish::ALL.map(request).into();
        Ok(Self {
            requests,
            ..Self::of(&front.message(reply)?)?
        })
    }

    /// Starts an origin with this message, for clients with requests of their own.
    pub(super) fn of(message: &[u8]) -> Result<Self, Failure> {
        let cores = Cores::here();
        let generator: Vec<usize> = cores.generator.into_iter().collect();
        Ok(Self {
            origin: Origin::open(message, &generator)?,
            length: message.len(),
            cores,
            listen: Ipv4Addr::LOCALHOST,
            requests: Vec::new(),
        })
    }

    /// The origin itself, without a proxy.
    pub(super) fn nothing(&self) -> Stand {
        Stand {
            address: self.origin.address,
            tasks: Vec::new(),
            works: Works::Nothing,
        }
    }

    /// Starts a gateway with this slowdown and these lines in its configuration, before its route and in it. Its cache
    /// is off: the repeated reply stands for many different ones, and each is compressed.
    pub(super) fn gateway(
        &self,
        slowdown: u32,
        before: &str,
        route: &str,
    ) -> Result<Stand, Failure> {
        let mut config = self.configuration(before, route)?;
        config.slowdown = slowdown;
        config.compression.cache = posthaste_units::Size::from_bytes(0);
        gateway(config)
    }

    /// Starts a gateway with a cache for repeated replies.
    pub(super) fn caching_gateway(&self, before: &str) -> Result<Stand, Failure> {
        gateway(self.configuration(before, "")?)
    }

    fn configuration(
        &self,
        before: &str,
        route: &str,
    ) -> Result<posthaste_gateway::Config, Failure> {
        let core = self.cores.server.map(|core| core.to_string());
        let config = format!(
            "listen = \"{}:0\"\n\
             cpus = [{}]\n\
             {before}\n\
             [[route]]\n\
             path = \"/\"\n\
             upstream = [\"{}\"]\n\
             {route}\n",
            self.listen,
            core.unwrap_or_default(),
            self.origin.address
        );
        Ok(posthaste_gateway::Config::read(&config)?)
    }

    /// A plan for clients with these preferences, each in its share.
    pub(super) fn plan(
        &self,
        stand: &Stand,
        wishes: &[(Wish, f64)],
        connections: Connections,
        pace: Pace,
    ) -> Plan {
        let request = |(wish, weight): &(Wish, f64)| RequestSpec {
            name: wish.name().to_owned(),
            weight: *weight,
            url: format!("http://{}/soap", stand.address),
            ..self.requests[*wish as usize].clone()
        };
        Plan {
            connections,
            connect_timeout: CONNECT_TIMEOUT,
            timeout: TIMEOUT,
            cpus: self.cores.generator.into_iter().collect(),
            ..Plan::new(wishes.iter().map(request).collect(), pace)
        }
    }

    /// Runs `plan`. `None` if it was stopped early, because a partial run proves nothing.
    pub(super) fn measure(
        &self,
        stand: &Stand,
        plan: &Plan,
        stop: &AtomicBool,
    ) -> Result<Option<Measured>, Failure> {
        stand.measure(plan, stop)
    }

    /// Records the parameters that all runs on this testbed share.
    pub(super) fn describe(&self, records: &mut Records, conditions: &Conditions<'_>) {
        let cores = self.cores.describe();
        describe(records, conditions, self.cores);
        records.set_parameter("cores", format!("{cores}; the origin beside the generator"));
    }
}

fn gateway(config: posthaste_gateway::Config) -> Result<Stand, Failure> {
    let start = || posthaste_gateway::start(config).map_err(Failure::from);
    let (gateway, tasks) = with_threads(start)?;
    Ok(Stand {
        address: gateway.addr,
        tasks,
        works: Works::Gateway(Box::new(gateway)),
    })
}

/// Records the parameters that all runs with these cores share.
pub(super) fn describe(records: &mut Records, conditions: &Conditions<'_>, cores: Cores) {
    records.set_parameter("cores", cores.describe());
    records.set_parameter("network", conditions.lab.describe());
    records.set_parameter("connect timeout", CONNECT_TIMEOUT);
    records.set_parameter("timeout", TIMEOUT);
    let own = *conditions.lab == Lab::Own;
    records.set_number("own namespace", f64::from(u8::from(own)));
    let shared = cores.server.is_none();
    records.set_number("shared core", f64::from(u8::from(shared)));
}

/// A plan for one repeated request, by the generator on its core.
pub(super) fn plan_of(request: RequestSpec, pace: Pace, cores: Cores) -> Plan {
    Plan {
        connections: Connections::New,
        connect_timeout: CONNECT_TIMEOUT,
        timeout: TIMEOUT,
        cpus: cores.generator.into_iter().collect(),
        ..Plan::new(vec![request], pace)
    }
}

/// Runs `work` on a thread with low priority, which its threads inherit. Tests keep the normal priority.
fn making_way(work: impl FnOnce() -> Result<Run, RunError> + Send) -> Result<Run, Failure> {
    let nicely = || {
        // On a busy machine, tests at this priority would hardly ever run.
        if !cfg!(test) {
            // Without permission, the origin shares the core equally.
            let _ = rustix::process::nice(19);
        }
        work()
    };
    let ended = std::thread::scope(|scope| scope.spawn(nicely).join());
    Ok(ended.map_err(|_| "the generator has panicked")??)
}

/// Work of one gateway during a run that loads two.
pub(super) struct Part {
    /// Microseconds of CPU time per reply.
    pub(super) reply_us: f64,
    /// Compressed share of the replies that could be compressed.
    pub(super) packed: f64,
    /// Uncompressed replies to clients that asked for compression.
    pub(super) denied: f64,
}

/// Loads two gateways with one plan at the same time, so that disturbances affect both alike. `None` if it was stopped
/// early.
pub(super) fn side_by_side(
    stands: [&Stand; 2],
    plan: &Plan,
    stop: &AtomicBool,
) -> Result<Option<[Part; 2]>, Failure> {
    let [one, other] = stands;
    let before = [one.done()?, other.done()?];
    let run = making_way(|| run(plan, stop, &mut ()))?;
    let after = [one.done()?.since(before[0]), other.done()?.since(before[1])];
    let parts = after.map(|done| Part {
        reply_us: 1e6 * done.used / done.replies,
        packed: done.packed / done.open,
        denied: done.denied,
    });
    Ok((!run.stopped).then_some(parts))
}

/// Runs `start`. Returns its result and its serving threads.
fn with_threads<T>(
    start: impl FnOnce() -> Result<T, Failure>,
) -> Result<(T, Vec<PathBuf>), Failure> {
    let _turn = starting();
    let others = threads();
    let started = start()?;
    let mut tasks = threads();
    tasks.retain(|task| !others.contains(task));
    Ok((started, tasks))
}

/// Folders of this process's serving threads in /proc.
fn threads() -> Vec<PathBuf> {
    tasks("self", |name| name == "serve-0")
}

/// Folders of a process's threads with matching names.
fn tasks(process: &str, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let folder = fs::read_dir(format!("/proc/{process}/task"));
    let tasks = folder.into_iter().flatten().flatten();
    let named = |path: &PathBuf| {
        fs::read_to_string(path.join("comm")).is_ok_and(|name| wanted(name.trim()))
    };
    tasks.map(|task| task.path()).filter(named).collect()
}

impl Stand {
    /// Starts a broker with this search in place of its index, on a machine that is slower by `slowdown`.
    pub(super) fn broker(
        config: posthaste_broker::BrokerConfig,
        search: Option<Box<dyn OfferSearch>>,
        slowdown: u32,
    ) -> Result<Self, Failure> {
        let slow = move |handler| SlowMachine::new(handler, slowdown);
        let start = || Ok(posthaste_broker::start_with(config, search, slow)?);
        let (broker, tasks) = with_threads(start)?;
        Ok(Self {
            address: broker.addr,
            tasks,
            works: Works::Broker {
                _works: Box::new(broker),
            },
        })
    }

    /// Runs `plan`. `None` if it was stopped early, because a partial run proves nothing.
    pub(super) fn measure(
        &self,
        plan: &Plan,
        stop: &AtomicBool,
    ) -> Result<Option<Measured>, Failure> {
        let (kernel, done) = (Counters::read()?, self.done()?);
        let begun = Instant::now();
        let run = making_way(|| run(plan, stop, &mut ()))?;
        let lasted = begun.elapsed().as_secs_f64();
        let kernel = Counters::read()? - kernel;
        let done = self.done()?.since(done);
        let closed = matches!(plan.pace, Pace::Closed { .. });
        Ok((!run.stopped).then_some(Measured {
            planned: sweep::planned(plan),
            run,
            closed,
            lasted,
            kernel,
            done,
        }))
    }

    /// A program that should listen on `address`. Ends with the returned value.
    pub(super) fn peer(child: Child, address: SocketAddr) -> Self {
        Self {
            address,
            tasks: Vec::new(),
            works: Works::Peer(child),
        }
    }

    /// Adds the current threads of its program.
    pub(super) fn with_threads(mut self) -> Self {
        if let Works::Peer(child) = &self.works {
            self.tasks = tasks(&child.id().to_string(), |_| true);
        }
        self
    }

    /// Labels and values of one of a gateway's counters. Empty for other proxies.
    fn metrics(&self, name: &str) -> Result<Vec<(String, f64)>, Failure> {
        let Works::Gateway(gateway) = &self.works else {
            return Ok(Vec::new());
        };
        let text = fetch(gateway.admin, "GET /metrics HTTP/1.1\r\n", "")?;
        let text = String::from_utf8(text)?;
        let name = format!("posthaste_gateway_{name}_total");
        let lines = text.lines().filter_map(|line| line.strip_prefix(&*name));
        let split = |line: &str| {
            let (labels, value) = line.rsplit_once(' ').unwrap_or_default();
            Ok((labels.to_owned(), value.parse()?))
        };
        lines.map(split).collect()
    }

    /// All compression so far, over all steps.
    pub(super) fn packed(&self) -> Result<Packed, Failure> {
        let sum = |name| {
            let rows = self.metrics(name)?;
            Ok::<_, Failure>(rows.iter().map(|row| row.1).sum())
        };
        Ok(Packed {
            replies: sum("packed")?,
            bytes: sum("packed_bytes_written")?,
            seconds: sum("packed_cpu_seconds")?,
        })
    }

    /// Work so far, from the first two fields of its threads' schedstat (nanoseconds) and from its metrics.
    fn done(&self) -> Result<Done, Failure> {
        let mut done = Done::default();
        for task in &self.tasks {
            let text = fs::read_to_string(task.join("schedstat"))?;
            let mut fields = text.split_whitespace().map(str::parse::<f64>);
            done.used += fields.next().ok_or("schedstat is empty")?? / 1e9;
            done.waited += fields.next().ok_or("schedstat is short")?? / 1e9;
        }
        for (line, count) in self.metrics("decisions")? {
            done.replies += count;
            if line.contains("wish=\"never\"") {
                continue;
            }
            let packed = line.contains("decision=\"compressed\"");
            done.open += count;
            if packed {
                done.packed += count;
            } else if line.contains("wish=\"always\"") {
                done.denied += count;
            }
        }
        Ok(done)
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        if let Works::Peer(child) = &mut self.works {
            // The program has ended in any case.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::measured::runs;
    use super::*;

    #[test]
    fn a_row_has_a_cell_for_every_column() {
        let lab = Lab::Shared("a test".to_owned());
        let stop = AtomicBool::new(false);
        let rig = Rig::open(&Conditions::of_a_test(&lab, &stop), REPLY, "gzip").unwrap();
        let stand = rig.gateway(1, "", "").unwrap();
        let pace = Pace::Closed {
            clients: 2,
            length: Span::from_millis(50),
        };
        let wishes = [(Wish::Always, 0.5), (Wish::Never, 0.5)];
        let plan = rig.plan(&stand, &wishes, Connections::KeepAlive, pace);
        let measured = rig.measure(&stand, &plan, &stop).unwrap().unwrap();
        let row = measured.row("it", 1.0, 1, measured.packed());
        let mut table = runs();
        table.push(row);
        let row = table.rows().next().unwrap();
        assert_eq!(
            row.number("syn_retransmits"),
            measured.kernel.syn_retransmits as f64
        );
        assert_eq!(row.number("intended"), measured.run.intended as f64);
        // Exactly the clients that asked have compressed replies.
        assert!((row.number("packed") - 1.0).abs() < 1e-12 && row.number("denied") == 0.0);
        assert!((6_500.0..16_000.0).contains(&row.number("reply_bytes")));
        assert!(row.number("busy") > 0.0);
    }
}
