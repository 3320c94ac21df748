//! Notes that wait for publication: the newest seconds as they are, older ones summed. Bounded without waiting.

use std::collections::VecDeque;

/// Seconds that are kept as they are.
pub const KEPT_SECONDS: usize = 60;

/// Results that can be summed without loss.
pub trait Merge {
    /// Adds later results.
    fn merge(&mut self, later: Self);
}

/// A note before it has a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PendingNote<S, E> {
    /// Results of these seconds of the run.
    Seconds {
        /// The first second.
        first: u64,
        /// The last second.
        last: u64,
        /// The results.
        sum: S,
    },
    /// Results of the whole run.
    Total {
        /// The results.
        sum: S,
    },
    /// The agent has not begun.
    StoodDown {
        /// The reason.
        reason: String,
    },
    /// The closing facts.
    End {
        /// The facts.
        end: E,
    },
}

/// Notes of one run in order.
#[derive(Debug)]
pub struct NoteBuffer<S, E> {
    older: Option<BufferedSeconds<S>>,
    newest: VecDeque<BufferedSeconds<S>>,
    total: Option<S>,
    /// The last note.
    last: Option<PendingNote<S, E>>,
}

#[derive(Debug)]
struct BufferedSeconds<S> {
    first: u64,
    last: u64,
    sum: S,
}

impl<S, E> Default for NoteBuffer<S, E> {
    fn default() -> Self {
        Self {
            older: None,
            newest: VecDeque::new(),
            total: None,
            last: None,
        }
    }
}

impl<S: Merge, E> NoteBuffer<S, E> {
    /// Adds the results of a second, at or after the previous one.
    pub fn add_second(&mut self, second: u64, sum: S) {
        let previous = self.newest.back().map(|seconds| seconds.last);
        debug_assert!(
            previous.is_none_or(|previous| previous <= second),
            "seconds ascend"
        );
        debug_assert!(self.last.is_none(), "nothing follows the last note");
        if self.newest.len() == KEPT_SECONDS {
            let oldest = self.newest.pop_front().expect("it is full");
            match &mut self.older {
                Some(older) => {
                    older.last = oldest.last;
                    older.sum.merge(oldest.sum);
                }
                None => self.older = Some(oldest),
            }
        }
        self.newest.push_back(BufferedSeconds {
            first: second,
            last: second,
            sum,
        });
    }

    /// Adds the results of the whole run.
    pub fn add_total(&mut self, sum: S) {
        debug_assert!(
            self.total.is_none() && self.last.is_none(),
            "the total comes once, before the last note"
        );
        self.total = Some(sum);
    }

    /// Adds the closing facts. Nothing is added after them.
    pub fn add_end(&mut self, end: E) {
        debug_assert!(self.last.is_none(), "there is one last note");
        self.last = Some(PendingNote::End { end });
    }

    /// Adds the note of an agent that has not begun. Nothing is added after it.
    pub fn add_stood_down(&mut self, reason: String) {
        debug_assert!(
            self.is_empty(),
            "an agent that has not begun has no results"
        );
        self.last = Some(PendingNote::StoodDown { reason });
    }

    /// Takes the oldest note.
    pub fn pop(&mut self) -> Option<PendingNote<S, E>> {
        let seconds = self.older.take().or_else(|| self.newest.pop_front());
        if let Some(BufferedSeconds { first, last, sum }) = seconds {
            return Some(PendingNote::Seconds { first, last, sum });
        }
        let total = self.total.take().map(|sum| PendingNote::Total { sum });
        total.or_else(|| self.last.take())
    }

    /// Number of notes.
    pub fn len(&self) -> usize {
        usize::from(self.older.is_some())
            + self.newest.len()
            + usize::from(self.total.is_some())
            + usize::from(self.last.is_some())
    }

    /// True without notes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
