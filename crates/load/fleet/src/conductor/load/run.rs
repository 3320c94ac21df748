//! The conductor of a run of load: prepare agents, start them together, follow them, add up.

#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use posthaste_evaluation::Runner;
use posthaste_load::{
    Arrivals, LoadTally, Observer, Outcome, Pace, Plan, Run, RunError, Share, requests_by_loop,
};
use posthaste_units::{Instant, Span, visible_lines};

use super::follow::{FollowedRun, OnLost};
use super::progress::{AgentProgress, RunAgents};
use crate::conductor::fleet::{AgentFleet, FleetError, FleetNeeds};
use crate::conductor::offset::{ClockAccuracy, ClockEstimate, EXCHANGES};
use crate::conductor::{AgentError, Conductor};
use crate::machine::clock::monotonic_ns;
use crate::nats::storage::Storage;
use crate::notes::NoteReader;
use crate::protocol::allot::{AgentShare, allot};
use crate::protocol::envelope::ProtocolVersion;
use crate::protocol::message::{PrepareRequest, RunOrder};
use crate::protocol::names::{AgentName, RunId};
use crate::protocol::sealed::SealingKey;
use crate::protocol::work::{AgentFacts, AgentPlan, PreparedFacts, SentPlan};

/// Time limit of a preparation: names are looked up, and files fetched.
const PREPARATION: Duration = Duration::from_secs(30);

/// Minimum time between arming and the origin, in the first attempt.
const LEAST_LEAD: Span = Span::from_millis(300);

/// Rules of a run on agents.
#[derive(Clone, Copy, Debug)]
pub struct RunRules {
    /// Consequence of a lost agent.
    pub on_lost: OnLost,
    /// Permits clocks that are known to 50 ms only, or worse.
    pub loose_start: bool,
}

/// The user of a run.
struct RunUser<'u> {
    /// Ends the run early.
    stop: &'u AtomicBool,
    observer: &'u mut dyn Observer,
    /// Takes messages.
    notice: &'u mut dyn FnMut(&str),
}

/// One run of a fleet: the agents with their shares, and the plan for all of them.
struct FleetRun<'p> {
    run: RunId,
    plan: &'p Plan,
    rules: RunRules,
    shares: Vec<(AgentName, AgentShare)>,
    key: SealingKey,
}

impl AgentFleet {
    /// Carries out `plan` on the agents. Setting `stop` ends it early. `notice` takes messages for the user.
    pub fn run(
        &mut self,
        plan: &Plan,
        rules: RunRules,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
        notice: &mut dyn FnMut(&str),
    ) -> Result<Run, FleetError> {
        let mut plan = plan.clone();
        plan.threads = self.loops();
        plan.cpus = Vec::new();
        let loops: Vec<(AgentName, u32)> = self
            .chosen
            .iter()
            .map(|agent| (agent.info.name.clone(), agent.info.loops))
            .collect();
        let fleet_run = FleetRun {
            run: RunId::random(),
            plan: &plan,
            rules,
            shares: allot(&loops)?,
            key: SealingKey::random(),
        };
        let mut user = RunUser {
            stop,
            observer,
            notice,
        };
        let carried_out = fleet_run.carry_out(self, &mut user);
        self.runtime.block_on(carried_out)
    }
}

impl FleetRun<'_> {
    /// The stages of a run. Whatever happens, the agents are released, and nothing of the run stays on the server.
    async fn carry_out(
        &self,
        fleet: &AgentFleet,
        user: &mut RunUser<'_>,
    ) -> Result<Run, FleetError> {
        let conductor = &fleet.conductor;
        let storage = Storage::new(conductor.connection(), conductor.subjects().clone());
        storage.ensure().await?;
        let result = async {
            let sent = self.send_plan(conductor, &storage).await?;
            let facts = self.prepare(conductor, &sent).await?;
            let clocks = self.measure_clocks(fleet, user.notice).await?;
            self.send_load(fleet, facts, clocks, user).await
        };
        let result = result.await;
        self.clean_up(conductor, &storage).await;
        result
    }

    /// Puts the plan into the message, or into a file if it is long.
    async fn send_plan(
        &self,
        conductor: &Conductor,
        storage: &Storage,
    ) -> Result<SentPlan, FleetError> {
        let json = serde_json::to_vec(self.plan)?;
        if json.len() < conductor.connection().max_message() {
            return Ok(SentPlan::Inline(Box::new(self.plan.clone())));
        }
        let name = self.plan_file();
        storage.put(&name, &self.key, &json).await?;
        Ok(SentPlan::File(name))
    }

    fn plan_file(&self) -> String {
        format!("plan-{}", self.run)
    }

    /// Lets each agent prepare its share.
    async fn prepare(
        &self,
        conductor: &Conductor,
        sent: &SentPlan,
    ) -> Result<Vec<PreparedFacts>, FleetError> {
        let files = match sent {
            SentPlan::Inline(_) => Vec::new(),
            SentPlan::File(name) => vec![name.clone()],
        };
        let prepared = self.shares.iter().map(|(name, share)| {
            let request = PrepareRequest {
                v: ProtocolVersion,
                run: self.run,
                plan: AgentPlan::Load(sent.clone()),
                share: *share,
                files: files.clone(),
                key: (!files.is_empty()).then(|| self.key.clone()),
            };
            async move {
                let facts = conductor.prepare(name, &request, PREPARATION).await?;
                match facts {
                    AgentFacts::Load(facts) => Ok(facts),
                    AgentFacts::Sweep(_) | AgentFacts::Studies => Err(AgentError::Refused {
                        agent: name.clone(),
                        reason: "it has prepared a sweep".to_owned(),
                    }),
                }
            }
        });
        let prepared = join_all(prepared).await.into_iter();
        Ok(prepared.collect::<Result<_, _>>()?)
    }

    /// Measures the clocks, and refuses those that are not known well enough.
    async fn measure_clocks(
        &self,
        fleet: &AgentFleet,
        notice: &mut dyn FnMut(&str),
    ) -> Result<Vec<ClockEstimate>, FleetError> {
        let names: Vec<AgentName> = self.shares.iter().map(|(name, _)| name.clone()).collect();
        let clocks = fleet.conductor.clocks(&names, EXCHANGES).await?;
        for (agent, clock) in names.into_iter().zip(&clocks) {
            let bound = clock.bound;
            match clock.accuracy() {
                ClockAccuracy::Fine => {}
                ClockAccuracy::TooCoarse if !self.rules.loose_start => {
                    return Err(FleetError::Clock { agent, bound });
                }
                ClockAccuracy::Coarse | ClockAccuracy::TooCoarse => {
                    notice(&format!(
                        "agent {agent} starts up to {bound} before or after the common instant"
                    ));
                }
            }
        }
        Ok(clocks)
    }

    /// Starts the agents together, follows them to their ends, and adds their tallies up.
    async fn send_load(
        &self,
        fleet: &AgentFleet,
        facts: Vec<PreparedFacts>,
        clocks: Vec<ClockEstimate>,
        user: &mut RunUser<'_>,
    ) -> Result<Run, FleetError> {
        let conductor = &fleet.conductor;
        let mut agents = self.agents(facts, &clocks);
        let (connection, subjects) = (conductor.connection(), conductor.subjects());
        let names = agents.keys().cloned().collect::<Vec<_>>();
        let mut reader = NoteReader::start(connection, subjects, self.run, names.clone()).await?;
        // The clocks were measured in the order of the shares.
        assert!(
            names.iter().eq(self.shares.iter().map(|(name, _)| name)),
            "shares are sorted by name"
        );
        let timed: Vec<_> = names.into_iter().zip(clocks).collect();
        let started = conductor.start(self.run, &timed, LEAST_LEAD).await?;
        let origin_ns = started.origin_ns;
        let started = wall_clock_of(origin_ns);
        user.observer.begin(started);
        let mut followed = FollowedRun {
            conductor,
            run: self.run,
            plan: self.plan,
            agents: &mut agents,
            origin_ns,
            on_lost: self.rules.on_lost,
            stop: user.stop,
            observer: user.observer,
            notice: user.notice,
        };
        let stopped_at = followed.follow(&mut reader).await;
        Ok(self.add_up(agents, started, stopped_at))
    }

    fn agents(&self, facts: Vec<PreparedFacts>, clocks: &[ClockEstimate]) -> RunAgents {
        assert!(
            facts.len() == self.shares.len() && clocks.len() == self.shares.len(),
            "each share has facts and a clock"
        );
        let agents = self.shares.iter().zip(facts).zip(clocks);
        let agents = agents.map(|(((name, share), facts), clock)| {
            let share = Share {
                first: share.first() as usize,
                loops: facts.loops as usize,
            };
            let agent = AgentProgress::new(name.clone(), share, facts, *clock, self.plan);
            (name.clone(), agent)
        });
        agents.collect()
    }

    /// Adds the tallies of the agents up, and the requests that lost agents owed.
    fn add_up(&self, agents: RunAgents, started: Timestamp, stopped_at: Option<Span>) -> Run {
        let over = stopped_at.map_or(Instant::FAR_FUTURE, |at| Instant::ORIGIN + at);
        let is_stopped = stopped_at.is_some();
        let mut sum = LoadTally::for_plan(self.plan);
        let mut reports = Vec::new();
        let due_by_loop = requests_by_loop(self.plan, over);
        for (_, mut agent) in agents {
            let Share { first, loops } = agent.share;
            let due = due_by_loop.as_ref();
            let due = due.map(|counts| counts.iter().skip(first).take(loops).sum());
            let tally = agent.whole(self.plan, over, due);
            sum.merge(&tally);
            reports.push(agent.report(self.plan, &tally, is_stopped));
        }
        let mut run = Run::new(self.plan, started, sum, is_stopped);
        run.agents = reports;
        run
    }

    /// Releases the agents, and removes the notes and the file of the run.
    async fn clean_up(&self, conductor: &Conductor, storage: &Storage) {
        // What stays after a failure is removed by the server after an hour.
        let _ = conductor.order(self.run, RunOrder::Release).await;
        let _ = storage.purge(self.run).await;
        let _ = storage.remove(&self.plan_file()).await;
    }
}

/// Trials of a search on agents.
pub struct FleetRunner<'f> {
    /// The agents.
    pub fleet: &'f mut AgentFleet,
    /// The rules of each trial.
    pub rules: RunRules,
    /// Ends the search.
    pub stop: &'f AtomicBool,
}

impl Runner for FleetRunner<'_> {
    /// A trial during which an agent was lost does not count. It is made once more, if there are enough agents.
    fn run(&mut self, plan: &Plan) -> Result<Run, RunError> {
        let failed = |error: FleetError| RunError::Agents(error.to_string());
        for _ in 0..2 {
            let mut notice = |text: &str| {
                let _ = writeln!(std::io::stderr(), "{}", visible_lines(text));
            };
            let run = self
                .fleet
                .run(plan, self.rules, self.stop, &mut (), &mut notice);
            let run = run.map_err(failed)?;
            if run.outcomes[Outcome::Lost] == 0 {
                return Ok(run);
            }
            self.fleet.choose().map_err(failed)?;
        }
        Err(RunError::Agents(
            "agents were lost in two trials of one rate".to_owned(),
        ))
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

/// The equalities that a plan needs of its agents: of functions of libm for random times, of processors for decoding
/// times of another machine.
pub fn needs_of(plan: &Plan) -> FleetNeeds {
    FleetNeeds {
        numerics: match &plan.pace {
            Pace::Open { arrivals, .. } => matches!(arrivals, Arrivals::Poisson),
            Pace::Closed { .. } => false,
        },
        processor: plan.decoding.is_some_and(|slowdown| slowdown > 1),
    }
}

/// The wall-clock time of an instant of the conductor's clock.
fn wall_clock_of(origin_ns: u64) -> Timestamp {
    let left = i128::from(origin_ns) - i128::from(monotonic_ns());
    Timestamp::now() + SignedDuration::from_nanos(i64::try_from(left).unwrap_or_default())
}
