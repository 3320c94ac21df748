//! The study of positions: one lost packet at every position, on three lines, with every transport and every stack.
//!
//! Delays do not vary here, so that a position names the same packet in every transaction of a cell.

use posthaste_study::{Conditions, Failure, Needs, RecordTable, RecordValue, Records, Study};
use posthaste_units::Span;

use super::super::job::PROCESSING;
use super::super::line::NetworkLine;
use super::super::service::{AUTHOR, BOTH, PaperService};
use super::campaign::{QuicCampaign, simulate_positions};
use super::cells::{CellKind, CellSource, CellTimes};
use super::server::{OfferedService, ServerStack};
use super::transport::{LostPacket, QuicJob, Transport};

pub(in super::super) static STUDY: Study = Study {
    name: "packet-loss-quic",
    needs: Needs::Links,
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

/// The measured servers, each with a transport and a processing time.
pub(in super::super) fn measured() -> impl Iterator<Item = (ServerStack, Transport, Span)> {
    let ours = Transport::ALL.map(|transport| (ServerStack::Ours, transport, PROCESSING));
    let quic = |stack, processing| (stack, Transport::Quic, processing);
    ours.into_iter().chain([
        quic(ServerStack::QuicGo, PROCESSING),
        quic(ServerStack::Ours, Span::ZERO),
        quic(ServerStack::QuicGo, Span::ZERO),
        // It has no processing time.
        quic(ServerStack::Ngtcp2, Span::ZERO),
    ])
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
    for (stack, transport, processing) in measured() {
        if !stack.is_installed() {
            campaign.note_missing(stack);
            continue;
        }
        for service in BOTH {
            let offered = OfferedService {
                stack,
                transport,
                service,
                processing,
            };
            let mut jobs = jobs(transport, service, lines).repeat(repetitions);
            let is_usual = (stack, processing) == (ServerStack::Ours, PROCESSING);
            if is_usual && service == &AUTHOR {
                jobs.extend(vec![by_chance_job(transport); by_chance]);
            }
            let Some(run) = campaign.run(&offered, &jobs)? else {
                break;
            };
            let kind = CellKind::of(CellSource::Emulated, &offered);
            for (job, exchange) in jobs.iter().zip(&run) {
                if let LostPacket::Percent(_) = job.lost {
                    let ms = exchange.response.map_or(f64::INFINITY, Span::as_millis_f64);
                    chance.push([transport.key().into(), RecordValue::from(ms)]);
                } else {
                    cells.add(&kind, job, &exchange.packets, exchange.response);
                }
            }
        }
    }
    for (transport, processing) in simulated() {
        for service in BOTH {
            let offered = OfferedService {
                stack: ServerStack::Ours,
                transport,
                service,
                processing,
            };
            let kind = CellKind::of(CellSource::Simulated, &offered);
            cells.merge(simulate_positions(conditions.seed, &kind, service, lines)?);
        }
    }
    let mut records = campaign.records();
    records.set_table("cells", cells.table());
    records.set_table("chance", chance);
    records.set_parameter("repetitions", repetitions);
    Ok(records)
}

/// The simulated transports of our server, with the processing times.
fn simulated() -> impl Iterator<Item = (Transport, Span)> {
    let usual = Transport::ALL.map(|transport| (transport, PROCESSING));
    usual.into_iter().chain([(Transport::Quic, Span::ZERO)])
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
            assert!(measured().any(|of| of == (stack, Transport::Quic, Span::ZERO)));
        }
    }
}
