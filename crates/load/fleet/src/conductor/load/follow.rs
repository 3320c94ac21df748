//! The conductor during a run: it takes notes, passes seconds on, gives orders, and watches clocks.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::join_all;
use posthaste_load::{JoinedSeconds, LoadTally, Observer, Plan, Tick};
use posthaste_units::{Instant, Span};
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use super::progress::{AgentProgress, RunAgents};
use crate::conductor::Conductor;
use crate::conductor::offset::{ClockEstimate, EXCHANGES_DURING_RUN};
use crate::machine::clock::monotonic_ns;
use crate::notes::{AgentNote, NoteReader};
use crate::protocol::message::RunOrder;
use crate::protocol::names::{AgentName, RunId};
use crate::protocol::work::EndFacts;

/// Interval of decisions.
const TICK: Duration = Duration::from_millis(100);
/// Ticks between two pulses.
const PULSE: u64 = 10;
/// Ticks between two looks at the clocks.
const CLOCKS: u64 = 100;
/// Time from an order to stop until it holds, so that it has reached all agents.
const STOP_LEAD: Span = Span::from_millis(200);
/// Connected time after the end of a run in which agents deliver their totals.
const DELIVERY: Duration = Duration::from_secs(10);
/// Time for agents to end after an order to stop.
const STOPPING: Duration = Duration::from_secs(5);
/// Time limit for reading clocks. Agents stop after 10 s without a pulse, so it must be short.
const CLOCK_REPLY: Duration = Duration::from_secs(2);
/// Requests without a reply after which a silent agent counts as lost.
const UNANSWERED: u32 = 3;

/// Consequence of a lost agent for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLost {
    /// They carry out their shares.
    GoOn,
    /// They stop.
    Stop,
}

/// A run in progress.
pub(super) struct FollowedRun<'r> {
    pub(super) conductor: &'r Conductor,
    pub(super) run: RunId,
    pub(super) plan: &'r Plan,
    pub(super) agents: &'r mut RunAgents,
    /// The origin on the conductor's clock.
    pub(super) origin_ns: u64,
    pub(super) on_lost: OnLost,
    pub(super) stop: &'r AtomicBool,
    pub(super) observer: &'r mut dyn Observer,
    /// Takes messages for the user.
    pub(super) notice: &'r mut dyn FnMut(&str),
}

/// The state of the decisions.
struct RunWatch {
    tick: Interval,
    ticks: u64,
    joined: JoinedSeconds,
    /// Time of the run at which all agents stop.
    stops_at: Option<Span>,
    /// Connected time since the end of the run.
    overtime: Duration,
    is_delayed: bool,
}

impl FollowedRun<'_> {
    /// Follows the run until all agents have ended, or nothing more is expected of the others. Returns the time at
    /// which it was stopped.
    pub(super) async fn follow(
        &mut self,
        reader: &mut NoteReader<Box<LoadTally>, EndFacts>,
    ) -> Option<Span> {
        let mut watch = RunWatch {
            tick: interval(TICK),
            ticks: 0,
            joined: JoinedSeconds::new(self.agents.len()),
            stops_at: None,
            overtime: Duration::ZERO,
            is_delayed: false,
        };
        watch
            .tick
            .set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                note = reader.next() => match note {
                    Some(note) => self.take(note, &mut watch.joined),
                    None => break,
                },
                _ = watch.tick.tick() => {
                    if self.decide(&mut watch).await {
                        break;
                    }
                }
            }
            self.pass_on(&mut watch.joined, false);
        }
        self.pass_on(&mut watch.joined, true);
        watch.stops_at
    }

    /// Time of the run.
    fn now(&self) -> Instant {
        Instant::from_nanos(monotonic_ns().saturating_sub(self.origin_ns))
    }

    fn take(&mut self, note: AgentNote<Box<LoadTally>, EndFacts>, joined: &mut JoinedSeconds) {
        let Some(index) = self.agents.keys().position(|name| *name == note.agent) else {
            return;
        };
        let agent = self.agents.get_mut(&note.agent).expect("it has a position");
        match note.note {
            Ok(note) => {
                if let Some((second, tally)) = agent.add(self.plan, note) {
                    joined.add(index, second, &tally);
                }
            }
            Err(error) => agent.distrust(error.to_string()),
        }
        if agent.is_over() {
            joined.end(index);
        }
    }

    fn pass_on(&mut self, joined: &mut JoinedSeconds, is_over: bool) {
        while let Some((second, tally)) = joined.take(self.now(), is_over) {
            self.observer
                .tick(Span::from_secs(second), &Tick::from_tally(&tally));
            joined.reuse(tally);
        }
    }

    /// Gives orders and looks for silent agents. Returns true if nothing more is expected.
    async fn decide(&mut self, watch: &mut RunWatch) -> bool {
        watch.ticks += 1;
        let is_connected = self.conductor.connection().is_connected();
        if !is_connected {
            self.agents.values_mut().for_each(|agent| agent.forgive());
            if !std::mem::replace(&mut watch.is_delayed, true) {
                (self.notice)(
                    "the NATS server is away; the agents go on, and deliver their seconds later",
                );
            }
            return self.stop.load(Relaxed);
        }
        watch.is_delayed = false;
        self.order_stop(watch).await;
        if watch.ticks.is_multiple_of(PULSE) {
            // A lost pulse is replaced by the next.
            let _ = self.conductor.order(self.run, RunOrder::Pulse).await;
            self.question_silent().await;
        }
        if watch.ticks.is_multiple_of(CLOCKS) {
            self.measure_clocks().await;
        }
        let end = watch
            .stops_at
            .unwrap_or(self.plan.warm_up + self.plan.length());
        if self.now() > Instant::ORIGIN + end {
            watch.overtime += TICK;
        }
        self.is_left(watch)
    }

    /// Orders all agents to stop, if the user wants it or an agent is lost. Repeats the order each second.
    async fn order_stop(&self, watch: &mut RunWatch) {
        let is_silent = self.agents.values().any(|agent| agent.is_silent());
        let is_wanted = self.stop.load(Relaxed) || (self.on_lost == OnLost::Stop && is_silent);
        if is_wanted && watch.stops_at.is_none() {
            watch.stops_at = Some(self.now().since(Instant::ORIGIN) + STOP_LEAD);
            watch.ticks = 0;
        }
        if let Some(at) = watch.stops_at
            && watch.ticks.is_multiple_of(PULSE)
        {
            let at_ns = at.as_nanos();
            let _ = self
                .conductor
                .order(self.run, RunOrder::Stop { at_ns })
                .await;
        }
    }

    /// Asks agents that are silent for a sign of life.
    async fn question_silent(&mut self) {
        for (name, answer) in self.read_clocks(AgentProgress::is_silent, 1).await {
            let agent = self.agents.get_mut(&name).expect("an agent of the run");
            match answer {
                Some(_) => agent.unanswered = 0,
                None => {
                    agent.unanswered += 1;
                    if agent.unanswered == 1 {
                        (self.notice)(&format!("no reply from agent {name}"));
                    }
                }
            }
        }
    }

    /// Measures the clocks of the agents again.
    async fn measure_clocks(&mut self) {
        let is_present = |agent: &AgentProgress| !agent.is_over() && !agent.is_silent();
        for (name, clock) in self.read_clocks(is_present, EXCHANGES_DURING_RUN).await {
            let agent = self.agents.get_mut(&name).expect("an agent of the run");
            if let Some(clock) = clock {
                agent.record_clock(&clock);
            }
        }
    }

    /// Reads the clocks of some agents at the same time, and waits for none of them longer than a pulse may be late.
    async fn read_clocks(
        &self,
        is_wanted: impl Fn(&AgentProgress) -> bool,
        exchanges: usize,
    ) -> Vec<(AgentName, Option<ClockEstimate>)> {
        let wanted = self.agents.values().filter(|agent| is_wanted(agent));
        let read = wanted.map(|agent| async {
            let name = std::slice::from_ref(&agent.name);
            let clocks = timeout(CLOCK_REPLY, self.conductor.clocks(name, exchanges)).await;
            let clock = clocks.ok().and_then(Result::ok);
            (
                agent.name.clone(),
                clock.and_then(|clocks| clocks.first().copied()),
            )
        });
        join_all(read).await
    }

    /// True if the agents that have not ended are lost, or had enough time.
    fn is_left(&self, watch: &RunWatch) -> bool {
        let is_gone = self
            .agents
            .values()
            .all(|agent| agent.is_over() || agent.unanswered >= UNANSWERED);
        let patience = match watch.stops_at {
            Some(_) => STOPPING,
            None => DELIVERY + Duration::from(self.plan.timeout),
        };
        is_gone || watch.overtime > patience
    }
}
