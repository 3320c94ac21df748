//! The frame of a study: figures, their records, checks and the report. It knows no paper.
//!
//! A [`Collection`] is the only list of figures; the selection, the report's index and the tables of figures derive
//! from it. [`reproduce`] runs studies and writes records. [`draw`] makes pictures, checks and the report from records
//! alone.
//!
//! # Private networks
//!
//! [`lab::enter`] enters a network namespace before any thread starts, through a user namespace without root. Kernel
//! counters such as ListenDrops and SYN retransmissions then count this study and nothing else. If the kernel forbids
//! that, the study runs on the machine's loopback and reports that these checks were impossible.
//!
//! # Studies side by side
//!
//! A study states the resource that determines its numbers. A study that needs the processor runs alone. A study that
//! needs emulated links mostly waits, so several run at the same time (`side_by_side`). Each is a process of its own,
//! `posthaste reproduce --part`, with its own network. It reports over its standard output and writes its own records.
//! All drawing happens afterwards, from disk.
//!
//! # Studies elsewhere
//!
//! A study in virtual time needs nothing of the machine. Another machine may run it ([`simulate`]) and send its records.

mod check;
mod collection;
mod drawing;
mod elsewhere;
mod estimate;
mod figure;
mod folder;
pub mod lab;
mod manifest;
mod measuring;
mod options;
mod outcome;
mod progress;
mod question;
mod records;
mod report;
mod run;
mod side_by_side;

pub use check::{Check, CheckKind, NOISE, least, most};
pub use collection::{Collection, ListedFigure, Planned, SelectError};
pub use drawing::draw;
pub use elsewhere::{VirtualRun, simulate, virtual_studies};
pub use estimate::{ALL_DUE, COMPLETE_REPLIES, MEDIANS, MedianEstimate, estimate, in_ms};
pub use figure::{Conditions, Failure, Figure, Needs, Plot, Study};
pub use manifest::{Machine, Manifest, StudyEnd};
pub use options::Options;
pub use outcome::{Drawn, Reproduction, RunError};
pub use progress::{Board, Console, Progress, Silent};
pub use question::PaperQuestion;
pub use records::{
    Columns, Holds, RecordRow, RecordTable, RecordValue, Records, RecordsError, SentRecords,
};
pub use run::{reproduce, reproduce_part};
