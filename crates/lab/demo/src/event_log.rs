//! Event log: server-sent events of the last minutes, then of the present.
//!
//! | event | data |
//! |---|---|
//! | `sample` | a [`Sample`](crate::sample::Sample), once a second |
//! | `news` | `{"at": seconds, "text": "..."}` |
//! | `controls` | the [`Controls`](crate::Controls) in force |
//!
//! Events are numbered. A page that reconnects states its last number (`Last-Event-ID`) and gets the events since then,
//! as far as they are kept. With a number that is too high, from an earlier demo, it gets everything. A slow reader
//! blocks nobody; it misses the events that are discarded meanwhile.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use posthaste_serve::sse::write_event;
use serde::Serialize;
use tokio::sync::watch;

/// Number of events kept: about three minutes.
const KEPT: usize = 200;

/// Event log of the last minutes.
pub(crate) struct EventLog {
    begun: Instant,
    kept: Mutex<KeptEvents>,
    newest: watch::Sender<LogProgress>,
}

/// Progress of the event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogProgress {
    /// Number of the newest event.
    Event(u64),
    /// The log has ended.
    Over,
}

struct KeptEvents {
    events: VecDeque<LogEvent>,
    last: u64,
}

struct LogEvent {
    number: u64,
    name: &'static str,
    data: String,
}

impl EventLog {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            kept: Mutex::new(KeptEvents {
                events: VecDeque::with_capacity(KEPT),
                last: 0,
            }),
            newest: watch::Sender::new(LogProgress::Event(0)),
        }
    }

    /// Seconds since the start.
    pub(crate) fn now(&self) -> f64 {
        (self.begun.elapsed().as_secs_f64() * 10.0).round() / 10.0
    }

    /// Adds a message for people.
    pub(crate) fn news(&self, text: String) {
        #[derive(Serialize)]
        struct NewsEvent {
            at: f64,
            text: String,
        }
        tracing::info!("{text}");
        let at = self.now();
        self.tell("news", &NewsEvent { at, text });
    }

    /// Adds an event. The newest controls are kept regardless of their age.
    pub(crate) fn tell(&self, name: &'static str, data: &impl Serialize) {
        // Serialisation cannot fail for the types of this crate.
        let data = serde_json::to_string(data).unwrap_or_default();
        let mut kept = self.kept();
        kept.last += 1;
        let number = kept.last;
        if name == "controls" {
            kept.events.retain(|event| event.name != name);
        }
        if kept.events.len() == KEPT {
            let oldest = kept
                .events
                .iter()
                .position(|event| event.name != "controls");
            kept.events.remove(oldest.unwrap_or(0));
        }
        kept.events.push_back(LogEvent { number, name, data });
        drop(kept);
        self.newest.send_if_modified(|newest| {
            let goes_on = *newest != LogProgress::Over;
            if goes_on {
                *newest = LogProgress::Event(number);
            }
            goes_on
        });
    }

    /// Events after number `last` in wire format, and the newest number. If `last` is greater than that, it belongs to
    /// another log, and all events are returned.
    pub(crate) fn since(&self, last: u64) -> (String, u64) {
        let kept = self.kept();
        let last = if last > kept.last { 0 } else { last };
        let mut text = Vec::new();
        for LogEvent { number, name, data } in kept.events.iter().filter(|e| e.number > last) {
            // Compact JSON has no line breaks.
            write_event(&mut text, name, Some(*number), |to| {
                to.extend_from_slice(data.as_bytes());
            });
        }
        let text = String::from_utf8(text).expect("events are text");
        (text, kept.last)
    }

    /// Subscribes to the progress of the log.
    pub(crate) fn follow(&self) -> watch::Receiver<LogProgress> {
        self.newest.subscribe()
    }

    /// Ends the log for all readers.
    pub(crate) fn end(&self) {
        self.newest.send_replace(LogProgress::Over);
    }

    fn kept(&self) -> MutexGuard<'_, KeptEvents> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_get_what_they_missed_and_the_controls_always() {
        let log = EventLog::new();
        log.tell("controls", &1);
        for number in 0..2 * KEPT {
            log.tell("sample", &number);
        }
        let (all, last) = log.since(0);
        assert_eq!(last, 2 * KEPT as u64 + 1);
        assert_eq!(all.matches("id: ").count(), KEPT);
        assert!(
            all.starts_with(
                "id: 1\nevent: controls\ndata: 1\n\nid: 203\nevent: sample\ndata: 201\n\n"
            ),
            "{}",
            &all[..80]
        );
        assert_eq!(
            log.since(last - 1).0,
            "id: 401\nevent: sample\ndata: 399\n\n"
        );
        assert_eq!(log.since(last), (String::new(), last));
        assert_eq!(log.since(last + 1), (all, last), "another demo's number");
        log.tell("controls", &2);
        assert_eq!(
            log.since(0).0.matches("controls").count(),
            1,
            "the newest only"
        );
    }

    #[test]
    fn an_end_is_an_end() {
        let log = EventLog::new();
        let newest = log.follow();
        log.end();
        log.tell("sample", &1);
        assert_eq!(*newest.borrow(), LogProgress::Over);
    }
}
