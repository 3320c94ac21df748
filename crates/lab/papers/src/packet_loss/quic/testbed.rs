//! Emulated transactions: the load generator and a server, each transaction on a line of its own.
//!
//! Transaction n has local port `FIRST_PORT` + n, and the port selects the line. The generator measures response times;
//! the emulator records what the line did with the packets.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use posthaste_emulator::{Emulation, EmulationOutcome, Flow, PacketRecord, SERVER, Setup, trace};
use posthaste_link::{Direction, Fate};
use posthaste_load::{
    Arrivals, AttemptRecorder, Connections, Multiplexing, Outcome, Pace, Plan, Protocol,
    QuicOptions, RequestSpec, TlsOptions, run_recorded,
};
use posthaste_study::{Conditions, Failure};
use posthaste_units::{Seed, Span};

use super::super::service::PaperService;
use super::server::{OfferedService, PORT, ServerFiles, StudyServer, path};
use super::transport::{LostPacket, QuicJob, Transport};
use crate::testbed::program::Folder;

/// Port of the first transaction.
const FIRST_PORT: u16 = 10_000;
/// Maximum number of transactions in one emulation, limited by their ports.
const MOST: usize = 50_000;
/// Concurrent transactions.
const AT_ONCE: usize = 128;
/// Minimum time between two transactions.
const SPACING: Span = Span::from_millis(2);
/// Time limit for a transaction.
const PATIENCE: Span = Span::from_secs(60);
/// Bytes of the head of the generator's HTTP/1.1 request, which the paper's length of a request includes.
const HEAD: u32 = 128;
/// Time of a server's program until it listens.
const START: Duration = Duration::from_millis(300);
/// Interval between checks of the progress.
const GLANCE: Duration = Duration::from_millis(20);

/// An emulated transaction.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct EmulatedExchange {
    /// Its response time, if the reply was complete.
    pub(in super::super) response: Option<Span>,
    /// Packets from the client and from the server, with the bytes of each.
    pub(in super::super) packets: [Vec<u32>; 2],
    /// Packets that the links dropped.
    pub(in super::super) dropped: Vec<(Direction, u64)>,
}

impl EmulatedExchange {
    /// True if the links dropped at most the packet that was planned, and it if there was one.
    pub(super) fn lost_as_planned(&self, lost: LostPacket) -> bool {
        let planned = match lost {
            LostPacket::Percent(_) => return true,
            LostPacket::None => None,
            LostPacket::Up(position) => Some((Direction::Up, u64::from(position))),
            LostPacket::Down(position) => Some((Direction::Down, u64::from(position))),
        };
        let was_sent = |(direction, position): &(Direction, u64)| {
            self.packets[*direction as usize].len() as u64 >= *position
        };
        self.dropped == planned.filter(was_sent).into_iter().collect::<Vec<_>>()
    }
}

/// All transactions in their order, with the accuracy of the emulator.
pub(in super::super) struct EmulatedExchanges {
    pub(in super::super) exchanges: Vec<EmulatedExchange>,
    pub(in super::super) outcome: EmulationOutcome,
    /// True if the run was stopped.
    pub(in super::super) stopped: bool,
}

/// Runs transactions with one server and reports the number of finished ones.
pub(in super::super) fn run(
    offered: &OfferedService,
    jobs: &[QuicJob],
    seed: Seed,
    conditions: &Conditions<'_>,
    report: impl Fn(usize),
) -> Result<EmulatedExchanges, Failure> {
    if jobs.len() > MOST {
        return Err(format!("{} transactions in one run: {MOST} at most", jobs.len()).into());
    }
    let mut running = Emulation::choosing(lines(jobs)?)
        .client(Setup::default())
        .server(Setup::default())
        .seed(seed)
        .real_time(true)
        .packet_records(trace::BUFFER)
        .start()?;
    let records = running.packet_records.take();
    let records = records.ok_or("there are no packet records")?;
    let folder = Folder::new();
    let files = ServerFiles::write(&folder.0)?;
    let server = StudyServer::start(&running.server, offered, &files)?;
    std::thread::sleep(START);
    let (stop, recorder) = (
        Arc::<AtomicBool>::default(),
        Arc::new(AttemptRecorder::new(FIRST_PORT)),
    );
    let generator = {
        let (stop, recorder, plan) = (stop.clone(), recorder.clone(), plan(offered, jobs));
        running
            .client
            .spawn(move || run_recorded(&plan, &stop, &recorder).map(drop))
    };
    let mut observed = PacketsByPort::default();
    let mut twentieths = 0;
    while !generator.is_finished() {
        stop.fetch_or(conditions.stopped(), Relaxed);
        std::thread::sleep(GLANCE);
        records.drain().for_each(|record| observed.note(&record));
        let now = recorder.count() * 20 / jobs.len().max(1);
        if std::mem::replace(&mut twentieths, now) != now {
            report(recorder.count());
        }
    }
    generator.join().map_err(|_| "the generator panicked")??;
    drop(server);
    let outcome = running.finish()?;
    records.drain().for_each(|record| observed.note(&record));
    Ok(EmulatedExchanges {
        exchanges: observed.exchanges(jobs.len(), &recorder),
        outcome,
        stopped: conditions.stopped(),
    })
}

/// The line of each connection, by its local port.
fn lines(
    jobs: &[QuicJob],
) -> Result<impl Fn(&Flow) -> [Arc<posthaste_link::Plan>; 2] + Send + Sync + 'static, Failure> {
    let plans = jobs.iter().map(|job| job.lost.plans(job.line, false));
    let plans = plans.collect::<Result<Vec<_>, _>>()?;
    Ok(move |flow: &Flow| {
        let job = flow.client.port().checked_sub(FIRST_PORT);
        let plans = job.and_then(|job| plans.get(usize::from(job)));
        plans.cloned().unwrap_or_default()
    })
}

/// Bytes of the body of a request whose HTTP/1.1 message has the length of the paper.
pub(super) const fn request_body(service: &PaperService) -> u32 {
    service.request - HEAD
}

/// The plan of the generator: one request on a new connection for each job.
fn plan(offered: &OfferedService, jobs: &[QuicJob]) -> Plan {
    let scheme = match offered.transport {
        Transport::Tcp => "http",
        Transport::Tls | Transport::Quic => "https",
    };
    let server = SocketAddr::from((SERVER.v4, PORT));
    let body = request_body(offered.service);
    let keep = ("Connection".to_owned(), "keep-alive".to_owned());
    let request = RequestSpec {
        method: "POST".to_owned(),
        headers: Vec::from_iter(offered.is_kept.then_some(keep)),
        body: "x".repeat(body as usize),
        ..RequestSpec::get(format!("{scheme}://{server}{}", path(offered.service)))
    };
    let pace = Pace::Open {
        arrivals: Arrivals::Trace(due_times(jobs, offered.processing).into()),
        steps: Vec::new(),
    };
    Plan {
        protocol: match offered.transport {
            Transport::Tcp | Transport::Tls => Protocol::Http1,
            Transport::Quic => Protocol::Http3 {
                multiplexing: Multiplexing::default(),
                quic: QuicOptions {
                    segmentation_offload: false,
                    ..QuicOptions::default()
                },
            },
        },
        connections: Connections::New,
        connect_timeout: PATIENCE,
        timeout: PATIENCE,
        connection_limit: MOST,
        tls: TlsOptions {
            insecure: true,
            ..TlsOptions::default()
        },
        ..Plan::new(vec![request], pace)
    }
}

/// Due times with about `AT_ONCE` transactions at a time.
fn due_times(jobs: &[QuicJob], processing: Span) -> Vec<Span> {
    let mut ends = BinaryHeap::new();
    let mut last = Span::ZERO;
    let time = |job: &QuicJob| {
        let time = job.line.lossless(job.service, processing, Span::ZERO) * 2;
        match job.lost {
            LostPacket::None => time,
            _ => time + Span::from_secs(1),
        }
    };
    let due = jobs.iter().map(|job| {
        let free = if ends.len() < AT_ONCE {
            Span::ZERO
        } else {
            ends.pop().map_or(Span::ZERO, |Reverse(end)| end)
        };
        last = free.max(last + SPACING);
        ends.push(Reverse(last + time(job)));
        last
    });
    due.collect()
}

/// Packets of each connection, by its local port.
#[derive(Default)]
struct PacketsByPort(HashMap<u16, ObservedPackets>);

/// Packets of a connection with their positions. A dropped packet is reported before earlier ones that wait in a queue.
#[derive(Default)]
struct ObservedPackets {
    packets: [Vec<(u64, u32)>; 2],
    dropped: Vec<(Direction, u64)>,
}

impl PacketsByPort {
    fn note(&mut self, record: &PacketRecord) {
        if record.copy != 0 {
            return;
        }
        let observed = self.0.entry(record.flow.client.port()).or_default();
        let position = (record.position, record.length);
        observed.packets[record.direction as usize].push(position);
        if let Fate::Dropped(_) = record.fate {
            observed.dropped.push((record.direction, record.position));
        }
    }

    fn exchanges(mut self, count: usize, recorder: &AttemptRecorder) -> Vec<EmulatedExchange> {
        let ports = (FIRST_PORT..).take(count);
        let observed = ports.map(|port| self.0.remove(&port).unwrap_or_default());
        let mut exchanges: Vec<_> = observed.map(EmulatedExchange::from).collect();
        for ended in recorder.ended() {
            let exchange = exchanges.get_mut(ended.request as usize);
            if let (Some(exchange), Outcome::Ok) = (exchange, ended.outcome) {
                exchange.response = Some(ended.took);
            }
        }
        exchanges
    }
}

impl From<ObservedPackets> for EmulatedExchange {
    fn from(observed: ObservedPackets) -> Self {
        let packets = observed.packets.map(|mut packets| {
            packets.sort_unstable();
            packets.into_iter().map(|(_, length)| length).collect()
        });
        Self {
            response: None,
            packets,
            dropped: observed.dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::job::PROCESSING;
    use super::super::super::line::NetworkLine;
    use super::super::super::service::SELLERPROFILE;
    use super::super::campaign::ends_of;
    use super::super::cells::{CellKind, CellSource};
    use super::super::role::{PacketRole, reply_packets};
    use super::super::simulated::ExchangeSimulator;
    use super::*;
    use crate::test_study;
    use posthaste_study::Records;

    const LINE: NetworkLine = NetworkLine {
        kbit: 10_000,
        ms: 20,
    };

    fn job(transport: Transport, lost: LostPacket) -> QuicJob {
        QuicJob {
            transport,
            service: &SELLERPROFILE,
            line: LINE,
            lost,
        }
    }

    /// The generator and the server send the packets of the model, and the links drop what is planned. A busy machine
    /// makes transactions longer, and never shorter.
    #[test]
    fn transactions_lose_planned_packets_and_never_beat_the_model() {
        let losses = [
            LostPacket::None,
            LostPacket::Up(1),
            LostPacket::Down(1),
            LostPacket::Down(8),
        ];
        for offered in OfferedService::all_of_ours(&SELLERPROFILE) {
            let jobs = losses.map(|lost| job(offered.transport, lost));
            let simulated = |lost| {
                let job = job(offered.transport, lost);
                let ends = ends_of(&CellKind::new(CellSource::Simulated, &offered));
                let new = ExchangeSimulator::new(&job, &ends, PROCESSING, false, Seed(1));
                new.expect("a simulator").play(1)
            };
            let measured = test_study::on_links(|conditions| {
                let run = run(&offered, &jobs, Seed(1), conditions, |_| ())?;
                for (job, exchange) in jobs.iter().zip(&run.exchanges) {
                    assert!(exchange.lost_as_planned(job.lost), "{job:?}: {exchange:?}");
                    assert!(exchange.response.is_some(), "{job:?}: {exchange:?}");
                }
                let [none, first, ..] = &run.exchanges[..] else {
                    return Err("too few".into());
                };
                let model = simulated(LostPacket::None);
                let least = model.response.expect("a reply");
                assert!(
                    none.response
                        .is_some_and(|time| time + Span::from_millis(2) > least)
                );
                assert!(first.response > Some(Span::from_millis(999)), "{first:?}");
                assert_eq!(reply_packets(&none.packets), reply_packets(&model.packets));
                let role = PacketRole::from_packets(LostPacket::Up(1), &first.packets);
                assert_eq!(role, Some(PacketRole::Client(1)));
                Ok(Records::new())
            });
            if measured.is_none() {
                return;
            }
        }
    }
}
