//! A proxy between a generator and an origin, on two cores: what every study of load on a gateway measures
//! with.
//!
//! The proxy has a core of its own; generator and origin share the other, where the generator makes way for
//! the origin (nice 19). Everything lives in this process but peers, which are programs. What a proxy has
//! compressed is its own count where it is ours, and follows from the bytes of the replies where it is not.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use posthaste_bookshop::Size;
use posthaste_load::{Connections, Pace, Plan, RequestSpec, Run, RunError, run};
use posthaste_units::Span;
use posthaste_wsqos::Wish;

use super::front::{Front, fetch};
use super::measured::{Done, Measured};
use super::origin::Origin;
use crate::figure::{Conditions, Failure};
use crate::lab::{Cores, Counters, Lab, starting};
use crate::records::Records;
use crate::sweep;

/// The reply: the paper's.
pub(super) const REPLY: Size = Size::Heavy1;

/// A connection not established by then is aborted, as by sclient.
const CONNECT_TIMEOUT: Span = Span::from_millis(50);

/// A reply not complete by then is given up: where a proxy is far behind, it shall not end the run late.
const TIMEOUT: Span = Span::from_secs(2);

/// The origin, and what is asked.
pub(super) struct Rig {
    pub(super) origin: Origin,
    pub(super) cores: Cores,
    /// Where gateways listen, at any port.
    pub(super) listen: Ipv4Addr,
    /// Bytes of the reply.
    pub(super) length: usize,
    /// By wish, in the order of [`Wish::ALL`].
    requests: Vec<RequestSpec>,
}

/// A proxy at work; dropping it ends it.
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

/// What a gateway has compressed so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed {
    pub(super) replies: f64,
    /// Bytes that came out.
    pub(super) bytes: f64,
    /// Seconds of processor time.
    pub(super) seconds: f64,
}

impl Rig {
    /// An origin that answers with the bookshop's reply of this size, for clients that take these codings.
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

    /// An origin that answers with this message, for clients whose requests are their own.
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

    /// The origin itself, where nothing stands before it.
    pub(super) fn nothing(&self) -> Stand {
        Stand {
            address: self.origin.address,
            tasks: Vec::new(),
            works: Works::Nothing,
        }
    }

    /// A gateway with these lines in its configuration, before its route and in it, so many times slower. The one
    /// reply that there is comes again and again, and stands for many: each is compressed.
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

    /// The same, and what comes again is at hand.
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

    /// What clients send that wish so, each in its share.
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

    /// Carries out `plan`; `None` when it was stopped early, since half a run proves nothing.
    pub(super) fn measure(
        &self,
        stand: &Stand,
        plan: &Plan,
        stop: &AtomicBool,
    ) -> Result<Option<Measured>, Failure> {
        stand.measure(plan, stop)
    }

    /// Writes down what holds for every run on this rig.
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

/// Writes down what holds for every run with these cores.
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

/// A plan for one request, again and again, by the generator on its core.
pub(super) fn plan_of(request: RequestSpec, pace: Pace, cores: Cores) -> Plan {
    Plan {
        connections: Connections::New,
        connect_timeout: CONNECT_TIMEOUT,
        timeout: TIMEOUT,
        cpus: cores.generator.into_iter().collect(),
        ..Plan::new(vec![request], pace)
    }
}

/// Does `work` on a thread that others on its core go before, and so do the threads it starts; not in tests.
fn making_way(work: impl FnOnce() -> Result<Run, RunError> + Send) -> Result<Run, Failure> {
    let nicely = || {
        // In tests, beside whatever else a machine does, this priority would mean hardly ever.
        if !cfg!(test) {
            // On a machine that does not allow it the origin waits for its turn.
            let _ = rustix::process::nice(19);
        }
        work()
    };
    let ended = std::thread::scope(|scope| scope.spawn(nicely).join());
    Ok(ended.map_err(|_| "the generator has panicked")??)
}

/// What a gateway did in a run in which it was not asked alone.
pub(super) struct Part {
    /// Microseconds of processor time for each reply.
    pub(super) reply_us: f64,
    /// Share of the replies that might be compressed and were.
    pub(super) packed: f64,
    /// Replies to clients that asked, and were not served compressed.
    pub(super) denied: f64,
}

/// Two gateways that one plan asks at the same time, so that whatever else the machine does meets them alike; `None`
/// when it was stopped early.
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

/// What `start` starts, and the threads of it that serve.
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

/// Folders of this process's threads that serve.
fn threads() -> Vec<PathBuf> {
    tasks("self", |name| name == "serve-0")
}

/// Folders of a process's threads with such names.
fn tasks(process: &str, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let folder = fs::read_dir(format!("/proc/{process}/task"));
    let tasks = folder.into_iter().flatten().flatten();
    let named = |path: &PathBuf| {
        fs::read_to_string(path.join("comm")).is_ok_and(|name| wanted(name.trim()))
    };
    tasks.map(|task| task.path()).filter(named).collect()
}

impl Stand {
    /// A broker.
    pub(super) fn broker(config: posthaste_broker::Config) -> Result<Self, Failure> {
        let (broker, tasks) = with_threads(|| Ok(posthaste_broker::start(config)?))?;
        Ok(Self {
            address: broker.addr,
            tasks,
            works: Works::Broker {
                _works: Box::new(broker),
            },
        })
    }

    /// Carries out `plan`; `None` when it was stopped early, since half a run proves nothing.
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

    /// A program that is to listen on `address`, and ends with this.
    pub(super) fn peer(child: Child, address: SocketAddr) -> Self {
        Self {
            address,
            tasks: Vec::new(),
            works: Works::Peer(child),
        }
    }

    /// With the threads that its program has now.
    pub(super) fn with_threads(mut self) -> Self {
        if let Works::Peer(child) = &self.works {
            self.tasks = tasks(&child.id().to_string(), |_| true);
        }
        self
    }

    /// Labels and values of one of a gateway's counters; nothing of what is none.
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

    /// All that it has compressed so far, by whatever step.
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

    /// By the first two fields of its threads' schedstat, nanoseconds, and by its own metrics.
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
            // It has ended either way.
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
        // Who asked was served compressed, and nobody else.
        assert!((row.number("packed") - 1.0).abs() < 1e-12 && row.number("denied") == 0.0);
        assert!((6_500.0..16_000.0).contains(&row.number("reply_bytes")));
        assert!(row.number("busy") > 0.0);
    }
}
