//! `posthaste simulate`: converts options to cases, and prints and draws their results.

#[cfg(feature = "agents")]
pub(crate) mod agents;
mod drops;
mod files;
mod play;
mod sweep;
mod transport;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, ValueEnum};
use posthaste_link::pattern::Pattern;
use posthaste_link::properties;
use posthaste_quic_sim::{QuicCaseOptions, quic_cases};
use posthaste_sim::{
    CaseOptions, CasePath, CaseResults, Closer, DroppedPosition, DroppedPositions, PacketEffects,
    ProcessingClock, Remedies, SimulatedExchange, SimulatedService, SimulationCases,
    comparison_text,
};
use posthaste_tcp::profile;
use posthaste_tcp::remedy::Remedy;
use posthaste_units::{Seed, Size, Span, thousands};

use self::drops::RequiredDrops;
use self::files::LadderFile;
use self::sweep::SweptPath;
use self::transport::{QuicArgs, TransportArg, TypedOptions};
use super::path::{Directions, seed_and_version};
use super::{Failure, print, stop_on_signal};

/// Predict a service's response time under loss, with old and new TCPs or QUIC, in virtual time
///
/// Client, path and server are simulated packet by packet: a million transactions take seconds over
/// TCP, and about ten minutes of CPU time over QUIC with the cryptography of each handshake. A
/// response time is t_conn + t_req + t_proc + t_resp, as in `posthaste net`'s traces. Every option of the
/// link may be a list (160kbit,300kbit), a range (5ms..200ms: 5, 10, 20, 50, 100, 200) or one with a
/// number of values (10ms..50ms:5); every combination is simulated. Transaction N draws what
/// connection N of `net --per-connection` draws, whatever else is changed, so that remedies meet the same losses.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("sizes").args(["request", "response"]).multiple(true).conflicts_with("service"))]
pub(crate) struct Args {
    /// The options of the cases, for agents. First, because the others are taken out when they are read.
    #[cfg(feature = "agents")]
    #[command(flatten)]
    options: agents::CaseOptions,
    /// The options of one transport only. As early, for the same reason.
    #[command(flatten)]
    typed: TypedOptions,

    /// A service of the packet-loss study: author sends 1,438 bytes and gets 12,974, sellerprofile
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
    /// Processing time of the server
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

    /// Transport of both ends: TCP by profile, or QUIC with TLS 1.3 as quinn has it
    #[arg(long, value_enum, default_value_t, help_heading = "The ends")]
    transport: TransportArg,
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
    quic: QuicArgs,

    #[command(flatten)]
    path: SweptPath,
    #[command(flatten)]
    directions: Directions,

    #[command(flatten)]
    drops: RequiredDrops,
    /// Drop one packet from the server, each of these in turn; 0 is none: 8 or 0..12
    #[arg(
        long,
        value_name = "LIST",
        help_heading = "What happens to which packet"
    )]
    position: Option<DroppedPositions>,

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

    #[cfg(feature = "agents")]
    #[command(flatten)]
    agents: agents::SweepAgents,

    /// Draw the packets of the slowest transaction: to standard output, or to FILE.svg or FILE.txt
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", help_heading = "Report")]
    ladder: Option<LadderFile>,
    /// Draw the results of a sweep or a comparison: FILE.svg holds the first chart, FILE.html all charts
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
  The same for HTTP/3, with QUIC in place of TCP: each datagram of the server lost in turn:
    posthaste simulate --transport quic --bandwidth 10Mbit --delay 50ms --position 0..12

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
        let cases = self.cases()?;
        if let Some(path) = &self.picture {
            files::check_picture(path, &cases)?;
        }
        if self.ladder.is_some() && cases.list.len() > 1 {
            return Err(Failure::usage(format!(
                "--ladder draws one transaction, and there are {} combinations: give each option one value",
                cases.list.len()
            )));
        }
        let ladder = self.ladder.as_ref().and_then(LadderFile::path);
        for path in self.picture.as_deref().into_iter().chain(ladder) {
            files::try_to_write(path)?;
        }
        let transactions = self
            .transactions
            .unwrap_or(if cases.by_chance() { MANY } else { 1 });
        let stop = stop_on_signal()?;
        let results = self.play(&cases, transactions, &stop)?;
        print(&self.text(&cases, &results)?)?;
        self.draw(&cases, &results, transactions)?;
        if results.stopped {
            Err(Failure::Run(
                "stopped; what was simulated until then is above".to_owned(),
            ))
        } else {
            results.check_required(&cases).map_err(Failure::usage)
        }
    }

    /// Simulates all cases, here or on agents.
    fn play(
        &self,
        cases: &SimulationCases,
        transactions: u64,
        stop: &AtomicBool,
    ) -> Result<CaseResults, Failure> {
        #[cfg(feature = "agents")]
        if let Some(fleet) = self.agents.fleet()? {
            let sweep = agents::FleetSweep {
                fleet,
                options: &self.options,
                pattern: self.drops.given().filed_text()?,
                cases: &cases.list,
                transactions,
                seed: self.seed,
                stop,
            };
            return sweep.play();
        }
        let threads = self.threads.map(usize::from);
        play::play(&cases.list, transactions, self.seed, threads, stop)
    }

    /// Draws the requested files.
    fn draw(
        &self,
        cases: &SimulationCases,
        results: &CaseResults,
        transactions: u64,
    ) -> Result<(), Failure> {
        let notes = self.notes(cases, transactions);
        if let Some(path) = &self.picture {
            files::write(path, &files::picture(path, cases, results, &notes))?;
        }
        let Some(file) = &self.ladder else {
            return Ok(());
        };
        for (case, numbers) in cases.list.iter().zip(&results.numbers) {
            let ladder = case.scenario.ladder(self.seed, numbers.slowest());
            let content = file.content(ladder.map_err(Failure::usage)?, &notes);
            match file.path() {
                Some(path) => files::write(path, &content)?,
                None => print(&format!("\n{content}"))?,
            }
        }
        Ok(())
    }

    /// Every combination of the options. Refuses those that cannot be simulated.
    fn cases(&self) -> Result<SimulationCases, Failure> {
        self.typed.check(self.transport)?;
        let (effects, paths) = (self.effects()?, self.paths()?);
        match self.transport {
            TransportArg::Tcp => SimulationCases::new(CaseOptions {
                service: self.service(),
                client_tcp: self.client_tcp.clone(),
                server_tcp: self.server_tcp.clone(),
                recovery: self.recovery.clone(),
                compare: self.compare.clone(),
                paths,
                effects,
            })
            .map_err(Failure::usage),
            TransportArg::Quic => quic_cases(QuicCaseOptions {
                options: self.quic.options().map_err(Failure::usage)?,
                exchanges: self.service().exchanges,
                paths,
                effects,
            })
            .map_err(Failure::usage),
        }
    }

    /// Every combination of the options of the link.
    fn paths(&self) -> Result<Vec<CasePath>, Failure> {
        let paths = self.path.combinations()?.into_iter();
        let paths = paths.map(|combination| CasePath {
            plans: self
                .directions
                .plans(&combination.path, &Pattern::default()),
            labels: combination.labels,
        });
        Ok(paths.collect())
    }

    fn service(&self) -> SimulatedService {
        let (request, reply) = match (self.request, self.response, self.service) {
            (Some(request), Some(response), _) => (request.as_bytes(), response.as_bytes()),
            (.., ServiceArg::Author) => (1438, 12_974),
            (.., ServiceArg::Sellerprofile) => (1283, 8031),
        };
        let exchange = SimulatedExchange {
            pause: Span::ZERO,
            request,
            processing: self.processing,
            reply,
        };
        SimulatedService {
            exchanges: vec![exchange; usize::from(self.exchanges)],
            clock: match self.clock {
                ClockArg::Request => ProcessingClock::Request,
                ClockArg::Accept => ProcessingClock::Accept,
            },
            closer: Closer::Server,
        }
    }

    /// The effects of --pattern and --drop together, with each of the positions.
    fn effects(&self) -> Result<Vec<PacketEffects>, Failure> {
        let with = |position: Option<DroppedPosition>| -> Result<PacketEffects, Failure> {
            let one = position.and_then(DroppedPosition::drop_option);
            Ok(PacketEffects {
                position,
                pattern: self.drops.pattern_with(one.as_slice())?,
                required: self.drops.typed_with(one.as_slice())?,
            })
        };
        match &self.position {
            None => Ok(vec![with(None)?]),
            Some(DroppedPositions(positions)) => {
                positions.iter().copied().map(Some).map(with).collect()
            }
        }
    }

    /// Parameters of the simulation, for the notes below a picture.
    ///
    /// The picture itself shows the differences between combinations.
    fn notes(&self, cases: &SimulationCases, transactions: u64) -> Vec<String> {
        let clock = match self.clock {
            ClockArg::Request => "",
            ClockArg::Accept => "; processing counts from the accepted connection",
        };
        let each = match (transactions, cases.list.len()) {
            (1, 1) => "One transaction".to_owned(),
            (count, 1) => format!("{} transactions", thousands(count)),
            (count, _) => format!("Transactions of each combination: {}", thousands(count)),
        };
        let profile = self.path.profile().map(properties::profile_property);
        let common: Vec<_> = profile
            .into_iter()
            .chain(cases.common_properties())
            .collect();
        vec![
            format!("{}{clock}.", cases.title),
            properties::sentence(&common, &self.drops.options()),
            format!("{each}, {}.", seed_and_version(self.seed)),
        ]
    }

    /// The text to print.
    fn text(&self, cases: &SimulationCases, results: &CaseResults) -> Result<String, Failure> {
        if self.json {
            return results.json(cases).map_err(Failure::run);
        }
        let mut text = if self.compare.is_empty() {
            results.text(cases)
        } else {
            comparison_text(cases, results)
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;
    use posthaste_sim::{CaseNumbers, Totals};

    use super::*;

    #[derive(Parser)]
    struct SimulateLine {
        #[command(flatten)]
        args: Args,
    }

    /// A sweep without results.
    fn nothing(options: &[&str]) -> (Args, SimulationCases, CaseResults) {
        let parsed = SimulateLine::try_parse_from([&["simulate"], options].concat());
        let args = parsed.unwrap().args;
        let cases = args.cases().unwrap();
        let numbers = cases.list.iter().map(|_| CaseNumbers::new(&Totals::new()));
        let results = CaseResults {
            numbers: numbers.collect(),
            stopped: false,
        };
        (args, cases, results)
    }

    #[test]
    fn pictures_carry_their_parameters() {
        let options = [
            "--delay=20ms,5ms",
            "--loss=2%",
            "--bandwidth=1Mbit",
            "--seed=7",
        ];
        let (args, cases, results) = nothing(&options);
        let notes = args.notes(&cases, 1000);
        let [service, link, run] = &notes[..] else {
            panic!("three notes");
        };
        assert!(service.contains("linux-6 at both ends"), "{service}");
        assert_eq!(link, "Link: bandwidth 1Mbit, loss 2%, queue 50.");
        assert!(
            run.starts_with("Transactions of each combination: 1,000, seed 7, posthaste "),
            "{run}"
        );
        let svg = files::picture(Path::new("p.svg"), &cases, &results, &notes);
        assert!(svg.contains("loss 2%") && svg.contains("seed 7"), "{svg}");
        let (args, cases, _) = nothing(&["--profile=gprs", "--loss=1%,2%"]);
        let link = &args.notes(&cases, 1000)[1];
        assert!(link.starts_with("Link: profile gprs, bandwidth "), "{link}");
        let (args, cases, results) = nothing(&["--profile=gprs,bluetooth", "--delay=20ms"]);
        let notes = args.notes(&cases, 1);
        let page = files::picture(Path::new("p.html"), &cases, &results, &notes);
        assert!(page.contains("Link: delay 20ms"), "{page}");
    }
}
