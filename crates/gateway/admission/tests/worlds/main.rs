//! A protected service in random worlds: kinds of requests on shared and separate backends, with faults, in virtual time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use posthaste_admission::{
    Arrival, Limit, LimitBounds, Limiter, Next, ProtectedService, ServiceReply, Ticket, TierTerms,
};
use posthaste_services::{ServiceModel, ServiceReply as Reply};
use posthaste_units::{Instant, Seed, Span, Stream};
use rand::RngExt as _;
use rand_distr::Exp1;

/// Begin and end of the fault, and the end of the world, in seconds.
const FAULT: [f64; 2] = [20.0, 40.0];
const END: f64 = 80.0;
/// Time after the begin and the end of a fault that the gateway has.
const SETTLED: f64 = 10.0;
/// Time limit of a reply.
const TIMEOUT: f64 = 30.0;
const WAIT: f64 = 0.1;

/// A kind of request: a backend of the service, and arrivals per second without the fault and with it, in batches.
#[derive(Clone, Debug)]
struct Load {
    backend: usize,
    rates: [f64; 2],
    batch: u32,
}

/// Services without the fault and with it, and the requests to them.
#[derive(Clone, Debug)]
struct RandomWorld {
    name: String,
    backends: Vec<[String; 2]>,
    loads: Vec<Load>,
}

/// Requests by the time of their arrival.
#[derive(Clone, Copy, Debug, Default)]
struct WorldOutcome {
    arrived: u32,
    rejected: u32,
    served: u32,
}

/// Outcomes of each kind: before the fault, its first 10 s, the rest of it, 10 s after it, and the rest.
type WorldOutcomes = Vec<[WorldOutcome; 5]>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WorldEvent {
    Arrival(usize),
    /// A reply to the admission of this number.
    Reply(u64, bool),
    /// The wait of this number ends.
    Expiry(u64),
}

struct Visit {
    kind: usize,
    ticket: Ticket,
    admitted: f64,
    among: u32,
}

struct WorldRun<'a> {
    world: &'a RandomWorld,
    service: ProtectedService,
    /// Models without the fault and with it.
    models: Vec<[ServiceModel; 2]>,
    events: BinaryHeap<Reverse<(u64, u64, WorldEvent)>>,
    visits: HashMap<u64, Visit>,
    waiting: HashMap<Ticket, (u64, f64)>,
    next: u64,
    outcomes: WorldOutcomes,
    random: Stream,
}

fn phase(at: f64) -> usize {
    let [begin, end] = FAULT;
    [begin, begin + SETTLED, end, end + SETTLED]
        .iter()
        .filter(|edge| at >= **edge)
        .count()
}

fn at(seconds: f64) -> Instant {
    Instant::ORIGIN + Span::from_secs_f64(seconds)
}

impl<'a> WorldRun<'a> {
    fn new(world: &'a RandomWorld, limit: Limit, seed: Seed) -> Self {
        let tiers = TierTerms::single(Span::from_secs_f64(WAIT), 1000);
        let model = |text: &String| ServiceModel::new(text.parse().unwrap(), seed);
        let mut run = Self {
            world,
            service: ProtectedService::new(Some(limit), tiers, Instant::ORIGIN),
            models: world
                .backends
                .iter()
                .map(|both| [model(&both[0]), model(&both[1])])
                .collect(),
            events: BinaryHeap::new(),
            visits: HashMap::new(),
            waiting: HashMap::new(),
            next: 0,
            outcomes: vec![[WorldOutcome::default(); 5]; world.loads.len()],
            random: seed.stream("arrivals"),
        };
        for kind in 0..world.loads.len() {
            run.schedule(0.0, kind);
        }
        run
    }

    fn push(&mut self, time: f64, event: WorldEvent) {
        self.next += 1;
        self.events
            .push(Reverse(((time * 1e9) as u64, self.next, event)));
    }

    /// Schedules the next arrival of a kind after `now`.
    fn schedule(&mut self, now: f64, kind: usize) {
        let load = &self.world.loads[kind];
        let is_fault = (1..=2).contains(&phase(now));
        let rate = load.rates[usize::from(is_fault)] / f64::from(load.batch);
        let gap: f64 = self.random.sample::<f64, _>(Exp1) / rate;
        // A rate that changes meanwhile is drawn anew from its begin on: Poisson arrivals have no memory.
        let edge = FAULT
            .into_iter()
            .find(|edge| (now..now + gap).contains(edge) && now < *edge);
        match edge {
            Some(edge) => self.schedule(edge, kind),
            None => self.push(now + gap, WorldEvent::Arrival(kind)),
        }
    }

    fn run(mut self) -> WorldOutcomes {
        while self.step() {}
        self.outcomes
    }

    fn step(&mut self) -> bool {
        let Some(Reverse((time, _, event))) = self.events.pop() else {
            return false;
        };
        let now = time as f64 / 1e9;
        if now >= END {
            return false;
        }
        match event {
            WorldEvent::Arrival(kind) => {
                for _ in 0..self.world.loads[kind].batch {
                    self.arrive(now, kind);
                }
                self.schedule(now, kind);
            }
            WorldEvent::Reply(number, is_failed) => self.reply(now, number, is_failed),
            WorldEvent::Expiry(number) => {
                let found = self.waiting.iter().find(|(_, (other, _))| *other == number);
                let Some((&ticket, &(_, arrived))) = found else {
                    return true;
                };
                self.waiting.remove(&ticket);
                if self.service.cancel(&ticket) {
                    self.outcomes[ticket.kind()][phase(arrived)].rejected += 1;
                }
            }
        }
        true
    }

    fn arrive(&mut self, now: f64, kind: usize) {
        self.outcomes[kind][phase(now)].arrived += 1;
        let client = self.random.random_range(0..50);
        match self.service.arrive(at(now), kind, 0, client) {
            Arrival::Admitted(ticket) => self.serve(now, ticket),
            Arrival::Waits(ticket) => {
                let number = self.next;
                self.waiting.insert(ticket, (number, now));
                self.push(now + WAIT, WorldEvent::Expiry(number));
            }
            Arrival::Rejected => self.outcomes[kind][phase(now)].rejected += 1,
        }
        self.serve_waiting(now);
    }

    fn serve_waiting(&mut self, now: f64) {
        while let Some(next) = self.service.pop(at(now)) {
            let (Next::Admitted(ticket) | Next::Rejected(ticket)) = next;
            let (_, arrived) = self.waiting.remove(&ticket).unwrap();
            match next {
                Next::Admitted(ticket) => self.serve(now, ticket),
                Next::Rejected(_) => {
                    self.outcomes[ticket.kind()][phase(arrived)].rejected += 1;
                }
            }
        }
    }

    fn serve(&mut self, now: f64, ticket: Ticket) {
        let kind = ticket.kind();
        let is_fault = (1..=2).contains(&phase(now));
        let model = &mut self.models[self.world.loads[kind].backend][usize::from(is_fault)];
        let reply = model.arrive(at(now));
        let number = self.next;
        self.visits.insert(
            number,
            Visit {
                kind,
                ticket,
                admitted: now,
                among: self.service.among(at(now), kind),
            },
        );
        let latest = now + TIMEOUT;
        match reply {
            Reply::Answered { at, status } if (at.as_nanos() as f64 / 1e9) < latest => {
                self.push(
                    at.as_nanos() as f64 / 1e9,
                    WorldEvent::Reply(number, status >= 500),
                );
            }
            _ => self.push(latest, WorldEvent::Reply(number, true)),
        }
    }

    fn reply(&mut self, now: f64, number: u64, is_failed: bool) {
        let Visit {
            kind,
            ticket,
            admitted,
            among,
        } = self.visits.remove(&number).unwrap();
        let reply = ServiceReply {
            kind,
            time: Span::from_secs_f64(now - admitted),
            among: among.max(1),
            is_failed,
        };
        self.service.reply(reply);
        self.service.leave(&ticket, at(now));
        self.outcomes[kind][phase(now)].served += u32::from(!is_failed);
        self.serve_waiting(now);
    }
}

/// A limit as configured by default.
fn adaptive() -> Limit {
    Limit::new(
        Limiter::default(),
        LimitBounds {
            least: 4,
            start: 16,
            most: 1024,
        },
    )
}

/// A limit that never changes.
fn fixed(limit: u32) -> Limit {
    Limit::new(
        Limiter::default(),
        LimitBounds {
            least: limit,
            start: limit,
            most: limit,
        },
    )
}

/// A law and the rate at which it is busy all the time. `inf` for a service without a queue.
fn law(random: &mut Stream) -> (String, f64) {
    let time = 10f64.powf(random.random_range(-3.0..-1.0));
    let ms = format!("{:.3}ms", time * 1e3);
    match random.random_range(0..6) {
        0 => (format!("md1:{ms}"), 1.0 / time),
        1 => (format!("mm1:{ms}"), 1.0 / time),
        2 => {
            let servers = random.random_range(2..=32);
            (format!("mmc:{ms}:{servers}"), f64::from(servers) / time)
        }
        3 => {
            let slow = time * random.random_range(2.0..20.0);
            let mean = 0.9 * time + 0.1 * slow;
            (format!("bimodal:{ms}:{:.3}ms:10%", slow * 1e3), 1.0 / mean)
        }
        4 => (
            format!("lognormal:{ms}:{:.2}", random.random_range(0.5..2.0)),
            1.0 / time,
        ),
        _ => (format!("mmc:{ms}:{}", 50), 50.0 / time),
    }
}

fn main_law(random: &mut Stream) -> (String, f64) {
    loop {
        let (text, rate) = law(random);
        if (30.0..4_000.0).contains(&rate) {
            return (text, rate);
        }
    }
}

fn load(backend: usize, rate: f64, random: &mut Stream) -> Load {
    Load {
        backend,
        rates: [rate; 2],
        batch: if random.random_bool(0.3) {
            random.random_range(2..10)
        } else {
            1
        },
    }
}

/// A healthy kind, beside a kind with a fault on a backend of its own.
fn mixed(seed: u64) -> RandomWorld {
    let mut random = Seed(seed).stream("world");
    let random = &mut random;
    let (healthy, rate) = main_law(random);
    let mut loads = vec![load(0, rate * random.random_range(0.1..0.7), random)];
    let mut backends = vec![[healthy.clone(), healthy]];
    let (other, rate) = main_law(random);
    let mut faulty = load(1, rate * random.random_range(0.1..0.7), random);
    let fault = random.random_range(0..6);
    let (name, broken) = match fault {
        0 => ("none", other.clone()),
        1 => ("hang", format!("{other},hang=100%")),
        2 => ("half hang", format!("{other},hang=50%")),
        3 => {
            let ms = 10f64.powf(random.random_range(2.0..3.5));
            ("slow", format!("inf:{ms:.0}ms"))
        }
        4 => {
            faulty.rates[1] = rate * random.random_range(1.5..5.0);
            ("overload", other.clone())
        }
        _ => {
            let poll = random.random_range(5..30);
            faulty.rates = [5.0; 2];
            backends.push([format!("inf:{poll}s"), format!("inf:{poll}s")]);
            loads.push(faulty);
            let name = format!("long polls {}", backends[0][0]);
            return RandomWorld {
                name,
                backends,
                loads,
            };
        }
    };
    let name = format!(
        "{name}: {} beside {other}, {loads:?} {faulty:?}",
        backends[0][0]
    );
    backends.push([other, broken]);
    loads.push(faulty);
    RandomWorld {
        name,
        backends,
        loads,
    }
}

/// Two kinds on one overloaded backend.
fn overloaded(seed: u64) -> RandomWorld {
    let mut random = Seed(seed).stream("overload");
    let random = &mut random;
    let (law, rate) = main_law(random);
    let surge = random.random_range(1.3..5.0);
    let mut loads = Vec::new();
    for share in [0.5, 0.5] {
        let mut one = load(0, rate * random.random_range(0.1..0.7) * share, random);
        one.rates[1] = rate * surge * share;
        loads.push(one);
    }
    let broken = if random.random_bool(0.3) {
        format!(
            "{law},collapse={:.1}/s",
            rate * random.random_range(0.5..0.9)
        )
    } else {
        law.clone()
    };
    RandomWorld {
        name: format!("{broken}, {loads:?}"),
        backends: vec![[law.clone(), broken]],
        loads,
    }
}

/// Number of random worlds. `POSTHASTE_SEEDS=1000` gives the table in `docs/concepts/admission.md`.
fn seeds() -> u64 {
    std::env::var("POSTHASTE_SEEDS").map_or(20, |text| text.parse().expect("a number"))
}

/// Checks that a value is at least a bound, or at most, in all but one of a hundred worlds. `values` are sorted, the worst
/// one first.
fn check_most(values: &[(f64, String)], is_good: impl Fn(f64) -> bool) {
    let bad = values.iter().filter(|(value, _)| !is_good(*value)).count();
    for (value, name) in values.iter().take(bad.max(3)) {
        println!("{:.2} %: {name}", value * 100.0);
    }
    println!("{bad} of {} beyond the bound", values.len());
    assert!(bad <= values.len() / 100 + 1, "{bad} of {}", values.len());
}

fn share(outcomes: impl Iterator<Item = WorldOutcome>) -> f64 {
    let (rejected, arrived) = outcomes.fold((0, 0), |(rejected, arrived), outcome| {
        (rejected + outcome.rejected, arrived + outcome.arrived)
    });
    f64::from(rejected) / f64::from(arrived.max(1))
}

#[test]
fn a_healthy_kind_loses_at_most_one_request_in_a_hundred() {
    let lost = (0..seeds()).map(|seed| {
        let world = mixed(seed);
        let outcomes = WorldRun::new(&world, adaptive(), Seed(seed)).run();
        (share(outcomes[0].into_iter()), world.name)
    });
    let mut lost: Vec<_> = lost.collect();
    lost.sort_by(|one, other| other.0.total_cmp(&one.0));
    check_most(&lost, |share| share <= 0.01);
}

#[test]
fn an_overloaded_service_serves_as_much_as_with_a_known_limit() {
    let (mut during, mut after) = (Vec::new(), Vec::new());
    for seed in 0..seeds() {
        let world = overloaded(seed);
        let run = |limit: Limit| WorldRun::new(&world, limit, Seed(seed)).run();
        let served =
            |outcomes: &WorldOutcomes| -> u32 { outcomes.iter().map(|kind| kind[2].served).sum() };
        let own = run(adaptive());
        let known = [2, 4, 8, 16, 32, 64, 128].map(|limit| served(&run(fixed(limit))));
        let best = known.into_iter().max().unwrap_or(1);
        let name = &world.name;
        during.push((f64::from(served(&own)) / f64::from(best), name.clone()));
        after.push((share(own.iter().map(|kind| kind[4])), name.clone()));
    }
    during.sort_by(|one, other| one.0.total_cmp(&other.0));
    after.sort_by(|one, other| other.0.total_cmp(&one.0));
    let median = during[during.len() / 2].0;
    println!("median {:.1} % of the best limit", median * 100.0);
    assert!(median >= 0.95, "{median}");
    check_most(&during, |share| share >= 0.8);
    check_most(&after, |share| share <= 0.01);
}
