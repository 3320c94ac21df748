//! The work of an agent: it carries out its share of a plan on event loops of its own.
//!
//! A thread prepares the share, waits for the start, carries it out, and adds notes to a buffer. It takes no part in
//! the protocol, so that the network does not disturb it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Instant;

use posthaste_load::{LoadTally, Plan, PreparedShare, Share, ShareObserver, StopOrders, StopTime};
use posthaste_units::Span;
use tokio::sync::oneshot;

use crate::agent::allow::AllowList;
use crate::machine::clock::instant_of;
use crate::nats::storage::Storage;
use crate::notes::{Merge, NoteSender};
use crate::protocol::allot::AgentShare;
use crate::protocol::message::PrepareRequest;
use crate::protocol::work::{EndFacts, PreparedFacts, SentPlan};

/// Longest plan, in bytes of its sealed file.
const LONGEST_PLAN: u64 = 1 << 30;

/// Settings of an agent by its owner.
#[derive(Clone, Debug)]
pub struct LoadAgentOptions {
    /// Event loops.
    pub loops: u32,
    /// Cores for them. If empty, the scheduler decides.
    pub cpus: Vec<usize>,
    /// Permitted targets.
    pub allow: AllowList,
    /// Maximum number of open connections.
    pub connections: usize,
    /// Maximum rate of requests of the agent's share.
    pub most_rate: Option<f64>,
}

/// An agent that sends load.
pub struct LoadAgent {
    options: LoadAgentOptions,
    run: Option<PresentShare>,
}

/// Notes of a share.
type ShareNotes = NoteSender<Box<LoadTally>, EndFacts>;

/// The share in progress.
struct PresentShare {
    orders: Arc<ShareOrders>,
    /// Starts it.
    start: Option<mpsc::Sender<(Instant, ShareNotes)>>,
    thread: JoinHandle<()>,
}

/// Orders to the event loops.
struct ShareOrders {
    now: AtomicBool,
    at: StopTime,
}

/// Adds each second to the notes.
struct NotedSeconds<'n>(&'n ShareNotes);

impl ShareObserver for NotedSeconds<'_> {
    fn second(&mut self, second: u64, tally: &LoadTally, _: bool) {
        let mut note = Box::new(tally.emptied());
        LoadTally::merge(&mut note, tally);
        self.0.second(second, note);
    }
}

impl LoadAgent {
    /// An idle agent.
    pub const fn new(options: LoadAgentOptions) -> Self {
        assert!(options.loops > 0, "an agent has event loops");
        Self { options, run: None }
    }

    /// Checks a plan against the limits of the agent's owner, and sets what the owner decides.
    fn adopt(&self, mut plan: Plan, share: AgentShare) -> Result<Plan, String> {
        let (loops, total) = (self.options.loops, share.total());
        if plan.threads != total as usize || share.first() + loops > total {
            return Err(format!(
                "its loops {} to {} are not among those of the plan, {}",
                share.first(),
                share.first() + loops,
                plan.threads
            ));
        }
        if let Some(most) = self.options.most_rate {
            let Some(rate) = plan.highest_rate() else {
                return Err("it permits a rate (--max-rate), and a closed loop has none".to_owned());
            };
            let attempts = 1.0 + f64::from(plan.retries.map_or(0, |policy| policy.limit));
            let rate = rate * attempts * f64::from(loops) / f64::from(total);
            if rate > most {
                return Err(format!(
                    "its share is up to {rate:.0} requests/s, retries included, and it permits {most:.0}/s (--max-rate)"
                ));
            }
        }
        plan.cpus.clone_from(&self.options.cpus);
        let connections = self.options.connections * total as usize / loops as usize;
        plan.connection_limit = plan.connection_limit.min(connections);
        Ok(plan)
    }

    /// Prepares a share on a thread of its own. The error is the reason of a refusal.
    pub(crate) async fn prepare(
        &mut self,
        request: PrepareRequest<SentPlan>,
        storage: &Storage,
    ) -> Result<PreparedFacts, String> {
        self.forget();
        let plan = match request.plan {
            SentPlan::Inline(plan) => *plan,
            SentPlan::File(name) => {
                let key = request.key.ok_or("the file of the plan has no key")?;
                let content = storage.get(&name, &key, LONGEST_PLAN).await;
                let content = content.map_err(|error| error.to_string())?;
                serde_json::from_slice(&content).map_err(|error| format!("the plan: {error}"))?
            }
        };
        let plan = self.adopt(plan, request.share)?;
        let orders = Arc::new(ShareOrders {
            now: AtomicBool::new(false),
            at: StopTime::never(),
        });
        let (facts, ready) = oneshot::channel();
        let (start, started) = mpsc::channel();
        let share = Share {
            first: request.share.first() as usize,
            loops: self.options.loops as usize,
        };
        let (allow, thread_orders) = (self.options.allow.clone(), orders.clone());
        let thread = std::thread::Builder::new().name("share".to_owned());
        let thread = thread
            .spawn(move || serve_share(&plan, share, &thread_orders, &allow, facts, &started))
            .map_err(|error| format!("no thread: {error}"))?;
        self.run = Some(PresentShare {
            orders,
            start: Some(start),
            thread,
        });
        ready
            .await
            .unwrap_or_else(|_| Err("the preparation failed: a bug".to_owned()))
    }

    /// True if a share waits for its start.
    pub(crate) fn is_prepared(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.start.is_some())
    }

    /// Starts the prepared share at the origin, on the clock [`monotonic_ns`](crate::clock::monotonic_ns). `notes` takes its
    /// results.
    pub(crate) fn start(&mut self, origin_ns: u64, notes: ShareNotes) {
        let Some(start) = self.run.as_mut().and_then(|run| run.start.take()) else {
            return notes.stood_down("nothing is prepared".to_owned());
        };
        let Some(origin) = instant_of(origin_ns) else {
            return notes.stood_down("its clock has no such origin".to_owned());
        };
        if let Err(mpsc::SendError((_, notes))) = start.send((origin, notes)) {
            notes.stood_down("its preparation has ended".to_owned());
        }
    }

    /// Stops the share at this time after the origin.
    pub(crate) fn stop(&self, at_ns: u64) {
        if let Some(run) = &self.run {
            run.orders.at.set(Span::from_nanos(at_ns));
        }
    }

    /// Stops the share at once, and waits for its thread.
    pub(crate) fn forget(&mut self) {
        if let Some(former) = self.run.take() {
            former.orders.now.store(true, Relaxed);
            // One that was never started may still look names up, and ends by itself.
            if former.start.is_none() {
                // Its loops look at the order at least every 100 ms. A panic was reported.
                let _ = former.thread.join();
            }
        }
    }
}

/// Prepares a share, waits for its start, and carries it out. Runs on a thread of its own.
fn serve_share(
    plan: &Plan,
    share: Share,
    orders: &ShareOrders,
    allow: &AllowList,
    ready: oneshot::Sender<Result<PreparedFacts, String>>,
    started: &mpsc::Receiver<(Instant, ShareNotes)>,
) {
    let stop = StopOrders {
        now: &orders.now,
        at: &orders.at,
    };
    let prepared = match PreparedShare::new(plan, share, stop, allow) {
        Ok(prepared) => prepared,
        // The conductor may have given up.
        Err(error) => return drop(ready.send(Err(error.to_string()))),
    };
    let facts = facts_about(&prepared, share.loops as u32);
    if ready.send(Ok(facts)).is_err() {
        return;
    }
    let Ok((origin, notes)) = started.recv() else {
        return;
    };
    let carried_out = prepared.carry_out(origin, &mut NotedSeconds(&notes));
    let is_stopped = orders.now.load(Relaxed) || orders.at.get().is_some();
    let error = match carried_out {
        Ok(total) => {
            notes.total(Box::new(total));
            None
        }
        Err(error) => Some(error.to_string()),
    };
    notes.end(EndFacts { is_stopped, error });
}

/// The facts about a share that is ready.
fn facts_about(prepared: &PreparedShare<'_>, loops: u32) -> PreparedFacts {
    let servers = prepared.origins().iter();
    PreparedFacts {
        loops,
        connections: prepared.connection_limit() as u64,
        servers: servers
            .map(|origin| {
                let addresses = origin.addresses.iter().map(ToString::to_string);
                let addresses: Vec<String> = addresses.collect();
                format!("{} at {}", origin.authority(), addresses.join(", "))
            })
            .collect(),
    }
}

impl Merge for Box<LoadTally> {
    fn merge(&mut self, later: Self) {
        LoadTally::merge(self, &later);
    }
}
