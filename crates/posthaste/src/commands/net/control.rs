//! `posthaste net set` and `posthaste net outage`: changes of a run by its control.

use std::process::ExitCode;

use posthaste_emulator::control::{ControlAddress, ControlClientError, send_change};
use posthaste_emulator::session::CONTROL_VARIABLE;
use posthaste_link::change::Change;
use posthaste_link::{Direction, SpellingError};
use posthaste_units::Span;

use crate::commands::{Failure, print};

/// Changes of a run.
#[derive(clap::Subcommand)]
pub(super) enum Action {
    Set(SetArgs),
    Outage(OutageArgs),
}

/// Change the link of a run that has --control
///
/// The change holds for packets that come to the link from now on, and for those in its queue. It is
/// in the report, the trace and the record of the run, with its time, which is printed.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SetArgs {
    #[command(flatten)]
    control: ControlArgs,
    /// New values, for both directions or after up: or down: for one: bandwidth, delay, jitter, loss,
    /// duplicate, reorder and queue as in the options of net; bandwidth=unlimited, jitter=none,
    /// loss=none and reorder=none
    #[arg(required = true, value_name = "[up:|down:]KEY=VALUE")]
    values: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  From inside, where POSTHASTE_CONTROL has the address:
    posthaste net --delay 20ms --control 127.0.0.1:9000 -- sh -c 'posthaste net set bandwidth=1Mbit loss=2%; ./client'
  From another terminal, one direction only:
    posthaste net set --control 127.0.0.1:9000 down:delay=300ms down:jitter=20ms
  The same with curl, and the present values:
    curl -d 'down:delay=300ms down:jitter=20ms' http://127.0.0.1:9000/
    curl http://127.0.0.1:9000/";

/// Lose every packet that comes to the link of a run for some time
///
/// Packets that are in the queue or on the line arrive. 0s ends an outage.
#[derive(clap::Args)]
#[command(after_help = OUTAGE_EXAMPLES)]
pub(super) struct OutageArgs {
    #[command(flatten)]
    control: ControlArgs,
    /// Length: 3s for both directions, down:3s for one
    #[arg(value_name = "[up:|down:]T")]
    length: OutageLength,
}

const OUTAGE_EXAMPLES: &str = "\
Examples:
  From inside, where POSTHASTE_CONTROL has the address:
    posthaste net --profile lte --control 127.0.0.1:0 -- sh -c './client & sleep 5; posthaste net outage 3s; wait'
  From another terminal, one direction only:
    posthaste net outage --control 127.0.0.1:9000 down:3s";

/// The run to change.
#[derive(clap::Args)]
struct ControlArgs {
    /// Address of the run's control, as at its start [default: $POSTHASTE_CONTROL]
    #[arg(long, value_name = "ADDRESS")]
    control: Option<ControlAddress>,
}

/// Length of an outage of one direction or of both.
#[derive(Clone, Debug)]
struct OutageLength {
    direction: Option<Direction>,
    length: Span,
}

impl std::str::FromStr for OutageLength {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (direction, length) = match text.split_once(':') {
            Some((direction, length)) => {
                let wrong = |error: SpellingError| error.to_string();
                (Some(direction.parse().map_err(wrong)?), length)
            }
            None => (None, text),
        };
        let wrong = |error: posthaste_units::ParseError| error.to_string();
        let length = length.parse().map_err(wrong)?;
        Ok(Self { direction, length })
    }
}

impl Action {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let (control, change) = match self {
            Self::Set(SetArgs { control, values }) => (control, values.join(" ")),
            Self::Outage(OutageArgs { control, length }) => (control, length.change()),
        };
        let change: Change = change.parse().map_err(Failure::usage)?;
        let sent = send_change(&control.address()?, &change).map_err(|error| match error {
            ControlClientError::Refused(_) => Failure::usage(error),
            error => Failure::run(error),
        });
        let applied = sent?;
        print(&format!("{:.3} ms: {}\n", applied.time_ms, applied.change))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl OutageLength {
    fn change(&self) -> String {
        let direction = self.direction.map(|direction| format!("{direction}:"));
        format!("{}outage={}", direction.unwrap_or_default(), self.length)
    }
}

impl ControlArgs {
    fn address(self) -> Result<ControlAddress, Failure> {
        if let Some(address) = self.control {
            return Ok(address);
        }
        let Ok(address) = std::env::var(CONTROL_VARIABLE) else {
            return Err(Failure::usage(format!(
                "no run to change: give the address of `posthaste net --control ADDRESS` with --control, or \
                 write this in COMMAND, where {CONTROL_VARIABLE} has it"
            )));
        };
        let named = |error| Failure::usage(format!("{CONTROL_VARIABLE}: {error}"));
        address.parse().map_err(named)
    }
}
