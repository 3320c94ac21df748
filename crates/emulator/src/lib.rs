//! Emulated networks around real kernels: two hosts and a link between them that follows its plan exactly, for ordinary
//! users and for root.
//!
//! ```no_run
//! use std::sync::Arc;
//! use posthaste_emulator::{Emulation, namespace};
//! use posthaste_link::Plan;
//!
//! namespace::enter()?; // before any thread starts
//! let plan = Arc::new(Plan::default());
//! let running = Emulation::new(plan.clone(), plan).start()?;
//! let mut ping = std::process::Command::new("ping");
//! ping.args(["-c", "1", "10.0.0.2"]);
//! running.client.run(move || ping.status())?;
//! println!("{}", running.finish()?.verdict());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `posthaste-link` decides the fate of packets. This crate has the namespaces, the devices, the clock and the loop.
//! The choice of the commands to run, and the evaluation of the results, are left to the crates above.

mod address;
pub mod agent;
pub mod capture;
mod clock;
mod device;
mod edge;
mod emulation;
mod engine;
pub mod flow;
mod following;
pub mod guard;
mod host;
pub mod namespace;
mod netlink;
mod offload;
mod outcome;
pub mod preset;
mod priority;
pub mod record;
pub mod relay;
pub mod response;
mod route;
mod sighting;
pub mod stack;
pub mod sysctl;
mod tcp_counters;
pub mod trace;
pub mod transaction;
mod wait;

pub use address::{Addresses, CLIENT, NETWORK_V4, NETWORK_V6, SERVER};
pub use edge::{EdgeRule, NoRule, Whose};
pub use emulation::{Emulation, EmulationError, Running};
pub use engine::EngineError;
pub use flow::{Flow, Refusal};
pub use host::{DEVICE, Host, HostError, Setup};
pub use netlink::{MTU, Mac, NetlinkError};
pub use outcome::{Bypassed, Outcome, TOLERANCE, Verdict, Way};
pub use route::{RouteError, RouteOptions};
pub use sighting::{HEAD, Notes, Sighting};
pub use tcp_counters::TcpCounters;
