//! The live display of a run: four lines on a terminal, redrawn each second. Without a terminal, one line every ten
//! seconds, so that a log shows that the run is alive.

use std::io::{self, IsTerminal as _, Write as _};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use posthaste_load::{Observer, Outcomes, Tick};
use posthaste_units::{Span, thousands, visible_lines};

use crate::report::occurred;

/// Seconds between lines without a terminal.
const QUIET_EVERY: u64 = 10;

/// The live view of a run on standard error.
pub struct Live {
    bar: ProgressBar,
    length: Span,
    last: Span,
    seconds: u64,
    outcomes: Outcomes,
    terminal: bool,
}

impl Live {
    /// Creates a view of a run of this length, warm-up included.
    pub fn new(length: Span) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(length.as_nanos() / 1_000_000), target);
        if let Ok(style) = ProgressStyle::with_template("{wide_bar:.cyan} {prefix}\n{msg}") {
            bar.set_style(style);
        }
        Self {
            bar,
            length,
            last: Span::ZERO,
            seconds: 0,
            outcomes: Outcomes::default(),
            terminal,
        }
    }

    /// Returns a function that prints messages above the view.
    pub fn notice(&self) -> impl FnMut(&str) + use<> {
        let (bar, terminal) = (self.bar.clone(), self.terminal);
        move |text| {
            let text = visible_lines(text);
            if terminal {
                bar.println(text);
            } else {
                let _ = writeln!(io::stderr(), "{text}");
            }
        }
    }

    /// Removes the view from the terminal before the report.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Live {
    fn tick(&mut self, at: Span, tick: &Tick) {
        let seconds = at.saturating_sub(self.last).as_secs_f64().max(1e-3);
        self.last = at;
        self.seconds += 1;
        self.outcomes += tick.outcomes;
        let rate = |count: u64| thousands((count as f64 / seconds).round() as u64);
        let ended = tick.responses.all();
        let time = |time: posthaste_stats::Time| {
            let reading = posthaste_stats::StatisticReading::from(time);
            reading.format(|ms| format!("{ms:.2} ms"))
        };
        let retries = match tick.retries {
            0 => String::new(),
            retries => format!("retries {}/s, ", rate(retries)),
        };
        let rates = format!(
            "due {}/s, {retries}ended {}/s",
            rate(tick.intended),
            rate(tick.outcomes.total())
        );
        let times = format!(
            "of all that ended: p50 {}, p99 {}, max {}; sent late by at most {:.2} ms",
            time(ended.quantile(0.5)),
            time(ended.quantile(0.99)),
            time(ended.max()),
            tick.lateness.as_millis_f64()
        );
        let ends: Vec<String> = occurred(&self.outcomes)
            .map(|(outcome, count)| format!("{} {outcome}", thousands(count)))
            .collect();
        if self.terminal {
            let done = at.min(self.length);
            self.bar.set_position(done.as_nanos() / 1_000_000);
            self.bar.set_prefix(format!(
                "{:.0}/{} s",
                done.as_secs_f64(),
                self.length.as_secs_f64()
            ));
            self.bar
                .set_message(format!("{rates}\n{times}\n{}", ends.join(", ")));
        } else if self.seconds.is_multiple_of(QUIET_EVERY) {
            let _ = writeln!(
                io::stderr(),
                "{:.0} s: {rates}; {times}; {}",
                at.as_secs_f64(),
                ends.join(", ")
            );
        }
    }
}
