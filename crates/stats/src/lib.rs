//! What can honestly be said about a set of measured times.
//!
//! Times go into a [`Histogram`], or with the moment they belong to into a [`Recorder`], which also
//! knows how far the values depend on one another and so how much they prove. Both give a
//! [`Summary`], two of which [`compare`] holds against each other. A [`Share`] of trials has
//! an interval of its own. [`theory`] has the closed forms
//! that check the whole chain, [`goodness`] the tests of an arrival process.
//!
//! There is no clock here, no thread and no drawing: callers bring the times and take the numbers.

#![forbid(unsafe_code)]

mod beyond;
mod compare;
mod curve;
mod dependence;
pub mod goodness;
mod histogram;
mod interval;
pub mod isotonic;
mod line;
mod recorder;
mod share;
mod summary;
pub mod theory;

pub use beyond::Beyond;
pub use compare::{Comparison, Verdict, compare};
pub use curve::{Anchor, Curve, Fit, Law, Observed};
pub use histogram::{Histogram, LogError, LogInterval, Step, write_log};
pub use interval::Estimate;
pub use line::{Crossing, Weighted, crossing};
pub use recorder::{Batch, Recorder};
pub use share::Share;
pub use summary::{Statistic, Summary};
