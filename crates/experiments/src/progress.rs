//! How far a run is, told to a person on stderr.
//!
//! On a terminal a line that moves, otherwise plain lines: the same words in both. A study says
//! where it is; how that looks is decided here.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use posthaste_units::Span;

/// Where a run says how far it is. Everything may be called from any thread.
pub trait Progress: Sync {
    /// Study `number` of `total` begins, and should take about `budget`.
    fn begin(&self, number: usize, total: usize, name: &str, budget: Span);
    /// The study has done `done` of `of` steps; `words` say what it does now.
    fn step(&self, done: u64, of: u64, words: &str);
    /// Something a person should read and keep.
    fn say(&self, words: &str);
    /// The study has ended; `words` say how.
    fn end(&self, words: &str);
}

/// Says nothing.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: usize, _: usize, _: &str, _: Span) {}
    fn step(&self, _: u64, _: u64, _: &str) {}
    fn say(&self, _: &str) {}
    fn end(&self, _: &str) {}
}

/// Stderr: a moving line on a terminal, plain lines otherwise.
#[derive(Default)]
pub struct Console {
    bar: Mutex<Option<ProgressBar>>,
}

impl Console {
    /// Stderr as it is now.
    pub fn new() -> Self {
        Self::default()
    }

    fn with_bar(&self, act: impl FnOnce(&ProgressBar)) -> bool {
        let bar = self
            .bar
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        bar.as_ref().map(act).is_some()
    }

    fn set_bar(&self, bar: Option<ProgressBar>) {
        *self
            .bar
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) = bar;
    }
}

/// A line to stderr; that nobody reads it is no reason to stop.
fn line(words: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{words}");
}

impl Progress for Console {
    fn begin(&self, number: usize, total: usize, name: &str, budget: Span) {
        let head = format!("[{number}/{total}] {name}");
        if !std::io::stderr().is_terminal() {
            return line(&format!("{head}: about {budget}"));
        }
        let bar = ProgressBar::new(0);
        let look =
            ProgressStyle::with_template("{spinner} {prefix}  {bar:24}  {elapsed}  {wide_msg}");
        bar.set_style(look.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(head);
        bar.set_message(format!("about {budget}"));
        bar.enable_steady_tick(Duration::from_millis(120));
        self.set_bar(Some(bar));
    }

    fn step(&self, done: u64, of: u64, words: &str) {
        let moved = self.with_bar(|bar| {
            bar.set_length(of);
            bar.set_position(done);
            bar.set_message(words.to_owned());
        });
        if !moved {
            line(&format!("      {done}/{of} {words}"));
        }
    }

    fn say(&self, words: &str) {
        if !self.with_bar(|bar| bar.suspend(|| line(words))) {
            line(words);
        }
    }

    fn end(&self, words: &str) {
        self.with_bar(|bar| {
            let head = bar.prefix();
            bar.finish_and_clear();
            line(&format!("{head}: {words}"));
        });
        if !std::io::stderr().is_terminal() {
            line(&format!("      {words}"));
        }
        self.set_bar(None);
    }
}
