//! The sweep: every line of the paper, both services.
//!
//! - With steady delays, a loss at every position, emulated and simulated: the model against the measurement.
//! - With delays that vary as in the paper, simulated with several draws: the paper's relative increase.

use posthaste_study::{Conditions, Failure, Needs, Records, Study};
use posthaste_units::Seed;

use super::super::cores::on_all_cores;
use super::super::line::{NetworkLine, all};
use super::super::service::{BOTH, PaperService};
use super::campaign::{DRAWS, QuicCampaign, ends_of, simulate_positions};
use super::cells::{CellKind, CellSource, CellTimes};
use super::positions::jobs;
use super::role::reply_packets;
use super::server::OfferedService;
use super::simulated::ExchangeSimulator;
use super::transport::{LostPacket, QuicJob, Transport};

pub(in super::super) static STUDY: Study = Study {
    name: "packet-loss-quic-sweep",
    needs: Needs::Time,
    core: false,
    run: |conditions| {
        let (repetitions, draws) = if conditions.full { (3, 30) } else { (1, 7) };
        let lines: Vec<NetworkLine> = all().collect();
        study(conditions, &lines, repetitions, draws)
    },
};

fn study(
    conditions: &Conditions<'_>,
    lines: &[NetworkLine],
    repetitions: usize,
    draws: u64,
) -> Result<Records, Failure> {
    let mut campaign = QuicCampaign::new(conditions);
    let mut cells = CellTimes::default();
    for service in BOTH {
        let offered = OfferedService::ours(Transport::Quic, service);
        let jobs = jobs(Transport::Quic, service, lines).repeat(repetitions);
        let Some(run) = campaign.run(&offered, &jobs)? else {
            break;
        };
        let kind = CellKind::new(CellSource::Emulated, &offered);
        for (job, exchange) in jobs.iter().zip(&run) {
            cells.add(&kind, job, &exchange.packets, exchange.response);
        }
    }
    for offered in BOTH.into_iter().flat_map(OfferedService::all_of_ours) {
        if conditions.stopped() {
            break;
        }
        let kind = CellKind::new(CellSource::Simulated, &offered);
        let (seed, service) = (conditions.seed, offered.service);
        cells.merge(simulate_positions(seed, &kind, service, lines, DRAWS)?);
        cells.merge(simulate_draws(seed, kind, service, lines, draws)?);
    }
    let mut records = campaign.records();
    records.set_table("cells", cells.table());
    records.set_parameter("lines", lines.len());
    records.set_parameter("repetitions, emulated", repetitions);
    records.set_parameter("draws, simulated", draws);
    Ok(records)
}

/// Simulates the loss of each packet of the reply with delays that vary, several times each.
fn simulate_draws(
    seed: Seed,
    kind: CellKind,
    service: &'static PaperService,
    lines: &[NetworkLine],
    draws: u64,
) -> Result<CellTimes, Failure> {
    let ends = ends_of(&kind);
    let kind = kind.varying();
    let simulate = |line: &NetworkLine| -> Result<CellTimes, Failure> {
        let mut cells = CellTimes::default();
        let mut add = |lost| -> Result<[Vec<u32>; 2], Failure> {
            let job = QuicJob {
                transport: kind.transport,
                service,
                line: *line,
                lost,
            };
            let mut simulator = ExchangeSimulator::new(&job, &ends, kind.processing, true, seed)?;
            let mut packets = [Vec::new(), Vec::new()];
            for number in 1..=draws {
                let played = simulator.play(number);
                cells.add(&kind, &job, &played.packets, played.response);
                packets = played.packets;
            }
            Ok(packets)
        };
        let packets = add(LostPacket::None)?;
        // The packets of the reply are the last, except for a few acknowledgements.
        let (last, reply) = (packets[1].len() as u32, reply_packets(&packets));
        for position in (last - reply).saturating_sub(1)..=last {
            add(LostPacket::Down(position.max(2)))?;
        }
        Ok(cells)
    };
    let mut all = CellTimes::default();
    for cells in on_all_cores(lines, simulate)? {
        all.merge(cells);
    }
    Ok(all)
}
