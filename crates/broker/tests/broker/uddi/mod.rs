//! The broker with a UDDI registry.

mod enrolling;
mod hostile;
mod services;
mod stand_in;
