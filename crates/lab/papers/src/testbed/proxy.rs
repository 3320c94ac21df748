//! A proxy under test: it serves on threads of its own, whose CPU time is counted.
//!
//! The gateway counts its compressed replies itself. Those of third-party proxies are derived from the bytes of the
//! replies.

use std::net::SocketAddr;
use std::process::Child;
use std::sync::atomic::AtomicBool;

use posthaste_broker::OfferSearch;
use posthaste_load::{Plan, Run, RunError, run};
use posthaste_serve::SlowMachine;
use posthaste_study::Failure;

use super::measured::{self, Done, MeasuredRun};
use super::shop::fetch;
use super::threads::ServingThreads;

/// A running proxy under test. Dropping it stops it.
pub(crate) struct ProxyUnderTest {
    pub(crate) address: SocketAddr,
    threads: ServingThreads,
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
            threads: ServingThreads::default(),
            works: Works::Nothing,
        }
    }

    /// Starts a gateway.
    pub(crate) fn gateway(config: posthaste_gateway::GatewayConfig) -> Result<Self, Failure> {
        let (gateway, threads) =
            ServingThreads::started_by(|| Ok(posthaste_gateway::start(config)?))?;
        Ok(Self {
            address: gateway.addr,
            threads,
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
        let (broker, threads) = ServingThreads::started_by(start)?;
        Ok(Self {
            address: broker.addr,
            threads,
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
        let run = || making_way(|| run(plan, stop, &mut ()));
        measured::measure(plan, || self.done(), run)
    }

    /// A program that should listen on `address`. Ends with the returned value.
    pub(crate) fn peer(child: Child, address: SocketAddr) -> Self {
        Self {
            address,
            threads: ServingThreads::default(),
            works: Works::Peer(child),
        }
    }

    /// Adds the current threads of its program.
    pub(crate) fn with_threads(mut self) -> Self {
        if let Works::Peer(child) = &self.works {
            self.threads = ServingThreads::of_process(child.id());
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
            let (labels, value) = line.rsplit_once(' ').ok_or("a metric without a value")?;
            Ok((labels.to_owned(), value.parse()?))
        };
        lines.map(split).collect()
    }

    /// Number of open accounts that a gateway knows. `None` for other proxies, and without accounts.
    pub(crate) fn open_accounts(&self) -> Result<Option<f64>, Failure> {
        let Works::Gateway(gateway) = &self.works else {
            return Ok(None);
        };
        let text = fetch(gateway.admin, "/metrics")?;
        let mut lines = text.lines();
        let count = lines.find_map(|line| line.strip_prefix("posthaste_gateway_accounts_open "));
        Ok(count.map(str::parse).transpose()?)
    }

    /// All compression so far, over all steps.
    pub(crate) fn compression(&self) -> Result<CompressionTotals, Failure> {
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

    /// Seconds of CPU time of its threads so far.
    pub(crate) fn cpu_seconds(&self) -> Result<f64, Failure> {
        Ok(self.threads.done()?.used)
    }

    /// Work so far, by its threads and by its metrics.
    fn done(&self) -> Result<Done, Failure> {
        let mut done = self.threads.done()?;
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
