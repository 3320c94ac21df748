//! The share of a plan that one process carries out.

use crate::plan::Plan;

/// Some of the event loops of a plan. Loop n of N sends every N-th request, from request n on, so that any division
/// sends the same requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Number of the first loop.
    pub first: usize,
    /// Number of loops.
    pub loops: usize,
}

impl Share {
    /// True if this loop belongs to the share.
    pub(crate) fn has(self, index: usize) -> bool {
        (self.first..self.first + self.loops).contains(&index)
    }

    /// All loops of a plan.
    pub const fn whole(plan: &Plan) -> Self {
        Self {
            first: 0,
            loops: plan.threads,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Pace;
    use crate::plan::mix::MixDraw;
    use crate::plan::pace::{Arrivals, RateStep};
    use crate::plan::source::RequestSource;
    use crate::request::RequestSpec;
    use crate::request::data::Data;
    use crate::tally::lost::requests_by_loop;
    use posthaste_units::{Instant, Rate, Seed, Span};
    use proptest::prelude::*;

    /// A request that is due: its time, its step, the request of the mix, and the row.
    type DueRequest = (Instant, usize, usize, String);

    /// Open-loop arrivals in some steps, of a mix of two requests and five rows.
    fn plan(arrivals: Arrivals, steps: &[(u32, u32, u64)]) -> Plan {
        let rate = |rate: u32| Rate::per_second(rate.into()).unwrap();
        let step = |(from, to, millis): &(u32, u32, u64)| RateStep {
            from: rate(*from),
            to: rate(*to),
            length: Span::from_millis(*millis),
        };
        let steps = steps.iter().map(step).collect();
        let request = |weight| RequestSpec {
            weight,
            ..RequestSpec::get("http://127.0.0.1/{{row}}")
        };
        let mix = [0.3, 0.7].map(request).to_vec();
        let mut plan = Plan::new(mix, Pace::Open { arrivals, steps });
        plan.data = Data::read(&b"row\na\nb\nc\nd\ne\n"[..]).unwrap();
        plan
    }

    /// The requests that the event loops of a share send.
    fn sent(plan: &Plan, share: Share) -> Vec<DueRequest> {
        let draw = MixDraw::for_plan(plan);
        let of_loop = |index| {
            let mut source = RequestSource::new(plan, share.first + index);
            std::iter::from_fn(move || source.take(Instant::FAR_FUTURE))
        };
        let due = (0..share.loops).flat_map(of_loop);
        due.map(|due| {
            let row = plan
                .data
                .row(due.number)
                .get_attr("row")
                .unwrap()
                .to_string();
            (due.at, due.step, draw.pick(due.number), row)
        })
        .collect()
    }

    proptest! {
        /// Any agents send the requests of one process, and owe as many as they send.
        #[test]
        fn agents_send_the_requests_of_one_process(
            arrivals in prop_oneof![Just(Arrivals::Constant), Just(Arrivals::Poisson)],
            steps in prop::collection::vec((1u32..500, 1u32..500, 1u64..1_000), 1..4),
            seed in any::<u64>(),
            warm_up in 0u64..500,
            threads in 1usize..6,
            agents in prop::sample::select(vec![1usize, 2, 3, 8]),
            loops in prop::array::uniform8(1usize..5),
        ) {
            let mut plan = plan(arrivals, &steps);
            plan.seed = Seed(seed);
            plan.warm_up = Span::from_millis(warm_up);
            plan.threads = threads;
            let mut alone = sent(&plan, Share::whole(&plan));
            let loops = &loops[..agents];
            plan.threads = loops.iter().sum();
            let due = requests_by_loop(&plan, Instant::FAR_FUTURE).expect("an open loop");
            prop_assert_eq!(due.len(), plan.threads);
            let (mut first, mut together) = (0, Vec::new());
            for loops in loops {
                let share = Share { first, loops: *loops };
                let owed: u64 = due[first..first + loops].iter().sum();
                first += loops;
                let mine = sent(&plan, share);
                let start = Instant::ORIGIN + plan.warm_up;
                let measured = mine.iter().filter(|(at, ..)| *at >= start).count() as u64;
                prop_assert_eq!(owed, measured);
                together.extend(mine);
            }
            alone.sort_unstable();
            together.sort_unstable();
            prop_assert_eq!(together, alone);
        }
    }
}
