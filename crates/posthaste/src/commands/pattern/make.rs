//! `posthaste pattern make`: patterns from lists, from random draws and from captures.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use clap::ValueEnum;
use posthaste_link::pattern::{Draft, DrawOptions, PacketDrawError, mahimahi, timeline};
use posthaste_link::{Direction, Jitter, Loss};
use posthaste_units::{Ratio, Seed, Size, Span};

#[cfg(feature = "net")]
use super::captures::CaptureArgs;
use crate::commands::{Failure, drops, print};

/// Make a pattern from lists, from distributions or from recorded traces
///
/// All effects go into one pattern, printed or written with --out; entries that contradict one
/// another are rejected. Directions are up (from the client) and down.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    posthaste pattern make --drop down:8 --drop up:3-5\n  \
    posthaste pattern make --add 'down delay from 10: 80ms' --add 'down bandwidth from 200ms: 160kbit'\n  \
    posthaste pattern make --loss 2% --packets 10000 --seed 1 --direction down --out loss.pattern\n  \
    posthaste pattern make --loss bursts:2%:4 --packets 10000\n  \
    posthaste pattern make --mahimahi down:Verizon-LTE-short.down\n  \
    posthaste pattern make --timeline down:drive.csv --timeline up:drive-up.csv\n  \
    posthaste pattern make --client-capture here.pcap --server-capture there.pcapng\n\n\
    What is read off captures, and what cannot be, is in docs/reference/patterns.md.")]
pub(crate) struct Args {
    /// Drop packets, ranges or times: down:8, up:3-5, down:12-14,20 or down:1s-1200ms; repeatable
    #[arg(long, value_name = "DIRECTION:PLACES", help_heading = "Lists")]
    drop: Vec<String>,
    /// Add any line of the format, for example 'down flip 3: 17, 33'; repeatable
    #[arg(long, value_name = "LINE", help_heading = "Lists")]
    add: Vec<String>,

    /// Draw losses: 2%, bursts:2%:4 (mean length 4) or gilbert-elliott:P:R[:BAD[:GOOD]]
    #[arg(long, value_name = "MODEL", help_heading = "Chance")]
    loss: Option<Loss>,
    /// Draw bit errors, each bit by itself with this probability, for example 0.001%
    #[arg(
        long,
        value_name = "SHARE",
        help_heading = "Chance",
        conflicts_with = "duplicate"
    )]
    bit_errors: Option<Ratio>,
    /// Draw packets that pass twice
    #[arg(long, value_name = "SHARE", help_heading = "Chance")]
    duplicate: Option<Ratio>,
    /// Draw each packet's delay with this mean
    #[arg(long, value_name = "T", help_heading = "Chance", requires = "jitter")]
    delay: Option<Span>,
    /// Variation of delays around it, for example normal:2ms, uniform:5ms or pareto:5ms
    #[arg(
        long,
        value_name = "SHAPE:WIDTH",
        help_heading = "Chance",
        requires = "delay"
    )]
    jitter: Option<Jitter>,
    /// Number of packets in each direction
    #[arg(
        long,
        value_name = "N",
        help_heading = "Chance",
        default_value_t = 1000
    )]
    packets: u64,
    /// Length of each IP packet, for bit errors
    #[arg(
        long,
        value_name = "SIZE",
        help_heading = "Chance",
        default_value = "1500B"
    )]
    size: Size,
    /// The seed of all draws
    #[arg(long, value_name = "N", help_heading = "Chance", default_value_t)]
    seed: Seed,

    /// Delivery opportunities by time from a mahimahi trace, for example down:FILE; repeatable
    #[arg(long, value_name = "DIRECTION:FILE", help_heading = "Recorded")]
    mahimahi: Vec<String>,
    /// Bandwidth, delay and loss by time from CSV with the header
    /// time_ms,bandwidth_kbit,delay_ms,loss_percent; each row holds until the next; a last row with a
    /// time alone begins again with the first; repeatable
    #[arg(long, value_name = "DIRECTION:FILE", help_heading = "Recorded")]
    timeline: Vec<String>,
    #[cfg(feature = "net")]
    #[command(flatten)]
    captures: CaptureArgs,

    /// Draw as connection N of `posthaste net --per-connection`, read only connection N of the captures;
    /// without it, as one link that all connections share
    #[arg(long, value_name = "N")]
    connection: Option<u64>,
    /// Directions of random effects and captures
    #[arg(long, value_enum, default_value_t = Which::Both)]
    direction: Which,
    /// Write the pattern to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    Up,
    Down,
    Both,
}

impl Which {
    fn directions(self) -> impl Iterator<Item = Direction> {
        Direction::BOTH
            .into_iter()
            .filter(move |direction| match self {
                Self::Up => *direction == Direction::Up,
                Self::Down => *direction == Direction::Down,
                Self::Both => true,
            })
    }
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut draft = Draft::default();
        let mut notes = Vec::new();
        self.lists(&mut draft)?;
        notes.extend(self.draw(&mut draft)?);
        for given in &self.mahimahi {
            notes.push(trace(given, &mut draft)?);
        }
        for given in &self.timeline {
            notes.push(rows(given, &mut draft)?);
        }
        #[cfg(feature = "net")]
        notes.extend(self.captures(&mut draft)?);
        let has_entries = !self.drop.is_empty() || !self.add.is_empty() || !notes.is_empty();
        if !has_entries {
            return Err(Failure::usage(
                "nothing to make a pattern of: give --drop, --add, --loss, --mahimahi, --timeline or --client-capture; see --help",
            ));
        }
        let pattern = draft.finish().to_string();
        let (header, entries) = pattern.split_once('\n').unwrap_or((&pattern, ""));
        let notes: String = notes.iter().map(|note| format!("# {note}\n")).collect();
        let text = format!("{header}\n{notes}{entries}");
        match &self.out {
            None => print(&text),
            Some(path) => std::fs::write(path, text)
                .map_err(|error| Failure::run(format!("{}: {error}", path.display()))),
        }
    }

    fn lists(&self, draft: &mut Draft) -> Result<(), Failure> {
        drops::add(&self.drop, draft)?;
        for line in &self.add {
            draft.add_line(line).map_err(|error| {
                let (column, violation, remedy) = (error.column, error.violation, error.remedy);
                Failure::usage(format!(
                    "--add {line:?}, column {column}: {violation}: {remedy}"
                ))
            })?;
        }
        Ok(())
    }

    fn draw(&self, draft: &mut Draft) -> Result<Option<String>, Failure> {
        let options = DrawOptions {
            loss: self.loss,
            bit_errors: self.bit_errors,
            duplicate: self.duplicate,
            delay: self.delay,
            jitter: self.jitter,
            packets: self.packets,
            size: self.size,
            seed: self.seed,
            connection: self.connection,
        };
        options
            .add_to(self.direction.directions(), draft)
            .map_err(|error| match error {
                PacketDrawError::Size(_) => Failure::usage(format!("--size {error}")),
                PacketDrawError::Draw(_) => Failure::usage(error),
            })
    }

    #[cfg(feature = "net")]
    fn captures(&self, draft: &mut Draft) -> Result<Vec<String>, Failure> {
        let wanted: Vec<Direction> = self.direction.directions().collect();
        self.captures.add_to(draft, self.connection, &wanted)
    }
}

/// Adds a mahimahi trace. Returns a summary.
fn trace(given: &str, draft: &mut Draft) -> Result<String, Failure> {
    let refuse = |why: String| Failure::usage(format!("--mahimahi {given}: {why}"));
    let (direction, file) = opened(given).map_err(refuse)?;
    let (millis, packets) =
        mahimahi(file, direction, draft).map_err(|error| refuse(error.to_string()))?;
    Ok(format!(
        "{direction}: {packets} opportunities of 1,504 bytes in {millis} ms, from a mahimahi trace"
    ))
}

/// Adds a timeline. Returns a summary.
fn rows(given: &str, draft: &mut Draft) -> Result<String, Failure> {
    let refuse = |why: String| Failure::usage(format!("--timeline {given}: {why}"));
    let (direction, file) = opened(given).map_err(refuse)?;
    let (rows, repeats) =
        timeline(file, direction, draft).map_err(|error| refuse(error.to_string()))?;
    let end = repeats.map_or("the last row holds".to_owned(), |millis| {
        format!("again every {millis} ms")
    });
    Ok(format!("{direction}: {rows} rows of a timeline, {end}"))
}

/// The direction and the file of `DIRECTION:FILE`.
fn opened(given: &str) -> Result<(Direction, BufReader<File>), String> {
    let (direction, path) = given
        .split_once(':')
        .ok_or("write a direction first: down:FILE")?;
    let direction = direction.parse().map_err(|error| format!("{error}"))?;
    let file = File::open(path).map_err(|error| error.to_string())?;
    Ok((direction, BufReader::new(file)))
}
