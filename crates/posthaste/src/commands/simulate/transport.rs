//! The transport of a simulation, and the options that apply to only one of them.

use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum, parser::ValueSource};
use posthaste_quic_sim::{QuicOptionError, QuicOptions};
use posthaste_units::{Size, Span};

use crate::commands::Failure;

/// Transport of both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum TransportArg {
    /// Simulated TCP stacks, old and new, by profile
    #[default]
    Tcp,
    /// QUIC with TLS 1.3, as quinn has it
    Quic,
}

/// Options of TCP only, by their ids.
const TCP_OPTIONS: [&str; 5] = ["clock", "client_tcp", "server_tcp", "recovery", "compare"];
/// Options of QUIC only, by their ids.
const QUIC_OPTIONS: [&str; 6] = [
    "initial_rtt",
    "datagram",
    "initial_window",
    "certificate",
    "ack_delay",
    "ack_frequency",
];

/// The typed options that apply to one transport only. Read before the others are taken out.
#[derive(Clone, Debug, Default)]
pub(super) struct TypedOptions {
    tcp: Vec<&'static str>,
    quic: Vec<&'static str>,
}

/// Options of the ends with --transport quic.
#[derive(clap::Args)]
#[command(next_help_heading = "The ends, with --transport quic")]
pub(super) struct QuicArgs {
    /// RTT that each end assumes before it has measured one; the first probe timeout is three times as long
    #[arg(
        long,
        value_name = "T",
        default_value = "333ms",
        allow_hyphen_values = true
    )]
    initial_rtt: Span,
    /// Largest UDP payload; no end looks for a larger one
    #[arg(long, value_name = "SIZE", default_value = "1452B")]
    datagram: Size,
    /// Congestion window at the start
    #[arg(long, value_name = "SIZE", default_value = "14720B")]
    initial_window: Size,
    /// Length of the server's certificate; a long one needs more datagrams, and above three times the client's
    /// bytes another round trip
    #[arg(long, value_name = "SIZE", default_value = "289B")]
    certificate: Size,
    /// Delay of acknowledgements that each end requests from the other, at most the RTT or 25ms
    /// [default: 25ms, without a request]
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    ack_delay: Option<Span>,
    /// Packets for each acknowledgement that each end requests from the other [default: 2, without a
    /// request]
    #[arg(long, value_name = "N")]
    ack_frequency: Option<u32>,
}

impl Args for TypedOptions {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for TypedOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_typed = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
        Ok(Self {
            tcp: TCP_OPTIONS.into_iter().filter(is_typed).collect(),
            quic: QUIC_OPTIONS.into_iter().filter(is_typed).collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl TypedOptions {
    /// Returns an error if an option of the other transport was typed.
    pub(super) fn check(&self, transport: TransportArg) -> Result<(), Failure> {
        let dashed = |id: &str| format!("--{}", id.replace('_', "-"));
        match transport {
            TransportArg::Tcp => self.quic.first().map_or(Ok(()), |id| {
                Err(Failure::usage(format!(
                    "{} applies to QUIC only: add --transport quic",
                    dashed(id)
                )))
            }),
            TransportArg::Quic => self.tcp.first().map_or(Ok(()), |id| {
                Err(Failure::usage(format!(
                    "{} applies to TCP only: omit it, or --transport quic",
                    dashed(id)
                )))
            }),
        }
    }
}

impl QuicArgs {
    /// The options of both ends, checked.
    pub(super) fn options(&self) -> Result<QuicOptions, QuicOptionError> {
        let (datagram, certificate) = (self.datagram.as_bytes(), self.certificate.as_bytes());
        let options = QuicOptions {
            initial_rtt: self.initial_rtt,
            datagram: u16::try_from(datagram).map_err(|_| QuicOptionError::Datagram(datagram))?,
            initial_window: self.initial_window.as_bytes(),
            certificate: u32::try_from(certificate)
                .map_err(|_| QuicOptionError::Certificate(certificate))?,
            ack_delay: self.ack_delay,
            ack_frequency: self.ack_frequency,
        };
        options.check()?;
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct QuicLine {
        #[command(flatten)]
        quic: QuicArgs,
    }

    #[test]
    fn defaults_are_those_of_the_simulator() {
        let line = QuicLine::try_parse_from(["simulate"]).unwrap();
        assert_eq!(line.quic.options().unwrap(), QuicOptions::default());
    }
}
