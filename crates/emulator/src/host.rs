//! One end of an emulation: a thread in a network of its own that does what it is sent.
//!
//! A network belongs to threads and to what they start, so this thread is the door: sockets that
//! it opens and commands that it spawns are inside, and stay inside wherever they are handed to.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use thiserror::Error;

use crate::address::{Addresses, NETWORK_V4, NETWORK_V6};
use crate::namespace::{NamespaceError, own_network};
use crate::netlink::{Netlink, NetlinkError};
use crate::offload;
use crate::route::RouteOptions;
use crate::sysctl::{self, SysctlError};

/// The device of every host that leads to the other.
pub const DEVICE: &str = "eth0";

/// What a host's kernel is told beyond what every host is told.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Settings and their values, made in this order: `("net.ipv4.tcp_sack", "0")`.
    pub sysctls: Vec<(String, String)>,
    /// Options of the route to the other end, for IPv4 and IPv6.
    pub route: RouteOptions,
}

impl Default for Setup {
    /// Today's kernel as it is built: cubic, whatever the machine's own default is.
    fn default() -> Self {
        let route = "congctl cubic".parse();
        Self {
            sysctls: Vec::new(),
            route: route.expect("the words are constants"),
        }
    }
}

/// Why a host could not be made ready.
#[derive(Debug, Error)]
pub enum HostError {
    /// No network of its own.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A device, an address or a route.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// A setting of its kernel.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// Something the machine is short of.
    #[error("{what}: {error}")]
    Machine {
        /// What was to be done.
        what: &'static str,
        /// The kernel's reason.
        error: io::Error,
    },
}

/// Settings of every host: no traffic but what commands cause, no memory of earlier connections, and
/// every port for everybody, since the network belongs to who made it.
///
/// For `default`, since the device comes later: IPv6 even where new networks have it switched off,
/// and no addresses from outside or of its own making.
const BASE: &[(&str, &str)] = &[
    ("net.ipv4.tcp_no_metrics_save", "1"),
    ("net.ipv4.ip_unprivileged_port_start", "0"),
];
const BASE_V6: &[(&str, &str)] = &[
    ("net.ipv6.conf.default.disable_ipv6", "0"),
    ("net.ipv6.conf.default.accept_ra", "0"),
    ("net.ipv6.conf.default.router_solicitations", "0"),
    ("net.ipv6.conf.default.accept_dad", "0"),
    ("net.ipv6.conf.default.addr_gen_mode", "1"),
];

type Job = Box<dyn FnOnce() + Send>;

/// One end of an emulation; dropping it ends its thread, and its network with the last socket.
#[derive(Debug)]
pub struct Host {
    addresses: Addresses,
    network: OwnedFd,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Starts the thread called `name` in a network with nothing but loopback.
    pub(crate) fn start(name: &str, addresses: Addresses) -> Result<Self, HostError> {
        let (jobs, inbox) = channel::<Job>();
        let (ready, is_ready) = sync_channel(1);
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let network = enter();
                let entered = network.is_ok();
                // Whoever waits is there; and if not, there is no work either.
                let _ = ready.send(network);
                if entered {
                    inbox.into_iter().for_each(|job| job());
                }
            })
            .map_err(|error| HostError::Machine {
                what: "a thread for a host",
                error,
            })?;
        let network = is_ready
            .recv()
            .expect("the thread reports before it ends")?;
        Ok(Self {
            addresses,
            network,
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Its addresses.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// The network it is in, for setns(2) and for devices that are to be put there.
    pub fn network(&self) -> BorrowedFd<'_> {
        self.network.as_fd()
    }

    /// Does `work` inside and waits for it; what it opens and starts stays inside.
    ///
    /// One piece of work at a time: what takes long belongs into [`Host::spawn`]. A panic in
    /// `work` goes on in the caller. Commands whose end is tied to the thread that started them
    /// (PR_SET_PDEATHSIG) live as long as this host.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (answer, result) = sync_channel(1);
        let job = move || {
            // Nobody sees what a panic has left half done: the work is gone with it.
            let done = catch_unwind(AssertUnwindSafe(work));
            let _ = answer.send(done);
        };
        let jobs = self.jobs.as_ref().expect("only dropping takes it");
        jobs.send(Box::new(job))
            .expect("the thread ends only when the host is dropped");
        match result.recv().expect("every job answers") {
            Ok(value) => value,
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Does `work` in a thread of its own inside.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        // A thread is in the network of the one that starts it.
        self.run(move || thread::spawn(work))
    }

    /// Sets up the device that has been put here, and what the kernel is to do with it.
    pub(crate) fn set_up(&self, peer: Addresses, setup: Setup) -> Result<(), HostError> {
        let own = self.addresses;
        self.run(move || {
            offload::disable(DEVICE).map_err(|error| HostError::Machine {
                what: "offloads of a host's device",
                error,
            })?;
            let mut netlink = Netlink::open()?;
            let index = index_of(DEVICE)?;
            netlink.raise(index)?;
            let networks = [
                (NETWORK_V4.0.into(), NETWORK_V4.1),
                (NETWORK_V6.0.into(), NETWORK_V6.1),
            ];
            let families = own.both().into_iter().zip(peer.both()).zip(networks);
            for ((address, neighbour), network) in families {
                if address.is_ipv6() && !has_ipv6() {
                    continue;
                }
                netlink.add_address(index, address)?;
                netlink.add_neighbour(index, neighbour, peer.mac)?;
                netlink.set_route(index, network, None, setup.route.metrics())?;
            }
            for (key, value) in &setup.sysctls {
                sysctl::set(key, value)?;
            }
            Ok(())
        })
    }

    /// Packets of this host that the emulator's device had no room for.
    pub(crate) fn lost_in_sending(&self) -> Result<u64, HostError> {
        self.run(|| Ok(Netlink::open()?.lost_in_sending(index_of(DEVICE)?)?))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // Jobs catch their panics, so the thread ends well.
            let _ = thread.join();
        }
    }
}

/// Moves the calling thread, and hands out the network it is in now.
fn enter() -> Result<OwnedFd, HostError> {
    own_network()?;
    for (key, value) in BASE {
        sysctl::set(key, value)?;
    }
    if has_ipv6() {
        for (key, value) in BASE_V6 {
            sysctl::set(key, value)?;
        }
    }
    // So that ping needs no privilege; only the own group is mapped in a user namespace.
    let group = rustix::process::getegid().as_raw();
    sysctl::set("net.ipv4.ping_group_range", &format!("{group} {group}"))?;
    fs::File::open("/proc/thread-self/ns/net")
        .map(OwnedFd::from)
        .map_err(|error| HostError::Machine {
            what: "the network's descriptor",
            error,
        })
}

/// The number of a device of the calling thread's network.
pub(crate) fn index_of(name: &str) -> Result<u32, HostError> {
    let index = || {
        let socket = rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::DGRAM,
            None,
        )?;
        rustix::net::netdevice::name_to_index(socket, name)
    };
    index().map_err(|errno| HostError::Machine {
        what: "the number of a device",
        error: errno.into(),
    })
}

/// Whether the kernel has IPv6 at all.
pub(crate) fn has_ipv6() -> bool {
    Path::new("/proc/sys/net/ipv6").exists()
}
