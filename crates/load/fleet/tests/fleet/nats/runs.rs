//! Whole runs: an agent with a small handler, and a conductor, with the deployed configuration.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use posthaste_fleet::agent::assignment::{AgentLimits, ForgetReason};
use posthaste_fleet::agent::{Agent, AgentHandler};
use posthaste_fleet::allot::{AgentShare, allot};
use posthaste_fleet::clock::monotonic_ns;
use posthaste_fleet::conductor::discovery::{AgentRequirements, FoundAgent, WantedAgents, choose};
use posthaste_fleet::conductor::offset::EXCHANGES;
use posthaste_fleet::conductor::{AgentError, Conductor};
use posthaste_fleet::envelope::ProtocolVersion;
use posthaste_fleet::message::{AgentInfo, NoteContent, PrepareRequest, RunOrder};
use posthaste_fleet::names::{AgentName, RunId};
use posthaste_fleet::notes::{Merge, NoteReader, NoteSender};
use posthaste_fleet::sealed::SealingKey;
use posthaste_fleet::storage::Storage;
use posthaste_units::Span;
use serde::{Deserialize, Serialize};

use super::server::{NatsServer, PATIENCE, eventually, on_one_thread, subjects};
use super::storage::{CANARY, contains};

/// Minimum time between arming and the origin.
const LEAD: Span = Span::from_millis(1000);

const REQUIREMENTS: AgentRequirements<'static> = AgentRequirements {
    build: "b",
    version: "0.1.0",
    numerics: None,
};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Count(u64);

impl Merge for Count {
    fn merge(&mut self, later: Self) {
        self.0 += later.0;
    }
}

/// Events of one agent, as its handler has seen them.
#[derive(Clone, Default)]
struct HandlerEvents(Rc<RefCell<Vec<String>>>);

impl HandlerEvents {
    fn add(&self, event: impl Into<String>) {
        self.0.borrow_mut().push(event.into());
    }

    fn has(&self, event: &str) -> bool {
        self.0.borrow().iter().any(|seen| seen == event)
    }
}

/// Counts one per second and loop, until it is stopped.
struct CountingHandler {
    events: HandlerEvents,
    share: Option<AgentShare>,
    notes: Option<NoteSender<Count, u64>>,
    origins: Rc<RefCell<Vec<u64>>>,
}

impl AgentHandler for CountingHandler {
    type Plan = String;
    type Ready = String;
    type Sum = Count;
    type End = u64;
    type Job = u64;
    type JobResult = String;

    async fn prepare(
        &mut self,
        request: PrepareRequest<String>,
        storage: &Storage,
    ) -> Result<String, String> {
        if request.plan.starts_with("refuse") {
            return Err("this target is not allowed".into());
        }
        self.share = Some(request.share);
        let mut files = String::new();
        for name in &request.files {
            let key = request.key.as_ref().ok_or("no key")?;
            let content = storage.get(name, key, 1 << 20).await;
            let content = content.map_err(|error| error.to_string())?;
            files += &String::from_utf8_lossy(&content);
        }
        self.events.add("prepare");
        Ok(files)
    }

    fn start(&mut self, _run: RunId, origin_ns: u64, notes: NoteSender<Count, u64>) {
        self.events.add("start");
        self.origins.borrow_mut().push(origin_ns);
        for second in 0..3 {
            notes.second(second, Count(self.share.unwrap().first().into()));
        }
        self.notes = Some(notes);
    }

    fn stop(&mut self, at_ns: u64) {
        self.events.add(format!("stop {at_ns}"));
        let notes = self.notes.take().expect("it was started");
        notes.total(Count(3 * u64::from(self.share.unwrap().first())));
        notes.end(at_ns);
    }

    fn forget(&mut self, _run: RunId, reason: ForgetReason) {
        self.events.add(format!("forget: {reason}"));
    }

    /// The result is a text with this number of random digits.
    fn work(&mut self, job: u64) -> impl Future<Output = Result<String, String>> + Send + 'static {
        let digits = (0..job).scan(1_u64, |state, _| {
            *state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            Some(char::from(b'0' + ((*state >> 33) % 10) as u8))
        });
        std::future::ready(Ok(digits.collect()))
    }
}

fn info(name: &str) -> AgentInfo {
    AgentInfo {
        name: name.parse().unwrap(),
        fleet: "default".parse().unwrap(),
        build: "b".into(),
        version: "0.1.0".into(),
        numerics: "n".into(),
        loops: 2,
        processor: "p".into(),
        descriptors: 1024,
        allow: "::1".into(),
        machine: "m".into(),
    }
}

/// A running agent. Its task is on the thread of the test.
struct RunningAgent {
    events: HandlerEvents,
    origins: Rc<RefCell<Vec<u64>>>,
    /// Makes the agent leave.
    leave: Rc<tokio::sync::Notify>,
    task: tokio::task::JoinHandle<()>,
}

impl RunningAgent {
    async fn start(server: &NatsServer, name: &str) -> Self {
        let connection = server.connect(name).await;
        let (events, origins) = (HandlerEvents::default(), Rc::default());
        let mut handler = CountingHandler {
            events: events.clone(),
            share: None,
            notes: None,
            origins: Rc::clone(&origins),
        };
        let limits = AgentLimits {
            longest_run: Span::from_millis(3_600_000),
        };
        let mut agent = Agent::new(connection, info(name), limits);
        let leave = Rc::<tokio::sync::Notify>::default();
        let leaving = Rc::clone(&leave);
        let task = tokio::task::spawn_local(async move {
            let served = agent.serve(&mut handler, leaving.notified()).await;
            served.unwrap();
        });
        Self {
            events,
            origins,
            leave,
            task,
        }
    }
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn names(agents: &[FoundAgent]) -> Vec<AgentName> {
    agents.iter().map(|agent| agent.info.name.clone()).collect()
}

async fn find(conductor: &Conductor, wanted: &WantedAgents) -> Vec<FoundAgent> {
    let is_enough = |found: &[FoundAgent]| wanted.is_met_by(found, REQUIREMENTS);
    let found = conductor.find(is_enough, PATIENCE).await.unwrap();
    choose(wanted, &found, REQUIREMENTS).unwrap()
}

async fn prepare(
    conductor: &Conductor,
    run: RunId,
    agents: &[AgentName],
    plan: &str,
    files: &[&str],
    key: Option<SealingKey>,
) -> Vec<Result<String, AgentError>> {
    let loops: Vec<_> = agents.iter().map(|agent| (agent.clone(), 2)).collect();
    let mut replies = Vec::new();
    for (agent, share) in allot(&loops).unwrap() {
        let request = PrepareRequest {
            v: ProtocolVersion,
            run,
            plan: plan.to_owned(),
            share,
            files: files.iter().map(|name| (*name).to_owned()).collect(),
            key: key.clone(),
        };
        replies.push(conductor.prepare(&agent, &request, PATIENCE).await);
    }
    replies
}

/// Runs a test with a conductor, and tasks on its thread.
fn with_conductor(test: impl AsyncFnOnce(&NatsServer, Conductor)) {
    let server = NatsServer::deployed();
    on_one_thread(async {
        let tasks = tokio::task::LocalSet::new();
        tasks
            .run_until(async {
                let connection = server.connect("conductor").await;
                test(&server, Conductor::new(connection, subjects())).await;
            })
            .await;
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn two_agents_carry_out_a_run() {
    with_conductor(async |server, conductor| {
        let (one, two) = (
            RunningAgent::start(server, "agent-1").await,
            RunningAgent::start(server, "agent-2").await,
        );
        let agents = names(&find(&conductor, &WantedAgents::Count(2)).await);
        let run = RunId::random();
        let storage = Storage::new(conductor.connection(), subjects());
        storage.ensure().await.unwrap();
        let key = SealingKey::random();
        storage.put("rows", &key, b"a,b").await.unwrap();
        let long_plan = "plan ".repeat(10_000);
        let ready = prepare(&conductor, run, &agents, &long_plan, &["rows"], Some(key)).await;
        assert!(
            ready
                .iter()
                .all(|ready| ready.as_ref().is_ok_and(|files| files == "a,b"))
        );

        let clocks = conductor.clocks(&agents, EXCHANGES).await.unwrap();
        for clock in &clocks {
            // All are on one machine: the true offset is 0.
            assert!(
                Span::from_nanos(clock.offset_ns.unsigned_abs()) <= clock.bound,
                "{clock:?}"
            );
        }
        let mut reader: NoteReader<Count, u64> =
            NoteReader::start(conductor.connection(), &subjects(), run, agents.clone())
                .await
                .unwrap();
        let armed: Vec<_> = agents.into_iter().zip(clocks.iter().copied()).collect();
        let started = conductor.start(run, &armed, LEAD).await.unwrap();
        conductor.order(run, RunOrder::Pulse).await.unwrap();
        conductor
            .order(run, RunOrder::Stop { at_ns: 5 })
            .await
            .unwrap();

        let (mut seconds, mut totals, mut ends) = (Count(0), BTreeMap::new(), 0);
        while let Some(note) = reader.next().await {
            match note.note.unwrap().content {
                NoteContent::Seconds { sum, .. } => seconds.merge(sum),
                NoteContent::Total { sum } => drop(totals.insert(note.agent, sum)),
                NoteContent::End { end, .. } => ends += end,
                NoteContent::StoodDown { reason } => panic!("{reason}"),
            }
        }
        assert_eq!(
            totals.values().map(|total| total.0).collect::<Vec<_>>(),
            [0, 6]
        );
        assert_eq!((seconds, ends), (Count(6), 10));
        for (agent, clock) in [&one, &two].into_iter().zip(clocks) {
            let origin = agent.origins.borrow()[0];
            let error = Span::from_nanos(origin.abs_diff(started.origin_ns));
            assert!(error <= clock.bound, "{error:?} {clock:?}");
        }
        conductor.order(run, RunOrder::Release).await.unwrap();
        for agent in [&one, &two] {
            let released = "forget: released by the conductor";
            eventually("agents forget the run", || agent.events.has(released)).await;
        }
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn a_busy_agent_refuses_a_second_run_and_shows_the_first() {
    with_conductor(async |server, conductor| {
        let _agent = RunningAgent::start(server, "agent-1").await;
        let agents = names(&find(&conductor, &WantedAgents::Count(1)).await);
        let (first, second) = (RunId::from_bits(1), RunId::from_bits(2));
        assert!(prepare(&conductor, first, &agents, "p", &[], None).await[0].is_ok());
        let refused = prepare(&conductor, second, &agents, "p", &[], None)
            .await
            .remove(0);
        let text = refused.unwrap_err().to_string();
        assert_eq!(text, "agent agent-1: busy with run 0000000000000001");
        let seen = conductor
            .find(|found| !found.is_empty(), PATIENCE)
            .await
            .unwrap();
        assert_eq!(seen[0].busy, Some(first));
        conductor.order(second, RunOrder::Release).await.unwrap();
        conductor.order(first, RunOrder::Release).await.unwrap();
        assert_eq!(
            find(&conductor, &WantedAgents::Count(1)).await[0].busy,
            None
        );
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn a_plan_is_neither_stored_nor_logged() {
    with_conductor(async |server, conductor| {
        Storage::new(conductor.connection(), subjects())
            .ensure()
            .await
            .unwrap();
        let _agent = RunningAgent::start(server, "agent-1").await;
        let agents = names(&find(&conductor, &WantedAgents::Count(1)).await);
        let run = RunId::random();
        let ready = prepare(&conductor, run, &agents, CANARY, &[], None).await;
        assert!(ready[0].is_ok());
        conductor.order(run, RunOrder::Release).await.unwrap();
        assert!(contains(&server.store(), &subjects().notes_stream()));
        assert!(!contains(&server.store(), CANARY) && !server.output().contains(CANARY));
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn a_refused_preparation_has_a_reason_and_frees_the_agent() {
    with_conductor(async |server, conductor| {
        let _agent = RunningAgent::start(server, "agent-1").await;
        let agents = names(&find(&conductor, &WantedAgents::Count(1)).await);
        let run = RunId::random();
        let refused = prepare(&conductor, run, &agents, "refuse", &[], None)
            .await
            .remove(0);
        let text = refused.unwrap_err().to_string();
        assert_eq!(text, "agent agent-1: this target is not allowed");
        let file = prepare(
            &conductor,
            run,
            &agents,
            "p",
            &["absent"],
            Some(SealingKey::random()),
        );
        assert!(matches!(file.await[0], Err(AgentError::Refused { .. })));
        assert!(prepare(&conductor, run, &agents, "p", &[], None).await[0].is_ok());
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn an_agent_says_that_a_result_is_too_long() {
    with_conductor(async |server, conductor| {
        let _agent = RunningAgent::start(server, "agent-1").await;
        let agents = names(&find(&conductor, &WantedAgents::Count(1)).await);
        let run = RunId::random();
        assert!(prepare(&conductor, run, &agents, "p", &[], None).await[0].is_ok());
        let clocks = conductor.clocks(&agents, EXCHANGES).await.unwrap();
        let armed: Vec<_> = agents.iter().cloned().zip(clocks).collect();
        conductor.start(run, &armed, LEAD).await.unwrap();
        let job = async |digits: u64| {
            let done = conductor.job::<_, String>(&agents[0], run, &digits, PATIENCE);
            done.await.map(|result| result.len())
        };
        assert_eq!(job(1000).await.unwrap(), 1000);
        let refused = job(2_000_000).await.unwrap_err().to_string();
        assert!(refused.contains("raise max_payload"), "{refused}");
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn nobody_begins_unless_all_are_armed() {
    with_conductor(async |server, conductor| {
        let one = RunningAgent::start(server, "agent-1").await;
        let two = RunningAgent::start(server, "agent-2").await;
        let agents = names(&find(&conductor, &WantedAgents::Count(2)).await);
        let run = RunId::random();
        // The second agent is not prepared.
        assert!(prepare(&conductor, run, &agents[..1], "p", &[], None).await[0].is_ok());
        let clocks = conductor.clocks(&agents, EXCHANGES).await.unwrap();
        let armed: Vec<_> = agents.iter().cloned().zip(clocks).collect();
        let text = conductor
            .start(run, &armed, LEAD)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            text.contains(&format!("agent agent-2: not prepared for run {run}")),
            "{text}"
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!one.events.has("start") && !two.events.has("start"));
        // The first agent is still prepared.
        let started = conductor.start(run, &armed[..1], LEAD).await.unwrap();
        assert!(started.origin_ns > 0);
        eventually("it starts", || one.events.has("start")).await;
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn an_agent_without_go_stands_down_and_says_so() {
    with_conductor(async |server, conductor| {
        let agent = RunningAgent::start(server, "agent-1").await;
        let agents = names(&find(&conductor, &WantedAgents::Count(1)).await);
        let run = RunId::random();
        assert!(prepare(&conductor, run, &agents, "p", &[], None).await[0].is_ok());
        let mut reader: NoteReader<Count, u64> =
            NoteReader::start(conductor.connection(), &subjects(), run, agents.clone())
                .await
                .unwrap();
        let request = format!(
            r#"{{"v":1,"run":"{run}","origin_ns":{}}}"#,
            monotonic_ns() + 1_000_000_000
        );
        let client = conductor.connection().client();
        let armed = client
            .request(subjects().arm(&agents[0]), request.into())
            .await
            .unwrap();
        assert!(
            armed.payload.starts_with(br#"{"v":1,"result":{"armed":"#),
            "{armed:?}"
        );
        let note = reader.next().await.unwrap().note.unwrap();
        let reason = "no go before the origin".to_owned();
        assert_eq!(note.content, NoteContent::StoodDown { reason });
        assert!(reader.next().await.is_none());
        assert!(!agent.events.has("start"));
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn an_agent_that_leaves_reports_its_share_first() {
    with_conductor(async |server, conductor| {
        let mut agent = RunningAgent::start(server, "agent-1").await;
        let agents = names(&find(&conductor, &WantedAgents::Count(1)).await);
        let run = RunId::random();
        assert!(prepare(&conductor, run, &agents, "p", &[], None).await[0].is_ok());
        let mut reader: NoteReader<Count, u64> =
            NoteReader::start(conductor.connection(), &subjects(), run, agents.clone())
                .await
                .unwrap();
        let clocks = conductor.clocks(&agents, EXCHANGES).await.unwrap();
        let armed: Vec<_> = agents.into_iter().zip(clocks).collect();
        conductor.start(run, &armed, LEAD).await.unwrap();
        eventually("it starts", || agent.events.has("start")).await;
        agent.leave.notify_one();
        let mut last = None;
        while let Some(note) = reader.next().await {
            last = Some(note.note.unwrap().content);
        }
        assert!(matches!(last, Some(NoteContent::End { .. })), "{last:?}");
        (&mut agent.task).await.unwrap();
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn malformed_requests_are_refused_and_the_agent_goes_on() {
    with_conductor(async |server, conductor| {
        let _agent = RunningAgent::start(server, "agent-1").await;
        let agents = names(&find(&conductor, &WantedAgents::Count(1)).await);
        let client = conductor.connection().client();
        for body in ["", "{}", r#"{"v":2}"#, "\u{0}"] {
            let subject = subjects().prepare(&agents[0]);
            let reply = client.request(subject, body.into()).await.unwrap();
            assert!(
                reply.payload.starts_with(br#"{"v":1,"result":{"refused":"#),
                "{reply:?}"
            );
        }
        // Without a reply subject, also to the service API.
        for subject in [
            subjects().arm(&agents[0]),
            subjects().clock(&agents[0]),
            "$SRV.INFO".into(),
        ] {
            client.publish(subject, "x".into()).await.unwrap();
        }
        assert_eq!(
            names(&find(&conductor, &WantedAgents::Count(1)).await),
            agents
        );
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn an_agent_is_found_again_after_the_death_of_the_server() {
    let mut server = NatsServer::deployed();
    on_one_thread(async {
        let tasks = tokio::task::LocalSet::new();
        tasks
            .run_until(async {
                let agent = RunningAgent::start(&server, "agent-1").await;
                let conductor = Conductor::new(server.connect("conductor").await, subjects());
                find(&conductor, &WantedAgents::Count(1)).await;
                server.kill();
                server.start();
                conductor.connection().wait().await;
                find(&conductor, &WantedAgents::Count(1)).await;
                assert!(!agent.task.is_finished());
            })
            .await;
    });
}
