//! Chapter 7.2 of the thesis: brokers that compare offers.
//!
//! [`brokers`] loads the thesis's two and ours at increasing rates, [`lookups`] with increasing numbers of offers.
//! [`changes`] follows a provider's change along brokers.

mod broker_plots;
mod brokers;
mod changes;
pub(crate) mod changes_2026;
mod designs;
pub(crate) mod fig_56;
pub(crate) mod fig_57;
pub(crate) mod fig_58;
pub(crate) mod fig_59;
pub(crate) mod fig_60;
mod lookups;
pub(crate) mod lookups_2026;
mod prototype;
mod qws;
mod timing;
