//! Notes of agents about a run: numbered, stored by the server, and applied once by the conductor.
//!
//! 1. **Buffer** (`buffer.rs`): the agent's loops add sums of seconds, and never wait.
//! 2. **Publish** (`publisher.rs`): one message under way, until its acknowledgement.
//! 3. **Read** (`reader.rs`): live from the subject; after gaps and silence again from the stream.
//! 4. **Assemble** (`assembler.rs`): each sequence number once, in any order.
//!
//! Nothing depends on the stream: an agent's total counts, and the stream only repeats lost messages.

mod assembler;
mod buffer;
mod publisher;
mod reader;
mod sequences;

pub use assembler::{NoteAssembler, NoteError};
pub use buffer::{KEPT_SECONDS, Merge, NoteBuffer, PendingNote};
pub use publisher::{NotePublisher, NoteSender, NoteSource, PublisherReport, channel};
pub use reader::{AgentNote, NoteReader, ReaderState};
pub use sequences::{SequenceSet, TooScattered};
