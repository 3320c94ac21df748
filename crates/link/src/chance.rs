//! What a link decides by chance when a packet arrives.
//!
//! Every kind of decision has a stream of its own and draws for every packet, whatever befell it:
//! one more drop in a pattern moves no other packet's delay.

use posthaste_units::{Seed, Stream};
use rand::RngExt as _;

use crate::Plan;
use crate::loss::Process;
use crate::reordering::Turn;

/// The draws of one link.
pub(crate) struct Chance {
    loss: Option<(Box<dyn Process + Send>, Stream)>,
    copies: Stream,
    jitter: Stream,
    jitter_of_copies: Stream,
    order: Stream,
    since_overtaking: u32,
}

/// What was drawn for one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    pub(crate) lost: bool,
    pub(crate) copied: bool,
    pub(crate) deviation: f64,
    pub(crate) turn: Turn,
}

impl Chance {
    pub(crate) fn new(plan: &Plan, seed: Seed) -> Self {
        Self {
            loss: plan.loss.map(|loss| {
                let mut draws = seed.stream("loss");
                (loss.start(&mut draws), draws)
            }),
            copies: seed.stream("copies"),
            jitter: seed.stream("jitter"),
            jitter_of_copies: seed.stream("jitter of copies"),
            order: seed.stream("order"),
            since_overtaking: 0,
        }
    }

    pub(crate) fn draw(&mut self, plan: &Plan) -> Draw {
        let share = plan.duplication.get();
        Draw {
            lost: self.loses(),
            copied: share > 0.0 && self.copies.random::<f64>() < share,
            deviation: deviation(plan, &mut self.jitter),
            turn: plan.reordering.map_or_else(Turn::default, |reordering| {
                reordering.draw(&mut self.since_overtaking, &mut self.order)
            }),
        }
    }

    pub(crate) fn loses(&mut self) -> bool {
        match &mut self.loss {
            Some((process, draws)) => process.loses(draws),
            None => false,
        }
    }

    /// The delay's draw for a copy.
    pub(crate) fn copy_deviation(&mut self, plan: &Plan) -> f64 {
        deviation(plan, &mut self.jitter_of_copies)
    }
}

fn deviation(plan: &Plan, draws: &mut Stream) -> f64 {
    plan.jitter.map_or(0.0, |jitter| jitter.draw(draws))
}
