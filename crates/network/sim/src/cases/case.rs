//! Cases of a simulation: every combination of paths, effects on packets and remedies, as a scenario with labels.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use posthaste_link::pattern::{Axis, Effect, Pattern, Script};
use posthaste_link::properties::{Property, properties};
use posthaste_link::{Direction, Plan, Reordering};
use posthaste_tcp::Profile;
use posthaste_tcp::profile::{self, UnknownProfile};
use posthaste_tcp::remedy::{Remedy, UnknownRemedy};
use posthaste_units::Ratio;
use thiserror::Error;

use crate::cases::sweep::{SweepError, check_count, expand};
use crate::{Scenario, ScenarioError, SimulatedExchange, SimulatedScenario, SimulatedService};

/// Reordering used to test the harm of remedies: one packet in twenty is overtaken by three later ones.
const REORDERING: &str = "hold:5%:3";

/// A scenario and the values that identify it.
#[derive(Clone, Debug)]
pub struct SimulationCase {
    /// Options that differ between cases, and their values.
    pub labels: Vec<(String, String)>,
    /// Inputs of the case's transactions.
    pub scenario: Arc<dyn SimulatedScenario>,
    /// Effects on packets that must come.
    pub required: Pattern,
}

/// All cases of a simulation.
#[derive(Clone, Debug)]
pub struct SimulationCases {
    /// Common properties, in words.
    pub title: String,
    /// Cases, with the same labels in the same order.
    pub list: Vec<SimulationCase>,
}

/// Inputs of all cases over TCP.
#[derive(Clone, Debug)]
pub struct CaseOptions {
    /// Requests and replies of every case.
    pub service: SimulatedService,
    /// Name of the client's TCP profile.
    pub client_tcp: String,
    /// Name of the server's TCP profile.
    pub server_tcp: String,
    /// Remedies that both ends have in every case.
    pub recovery: Vec<Remedies>,
    /// Sets of remedies to compare. Empty for no comparison.
    pub compare: Vec<Remedies>,
    /// Paths.
    pub paths: Vec<CasePath>,
    /// Effects on packets.
    pub effects: Vec<PacketEffects>,
}

/// A path between the ends.
#[derive(Clone, Debug)]
pub struct CasePath {
    /// Options that differ between paths, and their values.
    pub labels: Vec<(String, String)>,
    /// Plans of the links, up and down, without a script.
    pub plans: [Plan; 2],
}

/// A combination of a path and of effects on packets, before the ends are added.
#[derive(Clone, Debug)]
pub struct CaseLinks {
    /// Options that differ between combinations, and their values.
    pub labels: Vec<(String, String)>,
    /// Plans of the links, up and down.
    pub plans: [Plan; 2],
    /// Effects on packets that must come.
    pub required: Pattern,
}

/// Effects on single packets.
#[derive(Clone, Debug, Default)]
pub struct PacketEffects {
    /// Position of the packet that is dropped in this case.
    pub position: Option<DroppedPosition>,
    /// All effects.
    pub pattern: Pattern,
    /// Effects on packets that must come.
    pub required: Pattern,
}

/// Reason for which cases cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CaseError {
    /// `all` as the remedies of every case.
    #[error("--recovery all: remedies exclude each other; --compare all tries each")]
    AllRemedies,
    /// Too many combinations.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// An unknown TCP profile.
    #[error(transparent)]
    Profile(#[from] UnknownProfile),
    /// An invalid scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// Label of the compared remedies.
pub(crate) const RECOVERY: &str = "recovery";
/// Label of the compared paths.
pub(crate) const PATH: &str = "path";
/// The path of a comparison that has losses as given.
pub(crate) const AS_GIVEN: &str = "as given";
/// The path of a comparison that reorders in place of losing.
pub(crate) const REORDERED: &str = "reordered";

/// Position of a dropped packet: of the server unless a direction is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DroppedPosition {
    direction: Direction,
    /// From 1. 0 means none.
    position: u64,
}

/// Error in a position, or in a list of positions.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PositionError {
    /// Not a position.
    #[error("{text:?}: write a packet's place, as in 8, 0..12 or up:3")]
    Spelling {
        /// The text.
        text: String,
    },
    /// Invalid list or range.
    #[error(transparent)]
    Sweep(#[from] SweepError),
}

impl DroppedPosition {
    /// The drop in the form of `--drop`, such as `down:8`. None for position 0.
    pub fn drop_option(self) -> Option<String> {
        let Self {
            direction,
            position,
        } = self;
        (position > 0).then(|| format!("{direction}:{position}"))
    }
}

impl FromStr for DroppedPosition {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        let (direction, position) = match text.split_once(':') {
            Some((direction, position)) => (direction.parse().ok(), position),
            None => (Some(Direction::Down), text),
        };
        let wrong = || PositionError::Spelling {
            text: text.to_owned(),
        };
        Ok(Self {
            direction: direction.ok_or_else(wrong)?,
            position: position.parse().map_err(|_| wrong())?,
        })
    }
}

impl fmt::Display for DroppedPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.direction {
            Direction::Down => write!(f, "{}", self.position),
            Direction::Up => write!(f, "up:{}", self.position),
        }
    }
}

/// A list or range of positions: `0..12`.
#[derive(Clone, Debug)]
pub struct DroppedPositions(pub Vec<DroppedPosition>);

impl FromStr for DroppedPositions {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        let positions = expand(text)?;
        let positions = positions.iter().map(|position| position.parse());
        positions.collect::<Result<_, _>>().map(Self)
    }
}

/// Remedies that are used together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedies {
    /// The listed ones.
    These(Vec<Remedy>),
    /// Every existing remedy, one by one.
    All,
}

impl FromStr for Remedies {
    type Err = UnknownRemedy;

    fn from_str(text: &str) -> Result<Self, UnknownRemedy> {
        match text {
            "all" => Ok(Self::All),
            "none" => Ok(Self::These(Vec::new())),
            _ => {
                let remedies = text.split('+').map(str::parse::<Remedy>);
                remedies.collect::<Result<_, _>>().map(Self::These)
            }
        }
    }
}

impl SimulationCases {
    /// Creates all cases over TCP. Returns an error if one of them cannot be simulated.
    pub fn new(options: CaseOptions) -> Result<Self, CaseError> {
        let base = options.base()?;
        let variants = options.variants(&base)?;
        let title = options.title(&base);
        let service = Arc::new(options.service.clone());
        let CaseOptions { paths, effects, .. } = &options;
        Self::combine(title, paths, effects, &variants, |links, variant| {
            variant.case(links, &service).map_err(CaseError::from)
        })
    }

    /// Creates a case for each combination of a path, effects on packets and a variant of the ends. The variants vary
    /// fastest.
    pub fn combine<V, E: From<SweepError>>(
        title: String,
        paths: &[CasePath],
        effects: &[PacketEffects],
        variants: &[V],
        case: impl Fn(CaseLinks, &V) -> Result<SimulationCase, E>,
    ) -> Result<Self, E> {
        let count = paths.len() * effects.len() * variants.len();
        check_count(count)?;
        let mut list = Vec::with_capacity(count);
        for path in paths {
            for effect in effects {
                let mut labels = path.labels.clone();
                if let Some(position) = effect.position.filter(|_| effects.len() > 1) {
                    labels.push(("position".to_owned(), position.to_string()));
                }
                let links = CaseLinks {
                    labels,
                    plans: effect.plans(path),
                    required: effect.required.clone(),
                };
                for variant in variants {
                    list.push(case(links.clone(), variant)?);
                }
            }
        }
        debug_assert_eq!(list.len(), count, "each combination is one case");
        Ok(Self { title, list })
    }

    /// Properties of the link that all combinations have in common. The reordered path of a comparison is excluded.
    pub fn common_properties(&self) -> Vec<Property> {
        let given =
            |case: &&SimulationCase| !case.labels.iter().any(|(_, value)| value == REORDERED);
        let mut cases = self.list.iter().filter(given);
        let properties_of = |case: &SimulationCase| properties(case.scenario.plans());
        let Some(first) = cases.next() else {
            return Vec::new();
        };
        cases.fold(properties_of(first), |mut common, case| {
            let others = properties_of(case);
            common.retain(|property| others.contains(property));
            common
        })
    }

    /// True if the result of a case depends on chance.
    pub fn by_chance(&self) -> bool {
        let plans = self.list.iter().flat_map(|case| case.scenario.plans());
        let mut plans = plans.map(|plan| {
            plan.loss.is_some()
                || plan.jitter.is_some()
                || plan.reordering.is_some()
                || plan.duplication.get() > 0.0
                || plan.bit_error_rate.get() > 0.0
                || plan.background.is_some()
                || plan
                    .script
                    .as_ref()
                    .is_some_and(|script| script.changes_loss())
        });
        plans.any(|by_chance| by_chance)
    }

    /// True if an end's timers expire at ticks. The result then depends on the start time.
    pub fn by_ticks(&self) -> bool {
        self.list.iter().any(|case| case.scenario.has_ticks())
    }
}

/// The first dropped position after the last packet.
pub(crate) fn first_beyond(script: &Script, most: u64) -> Option<u64> {
    let drops = script.entries().filter(|(range, effect)| {
        *effect == Effect::Drop && range.axis == Axis::Packets && range.last > most
    });
    drops.map(|(range, _)| range.first.max(most + 1)).min()
}

impl PacketEffects {
    /// The plans of a path, with the scripts of these effects.
    fn plans(&self, path: &CasePath) -> [Plan; 2] {
        Direction::BOTH.map(|direction| {
            let script = self.pattern.script(direction);
            Plan {
                script: (**script != Script::default()).then(|| script.clone()),
                ..path.plans[direction as usize].clone()
            }
        })
    }
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
        links: CaseLinks,
        service: &Arc<SimulatedService>,
    ) -> Result<SimulationCase, ScenarioError> {
        let mut labels = links.labels;
        labels.extend(self.labels.iter().cloned());
        let plan = |plan: &Plan| {
            if self.reorders {
                Arc::new(reordered(plan))
            } else {
                Arc::new(plan.clone())
            }
        };
        let scenario = Scenario {
            client: self.client.clone(),
            server: self.server.clone(),
            plans: links.plans.each_ref().map(plan),
            service: service.clone(),
        };
        scenario.check()?;
        let required = if self.reorders {
            Pattern::default()
        } else {
            links.required
        };
        Ok(SimulationCase {
            labels,
            scenario: Arc::new(scenario),
            required,
        })
    }
}

/// The same path without losses and bit errors, and with reordering.
fn reordered(plan: &Plan) -> Plan {
    let usual = || {
        let usual = REORDERING.parse::<Reordering>();
        usual.expect("the constant is a valid reordering")
    };
    Plan {
        loss: None,
        bit_error_rate: Ratio::default(),
        script: None,
        reordering: plan.reordering.or_else(|| Some(usual())),
        ..plan.clone()
    }
}

/// Names of remedies that are used together, as they are typed.
fn joined(remedies: &[Remedy]) -> String {
    let names: Vec<&str> = remedies.iter().map(|remedy| remedy.name()).collect();
    names.join("+")
}

/// The exchanges of a connection in words: the beginning of the title of cases. Empty without exchanges.
pub fn exchanges_title(exchanges: &[SimulatedExchange]) -> String {
    let Some(exchange) = exchanges.first() else {
        return String::new();
    };
    let times = match exchanges.len() {
        1 => String::new(),
        count => format!(", {count} times on a connection"),
    };
    format!(
        "request of {} bytes, {} of processing, reply of {} bytes{times}",
        exchange.request, exchange.processing, exchange.reply
    )
}

impl CaseOptions {
    fn title(&self, base: &[Remedy]) -> String {
        let ends = if self.client_tcp == self.server_tcp {
            format!("{} at both ends", self.client_tcp)
        } else {
            format!("client {}, server {}", self.client_tcp, self.server_tcp)
        };
        let with = if base.is_empty() {
            String::new()
        } else {
            format!(", with {}", joined(base))
        };
        format!("{}; {ends}{with}", exchanges_title(&self.service.exchanges))
    }

    /// The remedies that both ends have in every case.
    fn base(&self) -> Result<Vec<Remedy>, CaseError> {
        let mut base = Vec::new();
        for remedies in &self.recovery {
            match remedies {
                Remedies::These(these) => base.extend_from_slice(these),
                Remedies::All => return Err(CaseError::AllRemedies),
            }
        }
        Ok(base)
    }

    /// The ends to compare, or the ends as given.
    fn variants(&self, base: &[Remedy]) -> Result<Vec<Variant>, UnknownProfile> {
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
            let [client, server] = [&self.client_tcp, &self.server_tcp];
            let [client, server] = [profile::named(client)?, profile::named(server)?]
                .map(|profile| Arc::new(profile.with(&remedies)));
            let name = if set.is_empty() {
                "none".to_owned()
            } else {
                joined(&set)
            };
            let paths: &[(&str, bool)] = if self.compare.is_empty() {
                &[("", false)]
            } else {
                &[(AS_GIVEN, false), (REORDERED, true)]
            };
            for (path, reorders) in paths {
                let labels = [(RECOVERY, name.as_str()), (PATH, path)];
                let labels = labels.map(|(option, value)| (option.to_owned(), value.to_owned()));
                variants.push(Variant {
                    labels: if self.compare.is_empty() {
                        Vec::new()
                    } else {
                        labels.into()
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
