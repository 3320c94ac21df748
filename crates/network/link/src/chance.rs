//! Random decisions of a link about an arriving packet.
//!
//! Each kind of decision has its own stream and draws for every packet, regardless of its fate: one more drop in a
//! pattern changes no other packet's delay. Unused streams are not created.

use posthaste_units::{Seed, Stream};
use rand::RngExt as _;

use crate::Plan;
use crate::loss::Losing;
use crate::reordering::Turn;

/// Random streams of one link.
pub(crate) struct Chance {
    loss: Option<(Losing, Stream)>,
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
    pub(crate) turn: Turn,
}

impl Draw {
    /// True if the draws affect nothing but the delay.
    pub(crate) fn is_nothing(&self) -> bool {
        !self.lost && !self.copied && !self.turn.at_once && self.turn.hold == 0
    }
}

impl Chance {
    #[inline(always)]
    pub(crate) fn new(plan: &Plan, seed: Seed) -> Self {
        let copies = plan.duplication.get() > 0.0;
        let stream = |name, used: bool| used.then(|| seed.stream(name));
        Self {
            loss: plan.loss.map(|loss| {
                let mut draws = seed.stream("loss");
                (loss.start(&mut draws), draws)
            }),
            copies: stream("copies", copies),
            jitter: stream("jitter", plan.jitter.is_some()),
            jitter_of_copies: None,
            seed,
            order: stream("order", plan.reordering.is_some()),
            since_overtaking: 0,
            calm: !copies && plan.reordering.is_none(),
        }
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
            turn: match (plan.reordering, &mut self.order) {
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
