//! The broker: a registry of QoS offers, kept durably, found in microseconds.
//!
//! Data flows one way. What providers publish goes to the keeper, a thread of its own; the keeper makes it durable in
//! the [`store`], reads the store's log from where it was, whoever wrote it, and brings the [`registry`] into step;
//! then the provider gets its answer. Lookups only read the registry, so that they go on when the store does not,
//! and say how old what they see is. Another broker on the same store, or one that follows this one, sees the same
//! changes in the same order.

mod change;
mod filling;
mod keeper;
mod registry;
mod store;
mod token;
