//! Chapter 7.2 of the thesis: brokers that compare offers.
//!
//! [`brokers`] loads the thesis's two and ours at increasing rates, [`lookups`] with increasing numbers of offers.
//! [`changes`] follows a provider's change along brokers.

mod broker_plots;
mod brokers;
mod changes;
pub(crate) mod changes_2026;
mod designs;
mod lookups;
pub(crate) mod lookups_2026;
mod prototype;
mod qws;
pub(crate) mod thesis_brokers;
mod timing;
