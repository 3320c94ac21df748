//! Idle time of a thread, measured by hooks around its waits.
//!
//! All time outside waits counts as busy. This includes kernel work for the thread's packets, which no clock of the
//! thread shows, and waiting for a processor in use by others. A thread that has been busy without a pause has a queue;
//! this signal is earlier than any sample.

use std::cell::Cell;
use std::sync::Arc;

use posthaste_serve::Hooks;
use posthaste_serve::environment::is_simulated;
use posthaste_units::{Instant, Span};

use crate::clock::{now, processor_time};

/// Waits shorter than this are not pauses: an event was already ready.
const PAUSE: Span = Span::from_micros(20);

/// Duration of a wait call that finds an event ready.
const CALL: Span = Span::from_micros(1);

thread_local! {
    static WAITS_SINCE: Cell<Instant> = const { Cell::new(Instant::ORIGIN) };
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    static SUM: Cell<Span> = const { Cell::new(Span::ZERO) };
}

/// Hooks around waits that record the pauses of each thread.
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

/// Time since the calling thread's last pause.
pub(crate) fn since(now: Instant) -> Span {
    LAST.get()
        .map_or(Span::ZERO, |last| now.saturating_since(last))
}

/// Sum of the calling thread's idle time.
pub(crate) fn sum() -> Span {
    if !is_simulated() {
        return SUM.get();
    }
    // A simulated host has one processor.
    let elapsed = now().since(Instant::ORIGIN);
    elapsed.saturating_sub(processor_time())
}
