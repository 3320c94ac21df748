//! A proxy under test: it serves on threads of its own, whose CPU time is counted.
//!
//! The gateway counts its compressed replies itself. Those of third-party proxies are derived from the bytes of the
//! replies.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use posthaste_broker::OfferSearch;
use posthaste_load::{Pace, Plan, Run, RunError, run};
use posthaste_serve::SlowMachine;
use posthaste_study::{
    Failure,
    lab::{Counters, starting},
};

use super::measured::{Done, MeasuredRun};
use super::shop::fetch;
use super::sweep;

/// A running proxy under test. Dropping it stops it.
pub(crate) struct ProxyUnderTest {
    pub(crate) address: SocketAddr,
    /// Folders of its threads in /proc.
    tasks: Vec<PathBuf>,
    works: Works,
}

enum Works {
    Gateway(Box<posthaste_gateway::RunningGateway>),
    Broker {
        _works: Box<posthaste_broker::Broker>,
    },
    Peer(Child),
    Nothing,
}

/// Compression by a gateway so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompressionTotals {
    pub(crate) replies: f64,
    /// Bytes of compressed output.
    pub(crate) bytes: f64,
    /// Seconds of CPU time.
    pub(crate) seconds: f64,
}

/// Work of one gateway during a run that loads two.
pub(crate) struct GatewayWork {
    /// Microseconds of CPU time per reply.
    pub(crate) reply_us: f64,
    /// Compressed share of the replies that could be compressed.
    pub(crate) packed: f64,
    /// Uncompressed replies to clients that asked for compression.
    pub(crate) denied: f64,
}

impl ProxyUnderTest {
    /// The server at `address` itself, without a proxy.
    pub(super) fn none(address: SocketAddr) -> Self {
        Self {
            address,
            tasks: Vec::new(),
            works: Works::Nothing,
        }
    }

    /// Starts a gateway.
    pub(super) fn gateway(config: posthaste_gateway::GatewayConfig) -> Result<Self, Failure> {
        let (gateway, tasks) = with_threads(|| Ok(posthaste_gateway::start(config)?))?;
        Ok(Self {
            address: gateway.addr,
            tasks,
            works: Works::Gateway(Box::new(gateway)),
        })
    }

    /// Starts a broker with this search in place of its index, on a machine that is slower by `slowdown`.
    pub(crate) fn broker(
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
    pub(crate) fn measure(
        &self,
        plan: &Plan,
        stop: &AtomicBool,
    ) -> Result<Option<MeasuredRun>, Failure> {
        let (kernel, done) = (Counters::read()?, self.done()?);
        let begun = Instant::now();
        let run = making_way(|| run(plan, stop, &mut ()))?;
        let lasted = begun.elapsed().as_secs_f64();
        let kernel = Counters::read()? - kernel;
        let done = self.done()?.since(done);
        let closed = matches!(plan.pace, Pace::Closed { .. });
        Ok((!run.stopped).then_some(MeasuredRun {
            planned: sweep::planned(plan),
            run,
            closed,
            lasted,
            kernel,
            done,
        }))
    }

    /// A program that should listen on `address`. Ends with the returned value.
    pub(crate) fn peer(child: Child, address: SocketAddr) -> Self {
        Self {
            address,
            tasks: Vec::new(),
            works: Works::Peer(child),
        }
    }

    /// Adds the current threads of its program.
    pub(crate) fn with_threads(mut self) -> Self {
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
        let text = fetch(gateway.admin, "/metrics")?;
        let name = format!("posthaste_gateway_{name}_total");
        let lines = text.lines().filter_map(|line| line.strip_prefix(&*name));
        let split = |line: &str| {
            let (labels, value) = line.rsplit_once(' ').unwrap_or_default();
            Ok((labels.to_owned(), value.parse()?))
        };
        lines.map(split).collect()
    }

    /// All compression so far, over all steps.
    pub(crate) fn packed(&self) -> Result<CompressionTotals, Failure> {
        let sum = |name| {
            let rows = self.metrics(name)?;
            Ok::<_, Failure>(rows.iter().map(|row| row.1).sum())
        };
        Ok(CompressionTotals {
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

impl Drop for ProxyUnderTest {
    fn drop(&mut self) {
        if let Works::Peer(child) = &mut self.works {
            // The program has ended in any case.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Loads two gateways with one plan at the same time, so that disturbances affect both alike. `None` if it was stopped
/// early.
pub(crate) fn side_by_side(
    proxies: [&ProxyUnderTest; 2],
    plan: &Plan,
    stop: &AtomicBool,
) -> Result<Option<[GatewayWork; 2]>, Failure> {
    let [one, other] = proxies;
    let before = [one.done()?, other.done()?];
    let run = making_way(|| run(plan, stop, &mut ()))?;
    let after = [one.done()?.since(before[0]), other.done()?.since(before[1])];
    let parts = after.map(|done| GatewayWork {
        reply_us: 1e6 * done.used / done.replies,
        packed: done.packed / done.open,
        denied: done.denied,
    });
    Ok((!run.stopped).then_some(parts))
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
