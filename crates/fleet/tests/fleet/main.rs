//! The fleet's pure parts, and with a NATS server its protocol.

mod allot;
mod allow;
mod envelope;
mod names;
mod offset;
mod parts;
mod sealed;
