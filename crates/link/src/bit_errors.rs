//! Bits that flip by chance, each by itself with the same probability.
//!
//! The distance between two errors is drawn, not each bit: a packet without errors costs nothing.

use posthaste_units::{Ratio, Seed, Stream};
use rand::RngExt as _;

use crate::Packet;

/// Errors along the stream of all bits that a link delivers.
pub(crate) struct BitErrors {
    draws: Stream,
    /// ln(1 - rate), by which uniform draws become geometric ones.
    scale: f64,
    /// Sound bits before the next error.
    sound: u64,
}

impl BitErrors {
    /// By the stream of `seed` that is called bits; `None` at rate zero.
    pub(crate) fn new(rate: Ratio, seed: Seed) -> Option<Self> {
        if rate.get() == 0.0 {
            return None;
        }
        let mut errors = Self {
            draws: seed.stream("bits"),
            scale: (-rate.get()).ln_1p(),
            sound: 0,
        };
        errors.sound = errors.draw();
        Some(errors)
    }

    /// Flips what is to flip in the next packet; returns how many bits.
    pub(crate) fn pass(&mut self, packet: &mut impl Packet) -> u32 {
        let bits = u64::from(packet.bytes()) * 8;
        let mut at = self.sound;
        let mut flipped = 0;
        while at < bits {
            packet.flip(at as u32);
            flipped += 1;
            at = at.saturating_add(1).saturating_add(self.draw());
        }
        self.sound = at - bits;
        flipped
    }

    /// Geometric: at rate 1 the logarithm is minus infinity and every distance zero.
    fn draw(&mut self) -> u64 {
        let uniform = 1.0 - self.draws.random::<f64>();
        (uniform.ln() / self.scale) as u64
    }
}
