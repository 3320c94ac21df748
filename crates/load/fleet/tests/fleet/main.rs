//! The fleet's pure parts, and with a NATS server its protocol.

mod allot;
mod allow;
mod assignment;
mod clock;
mod discovery;
mod envelope;
mod messages;
mod names;
mod nats;
mod notes;
mod offset;
mod parts;
mod safety;
mod sealed;
