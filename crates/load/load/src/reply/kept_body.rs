//! The kept part of a reply's body, and the memory shared by all coded bodies of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::NoMemory;

/// Memory for coded bodies of a run until they are decoded.
pub(super) const CODED_BUDGET: usize = 64 << 20;

/// Size of the pieces of a body, so that one body can reuse the memory of another. The first piece begins small and is
/// doubled, because most bodies are short.
pub(super) const PIECE: usize = 16 << 10;
const SMALLEST: usize = 1 << 10;

/// Unused memory of a run for coded bodies.
#[derive(Debug)]
pub(crate) struct Budget(AtomicUsize);

impl Default for Budget {
    fn default() -> Self {
        Self(CODED_BUDGET.into())
    }
}

impl Budget {
    /// Takes `bytes` for a body that has `held` already. Refuses if the body would then have more than the remaining
    /// memory, so that a long body leaves memory for shorter ones.
    fn take(&self, bytes: usize, held: usize) -> bool {
        let taken = |left: usize| (held + bytes <= left).then(|| left - bytes);
        self.0.fetch_update(Relaxed, Relaxed, taken).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        let left = self.0.fetch_add(bytes, Relaxed);
        debug_assert!(
            left + bytes <= CODED_BUDGET,
            "more memory is returned than was taken"
        );
    }
}

/// A body, or its beginning.
#[derive(Debug, Default)]
pub(super) struct KeptBody {
    pieces: Vec<Vec<u8>>,
    length: usize,
    /// Memory for coded bodies, if they are kept.
    budget: Option<Arc<Budget>>,
    /// Bytes taken from the budget.
    charged: usize,
}

impl KeptBody {
    /// Takes the memory of coded bodies from `budget`.
    pub(super) fn within(budget: Arc<Budget>) -> Self {
        Self {
            pieces: Vec::new(),
            length: 0,
            budget: Some(budget),
            charged: 0,
        }
    }

    /// True if coded bodies are kept whole.
    pub(super) const fn keeps_coded(&self) -> bool {
        self.budget.is_some()
    }

    /// The kept bytes, in pieces of at most [`PIECE`].
    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.pieces.iter().map(Vec::as_slice)
    }

    /// Keeps `bytes` up to a total of `limit`.
    pub(super) fn add_up_to(&mut self, limit: usize, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(limit.saturating_sub(self.length))];
        // Without a memory limit nothing is refused.
        let _ = self.add(bytes, None);
    }

    /// Keeps `bytes` of a coded body if the budget permits. Otherwise keeps nothing of them.
    pub(super) fn add_coded(&mut self, bytes: &[u8]) -> Result<(), NoMemory> {
        let budget = self.budget.clone().ok_or(NoMemory)?;
        let added = self.add(bytes, Some(&budget));
        added.inspect_err(|_| self.clear())
    }

    /// Adds `bytes`, in memory from `budget` if there is one.
    fn add(&mut self, mut bytes: &[u8], budget: Option<&Budget>) -> Result<(), NoMemory> {
        while !bytes.is_empty() {
            let full = |piece: &Vec<u8>| piece.len() == piece.capacity();
            if self.pieces.last().is_none_or(full) {
                let more = match &*self.pieces {
                    [] => SMALLEST,
                    [first] if first.len() < PIECE => first.len(),
                    _ => PIECE,
                };
                if let Some(budget) = budget {
                    if !budget.take(more, self.charged) {
                        return Err(NoMemory);
                    }
                    self.charged += more;
                }
                match &mut *self.pieces {
                    [first] if first.len() < PIECE => first.reserve_exact(more),
                    _ => self.pieces.push(Vec::with_capacity(more)),
                }
            }
            if let Some(last) = self.pieces.last_mut() {
                let length = bytes.len().min(last.capacity() - last.len());
                last.extend_from_slice(&bytes[..length]);
                self.length += length;
                bytes = &bytes[length..];
            }
            debug_assert!(
                budget.is_none() || self.length <= self.charged,
                "a body is longer than its memory"
            );
        }
        Ok(())
    }

    /// Discards everything and releases the memory.
    #[inline]
    pub(super) fn clear(&mut self) {
        if self.pieces.is_empty() {
            debug_assert!(self.charged == 0, "memory is charged for pieces");
            return;
        }
        self.pieces = Vec::new();
        self.length = 0;
        let charged = std::mem::take(&mut self.charged);
        if let Some(budget) = &self.budget {
            budget.give_back(charged);
        }
    }
}

impl Drop for KeptBody {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: &[u8] = &[7; 5000];

    fn memory(body: &KeptBody) -> usize {
        body.pieces.iter().map(Vec::capacity).sum()
    }

    #[test]
    fn a_plain_body_leaves_the_budget_as_it_was() {
        let budget = Arc::new(Budget::default());
        let mut body = KeptBody::within(budget.clone());
        body.add_up_to(PIECE, SOME);
        body.clear();
        assert_eq!(budget.0.load(Relaxed), CODED_BUDGET);
    }

    #[test]
    fn a_body_is_kept_as_it_came() {
        let (mut body, mut whole) = (KeptBody::default(), Vec::new());
        for length in [0, 1, 1000, 23, 1, 16_000, 40_000, 7] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            body.add_up_to(usize::MAX, &bytes);
            whole.extend(bytes);
            assert_eq!(body.pieces().collect::<Vec<_>>().concat(), whole);
            assert!(body.pieces().all(|piece| piece.len() <= PIECE));
        }
        assert_eq!(body.pieces().next().map(<[u8]>::len), Some(PIECE));
        body.add_up_to(whole.len() + 3, &[1; 10]);
        assert_eq!(body.length, whole.len() + 3);
    }

    #[test]
    fn bodies_share_the_budget_and_give_it_back() {
        let budget = Arc::new(Budget::default());
        let mut bodies: Vec<_> = (0..1000)
            .map(|_| KeptBody::within(budget.clone()))
            .collect();
        let mut refused = 0;
        for _ in 0..100 {
            for body in &mut bodies {
                refused += usize::from(body.add_coded(SOME).is_err());
                assert!(memory(body) <= body.charged);
            }
            let held: usize = bodies.iter().map(memory).sum();
            assert!(held <= CODED_BUDGET, "{held}");
        }
        assert!(refused > 0, "500 MB were asked for");
        drop(bodies);
        assert_eq!(budget.0.load(Relaxed), CODED_BUDGET);
    }

    #[test]
    fn a_long_body_leaves_room_for_short_ones() {
        let budget = Arc::new(Budget::default());
        let mut long = KeptBody::within(budget.clone());
        let whole = (0..).take_while(|_| long.add_coded(SOME).is_ok()).count();
        let most = CODED_BUDGET / 2;
        assert!(
            (most - PIECE..=most).contains(&(whole * SOME.len())),
            "{whole}"
        );
        assert_eq!(long.length, 0, "a body that is given up holds nothing");
        while long.length + PIECE < most {
            long.add_coded(SOME).unwrap();
        }
        let mut short = KeptBody::within(budget);
        short.add_coded(SOME).unwrap();
        assert_eq!(short.length, SOME.len());
    }
}
