//! `posthaste simulate`: converts options to scenarios, and their results to a table.

mod case;
mod compare;
mod ladder;
mod numbers;
mod picture;
mod play;
mod sweep;
mod typed;

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, ValueEnum};
use posthaste_load::report::thousands;
use posthaste_tcp::profile;
use posthaste_tcp::remedy::Remedy;
use posthaste_units::{Seed, Size, Span};

use self::case::{Cases, Positions, Remedies};
use self::ladder::Drawing;
use self::play::Played;
use self::sweep::SweptPath;
use self::typed::TypedDrops;
use super::path::{Directions, words};
use super::{Failure, print, stop_on_signal};

/// Predict a service's response time under loss, with old and new TCPs, in virtual time
///
/// Client, path and server are simulated packet by packet: a million transactions take seconds. A
/// response time is t_conn + t_req + t_proc + t_resp, as in `posthaste net`'s traces. Every option of the
/// link may be a list (160kbit,300kbit), a range (5ms..200ms: 5, 10, 20, 50, 100, 200) or one of so many
/// values (10ms..50ms:5); every combination is simulated. Transaction N draws what the emulated
/// connection N draws, whatever else is changed, so that remedies meet the same losses.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("sizes").args(["request", "response"]).multiple(true).conflicts_with("service"))]
pub(crate) struct Args {
    /// A service of the packet-loss study: author asks 1,438 bytes and gets 12,974, sellerprofile
    /// 1,283 and 8,031
    #[arg(long, value_enum, default_value_t = ServiceArg::Author, help_heading = "The service")]
    service: ServiceArg,
    /// Bytes of the request, headers of HTTP included
    #[arg(
        long,
        value_name = "SIZE",
        requires = "response",
        help_heading = "The service"
    )]
    request: Option<Size>,
    /// Bytes of the reply, headers of HTTP included
    #[arg(
        long,
        value_name = "SIZE",
        requires = "request",
        help_heading = "The service"
    )]
    response: Option<Size>,
    /// How long the server takes
    #[arg(
        long,
        value_name = "T",
        default_value = "200ms",
        allow_hyphen_values = true,
        help_heading = "The service"
    )]
    processing: Span,
    /// From when it is reckoned: from when the request has come, or from when the connection is
    /// accepted
    #[arg(long, value_enum, default_value_t = ClockArg::Request, help_heading = "The service")]
    clock: ClockArg,
    /// Requests on each connection, one after the other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..), help_heading = "The service")]
    exchanges: u16,

    /// TCP of the client
    #[arg(long, value_name = "PROFILE", default_value = "linux-6", value_parser = PossibleValuesParser::new(profile::names()), help_heading = "The ends")]
    client_tcp: String,
    /// TCP of the server
    #[arg(long, value_name = "PROFILE", default_value = "linux-6", value_parser = PossibleValuesParser::new(profile::names()), help_heading = "The ends")]
    server_tcp: String,
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        help = format!("What both ends do about losses beyond their profile: {}", remedies()),
        help_heading = "The ends"
    )]
    recovery: Vec<Remedies>,
    /// Compare the ends with and without each of these, in addition to --recovery; a+b is both
    /// together, `all` is every one
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        help_heading = "The ends"
    )]
    compare: Vec<Remedies>,

    #[command(flatten)]
    path: SweptPath,
    #[command(flatten)]
    directions: Directions,

    #[command(flatten)]
    drops: TypedDrops,
    /// Drop one packet from the server, each of these in turn; 0 is none: 8 or 0..12
    #[arg(
        long,
        value_name = "LIST",
        help_heading = "What happens to which packet"
    )]
    position: Option<Positions>,

    /// Connections for each combination, each begun at another moment of the ends' clocks [default: 1,
    /// or 10000 where anything else is left to chance]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST), help_heading = "Run")]
    transactions: Option<u64>,
    /// Seed of everything that is left to chance
    #[arg(long, value_name = "N", default_value_t, help_heading = "Run")]
    seed: Seed,
    /// Threads; results do not depend on them [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Run")]
    threads: Option<u16>,

    /// Draw the packets of the slowest transaction: to standard output, or to FILE.svg or FILE.txt
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", help_heading = "Report")]
    ladder: Option<Drawing>,
    /// Draw what a sweep or a comparison came to: FILE.svg holds the first chart, FILE.html everything
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    picture: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long, help_heading = "Report", conflicts_with = "ladder")]
    json: bool,
}

/// Maximum number of transactions per combination: a day of computing.
const MOST: u64 = 100_000_000_000;
/// Default number of transactions if anything is random.
const MANY: u64 = 10_000;
/// Note for a single transaction that may depend on a clock tick.
const ONE_MOMENT: &str =
    "\none transaction, at one moment of the ends' clocks: --transactions N shows the others\n";

const EXAMPLES: &str = "\
Examples:
  What one lost packet costs on a line of 2006, and its packets:
    posthaste simulate --client-tcp freebsd-6.0 --server-tcp freebsd-6.0 --clock accept \\
      --bandwidth 300kbit --delay 10ms --overhead 14 --drop down:10 --ladder
  Which packet may be lost, and which may not:
    posthaste simulate --bandwidth 1Mbit --delay 20ms --position 0..12
  A service of your own at 2 % loss, over all delays, with a picture:
    posthaste simulate --request 600B --response 40kB --processing 15ms --bandwidth 10Mbit \\
      --delay 5ms..200ms --loss 2% --picture delays.svg
  What would help, and what it costs where packets only change places:
    posthaste simulate --service sellerprofile --bandwidth 1Mbit --delay 40ms --loss 2% \\
      --client-tcp linux-2.6.15 --server-tcp linux-2.6.15 --compare all

Where the model's numbers come from, and what it leaves out, is in docs/reference/simulate.md.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ServiceArg {
    Author,
    Sellerprofile,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ClockArg {
    Request,
    Accept,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let cases = Cases::of(&self)?;
        if let Some(path) = &self.picture {
            picture::check(path, &cases)?;
        }
        if self.ladder.is_some() && cases.list.len() > 1 {
            return Err(Failure::usage(format!(
                "--ladder draws one transaction, and there are {} combinations: give each option one value",
                cases.list.len()
            )));
        }
        let ladder = self.ladder.as_ref().and_then(Drawing::path);
        for path in self.picture.as_deref().into_iter().chain(ladder) {
            try_to_write(path)?;
        }
        let transactions = self.transactions.unwrap_or(match cases.by_chance() {
            true => MANY,
            false => 1,
        });
        let stop = stop_on_signal()?;
        let played = play::play(
            &cases.list,
            transactions,
            self.seed,
            self.threads.map(usize::from),
            &stop,
        )?;
        print(&self.text(&cases, &played)?)?;
        if let Some(path) = &self.picture {
            let notes = self.notes(&cases, transactions);
            write(path, &picture::file(path, &cases, &played, &notes))?;
        }
        if let Some(drawing) = &self.ladder {
            let notes = self.notes(&cases, transactions);
            for (case, numbers) in cases.list.iter().zip(&played.numbers) {
                let ladder = drawing.of(&case.scenario, self.seed, numbers.slowest, &notes)?;
                match drawing.path() {
                    Some(path) => write(path, &ladder)?,
                    None => print(&format!("\n{ladder}"))?,
                }
            }
        }
        match played.stopped {
            true => Err(Failure::Run(
                "stopped; what was simulated until then is above".to_owned(),
            )),
            false => cases.all_positions_came(&played),
        }
    }

    /// Parameters of the simulation, for the notes below a picture.
    ///
    /// The picture itself shows the differences between combinations.
    fn notes(&self, cases: &Cases, transactions: u64) -> Vec<String> {
        let clock = match self.clock {
            ClockArg::Request => "",
            ClockArg::Accept => "; processing counts from the accepted connection",
        };
        let each = match (transactions, cases.list.len()) {
            (1, 1) => "One transaction".to_owned(),
            (count, 1) => format!("{} transactions", thousands(count)),
            (count, _) => format!("Transactions of each combination: {}", thousands(count)),
        };
        let profile = self.path.profile().map(words::of_profile);
        let properties: Vec<_> = profile
            .into_iter()
            .chain(cases.common_properties())
            .collect();
        vec![
            format!("{}{clock}.", cases.title),
            words::sentence(&properties, &self.drops.words()),
            format!("{each}, {}.", words::seed_and_version(self.seed)),
        ]
    }

    /// The text to print.
    fn text(&self, cases: &Cases, played: &Played) -> Result<String, Failure> {
        if self.json {
            return numbers::json(cases, played);
        }
        let mut text = match self.compare.is_empty() {
            true => numbers::text(cases, played),
            false => compare::text(cases, played),
        };
        if self.transactions.is_none() && !cases.by_chance() && cases.by_ticks() {
            text += ONE_MOMENT;
        }
        Ok(text)
    }
}

/// The names of all remedies.
fn remedies() -> String {
    Remedy::ALL.map(Remedy::name).join(", ")
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| unwritable(path, &error))
}

/// Checks that such a file exists or can be created, before hours of simulation. Leaves no new file, except an empty
/// one if a link leads to a missing name.
fn try_to_write(path: &Path) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.append(true);
    let tried = match options.clone().create_new(true).open(path) {
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            options.create(true).open(path).map(drop)
        }
        Err(error) => Err(error),
    };
    tried.map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::run(format!(
        "{path}: {error}; name a file in a folder that can be written to"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trying_to_write_leaves_everything_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let [old, new] = ["old.svg", "new.svg"].map(|name| folder.path().join(name));
        fs::write(&old, "a picture").unwrap();
        for path in [&old, &new] {
            try_to_write(path).unwrap();
        }
        assert_eq!(fs::read_to_string(&old).unwrap(), "a picture");
        assert!(!new.exists());
        assert!(try_to_write(&folder.path().join("no/such/file.svg")).is_err());
    }
}
