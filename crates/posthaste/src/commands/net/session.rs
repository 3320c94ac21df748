//! One run from the supervisor to the report: the network, the commands in it, and their end.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use posthaste_emulator::relay::{Relay, ResolvConf};
use posthaste_emulator::supervisor::{self, ChildEvent, Supervised};
use posthaste_emulator::{Emulation, Host, RunningEmulation, SERVER, namespace};
use posthaste_link::{Direction, Plan};
use rustix::process::{Pid, Signal, kill_process};

use super::files::Blank;
use super::hosts::Side;
use super::listening::listening;
use super::report::Report;
use super::{Args, Failure};

/// Environment variable with the server's address.
const VARIABLE: &str = "POSTHASTE_SERVER";
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
}

/// Runs the session and returns COMMAND's status.
pub(super) fn run(args: Args, plans: [Arc<Plan>; 2]) -> Result<ExitCode, Failure> {
    let supervised = supervisor::spawn().map_err(Failure::run)?;
    // Files come first, so that a mistake in them costs no network.
    let files = Blank::create(&args, [&plans[0], &plans[1]])?;
    let mut session = Session::start(&args, plans.clone(), supervised, &files)?;
    let files = files.begin(&mut session.running)?;
    let server = args.server.as_deref();
    let server = server.map(|line| session.start_server(line)).transpose()?;
    let status = session.run_command(&args.command, server)?;
    let relayed = session.relay.relayed();
    // Processes that end from here on belong to the end of the run. The hosts are dropped after the processes;
    // otherwise commands would be killed with them before being asked to end.
    let outcome = session.running.end().map_err(Failure::run)?;
    let report = Report::new(&outcome, &plans, relayed, args.seed, shell_status(status));
    let left = session.supervised.end_all();
    if left > 0 {
        eprintln!("posthaste: {left} processes could not be ended");
    }
    if !args.quiet || !report.is_well() {
        eprint!("{report}");
    }
    files.finish(&report)?;
    Ok(report.status.into())
}

impl Session {
    fn start(
        args: &Args,
        plans: [Arc<Plan>; 2],
        supervised: Supervised,
        files: &Blank,
    ) -> Result<Self, Failure> {
        let target = args.to.as_ref();
        let addresses = target.map(|target| target.addresses()).transpose()?;
        namespace::enter().map_err(Failure::run)?;
        supervised.die_with_parent().map_err(Failure::run)?;
        let names = ResolvConf::of_this_machine();
        let (relay, opener) = Relay::start(&names).map_err(Failure::run)?;
        let [client, server] = [Side::Client, Side::Server].map(|side| args.hosts.setup(side));
        let route = client.route.clone();
        let [up, down] = plans;
        let emulation = Emulation::new(up, down)
            .sharing(args.sharing())
            .seed(args.seed)
            .client(client)
            .server(server)
            .edge(args.router.edge())
            .duplicate_acks(args.agent())
            .tcp(Direction::Up, args.hosts.tcp(Side::Client))
            .tcp(Direction::Down, args.hosts.tcp(Side::Server))
            .real_time(true);
        let running = files
            .ask(emulation)
            .start_with(Some(opener))
            .map_err(Failure::run)?;
        relay
            .attach(&running.client, &running.server, &route)
            .map_err(Failure::run)?;
        if let (Some(target), Some(addresses)) = (target, addresses) {
            relay
                .lead(&running.server, target.port, &addresses)
                .map_err(Failure::run)?;
        }
        if let Err(error) = running.client.run(move || names.install()) {
            eprintln!("posthaste: names do not resolve inside: {error}");
        }
        Ok(Self {
            supervised,
            relay,
            running,
        })
    }

    /// Starts the server, and returns once it listens.
    fn start_server(&self, line: &str) -> Result<u32, Failure> {
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            // Standard output belongs to COMMAND, and so does the terminal with its Ctrl-C.
            .stdin(Stdio::null())
            .stdout(io::stderr())
            .process_group(0);
        let named = |error: io::Error| Failure::run(format!("--server: sh: {error}"));
        let server = self.spawn(&self.running.server, command).map_err(named)?;
        let patience = Instant::now() + STARTING;
        loop {
            let found = self.running.server.run(listening);
            if found.iter().any(|local| !local.ip().is_loopback()) {
                return Ok(server);
            }
            match self.supervised.wait(LOOK) {
                Some(ChildEvent::Ended(who, status)) if who == server => {
                    return Err(Failure::run(format!(
                        "--server: ended before it listened ({status}): {line}"
                    )));
                }
                Some(ChildEvent::Asked(signal) | ChildEvent::Terminal(signal)) => {
                    return Err(stopped(signal));
                }
                _ => {}
            }
            if Instant::now() > patience {
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                return Err(Failure::run(match found.is_empty() {
                    true => format!("--server: does not listen after {STARTING:?}: {line}"),
                    false => format!(
                        "--server: listens at {} only; let it listen at 0.0.0.0 or ${VARIABLE}",
                        found.join(" and ")
                    ),
                }));
            }
        }
    }

    /// Handles events that came before COMMAND was started.
    fn look_before_command(&self, server: Option<u32>) -> Result<(), Failure> {
        while let Some(news) = self.supervised.wait(Duration::ZERO) {
            match news {
                ChildEvent::Asked(signal) | ChildEvent::Terminal(signal) => {
                    return Err(stopped(signal));
                }
                ChildEvent::Ended(who, status) if Some(who) == server => say_server_ended(status),
                ChildEvent::Ended(..) => {}
            }
        }
        Ok(())
    }

    /// Runs COMMAND to its end.
    fn run_command(&self, words: &[OsString], server: Option<u32>) -> Result<ExitStatus, Failure> {
        self.look_before_command(server)?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        let client = self.spawn(&self.running.client, command);
        let client = client.map_err(|error| not_started(&words[0], &error))?;
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
        command.env(VARIABLE, SERVER.v4.to_string());
        self.supervised.prepare(&mut command);
        host.run(move || command.spawn()).map(|child| child.id())
    }
}

fn stopped(signal: Signal) -> Failure {
    Failure::run(format!("stopped by signal {}", signal.as_raw()))
}

fn say_server_ended(status: ExitStatus) {
    eprintln!("posthaste: the server ended before COMMAND did ({status})");
}

fn pass_on(process: u32, signal: Signal) {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    if let Some(process) = process {
        // It can only have ended, and has not been waited for yet.
        let _ = kill_process(process, signal);
    }
}

/// The status of shells: 127 for an unknown command, 126 for one that cannot be run.
fn not_started(command: &OsString, error: &io::Error) -> Failure {
    let name = command.to_string_lossy();
    // An unreadable folder of PATH gives "permission denied" for any command.
    let nowhere = !name.contains('/') && !is_in_path(command);
    let kind = match nowhere {
        true => io::ErrorKind::NotFound,
        false => error.kind(),
    };
    let (code, text) = match kind {
        io::ErrorKind::NotFound if !nowhere && Path::new(command).exists() => (
            126,
            format!("{name}: the interpreter that its first line names is missing"),
        ),
        io::ErrorKind::NotFound => (
            127,
            format!(
                "{name}: command not found; for what only a shell knows write sh -c '{name} ...'"
            ),
        ),
        _ => (126, format!("{name}: cannot be run: {error}")),
    };
    Failure::Command { code, text }
}

fn is_in_path(command: &OsString) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(command).exists())
}

fn shell_status(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(u8::MAX)
}
