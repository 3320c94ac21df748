//! Tiers: a service in virtual time with one worker, and random histories against a model.

use std::collections::{BTreeMap, HashMap, VecDeque};

use posthaste_admission::{Arrival, Next, Slots, Ticket, TierShare, TierTerms, Tiers};
use posthaste_units::{Instant, Ratio, Seed, Span, Stream};
use proptest::prelude::*;
use rand_distr::{Distribution as _, Exp1};

fn terms(shares: &[f64], wait: Span, most_waiting: usize) -> TierTerms {
    let share = |share: &f64| TierShare::lent(Ratio::new(*share).expect("a share"));
    TierTerms {
        shares: shares.iter().map(share).collect(),
        wait,
        most_waiting,
    }
}

/// Requests of one kind: tier, client, and rate as a multiple of the capacity.
#[derive(Clone, Copy)]
struct Source {
    tier: usize,
    client: u64,
    load: f64,
}

#[derive(Default, Clone, Copy)]
struct Outcome {
    offered: u32,
    in_time: u32,
}

/// A service with one worker of 5 ms and a limit of 8 requests, for a minute.
struct TieredService {
    tiers: Tiers,
    random: Stream,
    now: f64,
    /// Requests in service, in the order of their replies.
    queue: VecDeque<Ticket>,
    done: f64,
    /// Due time and source of requests in service or waiting.
    known: HashMap<Ticket, (f64, usize)>,
    outcomes: Vec<Outcome>,
}

const WORK: f64 = 0.005;
const LIMIT: u32 = 8;
const DEADLINE: f64 = 0.2;

impl TieredService {
    fn run(tiers: Tiers, sources: &[Source], seed: u64) -> Vec<Outcome> {
        let mut service = Self {
            tiers,
            random: Seed(seed).stream("tiers"),
            now: 0.0,
            queue: VecDeque::new(),
            done: f64::INFINITY,
            known: HashMap::new(),
            outcomes: vec![Outcome::default(); sources.len()],
        };
        let mut due: Vec<f64> = sources
            .iter()
            .map(|source| service.gap(source.load))
            .collect();
        while service.now < 60.0 {
            let next = (0..due.len()).min_by(|a, b| due[*a].total_cmp(&due[*b]));
            let source = next.expect("a source");
            if service.done < due[source] {
                service.reply();
            } else {
                service.now = due[source];
                due[source] += service.gap(sources[source].load);
                service.arrive(source, sources[source]);
            }
            service.settle();
        }
        service.outcomes
    }

    fn gap(&mut self, load: f64) -> f64 {
        let exponential: f64 = Exp1.sample(&mut self.random);
        exponential * WORK / load
    }

    fn at(&self) -> Instant {
        Instant::ORIGIN + Span::from_secs_f64(self.now)
    }

    fn arrive(&mut self, index: usize, source: Source) {
        self.outcomes[index].offered += 1;
        let at = self.at();
        match self
            .tiers
            .push(at, Slots::equal(LIMIT), source.tier, source.client, 0)
        {
            Arrival::Admitted(ticket) => {
                self.known.insert(ticket, (self.now, index));
                self.start(ticket);
            }
            Arrival::Waits(ticket) => {
                self.known.insert(ticket, (self.now, index));
            }
            Arrival::Rejected => {}
        }
    }

    fn start(&mut self, ticket: Ticket) {
        if self.queue.is_empty() {
            self.done = self.now + WORK;
        }
        self.queue.push_back(ticket);
    }

    fn reply(&mut self) {
        self.now = self.done;
        let ticket = self.queue.pop_front().expect("a request in service");
        let (due, source) = self.known.remove(&ticket).expect("a known request");
        self.outcomes[source].in_time += u32::from(self.now - due <= DEADLINE);
        self.tiers.leave(&ticket);
        self.done = if self.queue.is_empty() {
            f64::INFINITY
        } else {
            self.now + WORK
        };
    }

    fn settle(&mut self) {
        while let Some(next) = self.tiers.pop(self.at(), LIMIT) {
            match next {
                Next::Admitted(ticket) => self.start(ticket),
                Next::Rejected(ticket) => drop(self.known.remove(&ticket)),
            }
        }
    }
}

fn wait() -> Span {
    Span::from_millis(100)
}

fn share(outcome: &Outcome) -> f64 {
    f64::from(outcome.in_time) / f64::from(outcome.offered)
}

#[test]
fn the_important_half_of_the_capacity_is_served_at_any_overload() {
    for (seed, load) in [(1, 2.0), (2, 5.0), (3, 10.0)] {
        let tiers = Tiers::new(terms(&[0.8, 0.2], wait(), 1000));
        let sources = [
            Source {
                tier: 0,
                client: 1,
                load: 0.5,
            },
            Source {
                tier: 1,
                client: 2,
                load: load - 0.5,
            },
        ];
        let seen = TieredService::run(tiers, &sources, seed);
        let important = share(&seen[0]);
        assert!(important > 0.99, "{load} times: {important}");
        let served = f64::from(seen[0].in_time + seen[1].in_time);
        let of_capacity = served / (60.0 / WORK);
        assert!(of_capacity > 0.95, "{load} times: {of_capacity}");
    }
}

#[test]
fn the_lowest_tier_keeps_its_share_and_lends_it_if_unused() {
    let run = |low: f64| {
        let tiers = Tiers::new(terms(&[0.75, 0.25], wait(), 1000));
        let sources = [
            Source {
                tier: 0,
                client: 1,
                load: 3.0,
            },
            Source {
                tier: 1,
                client: 2,
                load: low,
            },
        ];
        let seen = TieredService::run(tiers, &sources, 4);
        let of_capacity = |outcome: &Outcome| f64::from(outcome.in_time) / (60.0 / WORK);
        (of_capacity(&seen[0]), of_capacity(&seen[1]))
    };
    let (high, low) = run(3.0);
    assert!((0.70..0.80).contains(&high), "{high}");
    assert!((0.20..0.30).contains(&low), "{low}");
    let (high, low) = run(0.01);
    assert!(high > 0.95, "{high}");
    assert!(low > 0.0095, "{low}");
}

#[test]
fn a_client_with_ten_times_the_load_takes_nothing_from_others() {
    let mut sources: Vec<Source> = (0..9)
        .map(|client| Source {
            tier: 0,
            client,
            load: 0.08,
        })
        .collect();
    sources.push(Source {
        tier: 0,
        client: 9,
        load: 0.8,
    });
    let seen = TieredService::run(Tiers::new(TierTerms::single(wait(), 1000)), &sources, 5);
    for (client, outcome) in seen[..9].iter().enumerate() {
        let good = share(outcome);
        assert!(good > 0.98, "client {client}: {good}");
    }
    let hostile = f64::from(seen[9].in_time) / (60.0 / WORK);
    assert!((0.22..0.30).contains(&hostile), "{hostile}");
}

#[test]
fn a_waiting_request_keeps_its_maximum_wait_on_new_terms() {
    let mut tiers = Tiers::new(TierTerms::single(Span::from_secs(60), 10));
    let first = tiers.push(Instant::ORIGIN, Slots::equal(1), 0, 1, 0);
    assert!(matches!(first, Arrival::Admitted(_)), "{first:?}");
    let Arrival::Waits(waits) = tiers.push(Instant::ORIGIN, Slots::equal(1), 0, 2, 0) else {
        panic!("a slot was free");
    };
    tiers.change(TierTerms::single(Span::ZERO, 10));
    let later = Instant::ORIGIN + Span::from_secs(1);
    assert_eq!(
        tiers.push(later, Slots::equal(1), 0, 3, 0),
        Arrival::Rejected
    );
    assert_eq!(tiers.pop(later, 2), Some(Next::Admitted(waits)));
}

/// Steps of a random history.
#[derive(Clone, Copy, Debug)]
enum TierStep {
    Arrive { tier: usize, client: u64 },
    Leave(usize),
    Cancel(usize),
    Limit(u32),
    Pass(u64),
    Change,
}

fn step() -> impl Strategy<Value = TierStep> {
    prop_oneof![
        8 => (0..3usize, 0..4u64).prop_map(|(tier, client)| TierStep::Arrive { tier, client }),
        6 => any::<usize>().prop_map(TierStep::Leave),
        2 => any::<usize>().prop_map(TierStep::Cancel),
        1 => (0..12u32).prop_map(TierStep::Limit),
        2 => (1..200u64).prop_map(TierStep::Pass),
        1 => Just(TierStep::Change),
    ]
}

proptest! {
    /// Each request is once in service or rejected, no slot stays free while a request waits, and counts agree.
    #[test]
    fn every_request_has_one_end(steps in prop::collection::vec(step(), 1..400)) {
        let few = terms(&[0.5, 0.3, 0.0], wait(), 5);
        let mut tiers = Tiers::new(few);
        let (mut now, mut limit) = (Instant::ORIGIN, 4);
        let (mut waiting, mut serving) = (BTreeMap::new(), Vec::new());
        let mut arrivals = 0u64;
        for step in steps {
            match step {
                TierStep::Arrive { tier, client } => {
                    arrivals += 1;
                    let free = tiers.in_service() < limit && waiting.is_empty();
                    match tiers.push(now, Slots::equal(limit), tier, client, 0) {
                        Arrival::Admitted(ticket) => {
                            prop_assert!(free);
                            serving.push(ticket);
                        }
                        Arrival::Waits(ticket) => {
                            prop_assert!(!free);
                            waiting.insert(arrivals, (ticket, now));
                        }
                        Arrival::Rejected => prop_assert!(waiting.len() == 5),
                    }
                }
                TierStep::Leave(index) if !serving.is_empty() => {
                    let ticket = serving.swap_remove(index % serving.len());
                    tiers.leave(&ticket);
                }
                TierStep::Cancel(index) if !waiting.is_empty() => {
                    let key = *waiting.keys().nth(index % waiting.len()).expect("a key");
                    let (ticket, _) = waiting.remove(&key).expect("a ticket");
                    prop_assert!(tiers.cancel(&ticket));
                    prop_assert!(!tiers.cancel(&ticket));
                }
                TierStep::Limit(new) => limit = new,
                TierStep::Pass(ms) => now += Span::from_millis(ms),
                TierStep::Change => {
                    let shares: &[f64] = match tiers.count() {
                        3 => &[0.4, 0.2, 0.1, 0.1],
                        _ => &[0.5, 0.3, 0.0],
                    };
                    tiers.change(terms(shares, wait(), 5));
                }
                _ => {}
            }
            while let Some(next) = tiers.pop(now, limit) {
                let (Next::Admitted(ticket) | Next::Rejected(ticket)) = next;
                let key = waiting.iter().find(|(_, (known, _))| *known == ticket);
                let key = *key.expect("a request that waits").0;
                waiting.remove(&key);
                if let Next::Admitted(ticket) = next {
                    serving.push(ticket);
                }
            }
            prop_assert_eq!(tiers.in_service() as usize, serving.len());
            let counted: usize = tiers.counts().map(|(_, waiting)| waiting).sum();
            prop_assert_eq!(counted, waiting.len());
            prop_assert!(waiting.is_empty() || tiers.in_service() >= limit);
        }
    }
}
