//! When a thread had nothing to do, told by the calls around its waiting.
//!
//! What is not spent waiting is busy: also what the kernel does for the thread's packets in its place,
//! which no clock of the thread shows, and what it waits for a processor that others use. A thread
//! that has been busy without a pause has a queue, and says so earlier than any sample.

use std::cell::Cell;
use std::sync::Arc;

use posthaste_serve::Hooks;
use posthaste_units::{Instant, Span};

use crate::workshop::now;

/// A wait shorter than this was no pause: there was something to do at once.
const PAUSE: Span = Span::from_micros(20);

/// What the call takes that finds something to do at once.
const CALL: Span = Span::from_micros(1);

thread_local! {
    static WAITS_SINCE: Cell<Instant> = const { Cell::new(Instant::ORIGIN) };
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    static SUM: Cell<Span> = const { Cell::new(Span::ZERO) };
}

/// Calls around waiting that keep each thread's pauses.
pub(crate) fn hooks() -> Hooks {
    Hooks {
        before_wait: Some(Arc::new(|| WAITS_SINCE.set(now()))),
        after_wait: Some(Arc::new(|| {
            let end = now();
            let waited = end.since(WAITS_SINCE.get());
            SUM.set(SUM.get() + waited.saturating_sub(CALL));
            if waited >= PAUSE {
                LAST.set(Some(end));
            }
        })),
        ..Hooks::default()
    }
}

/// For how long the calling thread has had no pause.
pub(crate) fn since(now: Instant) -> Span {
    LAST.get().map_or(Span::ZERO, |last| now.since(last))
}

/// The sum of the calling thread's pauses.
pub(super) fn sum() -> Span {
    SUM.get()
}
