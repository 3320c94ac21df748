//! Links in virtual time, checked against conservation, arithmetic, probability theory, RFC 8289 and their own records.

mod background;
mod chance;
mod classes;
mod codel;
mod conservation;
mod network;
mod order;
mod queue;
mod support;
mod timing;
