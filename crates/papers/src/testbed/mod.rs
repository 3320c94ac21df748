//! Testbeds and readings that the studies of several papers share.
//!
//! [`rig`] is a proxy between a generator and an origin on two cores, [`front`] a shop behind a gateway. [`measured`]
//! holds one run of the generator, [`sweep`] the rates of several runs. [`curves`] reads the results, [`instrument`]
//! checks the measurement.

pub(crate) mod curves;
pub(crate) mod front;
pub(crate) mod instrument;
pub(crate) mod measured;
pub(crate) mod origin;
pub(crate) mod rig;
pub(crate) mod sweep;
