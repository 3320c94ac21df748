//! Evaluation of runs of the load generator: reports, assertions, comparison, and the search of a capacity.
//!
//! | module | content |
//! |---|---|
//! | [`report`] | The JSON document of a run, and its other forms: text, page, Prometheus, files of a directory |
//! | [`checks`] | Checks of a run or comparison, as JUnit and Markdown |
//! | `assertion` | Bounds on the figures of a report: `p99<200ms` |
//! | [`compare`] | Differences between runs, with their uncertainty |
//! | [`mod@find`] | Search of the highest rate at which an assertion holds, as a pure state machine |
//! | `live` | Display of a run in progress |
//!
//! Apart from the generator because nothing here is on the path of a request.

mod assertion;
pub mod checks;
pub mod compare;
pub mod find;
mod live;
mod objective;
pub mod report;
#[cfg(test)]
mod testing;

pub use assertion::{Assertion, AssertionError};
pub use find::{
    Capacity, Effort, FindError, FindVerdict, LimitedBy, LocalRunner, Runner, TrialReport, find,
};
pub use live::Live;
