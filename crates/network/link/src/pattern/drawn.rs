//! Random decisions written as a pattern: a link draws, and its decisions become entries.
//!
//! A real link is simulated packet by packet, so the pattern holds the effects that the same plan and seed have on as
//! many packets of that size. In the pattern, a single packet can then be changed without an effect on others.

use std::sync::Arc;

use posthaste_units::{Instant, Ratio, Seed, Span};
use thiserror::Error;

use super::{Bits, Draft, Effect, PatternEntry, PatternRange, PatternRefusal};
use crate::{Departure, Direction, Fate, Jitter, Link, Loss, Packet, Plan};

/// Random effects to draw. The default draws none.
#[derive(Clone, Debug, Default)]
pub struct Chances {
    /// Model of losses.
    pub loss: Option<Loss>,
    /// Probability of a flip for each bit.
    pub bit_error_rate: Ratio,
    /// Share of duplicated packets.
    pub duplication: Ratio,
    /// Delay of every packet: its mean and its jitter.
    pub delay: Option<(Span, Jitter)>,
}

/// Error while random effects are written as a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DrawError {
    /// A pattern flips bits of packets, but not of their copies.
    #[error("bits of copies cannot flip by a pattern: draw bit errors or copies, not both")]
    FlippedCopies,
    /// The pattern cannot hold the entry.
    #[error("packet {position}: {refusal}")]
    Refused {
        /// Position of the packet.
        position: u64,
        /// Reason.
        refusal: PatternRefusal,
    },
}

impl Chances {
    /// Draws the effects on `packets` packets of `bytes` bytes, as a link with `seed`, and adds them to `draft`.
    pub fn add_to(
        &self,
        direction: Direction,
        packets: u64,
        bytes: u32,
        seed: Seed,
        draft: &mut Draft,
    ) -> Result<(), DrawError> {
        if self.bit_error_rate.get() > 0.0 && self.duplication.get() > 0.0 {
            return Err(DrawError::FlippedCopies);
        }
        let plan = Plan {
            loss: self.loss,
            bit_error_rate: self.bit_error_rate,
            duplication: self.duplication,
            ..Plan::default()
        };
        let mut add = |position, effect| {
            let range = PatternRange::packets(position, position);
            let entry = PatternEntry {
                direction,
                range,
                effect,
            };
            draft
                .add(entry)
                .map_err(|refusal| DrawError::Refused { position, refusal })
        };
        each(plan, seed, packets, bytes, |departure| {
            let effect = match departure.fate {
                Fate::Dropped(_) => Some(Effect::Drop),
                Fate::Delivered(_) if departure.copy > 0 => Some(Effect::Copy(1)),
                Fate::Delivered(_) => {
                    let flips = departure.packet.flips.iter().map(|bit| (*bit, *bit));
                    Bits::new(flips).map(Effect::Flip)
                }
            };
            effect.map_or(Ok(()), |effect| add(departure.position, effect))
        })?;
        let Some((delay, jitter)) = self.delay else {
            return Ok(());
        };
        let plan = Plan {
            delay,
            jitter: Some(jitter),
            keeps_order: false,
            ..Plan::default()
        };
        each(plan, seed, packets, bytes, |departure| {
            let delay = departure.left.since(departure.arrived);
            add(departure.position, Effect::DelayFrom(Some(delay)))
        })
    }
}

/// Sends packets through a link, one after the other, and passes departures to `look`.
fn each(
    plan: Plan,
    seed: Seed,
    packets: u64,
    bytes: u32,
    mut look: impl FnMut(Departure<FlipRecorder>) -> Result<(), DrawError>,
) -> Result<(), DrawError> {
    let blank = FlipRecorder {
        bytes,
        flips: Vec::new(),
    };
    let mut link = Link::new(&Arc::new(plan), seed);
    let mut now = Instant::ORIGIN;
    for _ in 0..packets {
        link.push(now, blank.clone());
        while let Some(wake) = link.wake() {
            now = now.max(wake);
            while let Some(departure) = link.pop(now) {
                look(departure)?;
            }
        }
    }
    Ok(())
}

/// A packet without content that notes its flipped bits.
#[derive(Clone, Debug)]
struct FlipRecorder {
    bytes: u32,
    flips: Vec<u32>,
}

impl Packet for FlipRecorder {
    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn flip(&mut self, bit: u32) {
        self.flips.push(bit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Everything that leaves a link after one packet a millisecond.
    fn departures(plan: Plan, seed: Seed, packets: u64) -> Vec<(u64, u32, Instant, bool, Vec<u8>)> {
        let mut link = Link::new(&Arc::new(plan), seed);
        let mut all = Vec::new();
        for number in 0..packets {
            link.push(Instant::ORIGIN + Span::from_millis(number), vec![0u8; 120]);
        }
        while let Some(wake) = link.wake() {
            while let Some(out) = link.pop(wake) {
                let dropped = matches!(out.fate, Fate::Dropped(_));
                all.push((out.position, out.copy, out.left, dropped, out.packet));
            }
        }
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// A drawn pattern has the same effects as the random decisions that it was drawn from.
        #[test]
        fn a_drawn_pattern_is_what_chance_would_have_done(
            seed: u64,
            loss in prop_oneof![Just("2%"), Just("bursts:5%:3"), Just("gilbert-elliott:10%:30%:80%:1%")],
            errors: bool,
            jitter: bool,
        ) {
            let chances = Chances {
                loss: Some(loss.parse().unwrap()),
                bit_error_rate: Ratio::new(if errors { 0.0005 } else { 0.0 }).unwrap(),
                duplication: Ratio::new(if errors { 0.0 } else { 0.05 }).unwrap(),
                delay: jitter.then(|| (Span::from_millis(20), "normal:5ms".parse().unwrap())),
            };
            let mut draft = Draft::default();
            chances.add_to(Direction::Up, 300, 120, Seed(seed), &mut draft).unwrap();
            let pattern = draft.finish();
            let plain = Plan { keeps_order: false, ..Plan::default() };
            let by_chance = Plan {
                loss: chances.loss,
                bit_error_rate: chances.bit_error_rate,
                duplication: chances.duplication,
                delay: chances.delay.map_or(Span::ZERO, |(delay, _)| delay),
                jitter: chances.delay.map(|(_, jitter)| jitter),
                ..plain.clone()
            };
            let by_pattern = Plan { script: Some(pattern.script(Direction::Up).clone()), ..plain };
            // The delay of a copy is drawn separately, and no pattern can express it.
            let compared = |mut all: Vec<(u64, u32, Instant, bool, Vec<u8>)>| {
                if jitter {
                    all.retain(|departure| departure.1 == 0);
                }
                all
            };
            prop_assert_eq!(
                compared(departures(by_pattern, Seed(0), 300)),
                compared(departures(by_chance, Seed(seed), 300))
            );
        }
    }

    #[test]
    fn chances_beyond_the_format_are_refused() {
        let some = Ratio::new(0.1).unwrap();
        let chances = Chances {
            bit_error_rate: some,
            duplication: some,
            ..Chances::default()
        };
        let flipped = chances.add_to(Direction::Up, 1, 1, Seed(1), &mut Draft::default());
        assert_eq!(flipped, Err(DrawError::FlippedCopies));
        let chances = Chances {
            bit_error_rate: some,
            ..Chances::default()
        };
        let drawn = chances.add_to(
            Direction::Up,
            1_000_000,
            1500,
            Seed(1),
            &mut Draft::default(),
        );
        let error = drawn.unwrap_err().to_string();
        assert!(error.contains("more than 1000000 entries"), "{error}");
        // Some 7,200 bits of one packet: more than its line can hold.
        let drawn = chances.add_to(Direction::Up, 1, 9000, Seed(1), &mut Draft::default());
        let error = drawn.unwrap_err().to_string();
        assert!(error.contains("packet 1: more than 4096 ranges"), "{error}");
    }
}
