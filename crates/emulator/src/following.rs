//! A thread that takes notes from the emulator and does something slow with them.
//!
//! The emulator never waits for it: it looks every few milliseconds, and a disk that stalls fills
//! the buffer between, which is counted there.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::sighting::Notes;

/// How long it sleeps when it has taken all: at 250,000 packets a second 1,250 come meanwhile.
const PAUSE: Duration = Duration::from_millis(5);

/// A thread that follows a run.
pub(crate) struct Following<S> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<S>>,
}

impl<S: Send + 'static> Following<S> {
    /// Starts it: `each` is called with every note, in order.
    pub(crate) fn start<T: Send + 'static>(
        notes: Notes<T>,
        mut sink: S,
        each: fn(&mut S, T),
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = stop.clone();
        let follow = move || {
            loop {
                // Asked before the last look, so that what came before is not missed.
                let last = asked.load(Ordering::Acquire);
                notes.drain().for_each(|note| each(&mut sink, note));
                if last {
                    return sink;
                }
                thread::sleep(PAUSE);
            }
        };
        let thread = thread::Builder::new()
            .name("notes".to_owned())
            .spawn(follow)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Takes what is still there, ends the thread and returns what it worked on.
    pub(crate) fn finish(mut self) -> S {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().expect("finished only once");
        match thread.join() {
            Ok(sink) => sink,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl<S> Drop for Following<S> {
    fn drop(&mut self) {
        // Whoever drops it does not ask what became of it; the thread ends by itself.
        self.stop.store(true, Ordering::Release);
    }
}
