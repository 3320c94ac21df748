//! The fleet's pure parts, and with a NATS server its protocol.

mod envelope;
mod names;
mod offset;
mod parts;
