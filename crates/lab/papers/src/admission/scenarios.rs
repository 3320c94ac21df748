//! The loads, and the requests of the clients.
//!
//! Ten clients send to a shop with a capacity of [`CAPACITY`]. Important requests are half of the capacity in every
//! scenario, so that a proxy can serve all of them. The remaining load is requests that are not important.

use std::f64::consts::TAU;
use std::net::SocketAddr;

use posthaste_broker_client::accounts::AccountKey;
use posthaste_load::{Arrivals, Backoff, Pace, Plan, RateStep, RequestSpec, RetryPolicy};
use posthaste_study::Failure;
use posthaste_study::lab::Cores;
use posthaste_units::{Rate, Seed, Span};

/// Service time of a request: M/D/1.
pub(super) const SERVICE: Span = Span::from_millis(5);
/// Requests per second that the shop can serve.
pub(super) const CAPACITY: f64 = 200.0;
/// Maximum useful response time.
pub(super) const DEADLINE: Span = Span::from_millis(200);
/// Clients wait this long for a reply.
pub(super) const TIMEOUT: Span = Span::from_secs(1);
/// Number of clients. The first one is hostile in [`ScenarioKind::Hostile`].
pub(super) const CLIENTS: usize = 10;
/// Field with the API key of a client.
pub(super) const KEY_FIELD: &str = "X-Api-Key";
/// Length of the parts in which the recovery after a storm is observed.
pub(super) const SLICE: Span = Span::from_millis(250);

/// Important load, as a share of the capacity.
const IMPORTANT: f64 = 0.5;
/// Requests per second of each client in its equal part of the capacity: important and other.
pub(super) const FAIR: [f64; 2] = {
    let all = CAPACITY / CLIENTS as f64;
    [IMPORTANT * all, (1.0 - IMPORTANT) * all]
};
/// Maximum price that a request states, in millionths of EUR: important and other.
pub(super) const MAX_PRICES: [u64; 2] = [900_000, 100_000];
/// Load that can be served, as a share of the capacity.
const NORMAL: f64 = 0.8;
/// Load of the hostile client compared with that of each other client.
const HOSTILE: f64 = 10.0;
/// Maximum price that the hostile client states, in millionths of EUR.
const HOSTILE_PRICE: u64 = 1_000_000_000;
/// Load of each other client next to a hostile one, as a share of the capacity. Ten such clients are the normal load.
const MODEST: f64 = NORMAL / CLIENTS as f64;
/// Straight lines per period of a sine.
const CHORDS: u64 = 16;
/// Retries of each request in a storm.
const RETRIES: u32 = 3;

/// Makes an API key for each client.
pub(super) fn keys() -> Result<Vec<AccountKey>, Failure> {
    let keys = (0..CLIENTS).map(|_| AccountKey::make());
    Ok(keys.collect::<Result<_, _>>()?)
}

/// Course of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ScenarioKind {
    /// A constant load.
    Constant,
    /// A sine between [`NORMAL`] and the maximum.
    Sine,
    /// Normal load, overload by clients that retry, and normal load again.
    Storm(Backoff),
    /// Nine clients that could be served, and one with ten times the load of each.
    Hostile,
}

/// A scenario: the course of the load and its maximum, as a multiple of the capacity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    pub(super) kind: ScenarioKind,
    pub(super) load: f64,
}

/// Lengths of the phases of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseLengths {
    /// Time before the evaluation, at the first load.
    pub(super) warm_up: Span,
    /// Evaluated time of a constant load and of a sine, and the overload of a storm.
    pub(super) length: Span,
    /// Observed time after a storm.
    pub(super) after: Span,
    /// Period of a sine.
    pub(super) period: Span,
}

/// A part of the course with linear load, in multiples of the capacity, the important load included.
#[derive(Clone, Copy)]
struct LoadStretch {
    from: f64,
    to: f64,
    length: Span,
}

impl Scenario {
    /// The load of a hostile client next to the others.
    pub(super) const fn hostile() -> Self {
        Self {
            kind: ScenarioKind::Hostile,
            load: MODEST * (HOSTILE + CLIENTS as f64 - 1.0),
        }
    }

    /// Name in records.
    pub(super) fn name(&self) -> String {
        match self.kind {
            ScenarioKind::Constant => format!("{} times", self.load),
            ScenarioKind::Sine => format!("sine up to {} times", self.load),
            ScenarioKind::Storm(Backoff::None) => "storm without back-off".to_owned(),
            ScenarioKind::Storm(backoff) => format!("storm, {backoff}"),
            ScenarioKind::Hostile => "hostile client".to_owned(),
        }
    }

    /// Number of the last parts of the course after a storm. Zero without a storm.
    pub(super) fn parts_after(&self, lengths: &PhaseLengths) -> usize {
        match self.kind {
            ScenarioKind::Storm(_) => (lengths.after.as_nanos() / SLICE.as_nanos()) as usize,
            _ => 0,
        }
    }

    fn course(&self, lengths: &PhaseLengths) -> Vec<LoadStretch> {
        let steady = |load, length| LoadStretch {
            from: load,
            to: load,
            length,
        };
        match self.kind {
            ScenarioKind::Constant | ScenarioKind::Hostile => {
                vec![steady(self.load, lengths.length)]
            }
            ScenarioKind::Sine => {
                let chords = CHORDS * lengths.length.as_nanos() / lengths.period.as_nanos().max(1);
                let chord = |number| LoadStretch {
                    from: self.sine(number),
                    to: self.sine(number + 1),
                    length: lengths.period / CHORDS,
                };
                (0..chords).map(chord).collect()
            }
            ScenarioKind::Storm(_) => {
                let after = vec![steady(NORMAL, SLICE); self.parts_after(lengths)];
                let storm = [
                    steady(NORMAL, lengths.warm_up),
                    steady(self.load, lengths.length),
                ];
                storm.into_iter().chain(after).collect()
            }
        }
    }

    /// Load after this number of chords of the sine, from the minimum.
    fn sine(&self, number: u64) -> f64 {
        let part = number as f64 / CHORDS as f64;
        NORMAL + (self.load - NORMAL) * (1.0 - (TAU * part).cos()) / 2.0
    }

    /// Requests that the shop can serve in the evaluated time.
    pub(super) fn possible(&self, lengths: &PhaseLengths) -> f64 {
        let course = self.course(lengths);
        let work = course.iter().map(|part| {
            let load = f64::midpoint(part.from, part.to);
            load.min(1.0) * part.length.as_secs_f64()
        });
        CAPACITY * work.sum::<f64>()
    }

    /// The plans of the important and of the other requests to a proxy. They run at the same time. Each client has the
    /// key of its number.
    pub(super) fn plans(
        &self,
        proxy: SocketAddr,
        page: &str,
        lengths: &PhaseLengths,
        seed: Seed,
        cores: Cores,
        keys: &[AccountKey],
    ) -> Result<[Plan; 2], Failure> {
        let plan = |important: bool| {
            let step = |part: &LoadStretch| {
                let load = |total: f64| {
                    if important {
                        IMPORTANT
                    } else {
                        total - IMPORTANT
                    }
                };
                let rate = |total| Rate::per_second(load(total) * CAPACITY).ok_or("no rate");
                Ok::<_, Failure>(RateStep {
                    from: rate(part.from)?,
                    to: rate(part.to)?,
                    length: part.length,
                })
            };
            let steps = self.course(lengths);
            let steps = steps.iter().map(step).collect::<Result<_, _>>()?;
            let clients = keys.iter().enumerate();
            let requests = clients.map(|(client, key)| {
                self.request(format!("http://{proxy}{page}"), client, key, important)
            });
            let pace = Pace::Open {
                arrivals: Arrivals::Poisson,
                steps,
            };
            Ok::<_, Failure>(Plan {
                warm_up: match self.kind {
                    ScenarioKind::Storm(_) => Span::ZERO,
                    _ => lengths.warm_up,
                },
                timeout: TIMEOUT,
                retries: match self.kind {
                    ScenarioKind::Storm(backoff) => Some(RetryPolicy {
                        limit: RETRIES,
                        backoff,
                    }),
                    _ => None,
                },
                seed: seed.child(if important { "important" } else { "other" }),
                cpus: cores.generator.into_iter().collect(),
                ..Plan::new(requests.collect(), pace)
            })
        };
        Ok([plan(true)?, plan(false)?])
    }

    /// The request of a client. It states its client, its key, its tier and its maximum price.
    fn request(
        &self,
        url: String,
        client: usize,
        key: &AccountKey,
        important: bool,
    ) -> RequestSpec {
        let is_hostile = self.kind == ScenarioKind::Hostile && client == 0;
        let tier = if important { "important" } else { "other" };
        let price = if is_hostile {
            // A maximum price costs nothing to state.
            HOSTILE_PRICE
        } else {
            MAX_PRICES[usize::from(!important)]
        };
        let price = format!("{} EUR", posthaste_qos::decimal_text(price));
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        RequestSpec {
            name: format!("{client} {tier}"),
            weight: if is_hostile && !important {
                // Important requests are the same for all clients; the others make up the rest of the load.
                (HOSTILE * MODEST - IMPORTANT / CLIENTS as f64)
                    / (MODEST - IMPORTANT / CLIENTS as f64)
            } else {
                1.0
            },
            headers: vec![
                field("X-Client", &client.to_string()),
                field(KEY_FIELD, key.secret()),
                field("X-Tier", tier),
                field("Max-Price", &price),
            ],
            ..RequestSpec::get(url)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const LENGTHS: PhaseLengths = PhaseLengths {
        warm_up: Span::from_secs(1),
        length: Span::from_secs(4),
        after: Span::from_secs(2),
        period: Span::from_secs(2),
    };

    fn plans(scenario: Scenario) -> [Plan; 2] {
        let proxy = ([127, 0, 0, 1], 1).into();
        let cores = Cores {
            server: None,
            generator: None,
        };
        scenario
            .plans(proxy, "/", &LENGTHS, Seed(1), cores, &keys().unwrap())
            .unwrap()
    }

    fn expected(plan: &Plan) -> f64 {
        plan.expected().unwrap() as f64
    }

    #[test]
    fn important_requests_are_half_the_capacity_in_all_scenarios() {
        let scenario = |kind, load| Scenario { kind, load };
        for scenario in [
            scenario(ScenarioKind::Constant, 10.0),
            scenario(ScenarioKind::Sine, 5.0),
            scenario(ScenarioKind::Storm(Backoff::None), 2.0),
            Scenario::hostile(),
        ] {
            let [important, other] = plans(scenario);
            let seconds = important.length().as_secs_f64();
            assert_eq!(expected(&important), 100.0 * seconds, "{scenario:?}");
            assert_eq!(important.length(), other.length());
        }
        let [_, other] = plans(scenario(ScenarioKind::Constant, 10.0));
        assert_eq!(expected(&other), 4.0 * 1_900.0);
    }

    #[test]
    fn a_hostile_client_sends_ten_times_as_much_as_each_other() {
        let plans = plans(Scenario::hostile());
        let of_client = |client: usize| {
            let rates = plans.iter().map(|plan| {
                let total: f64 = plan.requests.iter().map(|request| request.weight).sum();
                expected(plan) * plan.requests[client].weight / total
            });
            rates.sum::<f64>() / 4.0
        };
        let rates: Vec<f64> = (0..CLIENTS).map(of_client).collect();
        assert!((rates[0] - 160.0).abs() < 0.5, "{rates:?}");
        assert!(
            rates[1..].iter().all(|rate| (rate - 16.0).abs() < 0.1),
            "{rates:?}"
        );
    }

    #[test]
    fn each_request_has_the_key_of_its_client() {
        let plans = plans(Scenario::hostile());
        let keys = plans.each_ref().map(|plan| {
            let fields = plan.requests.iter().flat_map(|request| &request.headers);
            let keys = fields.filter(|(name, _)| name == KEY_FIELD);
            keys.map(|(_, key)| key.clone()).collect::<Vec<_>>()
        });
        assert_eq!(keys[0].len(), CLIENTS);
        assert_eq!(keys[0], keys[1]);
        let different: HashSet<&String> = keys[0].iter().collect();
        assert_eq!(different.len(), CLIENTS);
    }

    #[test]
    fn no_more_is_possible_than_load_and_capacity() {
        let possible = |kind, load| Scenario { kind, load }.possible(&LENGTHS);
        assert_eq!(possible(ScenarioKind::Constant, 5.0), 800.0);
        let sine = possible(ScenarioKind::Sine, 5.0);
        assert!(sine > 780.0 && sine < 800.0, "{sine}");
        let storm = possible(ScenarioKind::Storm(Backoff::None), 2.0);
        assert!((storm - (160.0 + 800.0 + 320.0)).abs() < 1e-9, "{storm}");
    }

    #[test]
    fn storm_clients_retry_and_their_recovery_is_seen_in_parts() {
        let scenario = Scenario {
            kind: ScenarioKind::Storm(Backoff::None),
            load: 2.0,
        };
        let [important, _] = plans(scenario);
        assert_eq!(important.retries.map(|policy| policy.limit), Some(RETRIES));
        let Pace::Open { steps, .. } = important.pace else {
            panic!("no rate");
        };
        assert_eq!((steps.len(), scenario.parts_after(&LENGTHS)), (2 + 8, 8));
    }
}
