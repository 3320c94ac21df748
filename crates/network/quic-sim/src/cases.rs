//! Cases of a simulation over QUIC: every combination of paths and effects on packets, as a scenario with labels.

use std::sync::Arc;

use posthaste_sim::sweep::SweepError;
use posthaste_sim::{
    CasePath, PacketEffects, ScenarioError, SimulatedExchange, SimulationCase, SimulationCases,
    exchanges_title,
};
use thiserror::Error;

use crate::{QuicOptions, QuicScenario};

/// Inputs of all cases.
#[derive(Clone, Debug)]
pub struct QuicCaseOptions {
    /// Options of both ends.
    pub options: QuicOptions,
    /// Requests and replies of every case.
    pub exchanges: Vec<SimulatedExchange>,
    /// Paths.
    pub paths: Vec<CasePath>,
    /// Effects on packets.
    pub effects: Vec<PacketEffects>,
}

/// Reason for which cases cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QuicCaseError {
    /// Too many combinations.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// An invalid scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// Creates all cases. Returns an error if one of them cannot be simulated.
pub fn quic_cases(given: QuicCaseOptions) -> Result<SimulationCases, QuicCaseError> {
    let title = given.title();
    let exchanges: Arc<[SimulatedExchange]> = given.exchanges.into();
    let variants = [given.options];
    SimulationCases::combine(
        title,
        &given.paths,
        &given.effects,
        &variants,
        |links, options| {
            let scenario = QuicScenario {
                options: options.clone(),
                plans: links.plans.map(Arc::new),
                exchanges: exchanges.clone(),
                behaviour: None,
            };
            scenario.check()?;
            Ok(SimulationCase {
                labels: links.labels,
                scenario: Arc::new(scenario),
                required: links.required,
            })
        },
    )
}

impl QuicCaseOptions {
    fn title(&self) -> String {
        let QuicOptions {
            initial_rtt,
            datagram,
            initial_window,
            certificate,
            ..
        } = &self.options;
        let exchanges = exchanges_title(&self.exchanges);
        let mut title = format!(
            "{exchanges}; QUIC, initial RTT {initial_rtt}, datagrams of {datagram} bytes, \
             window {initial_window}, certificate {certificate}"
        );
        if let Some(delay) = self.options.ack_delay {
            title += &format!(", acknowledgements after {delay}");
        }
        if let Some(packets) = self.options.ack_frequency {
            title += &format!(", one for {packets} packets");
        }
        title
    }
}
