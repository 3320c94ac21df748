//! `posthaste net`: converts options to a session, and prints its report.

mod control;
mod hosts;
mod router;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::ArgGroup;
use posthaste_emulator::agent::{AdaptiveAcks, Settings, Trigger};
use posthaste_emulator::control::ControlAddress;
use posthaste_emulator::session::{self, OtherEnd, SessionError, SessionHost, SessionOptions};
use posthaste_emulator::trace::TraceError;
use posthaste_emulator::{
    OutsideHost, Privileges, SessionFileError, SessionFiles, Subnet, Subnets,
};
use posthaste_link::{Direction, Plan, Sharing, explain, properties};
use posthaste_units::Seed;

use super::drops::DropArgs;
use super::path::{Directions, PathArgs, seed_and_version};
use super::{Failure, print};

/// Run a command behind an emulated network, its kernel's own TCP at both ends
///
/// COMMAND runs as the client, the other end of the link is 10.0.0.2 (--subnet moves it), which
/// POSTHASTE_SERVER holds for both ends. Its output and its exit status pass through; messages of posthaste go to
/// standard error. All connections share one link, as on an access line; with a pattern that counts
/// packets, each connection has its own. At the end everything that was started is ended, whatever
/// happened. No root is needed where user namespaces are allowed.
///
/// Names resolve inside, and hosts outside are reached through a relay at the server's end: the
/// link lies between the command and them.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("other-end").args(["to", "server"]))]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<control::Action>,

    #[command(flatten)]
    path: PathArgs,

    #[command(flatten)]
    drops: DropArgs,

    #[command(flatten)]
    directions: Directions,
    /// One link for all connections [default, unless a pattern counts packets]
    #[arg(long, help_heading = "Directions", conflicts_with = "per_connection")]
    shared: bool,
    /// A link of its own for each connection [default where a pattern counts packets]
    #[arg(long, help_heading = "Directions")]
    per_connection: bool,

    #[command(flatten)]
    router: router::RouterArgs,

    /// Repeat the client's last acknowledgement where packets are missing at the end of a reply, until
    /// the server has three duplicates: fin looks once the server's FIN has come, silence whenever a
    /// hole stays [default where it is given: fin]
    #[arg(
        long,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = Trigger::Fin.name(),
        hide_possible_values = true,
        help_heading = "At the client's end of the link"
    )]
    duplicate_acks: Option<Trigger>,

    #[command(flatten)]
    hosts: hosts::HostArgs,

    /// Forward that port of 10.0.0.2 to a host outside, TCP and UDP, for example example.org:80
    #[arg(long, value_name = "HOST:PORT", help_heading = "The other end")]
    to: Option<OutsideHost>,
    /// Run this line (sh -c) at the other end; COMMAND starts when it listens
    #[arg(long, value_name = "COMMAND", help_heading = "The other end")]
    server: Option<String>,

    /// Networks of both ends, for example 192.168.77.0/24 or fd12:3456::/64; the client has the first
    /// address, the server the second. At most one of IPv4 and one of IPv6 [default: 10.0.0.0/24 and
    /// fd00::/64]
    #[arg(long, value_name = "NETWORK", help_heading = "Run")]
    subnet: Vec<Subnet>,
    /// Seed of all random decisions
    #[arg(long, value_name = "N", default_value_t, help_heading = "Run")]
    seed: Seed,
    /// Write every packet and its fate to a file: .csv, .pcapng, or a ladder diagram (.svg, .txt); may
    /// be repeated. Of each packet 128 bytes are kept
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    trace: Vec<PathBuf>,
    /// Write the packets that enter the links to a file, so that the decisions of the links can be replayed
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    record: Option<PathBuf>,
    /// Write the report as one JSON document, since standard output is COMMAND's
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    report: Option<PathBuf>,
    /// Print no report unless something went wrong
    #[arg(long, short, help_heading = "Run")]
    quiet: bool,

    /// Run COMMAND and the server's line with all capabilities of posthaste. Without it, commands of
    /// root have none over the machine (its clock, modules, devices) and a host name of their own
    #[arg(long, help_heading = "Run")]
    keep_capabilities: bool,
    /// Let programs change the link while COMMAND runs, at 127.0.0.1:PORT (0 for a free port) or
    /// unix:PATH. COMMAND finds its own address in POSTHASTE_CONTROL, where `posthaste net set` and
    /// `posthaste net outage` look for it
    #[arg(long, value_name = "ADDRESS", help_heading = "Run")]
    control: Option<ControlAddress>,

    /// Print the properties of the link and of the profile, or of all profiles, and run nothing
    #[arg(long, help_heading = "Run")]
    explain: bool,

    /// Command to run, after `--`
    #[arg(
        last = true,
        required_unless_present = "explain",
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  A page over GPRS, and a shell behind a satellite:
    posthaste net --profile gprs -- curl -s https://example.org/
    posthaste net --profile geo-satellite -- bash
  Four downloads that share 12 Mbit/s, and each alone on its own line:
    posthaste net --profile lte -- ./downloads
    posthaste net --profile lte --per-connection -- ./downloads
  Lose the eighth packet of each connection from the server, exactly:
    posthaste net --bandwidth 300kbit --delay 10ms --drop down:8 \\
      --server 'posthaste bookshop --listen 0.0.0.0:80' -- sh -c 'curl http://$POSTHASTE_SERVER/'
  A service of this machine, which inside is 10.0.0.2:8080:
    posthaste net --profile 3g --loss 2% --to localhost:8080 -- posthaste load http://10.0.0.2:8080/ --rate 5/s
  Reno without SACK at both ends, as in 2005, and a slow way up:
    posthaste net --kernel linux-2005 --delay 50ms --up '--bandwidth 64kbit' -- ./client
  The same with two packets lost late, and help from the client's end:
    posthaste net --kernel linux-2005 --bandwidth 300kbit --delay 10ms --drop down:8-9 \\
      --duplicate-acks --to localhost:8080 -- ./client
  FreeBSD of 2005 as the server, whatever serves:
    posthaste net --server-tcp freebsd-6.0 --bandwidth 300kbit --delay 10ms --drop down:10 \\
      --to localhost:8080 -- ./client
  A DiffServ router: replies that the service marks AF11 have 300 kB/s of 1,030, whatever others send:
    posthaste net --bandwidth 1030kB/s --class 'af11:300kB/s..1030kB/s' --class 'rest:730kB/s..1030kB/s' \\
      --down '--background 1024kB/s' --server ./service -- ./clients
  The server's kernel only:
    posthaste net --route 'server:initcwnd 3' --sysctl server:net.ipv4.tcp_sack=0 --server ./service -- ./client
  HTTP/3 of a service of this machine:
    posthaste net --profile lte --to localhost:8443 -- \\
      posthaste load https://10.0.0.2:8443/ --insecure --http 3 --rate 5/s
  A host outside that has an address of 10.0.0.0/24:
    posthaste net --profile 3g --subnet 192.168.77.0/24 -- curl -s http://10.0.0.7/
  Change the link while it runs, from inside and from another terminal:
    posthaste net --profile lte --control 127.0.0.1:9000 -- sh -c './client & sleep 5; posthaste net outage 3s; wait'
    posthaste net set --control 127.0.0.1:9000 bandwidth=1Mbit down:loss=2%
  The properties of a profile, with another delay; of all profiles:
    posthaste net --profile 3g --delay 50ms --explain
    posthaste net --explain

Exit code: COMMAND's; 128+N where signal N ended it, 126 and 127 where it could not be started,
2 usage, 3 the network could not be made or did not last.
What the relay carries and what it does not is in docs/reference/net.md.";

impl Args {
    pub(crate) fn run(mut self) -> Result<ExitCode, Failure> {
        if let Some(action) = self.action.take() {
            return action.run();
        }
        let plans = self.plans()?;
        let sharing = self.sharing(plans.each_ref())?;
        if self.explain {
            print(&explain(self.path.profile(), &plans, sharing))?;
            return Ok(ExitCode::SUCCESS);
        }
        let named = |error| Failure::usage(format!("--subnet: {error}"));
        let subnets = Subnets::new(&self.subnet).map_err(named)?;
        let session = self.session(plans, sharing, subnets);
        let ended = session::run(session).map_err(failure)?;
        if !self.quiet || !ended.report.is_well() {
            note!("{}", ended.report.to_string().trim_end());
        }
        let status = ended.report.status;
        ended.finish().map_err(Failure::run)?;
        Ok(status.into())
    }

    /// The session that these options describe.
    fn session(&self, plans: [Plan; 2], sharing: Sharing, subnets: Subnets) -> SessionOptions {
        let files = self.files(plans.each_ref(), sharing);
        let host = |side| SessionHost {
            setup: self.hosts.setup(side),
            tcp: self.hosts.tcp(side),
        };
        let (program, arguments) = self.command.split_first().expect("clap requires a command");
        SessionOptions {
            plans: plans.map(Arc::new),
            sharing,
            seed: self.seed,
            subnets,
            hosts: [hosts::HostSide::Client, hosts::HostSide::Server].map(host),
            edge: self.router.edge(),
            duplicate_acks: self.agent(),
            other_end: match (&self.to, &self.server) {
                (Some(host), _) => OtherEnd::Outside(host.clone()),
                (None, Some(line)) => OtherEnd::Server(line.clone()),
                (None, None) => OtherEnd::Idle,
            },
            command: (program.clone(), arguments.to_vec()),
            privileges: if self.keep_capabilities {
                Privileges::Kept
            } else {
                Privileges::Confined
            },
            control: self.control.clone(),
            files,
        }
    }

    /// The files of the session.
    fn files(&self, plans: [&Plan; 2], sharing: Sharing) -> SessionFiles {
        let notes = self.notes(plans, sharing);
        SessionFiles {
            record: self.record.clone(),
            record_notes: notes.join("\n"),
            traces: self.trace.clone(),
            trace_notes: notes,
            report: self.report.clone(),
        }
    }

    /// The plans of the links, up and down.
    fn plans(&self) -> Result<[Plan; 2], Failure> {
        let mut plans = self.directions.plans(&self.path, &self.drops.pattern()?);
        for (direction, plan) in Direction::BOTH.into_iter().zip(&mut plans) {
            plan.classes = self.router.classes(direction);
            plan.mtu = self.router.mtu(direction);
            let named = |error| Failure::usage(format!("{direction}: {error}"));
            plan.check().map_err(named)?;
        }
        Ok(plans)
    }

    /// The parameters of the run, for the notes of records and below a ladder.
    ///
    /// The commands are excluded, because their words may be secrets.
    fn notes(&self, plans: [&Plan; 2], sharing: Sharing) -> Vec<String> {
        let mut typed = self.drops.options();
        if let Some(trigger) = self.duplicate_acks {
            typed.push(format!("duplicate ACKs by {}", trigger.name()));
        }
        if sharing == Sharing::Whole {
            typed.push("shared by all connections".to_owned());
        }
        let [client, server] = [hosts::HostSide::Client, hosts::HostSide::Server]
            .map(|side| self.hosts.description(side));
        let ends = if client == server {
            format!("Both ends: {client}")
        } else {
            format!("Client: {client}; server: {server}")
        };
        let profile = self.path.profile();
        let profile = profile.map(|profile| properties::profile_property(profile.name));
        let all: Vec<_> = profile
            .into_iter()
            .chain(properties::properties(plans))
            .collect();
        vec![
            properties::sentence(&all, &typed),
            format!("{ends}; {}.", seed_and_version(self.seed)),
        ]
    }

    /// The settings of the duplicate-ACK agent, if there is one.
    fn agent(&self) -> Option<Settings> {
        self.duplicate_acks.map(|trigger| Settings {
            rule: AdaptiveAcks {
                trigger,
                ..AdaptiveAcks::default()
            },
            ..Settings::default()
        })
    }

    /// The sharing of links, by options and plans.
    fn sharing(&self, plans: [&Plan; 2]) -> Result<Sharing, Failure> {
        let shared = self.shared.then_some(Sharing::Whole);
        let each = self.per_connection.then_some(Sharing::PerConnection);
        Sharing::resolve(shared.or(each), plans)
            .map_err(|error| Failure::usage(format!("--per-connection with --class: {error}")))
    }
}

fn failure(error: SessionError) -> Failure {
    match error {
        SessionError::File(SessionFileError::Trace(TraceError::Ending(_))) => Failure::usage(error),
        SessionError::NotStarted { code, text } => Failure::Command { code, text },
        error => Failure::run(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use posthaste_link::pattern::Pattern;
    use posthaste_units::Span;

    #[derive(Parser)]
    struct NetLine {
        #[command(flatten)]
        args: Args,
    }

    fn typed(options: &[&str]) -> Result<Args, String> {
        let line = ["net"].iter().chain(options).chain(&["--", "true"]);
        NetLine::try_parse_from(line)
            .map(|parsed| parsed.args)
            .map_err(|error| error.to_string())
    }

    fn plans(options: &[&str]) -> Result<[Plan; 2], String> {
        let plans = typed(options)?.plans();
        plans.map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_direction_adds_to_what_both_have() {
        let [up, down] = plans(&[
            "--profile",
            "lte",
            "--delay",
            "50ms",
            "--up",
            "--bandwidth 64kbit --loss 1%",
        ])
        .unwrap();
        assert_eq!([up.delay, down.delay], [Span::from_millis(50); 2]);
        assert_eq!(up.bandwidth.unwrap().to_string(), "64kbit");
        assert_eq!(down.bandwidth.unwrap().to_string(), "12Mbit");
        assert!(up.loss.is_some() && down.loss.is_none());
    }

    #[test]
    fn the_queue_is_the_options_or_the_profiles_or_the_orders() {
        let packets = |line: &str| {
            let options: Vec<&str> = line.split(' ').collect();
            plans(&options).unwrap().map(|plan| plan.queue.packets)
        };
        assert_eq!(packets("--bandwidth 1Mbit"), [50, 50]);
        assert_eq!(packets("--profile geo-satellite"), [191, 1022]);
        assert_eq!(packets("--profile geo-satellite --queue 50"), [50, 50]);
        assert_eq!(packets("--order netem --delay 100ms"), [1000, 1000]);
        assert_eq!(packets("--order netem --profile lte"), [1000, 1000]);
        assert_eq!(packets("--order netem --queue 7"), [7, 7]);
        let netem_up = ["--up", "--order netem", "--down", "--queue 9"];
        assert_eq!(
            plans(&netem_up).unwrap().map(|plan| plan.queue.packets),
            [1000, 9]
        );
    }

    #[test]
    fn drops_are_patterns() {
        let [up, down] = plans(&["--drop", "down:8"]).unwrap();
        assert_eq!(up.script, None);
        let pattern = Pattern::parse("posthaste pattern 1\ndown drop 8\nend\n").unwrap();
        assert_eq!(down.script.as_ref(), Some(pattern.script(Direction::Down)));
    }

    #[test]
    fn notes_name_the_link_and_the_ends() {
        let args = typed(&[
            "--profile=lte",
            "--drop=down:8",
            "--kernel=server:linux-2005",
            "--seed=7",
        ]);
        let args = args.unwrap();
        let [up, down] = args.plans().unwrap();
        let notes = args.notes([&up, &down], Sharing::PerConnection);
        let [link, ends] = &notes[..] else {
            panic!("two notes");
        };
        assert!(
            link.starts_with("Link: profile lte, bandwidth ") && link.ends_with(", drop down:8."),
            "{link}"
        );
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!(
            "Client: kernel default; server: kernel linux-2005; seed 7, posthaste {version}."
        );
        assert_eq!(*ends, expected);
    }

    #[test]
    fn classes_are_of_a_direction_or_of_both_and_share_the_link() {
        let options = [
            "--bandwidth",
            "2Mbit",
            "--class",
            "down:af11:300kbit..1Mbit",
            "--class",
            "rest:700kbit",
        ];
        let [up, down] = plans(&[&options[..2], &options[4..]].concat()).unwrap();
        assert_eq!(up.classes, down.classes);
        let down = plans(&options).unwrap()[1].classes.clone().unwrap();
        let down: Vec<String> = down.list.iter().map(ToString::to_string).collect();
        assert_eq!(down, ["af11:300kbit..1Mbit", "rest:700kbit"]);
        let sharing = |more: &[&str]| {
            let args = typed(&[&options[..], more].concat()).unwrap();
            let plans = args.plans().unwrap();
            args.sharing(plans.each_ref())
                .map_err(|error| error.to_string())
        };
        assert_eq!(sharing(&[]), Ok(Sharing::Whole));
        let error = sharing(&["--per-connection"]).unwrap_err();
        assert!(error.contains("--per-connection with --class"), "{error}");
    }

    #[test]
    fn the_link_is_one_unless_a_pattern_counts_packets() {
        let sharing = |options: &[&str]| {
            let args = typed(options).unwrap();
            let plans = args.plans().unwrap();
            args.sharing(plans.each_ref()).unwrap()
        };
        for line in [&["--profile", "lte"][..], &["--drop", "down:1s-2s"], &[]] {
            assert_eq!(sharing(line), Sharing::Whole, "{line:?}");
            let each = sharing(&[line, &["--per-connection"]].concat());
            assert_eq!(each, Sharing::PerConnection, "{line:?}");
        }
        assert_eq!(sharing(&["--drop", "up:8"]), Sharing::PerConnection);
        assert_eq!(sharing(&["--drop", "up:8", "--shared"]), Sharing::Whole);
        let both = typed(&["--shared", "--per-connection"]).map(|_| ());
        assert!(both.unwrap_err().contains("cannot be used with"));
    }

    #[test]
    fn an_mtu_is_of_a_direction_or_of_both() {
        let mtu = |options: &[&str]| {
            let plans = plans(options).unwrap();
            plans.map(|plan| plan.mtu.map(|mtu| mtu.to_string()).unwrap_or_default())
        };
        assert_eq!(mtu(&["--mtu", "1400"]), ["1400", "1400"]);
        let both = ["--mtu", "1400", "--mtu", "down:1300,silent"];
        assert_eq!(mtu(&both), ["1400", "1300,silent"]);
        assert_eq!(mtu(&[]), ["", ""]);
    }

    #[test]
    fn the_agent_looks_from_the_fin_on_unless_told_otherwise() {
        let trigger = |options: &[&str]| {
            let agent = typed(options).unwrap().agent();
            agent.map(|settings| settings.rule.trigger)
        };
        assert_eq!(trigger(&[]), None);
        assert_eq!(trigger(&["--duplicate-acks"]), Some(Trigger::Fin));
        let silence = trigger(&["--duplicate-acks=silence"]);
        assert_eq!(silence, Some(Trigger::Silence));
    }

    #[test]
    fn a_change_is_a_subcommand_only_as_the_first_word() {
        let action = |options: &[&str]| {
            let options = ["net"].iter().chain(options);
            let parsed = NetLine::try_parse_from(options);
            parsed.map(|parsed| (parsed.args.action.is_some(), parsed.args.command))
        };
        assert!(action(&["set", "delay=5ms"]).unwrap().0);
        assert!(
            action(&["outage", "--control", "127.0.0.1:9", "3s"])
                .unwrap()
                .0
        );
        assert_eq!(action(&["--", "set"]).unwrap(), (false, vec!["set".into()]));
        let options = action(&["--delay", "5ms", "--", "outage", "3s"]).unwrap();
        assert_eq!(options, (false, vec!["outage".into(), "3s".into()]));
        assert!(action(&["--delay", "5ms", "set", "delay=5ms"]).is_err());
        assert!(action(&["set"]).is_err() && action(&[]).is_err());
    }

    #[test]
    fn option_errors_name_the_remedy() {
        let cases: &[(&[&str], &[&str])] = &[
            (&["--profile", "ltee"], &["--profile", "lte"]),
            (&["--bandwidth", "300"], &["--bandwidth", "300kbit"]),
            (&["--delay", "10"], &["--delay", "no unit"]),
            (&["--up", "--delya 3ms"], &["--up", "--delya", "--delay"]),
            (&["--down", "--delay 3"], &["--down", "--delay", "no unit"]),
            (&["--down", "fast"], &["--down", "fast"]),
            (&["--drop", "8"], &["--drop 8", "down:8"]),
            (&["--drop", "left:8"], &["--drop left:8"]),
            (&["--pattern", "/nowhere"], &["--pattern /nowhere"]),
            (
                &["--reorder", "25%"],
                &["up", "give the link a delay", "hold:25%:3"],
            ),
            (&["--queue", "0"], &["--queue", "50"]),
            (&["--queue", "1000B"], &["up", "1,500 bytes"]),
            (&["--background", "800"], &["--background", "800kB/s"]),
            (&["--background", "1Mbit"], &["up", "give the link one"]),
            (
                &["--class", "rest:1Mbit"],
                &["up", "classes share a bandwidth"],
            ),
            (
                &["--bandwidth", "1Mbit", "--class", "down:ef:1Mbit"],
                &["down", "name rest in one"],
            ),
            (
                &["--class", "af44:1Mbit"],
                &["--class", "af11,af12:300kbit..1Mbit"],
            ),
            (&["--mtu", "down:1000"], &["--mtu", "1280 to 1500"]),
            (&["--mark", "80=ef"], &["--mark", "server:8080=af11"]),
            (&["--kernel", "linux-2006"], &["--kernel", "linux-2005"]),
            (&["--route", "initcwind 3"], &["--route", "initcwnd"]),
            (&["--sysctl", "tcp_sack"], &["--sysctl", "=0"]),
            (
                &["--server-tcp", "netbsd"],
                &["--server-tcp", "freebsd-6.0"],
            ),
            (&["--control", "0.0.0.0:9"], &["--control", "127.0.0.1:9"]),
            (&["--to", "example.org"], &["--to", "example.org:80"]),
            (&["--subnet", "10.1.2.3/24"], &["--subnet", "10.1.2.0/24"]),
            (&["--to", "a:1", "--server", "b"], &["--to", "--server"]),
            (
                &["--duplicate-acks=ack"],
                &["--duplicate-acks", "fin or silence"],
            ),
        ];
        for (options, messages) in cases {
            let error = plans(options).unwrap_err();
            for word in *messages {
                assert!(error.contains(word), "{options:?}: {error}");
            }
        }
    }
}
