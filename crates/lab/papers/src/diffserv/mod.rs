//! Chapter 7.3 of the thesis: a network with traffic classes.
//!
//! [`selection`] selects the class with a guarantee in three ways, [`marking_cost`] measures the cost of marking. Both
//! use the [`qos_proxy`]: the thesis's router at the generator's end of the link, gateway and origin at the far end. The
//! same requests run with the gateway's marks, without marks, and with marks by address, each run in networks of its
//! own.

pub(crate) mod fig_62;
pub(crate) mod gains;
mod marking_cost;
mod qos_proxy;
mod selection;
mod selection_plots;
