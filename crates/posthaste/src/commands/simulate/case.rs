//! The cases: every combination of the given options, as a scenario with a name.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use posthaste_link::pattern::{Axis, Effect, Pattern, Script};
use posthaste_link::{Direction, Plan, Reordering};
use posthaste_sim::{Closer, ProcessingClock, Scenario, SimulatedExchange, SimulatedService};
use posthaste_tcp::profile;
use posthaste_tcp::remedy::Remedy;
use posthaste_tcp::{Profile, TimerClock};
use posthaste_units::{Ratio, Span};

use super::play::Played;
use super::sweep::{MOST, expand};
use super::{Args, ClockArg, ServiceArg};
use crate::commands::Failure;
use crate::commands::path::words::{Property, properties};

/// Reordering used to test the harm of remedies: one packet in twenty is overtaken by three later ones.
const REORDERING: &str = "hold:5%:3";

/// A scenario and the values that identify it.
pub(super) struct Case {
    /// The options that differ between cases, and their values.
    pub(super) labels: Vec<(String, String)>,
    pub(super) scenario: Scenario,
    /// The typed effects on packets. Such a packet must come.
    typed: Pattern,
}

/// All cases.
pub(super) struct Cases {
    /// The common properties, in words.
    pub(super) title: String,
    pub(super) list: Vec<Case>,
}

/// Labels of the compared remedies and of the paths.
pub(super) const RECOVERY: &str = "recovery";
pub(super) const PATH: &str = "path";
/// The two paths for the comparison of remedies.
pub(super) const AS_GIVEN: &str = "as given";
pub(super) const REORDERED: &str = "reordered";

/// A dropped packet: the server's unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    direction: Direction,
    /// From 1. 0 means none.
    place: u64,
}

impl FromStr for Position {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (direction, place) = match text.split_once(':') {
            Some((direction, place)) => (direction.parse().ok(), place),
            None => (Some(Direction::Down), text),
        };
        let wrong = || format!("{text:?}: write a packet's place, as in 8, 0..12 or up:3");
        Ok(Self {
            direction: direction.ok_or_else(wrong)?,
            place: place.parse().map_err(|_| wrong())?,
        })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.direction {
            Direction::Down => write!(f, "{}", self.place),
            Direction::Up => write!(f, "up:{}", self.place),
        }
    }
}

/// A list or range of positions: `0..12`.
#[derive(Clone, Debug)]
pub(super) struct Positions(Vec<Position>);

impl FromStr for Positions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let places = expand(text)?;
        let places = places.iter().map(|place| place.parse());
        places.collect::<Result<_, _>>().map(Self)
    }
}

/// Remedies that are used together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Remedies {
    /// The listed ones.
    These(Vec<Remedy>),
    /// Every existing remedy, one by one.
    All,
}

impl FromStr for Remedies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "none" => Ok(Self::These(Vec::new())),
            _ => {
                let names = text.split('+').map(|name| name.parse::<Remedy>());
                let remedies: Result<Vec<Remedy>, _> = names.collect();
                remedies.map(Self::These).map_err(|error| error.to_string())
            }
        }
    }
}

impl Cases {
    /// Builds all cases. Refuses those that cannot be simulated.
    pub(super) fn of(args: &Args) -> Result<Self, Failure> {
        let service = Arc::new(args.service()?);
        let patterns = args.patterns()?;
        let combinations = args.path.combinations().map_err(Failure::Usage)?;
        let base = args.base()?;
        let variants = args.variants(&base)?;
        let count = combinations.len() * patterns.len() * variants.len();
        if count > MOST {
            return Err(Failure::usage(format!(
                "{count} combinations: at most {MOST} are possible; leave values out"
            )));
        }
        let mut list = Vec::with_capacity(count);
        for combination in &combinations {
            for happening in &patterns {
                let plans = args.directions.plans(&combination.path, &happening.pattern);
                let mut labels = combination.labels.clone();
                if let Some(position) = happening.position.filter(|_| patterns.len() > 1) {
                    labels.push(("position".to_owned(), position.to_string()));
                }
                for variant in &variants {
                    let labels = labels.clone();
                    list.push(variant.case(labels, &plans, &service, &happening.typed)?);
                }
            }
        }
        let title = args.title(&service, &base);
        Ok(Self { title, list })
    }

    /// Properties of the link that all combinations have in common. The reordered path of a comparison is excluded.
    pub(super) fn common_properties(&self) -> Vec<Property> {
        let given = |case: &&Case| !case.labels.iter().any(|(_, value)| value == REORDERED);
        let mut cases = self.list.iter().filter(given);
        let of = |case: &Case| properties([&case.scenario.plans[0], &case.scenario.plans[1]]);
        let Some(first) = cases.next() else {
            return Vec::new();
        };
        cases.fold(of(first), |mut common, case| {
            let others = of(case);
            common.retain(|property| others.contains(property));
            common
        })
    }

    /// True if anything is random.
    pub(super) fn by_chance(&self) -> bool {
        let plans = self.list.iter().flat_map(|case| &case.scenario.plans);
        let mut plans = plans.map(|plan| {
            plan.loss.is_some()
                || plan.jitter.is_some()
                || plan.reordering.is_some()
                || plan.duplication.get() > 0.0
                || plan.bit_error_rate.get() > 0.0
                || plan.background.is_some()
        });
        plans.any(|by_chance| by_chance)
    }

    /// True if an end's timers expire at ticks. The result then depends on the start time.
    pub(super) fn by_ticks(&self) -> bool {
        let scenarios = self.list.iter().map(|case| &case.scenario);
        let mut ends = scenarios.flat_map(|scenario| [&scenario.client, &scenario.server]);
        ends.any(|end| end.clock != TimerClock::Exact)
    }

    /// Refuses typed positions at which no packet ever came.
    pub(super) fn all_positions_came(&self, played: &Played) -> Result<(), Failure> {
        for (case, numbers) in self.list.iter().zip(&played.numbers) {
            if played.stopped {
                break;
            }
            for direction in Direction::BOTH {
                let most = numbers.most_packets[direction as usize];
                if let Some(place) = beyond(case.typed.script(direction), most) {
                    return Err(Failure::usage(format!(
                        "{direction} drop {place}: that packet never comes; this connection has at most {most} packets {}: \
                         name one of them",
                        match direction {
                            Direction::Up => "from the client",
                            Direction::Down => "from the server",
                        }
                    )));
                }
            }
        }
        Ok(())
    }
}

/// The first dropped position after the last packet.
fn beyond(script: &Script, most: u64) -> Option<u64> {
    let drops = script.entries().filter(|(place, effect)| {
        *effect == Effect::Drop && place.axis == Axis::Packets && place.last > most
    });
    drops.map(|(place, _)| place.first.max(most + 1)).min()
}

/// Effects on packets.
struct Happening {
    /// Position of the packet that is dropped in this case.
    position: Option<Position>,
    /// All effects.
    pattern: Pattern,
    /// The typed ones.
    typed: Pattern,
}

/// Two ends, and a change of the path.
struct Variant {
    labels: Vec<(String, String)>,
    client: Arc<Profile>,
    server: Arc<Profile>,
    reorders: bool,
}

impl Variant {
    fn case(
        &self,
        mut labels: Vec<(String, String)>,
        plans: &[Plan; 2],
        service: &Arc<SimulatedService>,
        typed: &Pattern,
    ) -> Result<Case, Failure> {
        labels.extend(self.labels.iter().cloned());
        let plan = |plan: &Plan| match self.reorders {
            true => reordered(plan),
            false => Ok(Arc::new(plan.clone())),
        };
        let scenario = Scenario {
            client: self.client.clone(),
            server: self.server.clone(),
            plans: [plan(&plans[0])?, plan(&plans[1])?],
            service: service.clone(),
        };
        scenario.check().map_err(Failure::usage)?;
        let typed = match self.reorders {
            true => Pattern::default(),
            false => typed.clone(),
        };
        Ok(Case {
            labels,
            scenario,
            typed,
        })
    }
}

/// The same path without losses and bit errors, and with reordering.
fn reordered(plan: &Plan) -> Result<Arc<Plan>, Failure> {
    let usual = REORDERING.parse::<Reordering>().map_err(Failure::run)?;
    Ok(Arc::new(Plan {
        loss: None,
        bit_error_rate: Ratio::default(),
        script: None,
        reordering: plan.reordering.or(Some(usual)),
        ..plan.clone()
    }))
}

/// Names of remedies that are used together, as they are typed.
fn joined(remedies: &[Remedy]) -> String {
    let names: Vec<&str> = remedies.iter().map(|remedy| remedy.name()).collect();
    names.join("+")
}

impl Args {
    fn service(&self) -> Result<SimulatedService, Failure> {
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
        Ok(SimulatedService {
            exchanges: vec![exchange; usize::from(self.exchanges)],
            clock: match self.clock {
                ClockArg::Request => ProcessingClock::Request,
                ClockArg::Accept => ProcessingClock::Accept,
            },
            closer: Closer::Server,
        })
    }

    fn title(&self, service: &SimulatedService, base: &[Remedy]) -> String {
        let Some(exchange) = service.exchanges.first() else {
            return String::new();
        };
        let ends = match self.client_tcp == self.server_tcp {
            true => format!("{} at both ends", self.client_tcp),
            false => format!("client {}, server {}", self.client_tcp, self.server_tcp),
        };
        let times = match service.exchanges.len() {
            1 => String::new(),
            count => format!(", {count} times on a connection"),
        };
        let with = match base.is_empty() {
            true => String::new(),
            false => format!(", with {}", joined(base)),
        };
        format!(
            "{} bytes asked, {} of processing, {} bytes answered{times}; {ends}{with}",
            exchange.request, exchange.processing, exchange.reply
        )
    }

    /// The patterns of --pattern and --drop together, with each of the positions.
    fn patterns(&self) -> Result<Vec<Happening>, Failure> {
        let with = |position: Option<Position>| -> Result<Happening, Failure> {
            let one = position.filter(|position| position.place > 0);
            let one = one.map(|Position { direction, place }| format!("{direction}:{place}"));
            Ok(Happening {
                position,
                pattern: self.drops.pattern_with(one.as_slice())?,
                typed: self.drops.typed_with(one.as_slice())?,
            })
        };
        match &self.position {
            None => Ok(vec![with(None)?]),
            Some(Positions(positions)) => positions.iter().copied().map(Some).map(with).collect(),
        }
    }

    /// The remedies that both ends have in every case.
    fn base(&self) -> Result<Vec<Remedy>, Failure> {
        let mut base = Vec::new();
        for remedies in &self.recovery {
            match remedies {
                Remedies::These(these) => base.extend_from_slice(these),
                Remedies::All => {
                    return Err(Failure::usage(
                        "--recovery all: remedies exclude each other; --compare all tries each",
                    ));
                }
            }
        }
        Ok(base)
    }

    /// The ends to compare, or the ends as given.
    fn variants(&self, base: &[Remedy]) -> Result<Vec<Variant>, Failure> {
        let mut sets = vec![Vec::new()];
        for remedies in &self.compare {
            match remedies {
                Remedies::All => sets.extend(Remedy::ALL.map(|remedy| vec![remedy])),
                Remedies::These(these) if these.is_empty() => {}
                Remedies::These(these) => sets.push(these.clone()),
            }
        }
        let mut variants = Vec::new();
        for set in sets {
            let remedies = [base, &set].concat();
            let end = |name: &str| profile::named(name).map_err(Failure::usage);
            let [client, server] = [end(&self.client_tcp)?, end(&self.server_tcp)?]
                .map(|profile| Arc::new(profile.with(&remedies)));
            let name = match set.is_empty() {
                true => "none".to_owned(),
                false => joined(&set),
            };
            let paths: &[(&str, bool)] = match self.compare.is_empty() {
                true => &[("", false)],
                false => &[(AS_GIVEN, false), (REORDERED, true)],
            };
            for (path, reorders) in paths {
                let labels = [(RECOVERY, name.as_str()), (PATH, path)];
                let labels = labels.map(|(option, value)| (option.to_owned(), value.to_owned()));
                variants.push(Variant {
                    labels: match self.compare.is_empty() {
                        true => Vec::new(),
                        false => labels.into(),
                    },
                    client: client.clone(),
                    server: server.clone(),
                    reorders: *reorders,
                });
            }
        }
        Ok(variants)
    }
}
