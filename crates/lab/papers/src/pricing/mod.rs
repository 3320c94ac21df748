//! Chapter 7.4 of the thesis: offers that follow the load.
//!
//! [`adaptive`] runs the thesis's, on a [`market`] of a shop, a gateway, a broker and clients. Beyond it, [`prices`]
//! compares methods to protect a server.

mod adaptive;
mod adaptive_plots;
mod demand_course;
pub(crate) mod fig_68;
pub(crate) mod fig_69;
pub(crate) mod fig_70;
mod market;
mod prices;
pub(crate) mod prices_2026;
