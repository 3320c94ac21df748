//! The broker with a UDDI registry.

mod enrolling;
mod hostile;
mod messages;
mod services;
mod stand_in;
