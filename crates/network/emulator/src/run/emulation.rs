//! An emulation from its start to its outcome: two hosts, and the emulator between their devices.
//!
//! The emulator's thread has its own network namespace with the middle ends of two pairs of devices. They have no
//! addresses, so the kernel there does not take part. Dropping a [`RunningEmulation`] ends everything.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use posthaste_link::record::Input;
use posthaste_link::{Direction, Plan, Sharing};
use posthaste_tcp::Profile;
use posthaste_units::Seed;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use thiserror::Error;

use crate::Flow;
use crate::clock::EmulatorClock;
use crate::control::{ChangeRequests, LinkControl};
use crate::namespaces::address::Subnets;
use crate::namespaces::host::{Host, HostError, Setup};
use crate::path::agent::{self, DuplicateAcks};
use crate::path::edge::EdgeRule;
use crate::path::outcome::EmulationOutcome;
use crate::path::packet_path::{Links, Middleboxes, PacketPath, TraceWriters};
use crate::path::packet_record::{Notes, PacketRecord, buffer};
use crate::path::ports::Ports;
use crate::path::relay::DestinationOpener;
use crate::path::stack::TcpStack;
use crate::processes::confinement::Delegate;
use crate::processes::priority;
use crate::run::engine::{EmulatorEngine, EngineError};
use crate::run::tcp_counters;
use crate::wait::Stop;

/// Error at the start of an emulation, or during it.
#[derive(Debug, Error)]
pub enum EmulationError {
    /// Failure of a host, or of the network between the two.
    #[error("{who}: {error}")]
    Host {
        /// The failed part.
        who: &'static str,
        /// Cause.
        #[source]
        error: HostError,
    },
    /// The emulator's loop ended because of an error of the kernel.
    #[error("the emulator stopped: {0}")]
    Stopped(#[from] EngineError),
}

/// Description of an emulation to start.
#[derive(Clone, Debug)]
pub struct Emulation {
    plans: Plans,
    sharing: Sharing,
    seed: Seed,
    subnets: Subnets,
    client: Setup,
    server: Setup,
    real_time: bool,
    delegate: Option<Arc<Delegate>>,
    packet_records: Option<usize>,
    inputs: Option<usize>,
    has_control: bool,
    duplicate_acks: Option<agent::Settings>,
    edge: Vec<EdgeRule>,
    /// TCP stacks in place of the client's and the server's.
    tcp: [Option<Arc<Profile>>; 2],
}

/// Choice of the links of connections.
#[derive(Clone)]
enum Plans {
    Same([Arc<Plan>; 2]),
    Chosen(Arc<Choose>),
}

impl Plans {
    /// The links of a run.
    fn links(&self, sharing: Sharing, seed: Seed) -> Links {
        match self {
            Self::Same([up, down]) => Links::new(up, down, sharing, seed),
            Self::Chosen(choose) => {
                let choose = choose.clone();
                Links::choosing(move |flow| choose(flow), seed)
            }
        }
    }
}

type Choose = dyn Fn(&Flow) -> [Arc<Plan>; 2] + Send + Sync;

impl fmt::Debug for Plans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same(plans) => f.debug_tuple("Same").field(plans).finish(),
            Self::Chosen(_) => f.write_str("Chosen"),
        }
    }
}

impl Emulation {
    /// An emulation with these links from client to server and back, one pair for each connection.
    pub fn new(up: Arc<Plan>, down: Arc<Plan>) -> Self {
        Self::with(Plans::Same([up, down]))
    }

    /// An emulation with links chosen by connection when its first packet arrives: `choose` returns the plans up and
    /// down. Allows many experiments in parallel.
    pub fn choosing(choose: impl Fn(&Flow) -> [Arc<Plan>; 2] + Send + Sync + 'static) -> Self {
        Self::with(Plans::Chosen(Arc::new(choose)))
    }

    fn with(plans: Plans) -> Self {
        Self {
            plans,
            sharing: Sharing::default(),
            seed: Seed::default(),
            subnets: Subnets::default(),
            client: Setup::default(),
            server: Setup::default(),
            real_time: false,
            delegate: None,
            packet_records: None,
            inputs: None,
            has_control: false,
            duplicate_acks: None,
            edge: Vec::new(),
            tcp: [None, None],
        }
    }

    /// Sets the sharing of links: one for each connection, or one for all. Connections with chosen plans always have
    /// their own links.
    pub fn sharing(self, sharing: Sharing) -> Self {
        Self { sharing, ..self }
    }

    /// Sets the seed of all random decisions.
    pub fn seed(self, seed: Seed) -> Self {
        Self { seed, ..self }
    }

    /// Sets the networks of both ends.
    pub fn subnets(self, subnets: Subnets) -> Self {
        Self { subnets, ..self }
    }

    /// Sets up the client's kernel.
    pub fn client(self, client: Setup) -> Self {
        Self { client, ..self }
    }

    /// Sets up the server's kernel.
    pub fn server(self, server: Setup) -> Self {
        Self { server, ..self }
    }

    /// Requests real-time priority. The outcome states the result.
    pub fn real_time(self, real_time: bool) -> Self {
        Self { real_time, ..self }
    }

    /// Gets real-time priority from this process, if the emulator may not take it.
    pub(crate) fn delegate(self, delegate: Option<Delegate>) -> Self {
        let delegate = delegate.map(Arc::new);
        Self { delegate, ..self }
    }

    /// Keeps a record of each packet, up to `capacity` records that have not been read yet.
    pub fn packet_records(self, capacity: usize) -> Self {
        Self {
            packet_records: Some(capacity),
            ..self
        }
    }

    /// Keeps the packets pushed into the links, up to `capacity` that were not read yet, for a record that can be
    /// replayed.
    pub fn inputs(self, capacity: usize) -> Self {
        Self {
            inputs: Some(capacity),
            ..self
        }
    }

    /// Lets the links change while they run, by a [control](crate::control). Chosen plans have none.
    ///
    /// All links are [changeable](Plan::changeable).
    pub fn control(mut self, has_control: bool) -> Self {
        if let Plans::Same(plans) = &mut self.plans {
            for plan in plans {
                Arc::make_mut(plan).changeable |= has_control;
            }
        }
        Self {
            has_control,
            ..self
        }
    }

    /// Puts an [agent](crate::agent) in front of the client that repeats acknowledgements, or none.
    pub fn duplicate_acks(self, settings: Option<agent::Settings>) -> Self {
        Self {
            duplicate_acks: settings,
            ..self
        }
    }

    /// Marks packets before they enter the links, each by the first rule that fits.
    pub fn edge(self, edge: Vec<EdgeRule>) -> Self {
        Self { edge, ..self }
    }

    /// Replaces TCP of the host that sends in this direction (up: the client) by a [stack](crate::stack) with this
    /// profile.
    pub fn tcp(mut self, end: Direction, profile: Option<Arc<Profile>>) -> Self {
        self.tcp[end as usize] = profile;
        self
    }

    /// The middleboxes of a run.
    fn middleboxes(&self, opener: Option<DestinationOpener>) -> Middleboxes {
        let stack = |end: Direction| {
            let profile = self.tcp[end as usize].clone();
            profile.map(|profile| TcpStack::new(profile, end, self.seed.child(end.name())))
        };
        Middleboxes {
            opener,
            edge: self.edge.clone(),
            agent: self.duplicate_acks.map(DuplicateAcks::new),
            mtu: match &self.plans {
                Plans::Same(plans) => plans.each_ref().map(|plan| plan.mtu),
                Plans::Chosen(_) => [None; 2],
            },
            stacks: Direction::BOTH.map(stack),
        }
    }

    /// The control of a run and the engine's end of it, if requested.
    fn start_control(
        &self,
        stop: &Arc<Stop>,
        clock: EmulatorClock,
    ) -> Option<(Arc<LinkControl>, ChangeRequests)> {
        let plans = match &self.plans {
            Plans::Same(plans) if self.has_control => plans.each_ref().map(|plan| (**plan).clone()),
            Plans::Same(_) | Plans::Chosen(_) => return None,
        };
        let (control, requests) = LinkControl::new(plans, stop.clone(), clock);
        Some((Arc::new(control), requests))
    }

    /// Sets everything up. Packets pass when this returns.
    ///
    /// The process must be able to have network namespaces of its own: see [`enter`](crate::namespace::enter).
    pub fn start(self) -> Result<RunningEmulation, EmulationError> {
        self.start_with(None)
    }

    /// Like [`start`](Self::start), with the opener of a relay to attach. It sees the destinations of packets.
    pub fn start_with(
        self,
        opener: Option<DestinationOpener>,
    ) -> Result<RunningEmulation, EmulationError> {
        let host_error = |who| move |error| EmulationError::Host { who, error };
        let subnets = self.subnets;
        let client = Host::start("client", subnets.client()).map_err(host_error("client"))?;
        let server = Host::start("server", subnets.server()).map_err(host_error("server"))?;
        let (record_writer, packet_records) = buffer(self.packet_records);
        let (input_writer, inputs) = buffer(self.inputs);
        let writers = TraceWriters {
            packet_records: record_writer,
            inputs: input_writer,
        };
        let hosts = [&client, &server];
        let (emulator, control) =
            Emulator::start(&self, writers, opener, hosts).map_err(host_error("emulator"))?;
        let set_up =
            |host: &Host, peer: &Host, setup| host.set_up(peer.addresses(), subnets, setup);
        set_up(&client, &server, self.client).map_err(host_error("client"))?;
        set_up(&server, &client, self.server).map_err(host_error("server"))?;
        Ok(RunningEmulation {
            client,
            server,
            packet_records,
            inputs,
            control,
            emulator,
        })
    }
}

/// An emulation in operation.
#[derive(Debug)]
pub struct RunningEmulation {
    /// The client's end.
    pub client: Host,
    /// The server's end.
    pub server: Host,
    /// Packet records, if requested. May be moved to another thread.
    pub packet_records: Option<Notes<PacketRecord>>,
    /// Packets pushed into the links and changes of the links, if requested. May be moved to another thread.
    pub inputs: Option<Notes<Input>>,
    /// Changes the links, if requested.
    pub control: Option<Arc<LinkControl>>,
    emulator: Emulator,
}

impl RunningEmulation {
    /// Stops the emulator and returns the outcome of the run. Both hosts end, too. Commands and sockets left inside
    /// have no peer any more.
    pub fn finish(mut self) -> Result<EmulationOutcome, EmulationError> {
        self.end()
    }

    /// Like [`RunningEmulation::finish`], once, but keeps both hosts and the commands whose end is tied to theirs
    /// ([`Host::run`]).
    pub fn end(&mut self) -> Result<EmulationOutcome, EmulationError> {
        // The devices end with the emulator's network namespace, and their counters with them.
        let lost = |who, host: &Host| {
            let lost = host.lost_in_sending();
            lost.map_err(|error| EmulationError::Host { who, error })
        };
        let lost = [lost("client", &self.client), lost("server", &self.server)];
        let unrouted = self.client.run(tcp_counters::unrouted);
        let mut outcome = self.emulator.finish()?;
        outcome.unrouted = unrouted;
        let [up, down] = lost;
        outcome.up.bypassed.overrun += up?;
        outcome.down.bypassed.overrun += down?;
        Ok(outcome)
    }

    /// True if the emulator has stopped by itself. [`RunningEmulation::finish`] returns the reason.
    pub fn has_stopped(&self) -> bool {
        self.emulator
            .thread
            .as_ref()
            .is_none_or(JoinHandle::is_finished)
    }
}

/// The emulator's thread between the hosts.
#[derive(Debug)]
struct Emulator {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<Result<EmulationOutcome, EngineError>>>,
}

impl Emulator {
    /// Starts the thread. Returns it, with the control if there is one, when both hosts have their device.
    fn start(
        emulation: &Emulation,
        writers: TraceWriters,
        opener: Option<DestinationOpener>,
        hosts: [&Host; 2],
    ) -> Result<(Self, Option<Arc<LinkControl>>), HostError> {
        let machine = |operation| move |error| HostError::Machine { operation, error };
        let stop = Stop::new().map_err(|errno| machine("an event")(errno.into()))?;
        let stop = Arc::new(stop);
        let [client, server] = hosts.map(|host| host.network().try_clone_to_owned());
        let networks = [
            client.map_err(machine("a host's network"))?,
            server.map_err(machine("a host's network"))?,
        ];
        let (ready, is_ready) = sync_channel(1);
        let path = PacketPath::new(
            emulation.plans.links(emulation.sharing, emulation.seed),
            emulation.middleboxes(opener),
            writers,
        );
        let clock = EmulatorClock::start();
        let (control, changes) = emulation.start_control(&stop, clock).unzip();
        let run = {
            let (stop, delegate) = (stop.clone(), emulation.delegate.clone());
            let get_priority = emulation.real_time.then_some(move || {
                let own = priority::become_real_time();
                own.is_ok() || delegate.is_some_and(|delegate| delegate.make_real_time().is_ok())
            });
            move || run(networks, clock, path, changes, get_priority, &ready, &stop)
        };
        let thread = thread::Builder::new()
            .name("emulator".to_owned())
            .spawn(run)
            .map_err(machine("a thread for the emulator"))?;
        let emulator = Self {
            stop,
            thread: Some(thread),
        };
        is_ready
            .recv()
            .expect("the thread reports before it ends")?;
        Ok((emulator, control))
    }

    fn finish(&mut self) -> Result<EmulationOutcome, EngineError> {
        self.stop.ask();
        let thread = self.thread.take().expect("finished only once");
        match thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Work of the emulator's thread: opens the devices, reports to `ready`, and runs the loop until `stop`.
fn run(
    networks: [OwnedFd; 2],
    clock: EmulatorClock,
    path: PacketPath,
    changes: Option<ChangeRequests>,
    get_priority: Option<impl FnOnce() -> bool>,
    ready: &SyncSender<Result<(), HostError>>,
    stop: &Stop,
) -> Result<EmulationOutcome, EngineError> {
    // The caller waits for a message.
    let ports = match Ports::open(networks) {
        Ok(ports) => ports,
        Err(error) => {
            let _ = ready.send(Err(error));
            return Err(Errno::NODEV.into());
        }
    };
    priority::wake_exactly();
    let real_time = get_priority.is_some_and(|get| get());
    let engine = EmulatorEngine::new(clock, ports, path, changes, real_time);
    let _ = ready.send(Ok(()));
    engine.run(stop)
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stop.ask();
        if let Some(thread) = self.thread.take() {
            // The outcome is not needed.
            let _ = thread.join();
        }
    }
}
