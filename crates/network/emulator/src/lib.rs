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
//! A [`session`] runs a command as the client, with a supervisor, a relay and files. The choice of the commands to run,
//! and the evaluation of the results, are left to the crates above.
//!
//! # Networks
//!
//! Each host is a thread in a network namespace of its own. Sockets and commands that it opens are inside. The
//! emulator's thread has a third namespace, without an address, with the middle ends of two veth pairs.
//!
//! # Time
//!
//! One iteration of `engine`: frames that arrived enter the links with the kernel's arrival stamp as their time, and
//! packets that are due leave.
//!
//! - A late wake-up has no effect if it precedes the packet's departure. `wait` sleeps until 100 µs before that time
//!   and polls for the rest. A real-time thread owes sleep for its time awake, because the kernel would
//!   otherwise stop it for 50 ms at a time.
//! - Frames are received through a ring shared with the kernel (TPACKET_V2). The buffer of a socket holds 180 packets
//!   for an ordinary user, and TPACKET_V3 delivers blocks, late.
//! - Packets leave one by one. Four fifths of their cost is the kernel's, from the send to the receiving socket. A
//!   batch would save little of it, and all packets of a batch would have the same time.
//! - The lateness of packets is measured and judged. A run on a machine that was too busy says so.
//! - Nothing on this path allocates in steady traffic.
//!
//! `flow` finds the connection of a packet without any state, or rejects the frame with a named reason. `edge` sets its
//! code point, if configured.
//!
//! # TCP profiles in place of a kernel
//!
//! With [`stack`], one end of the link belongs to a profile of `posthaste-tcp` instead of a device. Each connection is
//! spliced from two endpoints with the same addresses: one through the link by the profile, one to the host by today's
//! Linux. Clients, servers and relays need no change, both roles are one implementation, and both halves have real
//! kernels as peers. Packets of the profile count at their exact time.

pub mod capture;
mod clock;
pub mod control;
mod follower;
pub mod inference;
mod namespaces;
mod path;
mod processes;
pub mod record;
pub mod response;
mod run;
pub mod trace;
pub mod transaction;
mod wait;

pub use namespaces::address::{Addresses, CLIENT, SERVER, Subnets};
pub use namespaces::host::{DEVICE, Host, HostError, Setup};
pub use namespaces::netlink::{MTU, Mac, NetlinkError};
pub use namespaces::route::{RouteError, RouteOptions};
pub use namespaces::subnet::{Subnet, SubnetError};
pub use namespaces::{namespace, preset, sysctl};
pub use path::edge::{EdgeRule, EdgeRuleError, FlowSelector};
pub use path::flow::{Flow, FrameRefusal};
pub use path::outcome::{
    Bypassed, DirectionOutcome, EmulationOutcome, EmulationVerdict, TOLERANCE,
};
pub use path::packet_record::{HEAD, Notes, PacketRecord};
pub use path::{agent, flow, relay, stack};
pub use processes::confinement::Privileges;
pub use processes::outside::{InvalidHost, OutsideHost};
pub use processes::supervisor;
pub use run::emulation::{Emulation, EmulationError, RunningEmulation};
pub use run::engine::EngineError;
pub use run::report::RunReport;
pub use run::session_files::{SessionFileError, SessionFiles};
pub use run::tcp_counters::TcpCounters;
pub use run::{machine, session};
