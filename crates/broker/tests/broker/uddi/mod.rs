//! A registry of services beside the broker.

mod enrolling;
mod hostile;
mod services;
mod stand_in;
