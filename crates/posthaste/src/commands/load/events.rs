//! Replies that are streams of events.

use clap::ValueEnum;
use posthaste_load::{EventFormat, EventPlan, LONGEST_END_MARK};

use crate::commands::Failure;

/// Streams of events in replies.
#[derive(clap::Args)]
#[command(next_help_heading = "Events")]
pub(super) struct EventArgs {
    /// Read each reply as a stream of events: server-sent events, or JSON lines. Reports the time from due to the first
    /// event, the gaps between events and the events per second, for --assert as first, gap and events
    #[arg(long, value_enum, value_name = "sse|json-lines")]
    stream: Option<EventFormatArg>,
    /// Data of the event that ends a complete stream, for example '[DONE]'. Requests without it are counted, for
    /// --assert as no-end-mark
    #[arg(long, value_name = "TEXT", requires = "stream")]
    end_mark: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum EventFormatArg {
    Sse,
    JsonLines,
}

impl EventArgs {
    /// True if replies are read as events.
    pub(super) const fn is_given(&self) -> bool {
        self.stream.is_some()
    }

    pub(super) fn events(&self) -> Result<Option<EventPlan>, Failure> {
        let Some(format) = self.stream else {
            return Ok(None);
        };
        let is_usable = |mark: &String| {
            let length = 1..=LONGEST_END_MARK;
            length.contains(&mark.len()) && !mark.contains(['\r', '\n']) && mark.trim() == *mark
        };
        if self.end_mark.as_ref().is_some_and(|mark| !is_usable(mark)) {
            return Err(Failure::Usage(format!(
                "--end-mark: give one line of up to {LONGEST_END_MARK} bytes, without blanks at its ends"
            )));
        }
        Ok(Some(EventPlan {
            format: match format {
                EventFormatArg::Sse => EventFormat::Sse,
                EventFormatArg::JsonLines => EventFormat::JsonLines,
            },
            end_mark: self.end_mark.clone(),
        }))
    }

    /// Value of the field Accept for the events, unless a header states it.
    pub(super) fn accept(&self) -> Option<&'static str> {
        Some(match self.stream? {
            EventFormatArg::Sse => "text/event-stream",
            EventFormatArg::JsonLines => "application/x-ndjson",
        })
    }
}
