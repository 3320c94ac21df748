//! Session: one run of a command behind an emulated network, from the supervisor to the report.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use posthaste_link::{Direction, Plan, Sharing};
use posthaste_tcp::Profile;
use posthaste_units::Seed;
use rustix::process::{Pid, Signal, kill_process};
use thiserror::Error;

use crate::control::{ControlAddress, ControlServer, ControlSockets, PrivateSocket};
use crate::namespaces::namespace::{self, NamespaceError};
use crate::path::agent::Settings;
use crate::path::relay::{Relay, ResolvConf};
use crate::processes::confinement::{self, Privileges};
use crate::processes::listening::listening;
use crate::processes::outside::OutsideHost;
use crate::processes::supervisor::{self, ChildEvent, Supervised};
use crate::run::report::RunReport;
use crate::run::session_files::{CreatedFiles, OpenFiles, SessionFileError, SessionFiles};
use crate::{
    EdgeRule, Emulation, EmulationError, Host, HostError, RunningEmulation, Setup, Subnets,
};

/// Environment variable with the server's address.
const VARIABLE: &str = "POSTHASTE_SERVER";
/// Environment variable with the address of the control inside.
pub const CONTROL_VARIABLE: &str = "POSTHASTE_CONTROL";
/// Time limit for a server to listen.
const STARTING: Duration = Duration::from_secs(30);
/// Interval between checks for the listening server.
const LOOK: Duration = Duration::from_millis(10);
/// Interval between checks that the emulator still runs.
const WATCH: Duration = Duration::from_millis(250);
/// Grace period for COMMAND to end after a signal.
const FAREWELL: Duration = Duration::from_secs(2);

/// State that lives as long as the run. Fields are dropped in this order: processes first.
struct Session {
    supervised: Supervised,
    relay: Relay,
    running: RunningEmulation,
    /// Address of the control inside, and its server.
    control: Option<(ControlAddress, ControlServer)>,
}

/// One host of a session.
#[derive(Clone, Debug, Default)]
pub struct SessionHost {
    /// Settings of its kernel.
    pub setup: Setup,
    /// TCP stack in place of its kernel's.
    pub tcp: Option<Arc<Profile>>,
}

/// The other end of the link.
#[derive(Clone, Debug, Default)]
pub enum OtherEnd {
    /// Nothing listens there.
    #[default]
    Idle,
    /// A host outside, at its own port.
    Outside(OutsideHost),
    /// A line for a shell. The command starts when it listens.
    Server(String),
}

/// Description of a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Plans of the links, up and down.
    pub plans: [Arc<Plan>; 2],
    /// One link for each connection, or one for all.
    pub sharing: Sharing,
    /// Seed of the links.
    pub seed: Seed,
    /// Networks of both ends.
    pub subnets: Subnets,
    /// Client and server.
    pub hosts: [SessionHost; 2],
    /// Rules that mark packets before they come to the link.
    pub edge: Vec<EdgeRule>,
    /// Settings of the duplicate-ACK agent.
    pub duplicate_acks: Option<Settings>,
    /// The other end.
    pub other_end: OtherEnd,
    /// Program of the command, and its arguments.
    pub command: (OsString, Vec<OsString>),
    /// Privileges of the command and of the server.
    pub privileges: Privileges,
    /// Address at which programs can change the links.
    pub control: Option<ControlAddress>,
    /// Files to write.
    pub files: SessionFiles,
}

/// Error of a session.
#[derive(Debug, Error)]
pub enum SessionError {
    /// Error of a file.
    #[error(transparent)]
    File(#[from] SessionFileError),
    /// The address of the control cannot be used.
    #[error(
        "--control {address}: {source}; {}", remedy(.source)
    )]
    Control {
        /// The address.
        address: ControlAddress,
        /// Error of the system.
        source: io::Error,
    },
    /// The socket for COMMAND cannot be made.
    #[error("a socket of --control for COMMAND in {folder}: {source}; set TMPDIR to a folder that can be written and has a short path", folder = .folder.display())]
    ControlFolder {
        /// The folder for temporary files.
        folder: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The supervisor could not be started or heard.
    #[error(transparent)]
    Supervisor(io::Error),
    /// The outside host could not be resolved.
    #[error("--to {host}: {source}")]
    Outside {
        /// Name of the host, with its port.
        host: String,
        /// Error of the resolver.
        source: io::Error,
    },
    /// The namespaces could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The relay could not be started.
    #[error(transparent)]
    Relay(io::Error),
    /// The relay could not be connected to the hosts.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Error of the emulation.
    #[error(transparent)]
    Emulation(#[from] EmulationError),
    /// The server at the other end could not be started.
    #[error("--server: sh: {0}")]
    Spawn(io::Error),
    /// The server ended before it listened.
    #[error("--server: ended before it listened ({status}): {line}")]
    ServerEnded {
        /// Its exit status.
        status: ExitStatus,
        /// Its command line.
        line: String,
    },
    /// The server did not listen in time.
    #[error("--server: does not listen after {STARTING:?}: {0}")]
    ServerSilent(String),
    /// The server listens where the client does not reach it.
    #[error("--server: listens at {0} only; let it listen at 0.0.0.0 or ${VARIABLE}")]
    ServerUnreachable(String),
    /// A signal came before the command was started.
    #[error("stopped by signal {}", .0.as_raw())]
    Stopped(Signal),
    /// The command could not be started.
    #[error("{text}")]
    NotStarted {
        /// The status with which a shell would end.
        code: u8,
        /// Cause and remedy.
        text: String,
    },
}

/// A session whose command has ended.
pub struct EndedSession {
    /// Results of the run.
    pub report: RunReport,
    files: OpenFiles,
    _session: Session,
}

impl EndedSession {
    /// Writes the rest of the files.
    pub fn finish(self) -> Result<(), SessionFileError> {
        self.files.finish(&self.report)
    }
}

/// Runs the command to its end, and ends everything that was started.
pub fn run(options: SessionOptions) -> Result<EndedSession, SessionError> {
    let supervised = supervisor::spawn().map_err(SessionError::Supervisor)?;
    // Files come first, so that a mistake in them costs no network.
    let files = CreatedFiles::create(&options.files)?;
    let sockets = options.control.as_ref().map(bind_control).transpose()?;
    let mut session = Session::start(&options, supervised, &files)?;
    if let Some(sockets) = sockets {
        session.start_control(sockets)?;
    }
    let files = files.begin(&mut session.running)?;
    let server = match &options.other_end {
        OtherEnd::Server(line) => Some(session.start_server(line)?),
        OtherEnd::Idle | OtherEnd::Outside(_) => None,
    };
    let status = session.run_command(&options.command.0, &options.command.1, server)?;
    let relayed = session.relay.relayed();
    // Processes that end from here on belong to the end of the run. The hosts are dropped after the processes;
    // otherwise commands would be killed with them before being asked to end.
    let outcome = session.running.end()?;
    let server = options.subnets.server();
    let status = shell_status(status);
    let SessionOptions {
        plans,
        sharing,
        seed,
        ..
    } = &options;
    let report = RunReport::new(&outcome, plans, *sharing, relayed, *seed, server, status);
    let left = session.supervised.end_all();
    if left > 0 {
        let _ = writeln!(
            io::stderr(),
            "posthaste: {left} processes could not be ended"
        );
    }
    Ok(EndedSession {
        report,
        files,
        _session: session,
    })
}

impl Session {
    fn start(
        options: &SessionOptions,
        supervised: Supervised,
        files: &CreatedFiles,
    ) -> Result<Self, SessionError> {
        let outside = match &options.other_end {
            OtherEnd::Outside(host) => Some((host.port, resolve(host)?)),
            OtherEnd::Idle | OtherEnd::Server(_) => None,
        };
        let delegate = match options.privileges {
            Privileges::Confined => confinement::enter()?,
            Privileges::Kept => namespace::enter().map(|()| None)?,
        };
        supervised
            .die_with_parent()
            .map_err(SessionError::Supervisor)?;
        let names = ResolvConf::of_this_machine();
        let (relay, gate) =
            Relay::start(&names, options.subnets.server()).map_err(SessionError::Relay)?;
        let [client, server] = options.hosts.clone();
        let route = client.setup.route.clone();
        let [up, down] = options.plans.clone();
        let emulation = Emulation::new(up, down)
            .sharing(options.sharing)
            .seed(options.seed)
            .subnets(options.subnets)
            .client(client.setup)
            .server(server.setup)
            .edge(options.edge.clone())
            .duplicate_acks(options.duplicate_acks)
            .control(options.control.is_some())
            .tcp(Direction::Up, client.tcp)
            .tcp(Direction::Down, server.tcp)
            .real_time(true)
            .delegate(delegate);
        let running = files.ask(emulation).start_with(Some(gate))?;
        relay.attach(&running.client, &running.server, &route)?;
        if let Some((port, addresses)) = outside {
            relay.lead(&running.server, port, &addresses)?;
        }
        if let Err(error) = running.client.run(move || names.install()) {
            let _ = writeln!(
                io::stderr(),
                "posthaste: names do not resolve inside: {error}"
            );
        }
        Ok(Self {
            supervised,
            relay,
            running,
            control: None,
        })
    }

    /// Serves the control from here on.
    fn start_control(&mut self, sockets: ControlSockets) -> Result<(), SessionError> {
        let (address, inside) = (sockets.address().clone(), sockets.inside().clone());
        let control = self.running.control.clone();
        let control = control.expect("the emulation was started with a control");
        let server = sockets.serve(control);
        let server = server.map_err(|source| SessionError::Control {
            address: address.clone(),
            source,
        })?;
        let _ = writeln!(io::stderr(), "posthaste: control at {address}");
        self.control = Some((inside, server));
        Ok(())
    }

    /// Starts the server, and returns once it listens.
    fn start_server(&self, line: &str) -> Result<u32, SessionError> {
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            // Standard output belongs to COMMAND, and so does the terminal with its Ctrl-C.
            .stdin(Stdio::null())
            .stdout(io::stderr())
            .process_group(0);
        let server = self.spawn(&self.running.server, command);
        let server = server.map_err(SessionError::Spawn)?;
        let patience = Instant::now() + STARTING;
        loop {
            let found = self.running.server.run(listening);
            if found.iter().any(|local| !local.ip().is_loopback()) {
                return Ok(server);
            }
            match self.supervised.wait(LOOK) {
                Some(ChildEvent::Ended(who, status)) if who == server => {
                    let line = line.to_owned();
                    return Err(SessionError::ServerEnded { status, line });
                }
                Some(ChildEvent::Asked(signal) | ChildEvent::Terminal(signal)) => {
                    return Err(SessionError::Stopped(signal));
                }
                _ => {}
            }
            if Instant::now() > patience {
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                return Err(if found.is_empty() {
                    SessionError::ServerSilent(line.to_owned())
                } else {
                    SessionError::ServerUnreachable(found.join(" and "))
                });
            }
        }
    }

    /// Handles events that came before COMMAND was started.
    fn look_before_command(&self, server: Option<u32>) -> Result<(), SessionError> {
        while let Some(event) = self.supervised.wait(Duration::ZERO) {
            match event {
                ChildEvent::Asked(signal) | ChildEvent::Terminal(signal) => {
                    return Err(SessionError::Stopped(signal));
                }
                ChildEvent::Ended(who, status) if Some(who) == server => say_server_ended(status),
                ChildEvent::Ended(..) => {}
            }
        }
        Ok(())
    }

    /// Runs COMMAND to its end.
    fn run_command(
        &self,
        program: &OsStr,
        arguments: &[OsString],
        server: Option<u32>,
    ) -> Result<ExitStatus, SessionError> {
        self.look_before_command(server)?;
        let mut command = Command::new(program);
        command.args(arguments);
        let client = self.spawn(&self.running.client, command);
        let client = client.map_err(|error| not_started(program, &error))?;
        let mut killed = None;
        loop {
            match self.supervised.wait(WATCH) {
                Some(ChildEvent::Ended(who, status)) if who == client => return Ok(status),
                Some(ChildEvent::Ended(who, status)) if Some(who) == server => {
                    say_server_ended(status)
                }
                Some(ChildEvent::Asked(signal)) => {
                    pass_on(client, signal);
                    if matches!(signal, Signal::TERM | Signal::HUP) {
                        killed.get_or_insert(Instant::now() + FAREWELL);
                    }
                }
                // The terminal's signals reach COMMAND directly.
                Some(ChildEvent::Ended(..) | ChildEvent::Terminal(_)) | None => {}
            }
            let overdue = killed.is_some_and(|at| Instant::now() > at);
            if overdue || self.running.has_stopped() {
                pass_on(client, Signal::KILL);
            }
        }
    }

    /// Starts a command on a host. The supervisor reports its end.
    fn spawn(&self, host: &Host, mut command: Command) -> io::Result<u32> {
        command.env(VARIABLE, self.running.server.addresses().v4.to_string());
        if let Some((inside, _)) = &self.control {
            command.env(CONTROL_VARIABLE, inside.to_string());
        } else {
            // That of a run around this one has other links.
            command.env_remove(CONTROL_VARIABLE);
        }
        self.supervised.prepare(&mut command);
        host.run(move || command.spawn()).map(|child| child.id())
    }
}

/// The remedy for an address that cannot be bound.
fn remedy(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::AddrInUse {
        "choose another; a socket may be left of a run that was killed"
    } else {
        "write another address, or for unix:PATH a path of at most 107 bytes in a folder that can be written"
    }
}

fn bind_control(address: &ControlAddress) -> Result<ControlSockets, SessionError> {
    let inside = PrivateSocket::bind().map_err(|source| SessionError::ControlFolder {
        folder: std::env::temp_dir(),
        source,
    })?;
    ControlSockets::bind(address, inside).map_err(|source| SessionError::Control {
        address: address.clone(),
        source,
    })
}

fn resolve(host: &OutsideHost) -> Result<Vec<SocketAddr>, SessionError> {
    host.addresses().map_err(|source| SessionError::Outside {
        host: host.text.clone(),
        source,
    })
}

fn say_server_ended(status: ExitStatus) {
    let _ = writeln!(
        io::stderr(),
        "posthaste: the server ended before COMMAND did ({status})"
    );
}

fn pass_on(process: u32, signal: Signal) {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    if let Some(process) = process {
        // It can only have ended, and has not been waited for yet.
        let _ = kill_process(process, signal);
    }
}

/// The status of shells: 127 for an unknown command, 126 for one that cannot be run.
fn not_started(command: &OsStr, error: &io::Error) -> SessionError {
    let name = command.to_string_lossy();
    // An unreadable folder of PATH gives "permission denied" for any command.
    let nowhere = !name.contains('/') && !is_in_path(command);
    let kind = if nowhere {
        io::ErrorKind::NotFound
    } else {
        error.kind()
    };
    let (code, text) = match kind {
        io::ErrorKind::NotFound if !nowhere && Path::new(command).exists() => (
            126,
            format!("{name}: the interpreter that its first line names is missing"),
        ),
        io::ErrorKind::NotFound => (
            127,
            format!("{name}: command not found; for shell syntax write sh -c '{name} ...'"),
        ),
        _ => (126, format!("{name}: cannot be run: {error}")),
    };
    SessionError::NotStarted { code, text }
}

fn is_in_path(command: &OsStr) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(command).exists())
}

fn shell_status(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(u8::MAX)
}
