//! Patterns from captures at the client, at the server, or at both.

use std::path::PathBuf;

use clap::ArgGroup;

use posthaste_emulator::inference::{CaptureOptions, CaptureRemark};
use posthaste_link::Direction;
use posthaste_link::pattern::Draft;
use posthaste_units::Span;

use crate::commands::Failure;

/// The captures to read.
#[derive(clap::Args)]
#[command(group = ArgGroup::new("capture").args(["client_capture", "server_capture"]).multiple(true))]
pub(super) struct CaptureArgs {
    /// A pcap or pcapng file captured at the client, also as .gz
    #[arg(long, value_name = "FILE", help_heading = "Recorded")]
    client_capture: Option<PathBuf>,
    /// The same captured at the server; with both, packets are compared one by one
    #[arg(long, value_name = "FILE", help_heading = "Recorded")]
    server_capture: Option<PathBuf>,
    /// Port of the server, for connections without a captured beginning [default: the lower port]
    #[arg(
        long,
        value_name = "PORT",
        requires = "capture",
        help_heading = "Recorded"
    )]
    server_port: Option<u16>,
    /// Delays between two captures are kept to this
    #[arg(
        long,
        value_name = "T",
        requires_all = ["client_capture", "server_capture"],
        help_heading = "Recorded",
        default_value = "1ms"
    )]
    grain: Span,
}

impl CaptureArgs {
    /// Adds the effects on packets of `connection`, or of all, in the wanted directions. Returns summaries.
    pub(super) fn add_to(
        &self,
        draft: &mut Draft,
        connection: Option<u64>,
        wanted: &[Direction],
    ) -> Result<Vec<String>, Failure> {
        let options = CaptureOptions {
            connection,
            grain: self.grain,
            server_port: self.server_port,
        };
        let mut remark = |remark: CaptureRemark<'_>| note!("{remark}");
        let found = match (&self.client_capture, &self.server_capture) {
            (None, None) => return Ok(Vec::new()),
            (Some(client), Some(server)) => options.both_ends(client, server, &mut remark),
            (Some(client), None) => options.one_end(client, Direction::Down, &mut remark),
            (None, Some(server)) => options.one_end(server, Direction::Up, &mut remark),
        };
        let found = found.map_err(Failure::usage)?;
        let mut notes: Vec<String> = connections_note(found.connections, connection)
            .into_iter()
            .collect();
        let directions = found.directions.into_iter();
        for (direction, findings) in directions.filter(|(way, _)| wanted.contains(way)) {
            findings.add_to(direction, draft).map_err(|refusal| {
                Failure::usage(format!("{refusal}; --connection keeps to one connection"))
            })?;
            notes.push(findings.summary(direction));
        }
        Ok(notes)
    }
}

/// A statement about the connections of which a pattern is made, unless there is only one.
fn connections_note(count: u64, selected: Option<u64>) -> Option<String> {
    match (count, selected) {
        (0 | 1, _) => None,
        (count, Some(number)) => Some(format!("connection {number} of {count}")),
        (count, None) => Some(format!(
            "{count} connections share one count: use this pattern with --shared, or make one of a single connection \
             with --connection N"
        )),
    }
}
