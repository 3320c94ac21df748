//! Description of a simulation over QUIC as data: the ends, the links, the service.

use std::sync::Arc;

use posthaste_draw::Ladder;
use posthaste_link::Plan;
use posthaste_sim::{
    ScenarioError, SimulatedExchange, SimulatedScenario, Totals, TransactionSimulator,
    check_exchanges, check_plans,
};
use posthaste_units::{Seed, Span};

use crate::ladder::quic_ladder;
use crate::{QuicOptions, QuicSimulator};

/// Transactions of a batch: some ten milliseconds, because each has the cryptography of a handshake.
const BATCH: u64 = 32;

/// All inputs of a transaction except its number and the seed.
#[derive(Clone, Debug)]
pub struct QuicScenario {
    /// Options of both ends.
    pub options: QuicOptions,
    /// Plans of the links: up, down.
    pub plans: [Arc<Plan>; 2],
    /// Requests and their replies in sequence, each pair on its own stream.
    pub exchanges: Arc<[SimulatedExchange]>,
    /// Behaviour of the ends beyond the state machines. `None` for the state machines alone.
    pub behaviour: Option<EndBehaviour>,
}

/// Behaviour of ends with sockets and tasks, and changes of their programs.
///
/// The endpoint of a server with quinn is a task of its own. It issues connection identifiers after the connection has
/// sent its first flight, so that they are in a datagram of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndBehaviour {
    /// Bytes of the stream that the client and the server open first, such as the control streams of HTTP/3 (RFC 9114,
    /// section 6.2.1). 0 for none. The server opens its own after it has sent what the handshake made it send.
    pub openings: [u32; 2],
    /// Bytes that the server writes behind each reply. The client has the reply without them.
    pub padding: u32,
    /// Time without new bytes of a reply that has begun after which the client sends a PING, again and again.
    pub receiver_probe: Option<Span>,
    /// A handshake of the server that is not ready when the client's first packet arrives. `None` if it is.
    pub late_handshake: Option<LateHandshake>,
}

/// A handshake of a server that is ready some time after the client's first packet, for example because another server
/// has the key of its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateHandshake {
    /// Time between the arrival of the first packet and the server's first handshake message. At zero an
    /// acknowledgement leaves with the handshake.
    pub after: Span,
    /// The server acknowledges the first packet at once, in a datagram of its own. Otherwise it sends nothing before
    /// its handshake, and drops what arrives in the meantime.
    pub acknowledges: bool,
}

impl QuicScenario {
    /// Returns an error if the scenario cannot be simulated.
    pub fn check(&self) -> Result<(), ScenarioError> {
        check_plans(&self.plans)?;
        check_exchanges(&self.exchanges)?;
        self.options
            .check()
            .map_err(|error| ScenarioError::Transport {
                reason: error.to_string(),
            })
    }

    /// Longest time in which neither program acts.
    pub(crate) fn silence(&self) -> Span {
        let exchanges = self.exchanges.iter();
        let times = exchanges.map(|exchange| exchange.processing.max(exchange.pause));
        times.max().unwrap_or_default()
    }

    /// Bytes of all requests and replies.
    pub(crate) fn bytes(&self) -> u64 {
        let exchanges = self.exchanges.iter();
        exchanges.fold(0, |sum, exchange| {
            sum.saturating_add(exchange.request)
                .saturating_add(exchange.reply)
        })
    }
}

impl SimulatedScenario for QuicScenario {
    fn plans(&self) -> [&Plan; 2] {
        self.plans.each_ref().map(|plan| &**plan)
    }

    fn batch(&self) -> u64 {
        BATCH
    }

    fn simulator(&self, seed: Seed) -> Result<Box<dyn TransactionSimulator>, ScenarioError> {
        Ok(Box::new(QuicSimulator::new(self.clone(), seed)?))
    }

    fn ladder(&self, seed: Seed, number: u64) -> Result<Ladder, ScenarioError> {
        quic_ladder(self, seed, number)
    }
}

impl TransactionSimulator for QuicSimulator {
    fn add_to(&mut self, totals: &mut Totals, number: u64) {
        totals.add_connection(&self.play(number).completed());
    }
}
