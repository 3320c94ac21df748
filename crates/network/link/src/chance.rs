//! Random decisions of a link about an arriving packet.
//!
//! Each kind of decision has its own stream and draws for every packet, regardless of its fate: one more drop in a
//! pattern changes no other packet's delay. Unused streams are not created.

use posthaste_units::{Seed, Stream};
use rand::RngExt as _;

use crate::impairments::loss::{Independent, Losing};
use crate::impairments::reordering::Turn;
use crate::pattern::LossShare;
use crate::{Loss, Plan};

/// Random streams of one link.
pub(crate) struct Chance {
    loss: Option<(Losing, Stream)>,
    /// Losses by a probability of the pattern.
    patterned_loss: Option<Stream>,
    copies: Option<Stream>,
    jitter: Option<Stream>,
    jitter_of_copies: Option<Stream>,
    seed: Seed,
    order: Option<Stream>,
    since_overtaking: u32,
    /// Decides nothing but losses and delays.
    calm: bool,
}

/// Draws for one packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Draw {
    pub(crate) lost: bool,
    pub(crate) copied: bool,
    pub(crate) deviation: f64,
    pub(crate) reorder: Turn,
}

impl Draw {
    /// True if the draws affect nothing but the delay.
    pub(crate) fn is_nothing(&self) -> bool {
        !self.lost && !self.copied && !self.reorder.at_once && self.reorder.hold == 0
    }
}

impl Chance {
    #[inline(always)]
    pub(crate) fn new(plan: &Plan, seed: Seed) -> Self {
        let script = plan.script.as_ref();
        let patterned_loss = script.is_some_and(|script| script.changes_loss());
        let copies = plan.duplication.get() > 0.0;
        let stream = |name, used: bool| used.then(|| seed.stream(name));
        Self {
            loss: plan.loss.map(|loss| {
                let mut draws = seed.stream("loss");
                (loss.start(&mut draws), draws)
            }),
            patterned_loss: stream("patterned loss", patterned_loss),
            copies: stream("copies", copies),
            jitter: stream("jitter", plan.jitter.is_some()),
            jitter_of_copies: None,
            seed,
            order: stream("order", plan.reordering.is_some()),
            since_overtaking: 0,
            calm: !copies && plan.reordering.is_none(),
        }
    }

    /// Follows `next` from now on. Streams continue; see [`change`](crate::change).
    pub(crate) fn change(&mut self, plan: &Plan, next: &Plan) {
        let seed = self.seed;
        if next.loss != plan.loss {
            // A loss of zero goes on drawing.
            let zero = Loss::Independent(Independent::default());
            let before = self.loss.take().map(|(_, draws)| draws);
            let mut draws = before.unwrap_or_else(|| seed.stream("loss"));
            let losing = next.loss.unwrap_or(zero).start(&mut draws);
            self.loss = Some((losing, draws));
        }
        if next.duplication.get() > 0.0 {
            self.copies.get_or_insert_with(|| seed.stream("copies"));
        }
        if next.jitter.is_some() {
            self.jitter.get_or_insert_with(|| seed.stream("jitter"));
        }
        if next.reordering.is_some() {
            self.order.get_or_insert_with(|| seed.stream("order"));
        }
        self.calm = self.copies.is_none() && self.order.is_none();
    }

    #[inline]
    pub(crate) fn draw(&mut self, plan: &Plan) -> Draw {
        if !self.calm {
            return self.draw_all(plan);
        }
        Draw {
            lost: self.loses(),
            deviation: deviation(plan, &mut self.jitter),
            ..Draw::default()
        }
    }

    /// Draws all decisions.
    fn draw_all(&mut self, plan: &Plan) -> Draw {
        let share = plan.duplication.get();
        Draw {
            lost: self.loses(),
            copied: match &mut self.copies {
                Some(draws) => draws.random::<f64>() < share,
                None => false,
            },
            deviation: deviation(plan, &mut self.jitter),
            reorder: match (plan.reordering, &mut self.order) {
                (Some(reordering), Some(draws)) => {
                    reordering.draw(&mut self.since_overtaking, draws)
                }
                _ => Turn::default(),
            },
        }
    }

    #[inline]
    pub(crate) fn loses(&mut self) -> bool {
        match &mut self.loss {
            Some((losing, draws)) => losing.loses(draws),
            None => false,
        }
    }

    /// Decision of the pattern about a packet that the plan's model loses or not. Draws for every packet of a pattern
    /// that changes the probability.
    pub(crate) fn patterned_loss(&mut self, share: Option<LossShare>, lost: bool) -> bool {
        let Some(draws) = &mut self.patterned_loss else {
            return lost;
        };
        let draw = draws.random::<f64>();
        share.map_or(lost, |share| draw < share.get())
    }

    /// Draws the delay of a copy.
    pub(crate) fn copy_deviation(&mut self, plan: &Plan) -> f64 {
        let begin = || self.seed.stream("jitter of copies");
        let draws = self.jitter_of_copies.get_or_insert_with(begin);
        plan.jitter.map_or(0.0, |jitter| jitter.draw(draws))
    }
}

#[inline]
fn deviation(plan: &Plan, draws: &mut Option<Stream>) -> f64 {
    match (&plan.jitter, draws) {
        (Some(jitter), Some(draws)) => jitter.draw(draws),
        _ => 0.0,
    }
}
