//! The fleet's pure parts, and with a NATS server its protocol.

mod names;
