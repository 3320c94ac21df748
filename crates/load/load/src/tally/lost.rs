//! The account of a process that was lost during a run, or has stopped before its end.
//!
//! The schedule of its share is known, and so is the number of its requests. Each one for which it has reported no
//! outcome is [`Outcome::Lost`]: it is not known whether it was sent. Its response time is longer than any bound.

use posthaste_units::Instant;

use crate::outcome::Outcome;
use crate::plan::mix::MixDraw;
use crate::plan::pace::ScheduledArrival;
use crate::plan::share::Share;
use crate::plan::{Pace, Plan};
use crate::reply::events::{EventEnd, EventSummary};
use crate::tally::LoadTally;
use crate::tally::part_results::PartResults;

/// The requests that a share had to send, as the plan says.
struct ShareSchedule<'p> {
    plan: &'p Plan,
    share: Share,
    over: Instant,
}

impl ShareSchedule<'_> {
    /// The requests due in the warm-up and in the measured time.
    fn arrivals(&self) -> impl Iterator<Item = ScheduledArrival> + use<> {
        let (share, loops, over) = (self.share, self.plan.threads as u64, self.over);
        let schedule = self.plan.schedule().into_iter().flatten();
        schedule
            .take_while(move |arrival| Instant::ORIGIN + arrival.at <= over)
            .filter(move |arrival| share.has((arrival.number % loops) as usize))
    }

    /// The requests due in the measured time.
    fn measured(&self) -> impl Iterator<Item = ScheduledArrival> + use<> {
        let warm_up = self.plan.warm_up;
        self.arrivals()
            .skip_while(move |arrival| arrival.at < warm_up)
    }
}

/// Number of requests that each event loop of `plan` has due in the measured time, until `over`. `None` in a closed loop.
/// The schedule is walked once for all loops, because a plan for many agents is long.
pub fn requests_by_loop(plan: &Plan, over: Instant) -> Option<Vec<u64>> {
    let share = Share::whole(plan);
    let schedule = ShareSchedule { plan, share, over };
    plan.expected()?;
    let mut counts = vec![0; plan.threads];
    for arrival in schedule.measured() {
        counts[(arrival.number % plan.threads as u64) as usize] += 1;
    }
    Some(counts)
}

impl LoadTally {
    /// Adds the requests of a lost share that have no outcome in this tally, the sum of what the share has reported.
    /// `over` is the end of the run: requests due after it are not part of it.
    ///
    /// The latest requests of the share are taken for the lost ones. In a closed loop, the lost requests are those
    /// that were begun; they are in no part of the run.
    pub fn add_lost(&mut self, plan: &Plan, share: Share, over: Instant) {
        self.add_rest(plan, share, over, Outcome::Lost);
    }

    /// Adds the requests of a share that has stopped before the run, and that it had not begun: they are
    /// [`Outcome::InFlight`].
    pub fn add_unbegun(&mut self, plan: &Plan, share: Share, over: Instant) {
        let before = self.outcomes.total();
        self.add_rest(plan, share, over, Outcome::InFlight);
        self.unbegun += self.outcomes.total() - before;
    }

    fn add_rest(&mut self, plan: &Plan, share: Share, over: Instant, outcome: Outcome) {
        let schedule = ShareSchedule { plan, share, over };
        let reported = self.outcomes.total();
        if let Pace::Closed { .. } = plan.pace {
            let lost = self.intended.saturating_sub(reported);
            let at = self.over.max(plan.window().start);
            self.count_attempts(lost, outcome);
            (0..lost).for_each(|_| self.end_unknown(plan, at, outcome));
            return;
        }
        let due = schedule.measured().count() as u64;
        self.intended = due;
        self.warm_up = schedule.arrivals().count() as u64 - due;
        self.count_attempts(due.saturating_sub(reported), outcome);
        self.count_in_parts(plan, &schedule, outcome);
        for arrival in schedule.measured().skip(reported as usize) {
            self.end_unknown(plan, Instant::ORIGIN + arrival.at, outcome);
        }
    }

    /// Counts an attempt of each of `lost` requests, and those before it that were reported.
    fn count_attempts(&mut self, lost: u64, outcome: Outcome) {
        let attempts = &mut self.attempts;
        let before = attempts.total().saturating_sub(attempts.of_ended());
        for number in 0..lost {
            let earlier = before / lost + u64::from(number < before % lost);
            attempts.count_request(1 + earlier as u32);
        }
        attempts.outcomes[outcome] += lost;
    }

    /// Counts the missing requests of each step and of each request of the mix.
    fn count_in_parts(&mut self, plan: &Plan, schedule: &ShareSchedule<'_>, outcome: Outcome) {
        let draw = MixDraw::for_plan(plan);
        let mut steps = vec![0; self.steps.len()];
        let mut requests = vec![0; self.requests.len()];
        for arrival in schedule.measured() {
            for (counts, part) in [
                (&mut steps, arrival.step),
                (&mut requests, draw.pick(arrival.number)),
            ] {
                if let Some(count) = counts.get_mut(part) {
                    *count += 1;
                }
            }
        }
        let parts = self.steps.iter_mut().chain(&mut self.requests);
        for (part, due) in parts.zip(steps.into_iter().chain(requests)) {
            part.count_rest(due, outcome);
        }
    }

    /// Records the end of a request without a reply.
    fn end_unknown(&mut self, plan: &Plan, due: Instant, outcome: Outcome) {
        let start = plan.window().start;
        self.outcomes[outcome] += 1;
        self.rest.record_censored(due.since(start), None);
        if plan.events.is_some() {
            self.events.ended(&EventEnd {
                outcome,
                events: EventSummary::default(),
                due,
                done: due,
                start,
            });
        }
    }
}

impl PartResults {
    /// Counts those of `due` requests that have no outcome.
    fn count_rest(&mut self, due: u64, outcome: Outcome) {
        let rest = due.saturating_sub(self.outcomes.total());
        self.outcomes[outcome] += rest;
        self.attempts += rest;
        (0..rest).for_each(|_| self.responses.record_unknown());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::pace::{Arrivals, RateStep};
    use crate::plan::source::RequestSource;
    use crate::request::RequestSpec;
    use crate::results::Run;
    use crate::retry::RetryPolicy;
    use crate::tally::Ending;
    use jiff::Timestamp;
    use posthaste_units::{Rate, Seed, Span};
    use proptest::prelude::*;

    /// Two steps of some requests, after a warm-up of 100 ms, with a mix of three.
    fn plan(arrivals: Arrivals, seed: u64, threads: usize) -> Plan {
        let step = |rate| {
            let rate = Rate::per_second(rate).unwrap();
            RateStep::steady(rate, Span::from_millis(500))
        };
        let steps = vec![step(200.0), step(600.0)];
        let request = |weight| RequestSpec {
            weight,
            ..RequestSpec::get("http://127.0.0.1/")
        };
        let mix = [0.2, 0.5, 0.3].map(request).to_vec();
        let mut plan = Plan::new(mix, Pace::Open { arrivals, steps });
        plan.warm_up = Span::from_millis(100);
        plan.seed = Seed(seed);
        plan.threads = threads;
        plan.retries = Some(RetryPolicy {
            limit: 1,
            backoff: crate::retry::Backoff::None,
        });
        plan
    }

    /// Carries out a share in virtual time: each request takes 7 ms, and every fourth needs a second attempt. Its process
    /// dies at `death`.
    fn carried_out(plan: &Plan, share: Share, death: Instant) -> LoadTally {
        let window = plan.window();
        let mut tally = LoadTally::for_plan(plan);
        let draw = MixDraw::for_plan(plan);
        for index in share.first..share.first + share.loops {
            let mut source = RequestSource::new(plan, index);
            while let Some(due) = source.take(death) {
                if due.at < window.start {
                    tally.warm_up += 1;
                    continue;
                }
                tally.intended += 1;
                let attempts = 1 + u32::from(due.number.is_multiple_of(4));
                for attempt in 1..=attempts {
                    let done = due.at + Span::from_millis(7) * u64::from(attempt);
                    if done <= death {
                        let outcome = if attempt < attempts {
                            Outcome::TimedOut
                        } else {
                            Outcome::Ok
                        };
                        tally.attempts.outcomes[outcome] += 1;
                    }
                }
                let done = due.at + Span::from_millis(7) * u64::from(attempts);
                if done <= death {
                    tally.ended(&Ending {
                        outcome: Outcome::Ok,
                        attempts,
                        step: due.step,
                        request: draw.pick(due.number),
                        intended: due.at,
                        done,
                        window,
                    });
                }
            }
        }
        tally
    }

    fn arrivals() -> impl Strategy<Value = Arrivals> {
        let trace = prop::collection::vec(0u64..1_100, 1..200).prop_map(|mut millis| {
            millis.sort_unstable();
            let times = millis.into_iter().map(Span::from_millis);
            Arrivals::Trace(times.collect::<Vec<_>>().into())
        });
        prop_oneof![Just(Arrivals::Constant), Just(Arrivals::Poisson), trace]
    }

    proptest! {
        /// Whatever the division and the moments of death: all requests of the plan have one outcome, and the parts
        /// and the attempts agree. Nothing that was reported is changed.
        #[test]
        fn the_identity_holds_with_lost_shares(
            arrivals in arrivals(),
            seed in 0u64..1_000,
            agents in prop::collection::vec((1usize..4, prop::option::of(0u64..1_200)), 1..5),
            stopped in prop::option::of(0u64..1_100),
        ) {
            let loops = agents.iter().map(|(loops, _)| loops).sum();
            let plan = plan(arrivals, seed, loops);
            let over = match stopped {
                Some(millis) => Instant::ORIGIN + Span::from_millis(millis),
                None => Instant::FAR_FUTURE,
            };
            let mut whole = LoadTally::for_plan(&plan);
            let (mut first, mut reported, mut is_lost) = (0, 0, false);
            for (loops, death) in agents {
                let share = Share { first, loops };
                first += loops;
                let end = Instant::ORIGIN + Span::from_secs(10);
                let mut tally = match death {
                    Some(millis) => {
                        let death = (Instant::ORIGIN + Span::from_millis(millis)).min(over);
                        let mut tally = carried_out(&plan, share, death);
                        reported += tally.outcomes[Outcome::Ok];
                        tally.add_lost(&plan, share, over);
                        is_lost = true;
                        tally
                    }
                    // One that lives reports all, and what it was stopped with as lost by this model.
                    None => {
                        let mut tally = carried_out(&plan, share, end.min(over));
                        reported += tally.outcomes[Outcome::Ok];
                        tally.add_lost(&plan, share, over);
                        tally
                    }
                };
                tally.over = over.min(end);
                whole.merge(&tally);
            }
            let start = plan.window().start;
            let due = plan.schedule().unwrap().filter(|arrival| {
                let at = Instant::ORIGIN + arrival.at;
                at >= start && at <= over
            });
            let due = due.count() as u64;
            prop_assert_eq!(whole.intended, due);
            prop_assert_eq!(whole.outcomes[Outcome::Ok], reported);
            prop_assert_eq!(whole.outcomes[Outcome::Lost], due - reported);
            prop_assert!(is_lost || stopped.is_some() || whole.outcomes[Outcome::Lost] == 0);
            for parts in [&whole.steps, &whole.requests] {
                let total: u64 = parts.iter().map(|part| part.outcomes.total()).sum();
                prop_assert_eq!(total, due);
            }
            // The identities of a whole run are asserted there.
            let run = Run::new(&plan, Timestamp::UNIX_EPOCH, whole, stopped.is_some());
            prop_assert_eq!(run.response.distribution().count(), due);
        }
    }
}
