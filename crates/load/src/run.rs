//! The execution of a plan: starts threads, reports each second, and joins the results.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use jiff::Timestamp;
use posthaste_stats::{Histogram, Recorder};
use posthaste_units::{Instant, Rate, Span};
use thiserror::Error;

use crate::buying::{Followed, QuoteUse};
use crate::clock::Clock;
use crate::decoding::Decoded;
use crate::engine::{Engine, Shared};
use crate::mix::Mix;
use crate::outcome::{Outcome, Outcomes};
use crate::plan::{Connections, Pace, Plan};
use crate::request::{Request, RequestError};
use crate::tally::{Part, Phases, Tally, Tick};
use crate::target::{Origin, Target};
use crate::tls::{self, TlsError};

/// Time for the threads to get ready before the first request is due.
const LEAD: Span = Span::from_millis(5);
/// Time limit for a loop to report a second. The others are then passed on without it.
const LATE: Span = Span::from_secs(2);
/// Interval of reports during a run.
const SECOND: Span = Span::from_secs(1);
/// Descriptors reserved for the rest of the process.
const SPARE_DESCRIPTORS: u64 = 64;

/// Reasons why a run did not take place.
#[derive(Debug, Error)]
pub enum RunError {
    /// A request that cannot be made.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// TLS that cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The plan needs offers, and the broker reports none.
    #[error("the broker at {broker} has not told its offers: {reason}")]
    Broker {
        /// Its URL.
        broker: String,
        /// The reason.
        reason: String,
    },
    /// Nothing to send, or no thread to send it.
    #[error("{0}")]
    Plan(String),
    /// The system refused a thread for an event loop.
    #[error("a thread for each event loop: {0}; give fewer --threads")]
    Thread(std::io::Error),
    /// The system refused a resource that an event loop needs.
    #[error("event loop: {0}")]
    System(#[from] rustix::io::Errno),
}

/// Receives the progress of a run, second by second.
pub trait Observer {
    /// Called before the first request, when all is prepared. `started` is the wall-clock time of the run's origin.
    fn begin(&mut self, started: Timestamp) {
        let _ = started;
    }

    /// Called once a second. `at` is the time since the start (warm-up included) in whole seconds, `tick` the events
    /// since the last call.
    fn tick(&mut self, at: Span, tick: &Tick);
}

impl Observer for () {
    fn tick(&mut self, _: Span, _: &Tick) {}
}

impl<O: Observer> Observer for Option<O> {
    fn begin(&mut self, started: Timestamp) {
        if let Some(observer) = self {
            observer.begin(started);
        }
    }

    fn tick(&mut self, at: Span, tick: &Tick) {
        if let Some(observer) = self {
            observer.tick(at, tick);
        }
    }
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    fn begin(&mut self, started: Timestamp) {
        self.0.begin(started);
        self.1.begin(started);
    }

    fn tick(&mut self, at: Span, tick: &Tick) {
        self.0.tick(at, tick);
        self.1.tick(at, tick);
    }
}

impl<O: Observer> Observer for &mut O {
    fn begin(&mut self, started: Timestamp) {
        O::begin(self, started);
    }

    fn tick(&mut self, at: Span, tick: &Tick) {
        O::tick(self, at, tick);
    }
}

/// A part of a run with its own report.
pub struct Portion {
    /// The rate of a step, or the name of a request.
    pub name: String,
    /// Offered rate, if the plan sets one.
    pub offered: Option<Rate>,
    /// Duration.
    pub duration: Span,
    /// Results.
    pub part: Part,
}

/// Results of a run.
pub struct Run {
    /// Requests that became due. Equal to the sum of outcomes.
    pub intended: u64,
    /// Requests by outcome.
    pub outcomes: Outcomes,
    /// Requests of the warm-up. They count only in connections, bytes, and the requests sent and replies received in
    /// the measured time.
    pub warm_up: u64,
    /// The measured time: as planned, or until the run was stopped.
    pub duration: Span,
    /// Requests due when the run was stopped that the generator had not begun. They are [`Outcome::InFlight`].
    pub unbegun: u64,
    /// Requests due when the plan ended that the generator had not begun. They are [`Outcome::Dropped`].
    pub overdue: u64,
    /// Requests sent in the measured time.
    pub sent: u64,
    /// Complete replies in the measured time, including replies to requests of the warm-up.
    pub completed: u64,
    /// Complete replies in the measured time that were [`Outcome::Ok`].
    pub served: u64,
    /// Wall-clock time at the start, warm-up included.
    pub started: Timestamp,
    /// Due to last byte, or to decoded, of all requests due. A request without a complete reply is longer than any
    /// bound.
    pub response: Recorder,
    /// The same for good replies only.
    pub ok: Recorder,
    /// Sent to last byte, or to decoded, complete replies only.
    pub service: Recorder,
    /// Due to sent: the generator's own lateness.
    pub lateness: Histogram,
    /// Phases of complete replies.
    pub phases: Phases,
    /// By step of the plan, if there are several.
    pub steps: Vec<Portion>,
    /// By request of the mix, if there are several.
    pub requests: Vec<Portion>,
    /// Complete replies by status.
    pub statuses: BTreeMap<u16, u64>,
    /// The first explanation of each outcome.
    pub reasons: BTreeMap<Outcome, String>,
    /// Decoded content. Zero if the plan leaves replies coded.
    pub decoded: Decoded,
    /// Counts of quotes. Zero if clients do not choose by price.
    pub quotes: QuoteUse,
    /// Connections attempted, warm-up included.
    pub connections: u64,
    /// Bytes of requests, warm-up included.
    pub bytes_sent: u64,
    /// Bytes of replies, heads and warm-up included.
    pub bytes_received: u64,
    /// Bytes of requests and of replies in the measured time.
    pub bytes_in_time: [u64; 2],
    /// True if the run was stopped before its end.
    pub stopped: bool,
}

impl Run {
    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.duration.as_secs_f64().max(1e-9)
    }

    /// Requests due per second.
    pub fn offered_rate(&self) -> f64 {
        self.per_second(self.intended)
    }

    /// Requests that were attempted: a SYN or more left this machine for each.
    pub fn attempted(&self) -> u64 {
        self.outcomes.attempted() - self.unbegun
    }

    /// Requests sent per second of the measured time. Less than the offered rate if the generator falls behind.
    pub fn sent_rate(&self) -> f64 {
        self.per_second(self.sent)
    }

    /// Complete replies per second of the measured time.
    pub fn achieved_rate(&self) -> f64 {
        self.per_second(self.completed)
    }

    /// Good replies per second of the measured time.
    pub fn ok_rate(&self) -> f64 {
        self.per_second(self.served)
    }

    /// Bytes of requests and of replies per second of the measured time.
    pub fn byte_rates(&self) -> [f64; 2] {
        self.bytes_in_time.map(|bytes| self.per_second(bytes))
    }
}

/// Carries out `plan`. Setting `stop` ends it early and keeps the results so far.
pub fn run(plan: &Plan, stop: &AtomicBool, observer: &mut dyn Observer) -> Result<Run, RunError> {
    let (mut shared, dns) = prepare(plan, stop)?;
    shared.clock = Clock::starting_in(LEAD);
    let started = Timestamp::now();
    let (ticks, from_loops) = mpsc::channel();
    let tallies = std::thread::scope(|scope| {
        let shared = &shared;
        let begin = |index| {
            let ticks = ticks.clone();
            let engine = move || {
                settle_thread(plan, index);
                let engine = Engine::new(shared, index, ticks);
                let engine =
                    engine.inspect_err(|_| shared.incomplete.store(true, Ordering::Relaxed))?;
                std::thread::sleep(shared.clock.until_origin().into());
                engine.run()
            };
            std::thread::Builder::new().spawn_scoped(scope, engine)
        };
        let loops: Vec<_> = (0..plan.threads).map(begin).collect();
        match loops.iter().all(Result::is_ok) {
            true => observer.begin(started),
            false => shared.incomplete.store(true, Ordering::Relaxed),
        }
        drop(ticks);
        watch(&from_loops, shared, observer);
        loops
            .into_iter()
            .map(|handle| {
                let ended = handle.map_err(RunError::Thread)?.join();
                Ok(ended.expect("an event loop panicked: a bug")?)
            })
            .collect::<Result<Vec<Tally>, RunError>>()
    })?;
    Ok(assemble(plan, &shared, started, &dns, &tallies))
}

fn prepare<'r>(plan: &'r Plan, stop: &'r AtomicBool) -> Result<(Shared<'r>, Vec<Span>), RunError> {
    if plan.requests.is_empty() {
        return Err(RunError::Plan(
            "nothing to request: the mix is empty".to_owned(),
        ));
    }
    if plan.is_empty() {
        return Err(RunError::Plan(
            "nothing would be sent: raise the rate or the duration".to_owned(),
        ));
    }
    let here = posthaste_serve::available_cpus();
    if let Some(cpu) = plan.cpus.iter().find(|cpu| !here.contains(cpu)) {
        return Err(RunError::Plan(format!(
            "there is no core {cpu} to run on: there are {here:?}"
        )));
    }
    let keep_alive = plan.connections == Connections::KeepAlive;
    let mut origins: Vec<Origin> = Vec::new();
    let mut requests = Vec::new();
    let mut dns = Vec::new();
    // A name is looked up once for all requests of the mix.
    let mut known = plan.resolve.clone();
    for spec in &plan.requests {
        let target = Target::look_up(&spec.url, &known).map_err(RequestError::from)?;
        let place = origins.iter().position(|origin| *origin == target.origin);
        let place = place.unwrap_or_else(|| {
            dns.push(target.dns);
            known.push(target.origin.as_resolve());
            origins.push(target.origin.clone());
            origins.len() - 1
        });
        requests.push(Request::prepare(
            spec, &target, place, keep_alive, &plan.data,
        )?);
    }
    let mut names = HashMap::new();
    for (place, origin) in origins.iter().enumerate().filter(|(_, origin)| origin.tls) {
        names.insert(place, tls::server_name(&origin.host)?);
    }
    let tls = (!names.is_empty()).then(|| plan.tls.config()).transpose()?;
    let buying = plan.buying.as_ref();
    let offers = buying.map(|buying| Followed::begin(buying, stop));
    let start = Instant::ORIGIN + plan.warm_up;
    let shared = Shared {
        plan,
        mix: Mix::new(requests, plan.seed),
        origins,
        names,
        tls,
        clock: Clock::starting_in(Span::ZERO),
        offers: offers.transpose()?,
        stop,
        incomplete: AtomicBool::new(false),
        budget: plan.decoding.map(|_| Arc::default()),
        limit: connection_limit(plan),
        window: (start, plan.end()),
    };
    Ok((shared, dns))
}

/// Returns the maximum number of connections per thread.
fn connection_limit(plan: &Plan) -> usize {
    let descriptors = posthaste_serve::open_files();
    let room = descriptors.saturating_sub(SPARE_DESCRIPTORS).max(1);
    let limit = plan
        .connection_limit
        .min(usize::try_from(room).unwrap_or(usize::MAX));
    (limit / plan.threads).max(1)
}

/// Makes the thread's timers exact, and pins the thread to its core if one is named.
fn settle_thread(plan: &Plan, index: usize) {
    // A thread that may do neither still measures, and reports its lateness.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    if let Some(count) = std::num::NonZeroUsize::new(plan.cpus.len()) {
        let _ = posthaste_serve::pin_thread(&[plan.cpus[index % count]]);
    }
}

/// Joins the ticks of all loops. Passes them on, in whole seconds, when each loop has reported its second.
fn watch(ticks: &mpsc::Receiver<Tick>, shared: &Shared<'_>, observer: &mut dyn Observer) {
    let (mut joined, mut told) = (Tick::default(), 0);
    // The last second passed on, so that each is passed on once.
    let mut last = 0;
    loop {
        match ticks.recv_timeout(Duration::from_millis(200)) {
            Ok(tick) => {
                joined.merge(&tick);
                told += 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let now = shared.clock.now().since(Instant::ORIGIN);
        let second = now.as_nanos() / SECOND.as_nanos();
        let is_late = now.saturating_sub(SECOND * last) >= LATE;
        if second > last && (told >= shared.plan.threads || is_late) {
            (last, told) = (second, 0);
            observer.tick(SECOND * second, &std::mem::take(&mut joined));
        }
    }
    if joined.intended + joined.outcomes.total() > 0 {
        let now = shared.clock.now().since(Instant::ORIGIN).as_nanos();
        let second = now.div_ceil(SECOND.as_nanos()).max(last + 1);
        observer.tick(SECOND * second, &joined);
    }
}

fn assemble(
    plan: &Plan,
    shared: &Shared<'_>,
    started: Timestamp,
    dns: &[Span],
    tallies: &[Tally],
) -> Run {
    let mut tally = Tally::new(plan.step_ends(), plan.requests.len());
    for other in tallies {
        tally.merge(other);
    }
    dns.iter().for_each(|time| tally.phases.dns.record(*time));
    let stopped = shared.stop.load(Ordering::Relaxed);
    let (start, end) = shared.window;
    let is_open_ended = end == Instant::FAR_FUTURE;
    let duration = if stopped || is_open_ended {
        // A run can be stopped before its measured time begins.
        tally.over.min(end).saturating_since(start)
    } else {
        end.since(start)
    };
    let sum = tally.outcomes.total();
    assert_eq!(
        tally.intended, sum,
        "intended requests and outcomes differ: a bug"
    );
    let mut response = tally.rest;
    response.merge(&tally.ok);
    assert_eq!(
        response.distribution().count(),
        sum,
        "response times and outcomes differ: a bug"
    );
    Run {
        intended: tally.intended,
        outcomes: tally.outcomes,
        warm_up: tally.warm_up,
        duration,
        unbegun: tally.unbegun,
        overdue: tally.overdue,
        started,
        sent: tally.sent,
        completed: tally.completed,
        served: tally.served,
        response,
        ok: tally.ok,
        service: tally.service,
        lateness: tally.lateness,
        phases: tally.phases,
        steps: step_portions(
            plan,
            tally.steps,
            start,
            if stopped { tally.over } else { end },
        ),
        requests: plan
            .requests
            .iter()
            .zip(tally.requests)
            .map(|(spec, part)| Portion {
                name: spec.name.clone(),
                offered: None,
                duration,
                part,
            })
            .collect(),
        statuses: tally.statuses,
        reasons: tally.reasons,
        decoded: tally.decoded,
        quotes: tally.quotes,
        connections: tally.connections,
        bytes_sent: tally.bytes_sent,
        bytes_received: tally.bytes_received,
        bytes_in_time: tally.bytes_in_time,
        stopped,
    }
}

/// The steps that began before `over`, each with its duration.
fn step_portions(plan: &Plan, parts: Vec<Part>, start: Instant, over: Instant) -> Vec<Portion> {
    let Pace::Open { steps, .. } = &plan.pace else {
        return Vec::new();
    };
    if steps.len() < 2 {
        return Vec::new();
    }
    let warm_up = parts.len() - steps.len();
    let mut begins = start;
    let portion = |(step, part): (&crate::pace::Step, Part)| {
        let lasted = over.saturating_since(begins).min(step.length);
        begins += step.length;
        let per_second = step.expected() / step.length.as_secs_f64();
        let rate = Rate::per_second(per_second).unwrap_or_default();
        Portion {
            name: rate.to_string(),
            offered: Some(rate),
            duration: lasted,
            part,
        }
    };
    steps
        .iter()
        .zip(parts.into_iter().skip(warm_up))
        .map(portion)
        .filter(|portion| !portion.duration.is_zero())
        .collect()
}
