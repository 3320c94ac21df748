//! The commands. Each converts the command line to settings and calls the crate that does the work.

#[cfg(feature = "broker")]
mod accounts;
#[cfg(feature = "agents")]
mod agent;
#[cfg(feature = "lab")]
mod bookshop;
#[cfg(feature = "broker")]
mod broker;
#[cfg(feature = "broker")]
mod broker_access;
#[cfg(feature = "load")]
mod checks;
#[cfg(feature = "load")]
mod compare;
mod completions;
#[cfg(feature = "lab")]
mod demo;
#[cfg(feature = "net")]
mod doctor;
#[cfg(feature = "agents")]
mod doctor_fleet;
#[cfg(any(feature = "net", feature = "simulate"))]
mod drops;
#[cfg(feature = "agents")]
mod fleet;
#[cfg(feature = "gateway")]
mod gateway;
#[cfg(feature = "load")]
mod load;
mod man;
#[cfg(feature = "net")]
mod net;
#[cfg(feature = "broker")]
mod offers;
#[cfg(any(feature = "net", feature = "simulate"))]
mod path;
#[cfg(any(feature = "net", feature = "simulate"))]
mod pattern;
#[cfg(any(feature = "load", feature = "broker"))]
mod price;
#[cfg(feature = "lab")]
mod reproduce;
#[cfg(any(feature = "load", feature = "broker"))]
mod requirements;
#[cfg(feature = "simulate")]
mod simulate;

use std::fmt;
use std::ops::ControlFlow;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

const NOTES: &str = "\
Exit codes: 0 all well, 1 a check or threshold failed, 2 usage, 3 the run failed.
Rates, times and sizes are written with their unit: 500/s, 10ms, 1.5MB.";

/// Measures, emulates, predicts and protects the response time of web services.
#[derive(Parser)]
#[command(
    name = "posthaste",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(after_help = format!("{NOTES}{}", crate::features::absent_in_words()))]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[cfg(feature = "load")]
    Load(Box<load::Args>),
    #[cfg(feature = "agents")]
    Agent(Box<agent::Args>),
    #[cfg(feature = "load")]
    Compare(compare::Args),
    #[cfg(feature = "net")]
    Net(Box<net::Args>),
    #[cfg(feature = "simulate")]
    Simulate(Box<simulate::Args>),
    #[cfg(any(feature = "net", feature = "simulate"))]
    Pattern(pattern::Args),
    #[cfg(feature = "lab")]
    Bookshop(Box<bookshop::Args>),
    #[cfg(feature = "gateway")]
    Gateway(gateway::Args),
    #[cfg(feature = "broker")]
    Broker(Box<broker::Args>),
    #[cfg(feature = "broker")]
    Offers(offers::Args),
    #[cfg(feature = "broker")]
    Accounts(accounts::Args),
    #[cfg(feature = "lab")]
    Demo(demo::Args),
    #[cfg(feature = "lab")]
    Reproduce(reproduce::Args),
    #[cfg(feature = "net")]
    Doctor(doctor::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Cli {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        match self.command {
            #[cfg(feature = "net")]
            Command::Net(args) => return args.run(),
            #[cfg(feature = "load")]
            Command::Load(args) => args.run(),
            #[cfg(feature = "agents")]
            Command::Agent(args) => args.run(),
            #[cfg(feature = "simulate")]
            Command::Simulate(args) => args.run(),
            #[cfg(feature = "load")]
            Command::Compare(args) => args.run(),
            #[cfg(any(feature = "net", feature = "simulate"))]
            Command::Pattern(args) => args.run(),
            #[cfg(feature = "lab")]
            Command::Bookshop(args) => args.run(),
            #[cfg(feature = "gateway")]
            Command::Gateway(args) => args.run(),
            #[cfg(feature = "broker")]
            Command::Broker(args) => args.run(),
            #[cfg(feature = "broker")]
            Command::Offers(args) => args.run(),
            #[cfg(feature = "broker")]
            Command::Accounts(args) => args.run(),
            #[cfg(feature = "lab")]
            Command::Demo(args) => args.run(),
            #[cfg(feature = "lab")]
            Command::Reproduce(args) => args.run(),
            #[cfg(feature = "net")]
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
    #[cfg(any(feature = "load", feature = "broker"))]
    Threshold(String),
    /// The arguments are invalid.
    Usage(String),
    /// The run could not be started or finished.
    Run(String),
    /// The user's own command could not be started. The code is that of shells.
    #[cfg(feature = "net")]
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
            #[cfg(feature = "net")]
            Self::Command { code, .. } => *code,
            #[cfg(any(feature = "load", feature = "broker"))]
            Self::Threshold(_) => 1,
            Self::Usage(_) => Self::USAGE_CODE,
            Self::Run(_) => 3,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Usage(text) | Self::Run(text) => text,
            #[cfg(any(feature = "load", feature = "broker"))]
            Self::Threshold(text) => text,
            #[cfg(feature = "net")]
            Self::Command { text, .. } => text,
        };
        // It may quote other machines.
        f.write_str(&posthaste_units::visible_lines(text))
    }
}

impl From<Failure> for ExitCode {
    fn from(failure: Failure) -> Self {
        failure.code().into()
    }
}

/// Returns a flag that the first Ctrl-C or SIGTERM sets. The second ends the process at once.
#[cfg(any(feature = "load", feature = "simulate"))]
pub(crate) fn stop_on_signal() -> Result<std::sync::Arc<std::sync::atomic::AtomicBool>, Failure> {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

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

/// Prints data, with control characters escaped as in JSON, whose documents stay valid. Returns `Break` if the reader has closed.
pub(crate) fn tell(text: &str) -> Result<ControlFlow<()>, Failure> {
    use std::io::{ErrorKind, Write as _};

    let mut out = std::io::stdout().lock();
    let text = posthaste_units::visible_lines(text);
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(Failure::run(format!("standard output: {error}"))),
    }
}

/// Logs to standard error. POSTHASTE_LOG sets the level (`debug`, `warn`).
#[cfg(any(feature = "gateway", feature = "broker", feature = "agents"))]
pub(crate) fn log_to_stderr() {
    use std::io::IsTerminal as _;
    use tracing::level_filters::LevelFilter;
    use tracing_subscriber::filter::Targets;
    use tracing_subscriber::prelude::*;

    let levels = std::env::var("POSTHASTE_LOG").unwrap_or_default();
    let levels = match levels.parse::<Targets>() {
        Ok(targets) if !levels.is_empty() => targets,
        _ => Targets::new().with_default(LevelFilter::INFO),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry()
        .with(lines)
        .with(levels)
        .init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_do_not_command_the_terminal() {
        let failure = Failure::usage("the broker says \x1b[2J\nthis");
        assert_eq!(failure.to_string(), "the broker says \\u001b[2J\nthis");
    }
}
