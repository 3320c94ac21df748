//! A connection of a client: its state, its time limits, its sender and its transport.

pub(crate) mod clock;
pub(crate) mod ending;
pub(crate) mod eviction;
pub(crate) mod interim;
pub(crate) mod open_connection;
pub(crate) mod peer;
pub(crate) mod requests;
pub(crate) mod state;
pub(crate) mod switch;
pub(crate) mod thread;
pub(crate) mod timer;
pub(crate) mod transport;
