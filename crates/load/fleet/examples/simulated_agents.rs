//! Many agents in one process, for measurements of a conductor.
//!
//! One agent of a hundred carries out its share. The others publish the tallies of that agent as theirs, so that
//! their notes are real ones and the machine does not send their requests. Constant arrivals give all of them as many
//! requests, if the plan has a multiple of the number of agents.
//!
//! Arguments: the URL of the server, the fleet, the program of the conductor, and the number of agents. A line on
//! standard output tells that they are ready. After each run, a line of JSON has the report of all agents, added up here.

use std::cell::RefCell;
use std::error::Error;
use std::future::Future;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use posthaste_evaluation::report::Report;
use posthaste_fleet::agent::allow::AllowList;
use posthaste_fleet::agent::assignment::{AgentLimits, ForgetReason};
use posthaste_fleet::agent::{Agent, AgentHandler};
use posthaste_fleet::clock::monotonic_ns;
use posthaste_fleet::connection::{Connection, NatsOptions, ServerSafety};
use posthaste_fleet::message::{AgentInfo, PrepareRequest};
use posthaste_fleet::names::RunId;
use posthaste_fleet::notes::NoteSender;
use posthaste_fleet::numerics::numerics;
use posthaste_fleet::storage::Storage;
use posthaste_fleet::work::{AgentFacts, AgentPlan, EndFacts, PreparedFacts, SentPlan};
use posthaste_load::{
    LoadTally, Plan, PreparedShare, Run, Share, ShareObserver, StopOrders, StopTime,
};
use posthaste_units::Span;
use tokio::sync::oneshot;

/// Agents with the tallies of one of them.
const GROUP: usize = 100;

type Notes = NoteSender<Box<LoadTally>, EndFacts>;

/// Agents that publish the same tallies.
#[derive(Default)]
struct Group {
    notes: Mutex<Vec<Notes>>,
    stop: AtomicBool,
}

/// The sum of the totals of all agents.
#[derive(Default)]
struct SumOfTotals {
    plan: Option<Plan>,
    tally: Option<LoadTally>,
    agents: usize,
}

struct SimulatedAgent {
    group: Arc<Group>,
    /// Carries out its share.
    is_first: bool,
    start: Option<mpsc::Sender<Instant>>,
    sum: Arc<Mutex<SumOfTotals>>,
    count: usize,
}

impl Group {
    fn lock(&self) -> MutexGuard<'_, Vec<Notes>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds each second to the notes of all agents of the group.
impl ShareObserver for &Group {
    fn second(&mut self, second: u64, tally: &LoadTally, _: bool) {
        for notes in &*self.lock() {
            let mut note = Box::new(tally.emptied());
            note.merge(tally);
            notes.second(second, note);
        }
    }
}

impl AgentHandler for SimulatedAgent {
    type Plan = AgentPlan;
    type Ready = AgentFacts;
    type Sum = Box<LoadTally>;
    type End = EndFacts;
    type Job = ();
    type JobResult = ();

    async fn prepare(
        &mut self,
        request: PrepareRequest<AgentPlan>,
        _: &Storage,
    ) -> Result<AgentFacts, String> {
        let AgentPlan::Load(SentPlan::Inline(plan)) = request.plan else {
            return Err("simulated agents carry out a plan in the message".to_owned());
        };
        let connections = plan.connection_limit as u64;
        if self.is_first {
            self.group.stop.store(false, Relaxed);
            // Those of a run that did not start.
            self.group.lock().clear();
            let share = Share {
                first: request.share.first() as usize,
                loops: 1,
            };
            let (group, sum, count) = (self.group.clone(), self.sum.clone(), self.count);
            let (ready, is_ready) = oneshot::channel();
            let (start, started) = mpsc::channel();
            self.start = Some(start);
            std::thread::spawn(move || {
                carry_out(&plan, share, &group, ready, &started, &sum, count)
            });
            is_ready.await.map_err(|error| error.to_string())??;
        }
        Ok(AgentFacts::Load(PreparedFacts {
            loops: 1,
            connections,
            servers: Vec::new(),
        }))
    }

    fn start(&mut self, _: RunId, origin_ns: u64, notes: Notes) {
        self.group.lock().push(notes);
        if let Some(start) = self.start.take() {
            let left = Duration::from_nanos(origin_ns.saturating_sub(monotonic_ns()));
            // The thread has ended if the preparation failed.
            let _ = start.send(Instant::now() + left);
        }
    }

    fn stop(&mut self, _: u64) {
        self.group.stop.store(true, Relaxed);
    }

    fn forget(&mut self, _: RunId, _: ForgetReason) {
        self.group.stop.store(true, Relaxed);
    }

    fn work(&mut self, _: ()) -> impl Future<Output = Result<(), String>> + Send + 'static {
        std::future::ready(Err("simulated agents do no jobs".to_owned()))
    }
}

/// Carries out the share of the first agent of a group.
fn carry_out(
    plan: &Plan,
    share: Share,
    group: &Group,
    ready: oneshot::Sender<Result<(), String>>,
    started: &mpsc::Receiver<Instant>,
    sum: &Mutex<SumOfTotals>,
    count: usize,
) {
    let never = StopTime::never();
    let stop = StopOrders {
        now: &group.stop,
        at: &never,
    };
    let allow = AllowList::default();
    let prepared = match PreparedShare::new(plan, share, stop, &allow) {
        Ok(prepared) => prepared,
        Err(error) => return drop(ready.send(Err(error.to_string()))),
    };
    // The conductor may have given up.
    let _ = ready.send(Ok(()));
    let Ok(origin) = started.recv() else { return };
    let result = prepared.carry_out(origin, &mut &*group);
    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
    for notes in group.lock().drain(..) {
        let mut error = None;
        match &result {
            Ok(total) => {
                sum.add(plan, total);
                notes.total(Box::new(total.clone()));
            }
            Err(reason) => error = Some(reason.to_string()),
        }
        let is_stopped = group.stop.load(Relaxed);
        notes.end(EndFacts { is_stopped, error });
    }
    if sum.agents == count {
        sum.print();
    }
}

impl SumOfTotals {
    fn add(&mut self, plan: &Plan, total: &LoadTally) {
        self.plan.get_or_insert_with(|| plan.clone());
        let tally = self.tally.get_or_insert_with(|| LoadTally::for_plan(plan));
        tally.merge(total);
        self.agents += 1;
    }

    /// Prints the report, and starts anew.
    fn print(&mut self) {
        let Self { plan, tally, .. } = std::mem::take(self);
        let (plan, tally) = plan.zip(tally).expect("agents have added theirs");
        let run = Run::new(&plan, jiff::Timestamp::UNIX_EPOCH, tally, false);
        let report = Report::new(&plan, &run);
        println!(
            "{}",
            serde_json::to_string(&report).expect("numbers are JSON")
        );
    }
}

/// The digest by which the conductor recognises its own build.
fn build_of(program: &str) -> std::io::Result<String> {
    let digest = ring::digest::digest(&ring::digest::SHA256, &std::fs::read(program)?);
    Ok(digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, fleet, program, count] = arguments.as_slice() else {
        return Err("arguments: URL FLEET PROGRAM COUNT".into());
    };
    let (build, numerics, count) = (build_of(program)?, numerics(), count.parse::<usize>()?);
    let sum = Arc::new(Mutex::new(SumOfTotals::default()));
    let connected = Rc::new(RefCell::new(0));
    let mut group = Arc::new(Group::default());
    let mut agents = Vec::new();
    for index in 0..count {
        let is_first = index % GROUP == 0;
        if is_first {
            group = Arc::new(Group::default());
        }
        let name = format!("s{index:04}");
        let options = NatsOptions {
            url: url.parse()?,
            name: name.clone(),
            credentials: None,
            authority: None,
            safety: ServerSafety::Required,
        };
        let info = AgentInfo {
            name: name.parse()?,
            fleet: fleet.parse()?,
            build: build.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            numerics: numerics.clone(),
            loops: 1,
            processor: String::new(),
            descriptors: 0,
            allow: String::new(),
            machine: String::new(),
        };
        let mut handler = SimulatedAgent {
            group: group.clone(),
            is_first,
            start: None,
            sum: sum.clone(),
            count,
        };
        let connected = connected.clone();
        agents.push(async move {
            let limits = AgentLimits {
                longest_run: Span::from_secs(3600),
            };
            let mut agent = Agent::new(Connection::open(&options).await?, info, limits);
            let now_connected = connected.replace_with(|connected| *connected + 1) + 1;
            if now_connected == count {
                println!("ready");
            }
            agent.serve(&mut handler, std::future::pending()).await?;
            Ok::<_, Box<dyn Error>>(())
        });
    }
    try_join_all(agents).await?;
    Ok(())
}
