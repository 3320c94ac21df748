//! The study of positions: one lost packet at every position, on three lines, with every transport and every stack.
//!
//! Delays do not vary here, so that a position names the same packet in every transaction of a cell.

use posthaste_study::{Conditions, Failure, Needs, RecordTable, RecordValue, Records, Study};
use posthaste_units::Span;

use super::super::job::PROCESSING;
use super::super::line::NetworkLine;
use super::super::service::{AUTHOR, BOTH, PaperService};
use super::campaign::{DRAWS, QuicCampaign, simulate_positions};
use super::cells::{CellKind, CellSource, CellTimes};
use super::server::{OfferedService, ServerStack};
use super::transport::{LostPacket, QuicJob, Transport};

pub(in super::super) static STUDY: Study = Study {
    name: "packet-loss-quic",
    needs: Needs::Time,
    core: false,
    run: |conditions| {
        let (repetitions, by_chance) = if conditions.full { (9, 5000) } else { (3, 600) };
        study(conditions, &LINES, repetitions, by_chance)
    },
};

/// The lines: slow and near, middling, fast and far.
pub(in super::super) const LINES: [NetworkLine; 3] = [
    NetworkLine { kbit: 300, ms: 10 },
    NetworkLine { kbit: 1000, ms: 60 },
    NetworkLine {
        kbit: 10_000,
        ms: 100,
    },
];

/// Positions that are dropped, from the client and from the server. Behind them are acknowledgements only.
pub(super) const POSITIONS: [u32; 2] = [6, 22];
/// Random loss, in percent, and its line: the paper's.
pub(in super::super) const CHANCE: (u32, NetworkLine) = (2, NetworkLine { kbit: 300, ms: 10 });

/// The measured servers.
fn measured(service: &'static PaperService) -> impl Iterator<Item = OfferedService> {
    let quic_go = OfferedService {
        stack: ServerStack::QuicGo,
        ..OfferedService::ours(Transport::Quic, service)
    };
    let ours = OfferedService::all_of_ours(service).into_iter();
    // ngtcp2 has no processing time.
    let prompt = ServerStack::ALL.map(|stack| prompt(stack, service));
    ours.chain([quic_go]).chain(prompt)
}

/// A server with QUIC that replies without a processing time.
pub(in super::super) const fn prompt(
    stack: ServerStack,
    service: &'static PaperService,
) -> OfferedService {
    OfferedService {
        stack,
        processing: Span::ZERO,
        ..OfferedService::ours(Transport::Quic, service)
    }
}

fn study(
    conditions: &Conditions<'_>,
    lines: &[NetworkLine],
    repetitions: usize,
    by_chance: usize,
) -> Result<Records, Failure> {
    let mut campaign = QuicCampaign::new(conditions);
    let mut cells = CellTimes::default();
    let mut chance = RecordTable::new(["transport", "response_ms"]);
    for offered in BOTH.into_iter().flat_map(measured) {
        if !offered.stack.is_installed() {
            campaign.note_missing(offered.stack);
            continue;
        }
        let mut jobs = jobs(offered.transport, offered.service, lines).repeat(repetitions);
        if is_by_chance(&offered) {
            jobs.extend(vec![by_chance_job(offered.transport); by_chance]);
        }
        let Some(run) = campaign.run(&offered, &jobs)? else {
            break;
        };
        let kind = CellKind::new(CellSource::Emulated, &offered);
        for (job, exchange) in jobs.iter().zip(&run) {
            if let LostPacket::Percent(_) = job.lost {
                let ms = exchange.response.map_or(f64::INFINITY, Span::as_millis_f64);
                chance.push([offered.transport.key().into(), RecordValue::from(ms)]);
            } else {
                cells.add(&kind, job, &exchange.packets, exchange.response);
            }
        }
    }
    for service in BOTH {
        let ours = OfferedService::all_of_ours(service).into_iter();
        for offered in ours.chain([prompt(ServerStack::Ours, service)]) {
            let kind = CellKind::new(CellSource::Simulated, &offered);
            cells.merge(simulate_positions(
                conditions.seed,
                &kind,
                service,
                lines,
                DRAWS,
            )?);
        }
    }
    let mut records = campaign.records();
    records.set_table("cells", cells.table());
    records.set_table("chance", chance);
    records.set_parameter("repetitions", repetitions);
    Ok(records)
}

/// True if a server is also measured with random losses.
fn is_by_chance(offered: &OfferedService) -> bool {
    let is_usual = offered.stack == ServerStack::Ours && offered.processing == PROCESSING;
    is_usual && offered.service == &AUTHOR && !offered.is_kept
}

/// Transactions with a loss at every position on these lines.
pub(super) fn jobs(
    transport: Transport,
    service: &'static PaperService,
    lines: &[NetworkLine],
) -> Vec<QuicJob> {
    let job = |line: &NetworkLine, lost| QuicJob {
        transport,
        service,
        line: *line,
        lost,
    };
    let on = |line| LostPacket::each(POSITIONS).map(move |lost| job(line, lost));
    lines.iter().flat_map(on).collect()
}

fn by_chance_job(transport: Transport) -> QuicJob {
    let (percent, line) = CHANCE;
    QuicJob {
        transport,
        service: &AUTHOR,
        line,
        lost: LostPacket::Percent(percent),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{quic_2026, quic_remedies_2026, quic_sweep_2026};
    use super::*;

    /// A figure is drawn and states all its claims from records that lack everything, and none of the claims holds.
    #[test]
    fn without_measurements_nothing_holds() {
        let records = Records::new();
        let figures = [
            &quic_2026::FIGURE,
            &quic_sweep_2026::FIGURE,
            &quic_remedies_2026::FIGURE,
        ];
        for figure in figures {
            let checks = (figure.checks)(&records);
            assert!(checks.len() > 5, "{}", figure.id);
            for check in checks {
                assert!(!check.holds, "{}: {}", figure.id, check.sentence);
            }
            assert!(!(figure.plot)(&records).is_empty());
        }
    }

    #[test]
    fn each_stack_is_measured_without_a_processing_time() {
        for stack in ServerStack::ALL {
            let is_it = |service: OfferedService| {
                (service.stack, service.processing) == (stack, Span::ZERO)
            };
            assert!(measured(&AUTHOR).any(is_it));
        }
    }
}
