//! The same transactions in virtual time.
//!
//! A transaction is identified by a seed and a number, as in the paper's study. Delays that vary come from both.

use std::sync::Arc;

use posthaste_quic_sim::{DatagramTrace, EndBehaviour, QuicOptions, QuicScenario, QuicSimulator};
use posthaste_sim::{
    Closer, PacketTrace, Scenario, SimulatedExchange, SimulatedService, Simulator,
};
use posthaste_study::Failure;
use posthaste_tcp::profile;
use posthaste_units::{ResponseTime, Seed, Span};

use super::server::{CERTIFICATE, reply_body};
use super::testbed::request_body;
use super::transport::{QuicJob, Transport};

/// Bytes of the frames of HTTP/3 in addition to the bodies, with our generator and server.
const REQUEST_FRAMES: u32 = 64;
const REPLY_FRAMES: u32 = 38;
/// Bytes of the control streams of HTTP/3 of our generator and server.
const OPENINGS: [u32; 2] = [12, 12];
/// Bytes of the messages of TLS 1.3: the client's first, the server's, and the client's last.
const TLS_MESSAGES: [u64; 3] = [233, 602, 80];
/// Bytes that TLS adds to a message of less than 16 KiB.
const TLS_RECORD: u64 = 22;
/// The profile of both ends over TCP.
const KERNEL: &str = "linux-6";

/// A simulated transaction.
#[derive(Clone, Debug)]
pub(in super::super) struct VirtualExchange {
    /// Its response time, if the reply was complete.
    pub(in super::super) response: Option<Span>,
    /// Packets from the client and from the server, with the bytes of each.
    pub(in super::super) packets: [Vec<u32>; 2],
}

/// The simulator of one job.
pub(in super::super) enum ExchangeSimulator {
    /// With the number of its exchanges.
    Tcp(Box<Simulator>, usize),
    Quic(Box<QuicSimulator>),
}

/// Options and behaviour of simulated ends.
#[derive(Clone, Debug)]
pub(in super::super) struct QuicEnds {
    pub(in super::super) options: QuicOptions,
    pub(in super::super) behaviour: EndBehaviour,
    /// End that closes a TCP connection. The client does so after it has the reply of a kept one.
    pub(in super::super) closer: Closer,
}

/// The generator and the server of the emulated transactions.
pub(in super::super) fn usual() -> QuicEnds {
    QuicEnds {
        options: QuicOptions {
            datagram: 1200,
            initial_window: 12_000,
            certificate: CERTIFICATE,
            ..QuicOptions::default()
        },
        behaviour: EndBehaviour {
            openings: OPENINGS,
            ..EndBehaviour::default()
        },
        closer: Closer::Server,
    }
}

impl ExchangeSimulator {
    /// Creates the simulator of a job. `varies` is true if the delays vary as in the paper.
    pub(in super::super) fn new(
        job: &QuicJob,
        ends: &QuicEnds,
        processing: Span,
        varies: bool,
        seed: Seed,
    ) -> Result<Self, Failure> {
        let plans = job.lost.plans(job.line, varies)?;
        let exchange = |request: u64, processing, reply: u64| SimulatedExchange {
            pause: Span::ZERO,
            request,
            processing,
            reply,
        };
        let (request, reply) = (job.service.request.into(), job.service.reply.into());
        let exchanges = match job.transport {
            Transport::Tcp => vec![exchange(request, processing, reply)],
            Transport::Tls => {
                let [hello, server, finished] = TLS_MESSAGES;
                vec![
                    exchange(hello, Span::ZERO, server),
                    exchange(
                        finished + request + TLS_RECORD,
                        processing,
                        reply + TLS_RECORD,
                    ),
                ]
            }
            Transport::Quic => {
                let request = request_body(job.service) + REQUEST_FRAMES;
                let reply = reply_body(job.service) + REPLY_FRAMES;
                let scenario = QuicScenario {
                    options: ends.options.clone(),
                    plans,
                    exchanges: vec![exchange(request.into(), processing, reply.into())].into(),
                    behaviour: Some(ends.behaviour),
                };
                return Ok(Self::Quic(Box::new(QuicSimulator::new(scenario, seed)?)));
            }
        };
        let count = exchanges.len();
        let mut service = SimulatedService::single(0, Span::ZERO, 0);
        service.exchanges = exchanges;
        service.closer = ends.closer;
        let kernel = Arc::new(profile::named(KERNEL)?.with(&[]));
        let scenario = Scenario {
            client: kernel.clone(),
            server: kernel,
            plans,
            service: Arc::new(service),
        };
        Ok(Self::Tcp(Box::new(Simulator::new(scenario, seed)?), count))
    }

    /// Simulates transaction `number`.
    pub(in super::super) fn play(&mut self, number: u64) -> VirtualExchange {
        match self {
            Self::Tcp(simulator, exchanges) => {
                let mut trace = PacketTrace::new();
                let played = simulator.play_from(None, number, &mut trace);
                let whole = played.responses.len() == *exchanges;
                let total = played.responses.iter().map(ResponseTime::total);
                let response = total.fold(Span::ZERO, |sum, time| sum + time);
                let mut packets = [Vec::new(), Vec::new()];
                for packet in trace.packets() {
                    packets[packet.direction as usize].push(packet.segment.len + 52);
                }
                VirtualExchange {
                    response: whole.then_some(response),
                    packets,
                }
            }
            Self::Quic(simulator) => {
                let mut trace = DatagramTrace::new();
                let played = simulator.play_before(number, &mut trace);
                let response = played.responses.first().map(|time| time.total());
                let mut packets = [Vec::new(), Vec::new()];
                for datagram in trace
                    .datagrams()
                    .iter()
                    .filter(|datagram| datagram.copy == 0)
                {
                    packets[datagram.direction as usize].push(datagram.bytes as u32 + 28);
                }
                VirtualExchange { response, packets }
            }
        }
    }
}
