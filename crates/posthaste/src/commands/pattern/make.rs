//! `posthaste pattern make`: patterns from lists, from random draws and from captures.

use std::collections::HashSet;
use std::fmt::Display;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use posthaste_emulator::capture::{self, CapturedPacket, Connections, Remarks};
use posthaste_link::pattern::infer::{CapturePair, Findings, ReceiverCapture, SenderCapture};
use posthaste_link::pattern::{Chances, Draft, mahimahi};
use posthaste_link::{Direction, Jitter, Loss};
use posthaste_units::{Ratio, Seed, Size, Span};

use crate::commands::{Failure, drops, print};

/// Maximum packet length: the limit of an IP header.
const LONGEST: u64 = 65_535;

/// Make a pattern from lists, from distributions or from recorded traces
///
/// Everything asked for goes into one pattern, which is printed or written with --out; entries
/// that contradict one another are refused. Directions are up (from the client) and down.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    posthaste pattern make --drop down:8 --drop up:3-5\n  \
    posthaste pattern make --add 'down delay from 10: 80ms' --add 'down bandwidth from 200ms: 160kbit'\n  \
    posthaste pattern make --loss 2% --packets 10000 --seed 1 --direction down --out loss.pattern\n  \
    posthaste pattern make --loss bursts:2%:4 --packets 10000\n  \
    posthaste pattern make --mahimahi down:Verizon-LTE-short.down\n  \
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
    /// How delays vary around it, for example normal:2ms, uniform:5ms or pareto:5ms
    #[arg(
        long,
        value_name = "SHAPE:WIDTH",
        help_heading = "Chance",
        requires = "delay"
    )]
    jitter: Option<Jitter>,
    /// For so many packets in each direction
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

    /// Bandwidth by time from a mahimahi trace, for example down:FILE; repeatable
    #[arg(long, value_name = "DIRECTION:FILE", help_heading = "Recorded")]
    mahimahi: Vec<String>,
    /// A pcap or pcapng file captured at the client
    #[arg(long, value_name = "FILE", help_heading = "Recorded")]
    client_capture: Option<PathBuf>,
    /// A pcap or pcapng file captured at the server; with both, packets are compared one by one
    #[arg(long, value_name = "FILE", help_heading = "Recorded")]
    server_capture: Option<PathBuf>,
    /// Delays between two captures are kept to this
    #[arg(
        long,
        value_name = "T",
        help_heading = "Recorded",
        default_value = "1ms"
    )]
    grain: Span,

    /// Draw as connection N of `posthaste net` would, read only connection N of the captures;
    /// without it, as one link that all connections share
    #[arg(long, value_name = "N")]
    connection: Option<u64>,
    /// Which directions chance and captures are for
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
        self.chance(&mut draft, &mut notes)?;
        for given in &self.mahimahi {
            notes.push(trace(given, &mut draft)?);
        }
        self.captures(&mut draft, &mut notes)?;
        let asked = !self.drop.is_empty() || !self.add.is_empty() || !notes.is_empty();
        if !asked {
            return Err(Failure::usage(
                "nothing to make a pattern of: give --drop, --add, --loss, --mahimahi or --client-capture; see --help",
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
                let (column, what, remedy) = (error.column, error.what, error.remedy);
                Failure::usage(format!("--add {line:?}, column {column}: {what}: {remedy}"))
            })?;
        }
        Ok(())
    }

    fn chance(&self, draft: &mut Draft, notes: &mut Vec<String>) -> Result<(), Failure> {
        let drawn = self.loss.is_some()
            || self.bit_errors.is_some()
            || self.duplicate.is_some()
            || self.delay.is_some();
        if !drawn {
            return Ok(());
        }
        let size = self.size.as_bytes();
        if !(1..=LONGEST).contains(&size) {
            return Err(Failure::usage(format!(
                "--size {}: an IP packet has 1 to {LONGEST} bytes",
                self.size
            )));
        }
        let chances = Chances {
            loss: self.loss,
            bit_error_rate: self.bit_errors.unwrap_or_default(),
            duplication: self.duplicate.unwrap_or_default(),
            delay: self.delay.zip(self.jitter),
        };
        for direction in self.direction.directions() {
            let seed = match self.connection {
                Some(number) => self.seed.child(&format!("connection {number}")),
                None => self.seed,
            };
            let seed = seed.child(direction.name());
            let packets = (self.packets, size as u32);
            chances
                .add_to(direction, packets, seed, draft)
                .map_err(Failure::usage)?;
        }
        let mut note = format!("drawn for {} packets with seed {}", self.packets, self.seed);
        let mut say = |what: &str, value: Option<String>| {
            if let Some(value) = value {
                note += &format!(", {what} {value}");
            }
        };
        say("loss", self.loss.map(|loss| loss.to_string()));
        say("bit errors", self.bit_errors.map(|share| share.to_string()));
        say("copies", self.duplicate.map(|share| share.to_string()));
        say("delay", self.delay.map(|delay| delay.to_string()));
        say("jitter", self.jitter.map(|jitter| jitter.to_string()));
        notes.push(note);
        Ok(())
    }

    fn captures(&self, draft: &mut Draft, notes: &mut Vec<String>) -> Result<(), Failure> {
        let found = match (&self.client_capture, &self.server_capture) {
            (None, None) => return Ok(()),
            (Some(client), Some(server)) => self.both_ends(client, server)?,
            (Some(client), None) => self.one_end(client, Direction::Down)?,
            (None, Some(server)) => self.one_end(server, Direction::Up)?,
        };
        for (direction, findings) in found {
            findings.add_to(direction, draft).map_err(|refusal| {
                Failure::usage(format!("{refusal}; --connection keeps to one connection"))
            })?;
            notes.push(said(direction, &findings));
        }
        Ok(())
    }

    /// Reads one capture. Packets in the direction `towards` are received there, the others are sent.
    fn one_end(
        &self,
        path: &Path,
        towards: Direction,
    ) -> Result<Vec<(Direction, Findings)>, Failure> {
        let mut receiver = ReceiverCapture::new(towards);
        let mut sender = SenderCapture::new(towards.reverse());
        let mut connections = Connections::default();
        let remarks = read(path, &mut connections, |packet| {
            if self.wanted(packet) {
                receiver.push(&packet.seen);
                sender.push(&packet.seen);
            }
        })?;
        self.remark(path, &remarks, &connections)?;
        let found = [
            (towards, receiver.finish()),
            (towards.reverse(), sender.finish()),
        ];
        Ok(self.asked_for(found))
    }

    fn both_ends(
        &self,
        client: &Path,
        server: &Path,
    ) -> Result<Vec<(Direction, Findings)>, Failure> {
        let mut connections = Connections::default();
        let (mut up, mut down) = (CapturePair::default(), CapturePair::default());
        let mut arrived = Vec::new();
        let mut begins = [Beginning::default(), Beginning::default()];
        let remarks = read(client, &mut connections, |packet| {
            down.ran(packet.seen.at);
            begins[0].note(packet, self.wanted(packet));
            match (self.wanted(packet), packet.seen.direction) {
                (true, Direction::Up) => up.sent(packet.seen.at, packet.mark),
                (true, Direction::Down) => arrived.push((packet.seen.at, packet.mark)),
                (false, _) => {}
            }
        })?;
        self.remark(client, &remarks, &connections)?;
        remark_short(client, &remarks);
        let remarks = read(server, &mut connections, |packet| {
            up.ran(packet.seen.at);
            begins[1].note(packet, self.wanted(packet));
            match (self.wanted(packet), packet.seen.direction) {
                (true, Direction::Up) => up.arrived(packet.seen.at, packet.mark),
                (true, Direction::Down) => down.sent(packet.seen.at, packet.mark),
                (false, _) => {}
            }
        })?;
        self.remark(server, &remarks, &connections)?;
        remark_short(server, &remarks);
        for (at, mark) in arrived {
            down.arrived(at, mark);
        }
        let [of_client, of_server] = begins;
        if of_server.shows(&of_client) {
            up.ran_from_the_first();
        }
        if of_client.shows(&of_server) {
            down.ran_from_the_first();
        }
        let found = [
            (Direction::Up, up.finish(self.grain)),
            (Direction::Down, down.finish(self.grain)),
        ];
        Ok(self.asked_for(found))
    }

    fn wanted(&self, packet: &CapturedPacket) -> bool {
        self.connection
            .is_none_or(|number| number == packet.seen.connection)
    }

    fn asked_for(&self, found: [(Direction, Findings); 2]) -> Vec<(Direction, Findings)> {
        let asked: Vec<Direction> = self.direction.directions().collect();
        let found = found.into_iter();
        found
            .filter(|(direction, _)| asked.contains(direction))
            .collect()
    }

    /// Reports facts about the capture that matter for the pattern.
    fn remark(
        &self,
        path: &Path,
        remarks: &Remarks,
        connections: &Connections,
    ) -> Result<(), Failure> {
        let path = path.display();
        let count = connections.count();
        if let Some(number) = self
            .connection
            .filter(|number| !(1..=count).contains(number))
        {
            return Err(Failure::usage(format!(
                "--connection {number}: {path} holds connections 1 to {count}"
            )));
        }
        if remarks.cut_off {
            eprintln!("{path}: cut off in the middle of a packet; what stands before it was used");
        }
        if remarks.other > 0 {
            eprintln!(
                "{path}: {} frames without an IP packet were passed over",
                remarks.other
            );
        }
        if remarks.joined > 0 {
            eprintln!(
                "{path}: {} packets are longer than 1,500 bytes: the machine joined them before they were \
                 captured, so that positions are not those on the wire; capture with \
                 `ethtool -K DEVICE tso off gso off gro off`",
                remarks.joined
            );
        }
        Ok(())
    }
}

/// The beginning of a capture.
#[derive(Default)]
struct Beginning {
    /// The connection of the first selected packet.
    first: Option<u64>,
    /// Connections with a captured SYN.
    opened: HashSet<u64>,
}

impl Beginning {
    fn note(&mut self, packet: &CapturedPacket, wanted: bool) {
        let connection = packet.seen.connection;
        if wanted {
            self.first.get_or_insert(connection);
        }
        if packet.opens {
            self.opened.insert(connection);
        }
    }

    /// True if it contains the SYN of the other capture's first connection.
    fn shows(&self, other: &Self) -> bool {
        other
            .first
            .is_some_and(|first| self.opened.contains(&first))
    }
}

/// Reports packets of one of two captures that were cut before the bytes used for the comparison.
fn remark_short(path: &Path, remarks: &Remarks) {
    if remarks.short > 0 {
        eprintln!(
            "{}: {} packets were cut before the 96 bytes by which captures are compared, and count as \
             lost where the other capture is cut elsewhere: capture both with `-s 0`",
            path.display(),
            remarks.short
        );
    }
}

/// Reads the packets of a capture file.
fn read(
    path: &Path,
    connections: &mut Connections,
    look: impl FnMut(&CapturedPacket),
) -> Result<Remarks, Failure> {
    let wrong = |error: &dyn Display| Failure::usage(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(|error| wrong(&error))?;
    capture::read(file, connections, look).map_err(|error| wrong(&error))
}

/// Adds a mahimahi trace. Returns a summary.
fn trace(given: &str, draft: &mut Draft) -> Result<String, Failure> {
    let refuse = |why: String| Failure::usage(format!("--mahimahi {given}: {why}"));
    let (direction, path) = given
        .split_once(':')
        .ok_or_else(|| refuse("write a direction first: down:FILE".to_owned()))?;
    let direction: Direction = direction
        .parse()
        .map_err(|error| refuse(format!("{error}")))?;
    let file = File::open(path).map_err(|error| refuse(error.to_string()))?;
    let (millis, packets) = mahimahi(BufReader::new(file), direction, draft)
        .map_err(|error| refuse(error.to_string()))?;
    Ok(format!(
        "{direction}: {packets} packets of 1,500 bytes in {millis} ms, from a mahimahi trace"
    ))
}

/// The findings in one sentence.
fn said(direction: Direction, findings: &Findings) -> String {
    let mut said = format!("{direction}: {} packets", findings.packets);
    let counts = [
        (findings.lost.len() as u64, "lost"),
        (findings.overtaken.len() as u64, "overtaken"),
        (findings.copied.len() as u64, "copied"),
        (findings.delayed.len() as u64, "delayed"),
        (findings.uncaptured, "acknowledged and not in the capture"),
        (findings.jumps, "after a jump in sequence numbers"),
        (findings.unsent, "only in the receiver's capture"),
        (
            findings.outside,
            "sent while the other capture shows nothing: not known, left out",
        ),
    ];
    for (count, what) in counts {
        if count > 0 {
            said += &format!(", {count} {what}");
        }
    }
    said
}
