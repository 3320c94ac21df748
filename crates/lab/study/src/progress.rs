//! Progress of a run, on stderr.
//!
//! Each running study has a moving line on a terminal and plain lines otherwise, with the same words. A study reports
//! its steps. A [`Board`] displays them.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use posthaste_units::Span;

/// Progress of one study. Can be called from any thread.
pub trait Progress: Send + Sync {
    /// Reports `done` of `total` steps. `message` names the current one.
    fn step(&self, done: u64, total: u64, message: &str);
    /// Reports the end of the study, with `message`.
    fn end(&self, message: &str);
}

/// Progress of several studies.
pub trait Board: Sync {
    /// Starts the display of a study with this time budget. `ordinal` is its number and the number of all studies.
    fn begin(&self, ordinal: (usize, usize), name: &str, budget: Span) -> Box<dyn Progress>;
    /// Prints a lasting message for the user.
    fn say(&self, message: &str);
}

/// Prints nothing.
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _: u64, _: u64, _: &str) {}
    fn end(&self, _: &str) {}
}

impl Board for Silent {
    fn begin(&self, _: (usize, usize), _: &str, _: Span) -> Box<dyn Progress> {
        Box::new(Self)
    }

    fn say(&self, _: &str) {}
}

/// Stderr: moving lines on a terminal, plain lines otherwise.
#[derive(Default)]
pub struct Console {
    bars: MultiProgress,
}

impl Console {
    /// A console on the current stderr.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Prints a line to stderr. Ignores a closed stderr.
fn line(message: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{message}");
}

impl Board for Console {
    fn begin(&self, ordinal: (usize, usize), name: &str, budget: Span) -> Box<dyn Progress> {
        let (number, all) = ordinal;
        let head = format!("[{number}/{all}] {name}");
        if !std::io::stderr().is_terminal() {
            line(&format!("{head}: about {budget}"));
            return Box::new(PlainDisplay { head });
        }
        let bar = self.bars.add(ProgressBar::new(0));
        let look =
            ProgressStyle::with_template("{spinner} {prefix}  {bar:24}  {elapsed}  {wide_msg}");
        bar.set_style(look.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(head);
        bar.set_message(format!("about {budget}"));
        bar.enable_steady_tick(Duration::from_millis(120));
        let bars = self.bars.clone();
        Box::new(BarDisplay { bar, bars })
    }

    fn say(&self, message: &str) {
        self.bars.suspend(|| line(message));
    }
}

/// A study's display on a terminal.
struct BarDisplay {
    bar: ProgressBar,
    bars: MultiProgress,
}

impl Progress for BarDisplay {
    fn step(&self, done: u64, total: u64, message: &str) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.bar.set_message(message.to_owned());
    }

    fn end(&self, message: &str) {
        let head = self.bar.prefix();
        self.bar.finish_and_clear();
        self.bars.suspend(|| line(&format!("{head}: {message}")));
    }
}

/// A study's display on other outputs.
struct PlainDisplay {
    head: String,
}

impl Progress for PlainDisplay {
    fn step(&self, done: u64, total: u64, message: &str) {
        line(&format!("{}: {done}/{total} {message}", self.head));
    }

    fn end(&self, message: &str) {
        line(&format!("{}: {message}", self.head));
    }
}
