//! The commands. Each converts the command line to settings and calls the crate that does the work.

mod accounts;
#[cfg(feature = "fleet")]
mod agent;
mod bookshop;
mod broker;
mod broker_access;
mod checks;
mod compare;
mod completions;
mod demo;
mod doctor;
#[cfg(feature = "fleet")]
mod doctor_fleet;
mod drops;
#[cfg(feature = "fleet")]
mod fleet;
mod gateway;
mod load;
mod man;
mod net;
mod offers;
mod path;
mod pattern;
mod price;
mod reproduce;
mod requirements;
mod simulate;

use std::fmt;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Parser, Subcommand};

/// Measures, emulates, predicts and protects the response time of web services.
#[derive(Parser)]
#[command(
    name = "posthaste",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(
    after_help = "Exit codes: 0 all well, 1 a check or threshold failed, 2 usage, 3 the run failed.\n\
    Rates, times and sizes are written with their unit: 500/s, 10ms, 1.5MB."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Load(Box<load::Args>),
    #[cfg(feature = "fleet")]
    Agent(Box<agent::Args>),
    Compare(compare::Args),
    Net(Box<net::Args>),
    Simulate(Box<simulate::Args>),
    Pattern(pattern::Args),
    Bookshop(bookshop::Args),
    Gateway(gateway::Args),
    Broker(Box<broker::Args>),
    Offers(offers::Args),
    Accounts(accounts::Args),
    Demo(demo::Args),
    Reproduce(reproduce::Args),
    Doctor(doctor::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Cli {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        match self.command {
            Command::Net(args) => return args.run(),
            Command::Load(args) => args.run(),
            #[cfg(feature = "fleet")]
            Command::Agent(args) => args.run(),
            Command::Simulate(args) => args.run(),
            Command::Compare(args) => args.run(),
            Command::Pattern(args) => args.run(),
            Command::Bookshop(args) => args.run(),
            Command::Gateway(args) => args.run(),
            Command::Broker(args) => args.run(),
            Command::Offers(args) => args.run(),
            Command::Accounts(args) => args.run(),
            Command::Demo(args) => args.run(),
            Command::Reproduce(args) => args.run(),
            Command::Doctor(args) => args.run(),
            Command::Completions(args) => args.run(),
            Command::Man(args) => args.run(),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Reasons for a failed command. They decide the exit code.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A check or threshold did not hold.
    Threshold(String),
    /// The arguments are invalid.
    Usage(String),
    /// The run could not be started or finished.
    Run(String),
    /// The user's own command could not be started. The code is that of shells.
    Command { code: u8, text: String },
}

impl Failure {
    pub(crate) const USAGE_CODE: u8 = 2;

    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }

    pub(crate) fn run(error: impl fmt::Display) -> Self {
        Self::Run(error.to_string())
    }

    pub(crate) const fn code(&self) -> u8 {
        match self {
            Self::Command { code, .. } => *code,
            Self::Threshold(_) => 1,
            Self::Usage(_) => Self::USAGE_CODE,
            Self::Run(_) => 3,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threshold(text)
            | Self::Usage(text)
            | Self::Run(text)
            | Self::Command { text, .. } => f.write_str(text),
        }
    }
}

impl From<Failure> for ExitCode {
    fn from(failure: Failure) -> Self {
        failure.code().into()
    }
}

/// Returns a flag that the first Ctrl-C or SIGTERM sets. The second ends the process at once.
pub(crate) fn stop_on_signal() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 3, stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .map_err(Failure::run)?;
    }
    Ok(stop)
}

/// Prints data. A closed reader (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    tell(text).map(drop)
}

/// Prints data. Returns `Break` if the reader has closed.
pub(crate) fn tell(text: &str) -> Result<ControlFlow<()>, Failure> {
    use std::io::{ErrorKind, Write as _};
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(Failure::run(format!("standard output: {error}"))),
    }
}

/// Logs to standard error. POSTHASTE_LOG sets the level (`debug`, `warn`).
pub(crate) fn log_to_stderr() {
    use std::io::IsTerminal as _;
    use tracing_subscriber::EnvFilter;

    let filter =
        EnvFilter::try_from_env("POSTHASTE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(filter)
        .init();
}
