//! Links in virtual time, checked against conservation, arithmetic, probability theory, RFC 8289 and their own records.

mod background;
mod chance;
mod change;
mod classes;
mod codel;
mod conservation;
mod ecn;
mod mtu;
mod network;
mod opportunities;
mod order;
mod queue;
mod support;
mod timing;
