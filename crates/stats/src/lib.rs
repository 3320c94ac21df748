//! What can honestly be said about a set of measured times.
//!
//! Times go into a [`Histogram`], where some are known only by a lower bound into a [`CensoredHistogram`], and with
//! the moment they belong to into a [`Recorder`], which also knows how far the values depend on one another and so how
//! much they prove. They give a [`Summary`] or a [`CensoredSummary`]; [`judge_times`] and
//! [`judge_shares`] compare two sides of runs. A [`Share`] of trials has an interval of its own. [`theory`] has the
//! closed forms that check the whole chain, [`goodness`] the tests of an arrival process. [`has_long_tail`] says which
//! axis shows a set of times.
//!
//! There is no clock here, no thread and no drawing: callers bring the times and take the numbers.

#![forbid(unsafe_code)]

mod beyond;
mod censored;
mod censored_summary;
mod compare;
mod curve;
mod dependence;
pub mod goodness;
mod histogram;
mod interval;
pub mod isotonic;
mod recorder;
mod share;
mod summary;
mod tail;
pub mod theory;

pub use beyond::Beyond;
pub use censored::{CensoredHistogram, Time};
pub use censored_summary::{CensoredSummary, FEWEST_FOR_P999, Reading};
pub use compare::{
    Judged, Judgement, Margins, Measured, Needed, Reason, Rules, Verdict, judge_shares, judge_times,
};
pub use curve::{Anchor, Curve, Fit, Law, Observed};
pub use histogram::{Histogram, LogError, LogInterval, Step, write_log};
pub use interval::Estimate;
pub use recorder::{Batch, Recorder};
pub use share::Share;
pub use summary::{Statistic, Summary};
pub use tail::{LONG_TAIL, has_long_tail, median};
