//! Properties of a link as data: options, profiles, changes over time.

pub(crate) mod background;
pub mod change;
pub(crate) mod classes;
pub(crate) mod explain;
pub(crate) mod plan;
pub mod profile;
pub mod properties;
pub(crate) mod sharing;
