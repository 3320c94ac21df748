//! Streams of events in replies: the time to the first event, the gaps between events, and the end mark.
//!
//! [`reader`](EventReader) finds events in the bytes of a body. `progress` keeps the times of one reply, and `tally` those
//! of a run. Events have the time at which the piece of the body with their last byte was read.

mod decoded;
mod progress;
mod reader;
mod tally;

pub(crate) use decoded::EventDecoder;
pub(crate) use progress::{EventProgress, EventSummary};
pub use reader::{EventPart, EventReader, LONGEST_END_MARK};
pub(crate) use tally::EventEnd;
pub use tally::EventTally;

use serde::{Deserialize, Serialize};

use crate::grpc::GrpcCall;

/// Form of the events in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventFormat {
    /// Server-sent events, `text/event-stream` (WHATWG HTML, section 9.2): blocks of lines that end with an empty line. A
    /// block without data is no event.
    Sse,
    /// JSON lines: each line that is not empty is an event.
    JsonLines,
    /// Messages of gRPC: each one is an event, complete with its last byte.
    GrpcMessages,
}

/// The events that a plan expects in each reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventPlan {
    /// Their form.
    pub format: EventFormat,
    /// Data of the event that marks the end of a complete stream, such as `[DONE]`. It is no event itself.
    pub end_mark: Option<String>,
}

impl EventPlan {
    /// The messages of a reply to a gRPC call, if they are a stream. Its status ends it, so there is no end mark.
    pub fn of_call(call: &GrpcCall) -> Option<Self> {
        call.kind().streams_replies().then_some(Self {
            format: EventFormat::GrpcMessages,
            end_mark: None,
        })
    }
}
