//! The source of an event loop's requests: the schedule, or its own clients.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use posthaste_stats::Recorder;
use posthaste_units::{Instant, Span};

use crate::plan::pace::{Schedule, ScheduledArrival};
use crate::plan::{Pace, Plan};

/// A request that is due now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) number: u64,
    pub(crate) at: Instant,
    pub(crate) step: usize,
    pub(crate) client: u32,
}

/// Requests that are due and not begun, close to each other: of one step, and counted in one batch of a
/// [`Recorder`](posthaste_stats::Recorder).
#[derive(Clone, Copy, Debug)]
pub(crate) struct DueStretch {
    pub(crate) first: Due,
    /// Due time of the last one.
    pub(crate) last: Instant,
    pub(crate) count: u64,
}

/// The requests of one event loop.
pub(crate) enum RequestSource {
    Open(Stripe),
    Closed(Clients),
}

/// Every n-th arrival of the whole schedule, so that any number of loops sends the same requests.
pub(crate) struct Stripe {
    schedule: Schedule,
    loops: u64,
    next: Option<ScheduledArrival>,
    /// True if its requests differ in nothing but their times.
    is_uniform: bool,
}

/// Closed-loop clients. Each waits for a reply before its next request.
pub(crate) struct Clients {
    due: BinaryHeap<Reverse<(Instant, u32)>>,
    until: Instant,
    next_number: u64,
    loops: u64,
}

impl RequestSource {
    /// Creates the requests that loop `index` of `plan` sends.
    pub(crate) fn new(plan: &Plan, index: usize) -> Self {
        assert!(
            index < plan.threads,
            "a loop beyond the threads of the plan"
        );
        let (loops, index) = (plan.threads as u64, index as u64);
        match &plan.pace {
            Pace::Open { .. } => {
                let mut schedule = plan.schedule().expect("an open loop has a schedule");
                let next = schedule.nth(index as usize);
                Self::Open(Stripe {
                    schedule,
                    loops,
                    next,
                    is_uniform: plan.is_uniform(),
                })
            }
            Pace::Closed { clients, length } => {
                let mine = (index as u32..*clients).step_by(loops as usize);
                Self::Closed(Clients {
                    due: mine
                        .map(|client| Reverse((Instant::ORIGIN, client)))
                        .collect(),
                    until: Instant::ORIGIN + plan.warm_up + *length,
                    next_number: index,
                    loops,
                })
            }
        }
    }

    /// Due time of the next request, if already known.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        match self {
            Self::Open(stripe) => stripe.next.map(|next| Instant::ORIGIN + next.at),
            Self::Closed(clients) => clients.due.peek().map(|Reverse((at, _))| *at),
        }
    }

    /// Takes the next request if it is due.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Due> {
        if self.next_due()? > now {
            return None;
        }
        match self {
            Self::Open(stripe) => {
                let skip = stripe.loops as usize - 1;
                let following = stripe.schedule.nth(skip);
                let arrival = std::mem::replace(&mut stripe.next, following)?;
                debug_assert!(
                    following.is_none_or(|following| following.at >= arrival.at),
                    "arrivals decrease"
                );
                Some(Due {
                    number: arrival.number,
                    at: Instant::ORIGIN + arrival.at,
                    step: arrival.step,
                    client: 0,
                })
            }
            Self::Closed(clients) => {
                let Reverse((at, client)) = clients.due.pop()?;
                let number = clients.next_number;
                clients.next_number += clients.loops;
                Some(Due {
                    number,
                    at,
                    step: 0,
                    client,
                })
            }
        }
    }

    /// Takes the next request of a schedule if it is due. `None` in a closed loop, whose clients send when they are
    /// ready.
    pub(crate) fn overdue(&mut self, now: Instant) -> Option<Due> {
        matches!(self, Self::Open(_)).then(|| self.take(now))?
    }

    /// Takes the requests after `due` until `end` that can be counted together with it. The measured time begins at
    /// `start`.
    pub(crate) fn extend(&mut self, due: Due, end: Instant, start: Instant) -> DueStretch {
        let mut stretch = DueStretch {
            first: due,
            last: due.at,
            count: 1,
        };
        let Self::Open(stripe) = self else {
            return stretch;
        };
        // The warm-up is counted together.
        let batch_end = if due.at < start {
            start
        } else {
            let batches = due.at.since(start).as_nanos() / Recorder::FINEST.as_nanos();
            start + Recorder::FINEST * (batches + 1)
        };
        let end = end
            .min(batch_end - Span::from_nanos(1))
            .since(Instant::ORIGIN);
        let Some(next) = stripe
            .next
            .filter(|next| next.step == due.step && next.at <= end)
        else {
            return stretch;
        };
        if !stripe.is_uniform {
            return stretch;
        }
        let (count, last) = stripe.schedule.skip_until(next, end, stripe.loops);
        stretch.count += count;
        stretch.last = Instant::ORIGIN + last;
        stripe.next = stripe.schedule.nth(stripe.loops as usize - 1);
        stretch
    }

    /// Handles the end of a request. In a closed loop its client sends the next after `pause`.
    pub(crate) fn ended(&mut self, client: u32, now: Instant, pause: Span) {
        if let Self::Closed(clients) = self {
            let next = now + pause;
            if next < clients.until {
                clients.due.push(Reverse((next, client)));
            }
        }
    }

    /// Ends the source: nothing more becomes due.
    pub(crate) fn stop(&mut self) {
        match self {
            Self::Open(stripe) => stripe.next = None,
            Self::Closed(clients) => {
                clients.due.clear();
                clients.until = Instant::ORIGIN;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::pace::{Arrivals, RateStep};
    use crate::request::RequestSpec;
    use posthaste_units::{Rate, Seed};
    use proptest::prelude::*;

    fn plan(pace: Pace, threads: usize) -> Plan {
        let mut plan = Plan::new(vec![RequestSpec::get("http://127.0.0.1/")], pace);
        plan.threads = threads;
        plan
    }

    fn arrivals() -> impl Strategy<Value = Arrivals> {
        let trace = prop::collection::vec(0u64..3_000_000_000, 1..300).prop_map(|mut nanos| {
            nanos.sort_unstable();
            let times = nanos.into_iter().map(Span::from_nanos);
            Arrivals::Trace(times.collect::<Vec<_>>().into())
        });
        prop_oneof![Just(Arrivals::Constant), Just(Arrivals::Poisson), trace]
    }

    fn step() -> impl Strategy<Value = RateStep> {
        let rate = (1u32..500).prop_map(|rate| Rate::per_second(rate.into()).unwrap());
        (rate.clone(), rate, 1u64..1_000).prop_map(|(from, to, millis)| RateStep {
            from,
            to,
            length: Span::from_millis(millis),
        })
    }

    proptest! {
        /// Any number of loops sends the same requests at the same times.
        #[test]
        fn loops_share_the_schedule_exactly(
            arrivals in arrivals(),
            steps in prop::collection::vec(step(), 1..4),
            seed in any::<u64>(),
            warm_up in 0u64..500,
            loops in 1usize..40,
        ) {
            let mut plan = plan(Pace::Open { arrivals, steps }, loops);
            plan.seed = Seed(seed);
            plan.warm_up = Span::from_millis(warm_up);
            let mut taken: Vec<ScheduledArrival> = (0..loops)
                .flat_map(|index| {
                    let mut source = RequestSource::new(&plan, index);
                    std::iter::from_fn(move || source.take(Instant::FAR_FUTURE))
                })
                .map(|due| ScheduledArrival {
                    number: due.number,
                    at: due.at.since(Instant::ORIGIN),
                    step: due.step,
                })
                .collect();
            taken.sort_unstable_by_key(|arrival| arrival.number);
            let whole: Vec<ScheduledArrival> = plan.schedule().unwrap().collect();
            prop_assert_eq!(taken, whole);
        }
    }

    proptest! {
        /// Requests counted in stretches are those counted one by one.
        #[test]
        fn stretches_hold_each_request_once(
            arrivals in arrivals(),
            steps in prop::collection::vec(step(), 1..4),
            faster in 1u64..100,
            warm_up in 0u64..20,
            loops in 1usize..5,
            end in 0u64..2_000,
        ) {
            let quick = steps.iter().map(|step| RateStep {
                length: Span::from_nanos(step.length.as_nanos() / faster),
                ..*step
            });
            let mut plan = plan(Pace::Open { arrivals, steps: quick.collect() }, loops);
            plan.warm_up = Span::from_millis(warm_up);
            let start = Instant::ORIGIN + plan.warm_up;
            let end = Instant::ORIGIN + Span::from_millis(end);
            let single = |index| {
                let mut source = RequestSource::new(&plan, index);
                std::iter::from_fn(move || source.take(end)).collect::<Vec<_>>()
            };
            for index in 0..loops {
                let mut source = RequestSource::new(&plan, index);
                let singles = single(index);
                let mut counted = 0;
                while let Some(due) = source.overdue(end) {
                    let stretch = source.extend(due, end, start);
                    let (first, last) = (&singles[counted], &singles[counted + stretch.count as usize - 1]);
                    prop_assert_eq!((first.number, first.at), (due.number, due.at));
                    prop_assert_eq!((last.at, last.step), (stretch.last, due.step));
                    let batch = |at: Instant| (at >= start).then(|| at.since(start).as_nanos() >> 20);
                    prop_assert_eq!(batch(due.at), batch(stretch.last));
                    counted += stretch.count as usize;
                }
                prop_assert_eq!(counted, singles.len());
            }
        }
    }

    #[test]
    fn the_highest_rate_of_a_trace_is_that_of_its_fullest_second() {
        let rate = |millis: &[u64]| {
            let times: Vec<Span> = millis.iter().copied().map(Span::from_millis).collect();
            let pace = Pace::Open {
                arrivals: Arrivals::Trace(times.into()),
                steps: Vec::new(),
            };
            plan(pace, 1).highest_rate()
        };
        assert_eq!(
            rate(&[0, 999, 1_000, 5_000, 5_001, 5_999, 6_000]),
            Some(3.0)
        );
        assert_eq!(rate(&[]), Some(0.0));
        let step = RateStep {
            from: Rate::per_second(5.0).unwrap(),
            to: Rate::per_second(9.0).unwrap(),
            length: Span::from_secs(1),
        };
        let arrivals = Arrivals::Constant;
        let ramp = Pace::Open {
            arrivals,
            steps: vec![step],
        };
        assert_eq!(plan(ramp, 1).highest_rate(), Some(9.0));
        let length = Span::from_secs(1);
        assert_eq!(
            plan(Pace::Closed { clients: 1, length }, 1).highest_rate(),
            None
        );
    }

    #[test]
    fn clients_wait_for_their_replies() {
        let pace = Pace::Closed {
            clients: 3,
            length: Span::from_secs(1),
        };
        let mut source = RequestSource::new(&plan(pace, 2), 0);
        let now = Instant::ORIGIN;
        let clients: Vec<u32> = std::iter::from_fn(|| source.take(now))
            .map(|due| due.client)
            .collect();
        assert_eq!(clients, [0, 2]);
        source.ended(2, now, Span::from_millis(10));
        assert_eq!(source.next_due(), Some(now + Span::from_millis(10)));
        source.ended(0, now + Span::from_secs(1), Span::ZERO);
        source.stop();
        assert_eq!(source.next_due(), None);
    }
}
