//! Observations of each transaction from its packets: response time, drops, and waits for a timeout.
//!
//! The emulator computes the response times and the reasons of retransmissions in one pass over the packet records.
//! This module groups them by transaction.

use std::collections::HashMap;
use std::sync::Arc;

use posthaste_emulator::PacketRecord;
use posthaste_emulator::response::Responses;
use posthaste_emulator::trace::{DecodedPacket as Packet, EventOrder, PacketEvent, Sending};
use posthaste_link::{Direction, DropReason, Fate};
use posthaste_units::{Instant, ResponseTime, Span};

use super::job::Job;
use super::line::PlannedDrops;
use super::service::PaperService;

/// Observations of one transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Traced {
    /// Number of its connection. Selects the delays of its links.
    pub(super) number: u64,
    /// Arrival of its first SYN at the link.
    pub(super) began: Instant,
    /// Its response time, if complete.
    pub(super) response: Option<ResponseTime>,
    /// Segments that either end sent again meanwhile.
    pub(super) again: u32,
    /// Packets that the links dropped, in order.
    pub(super) dropped: Vec<Dropped>,
    /// Packets that the server sent.
    pub(super) packets: u32,
    /// Times of retransmissions after a timeout, for each end.
    pub(super) timeouts: [Vec<Instant>; 2],
    /// All packets, if they are kept.
    pub(super) kept: Vec<Arc<Packet>>,
}

/// A packet that a link dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dropped {
    pub(super) direction: Direction,
    pub(super) position: u64,
    pub(super) reason: DropReason,
    /// Offset of its first byte in the reply, if it has data that was not sent before.
    pub(super) offset: Option<u64>,
}

/// Observations of all transactions.
#[derive(Default)]
pub(super) struct Observations {
    event_order: EventOrder,
    responses: Responses,
    /// By the client's port.
    transactions: HashMap<u16, Traced>,
    /// True if every packet is kept.
    keeps: bool,
}

impl Observations {
    /// Creates observations that keep every packet, or only the results.
    pub(super) fn keeping(keeps: bool) -> Self {
        Self {
            keeps,
            ..Self::default()
        }
    }

    /// Adds a packet record. Must be called in the emulator's order.
    pub(super) fn note(&mut self, packet_record: PacketRecord) {
        self.event_order.push(packet_record);
        self.read();
    }

    /// Returns all transactions, by the client's port.
    pub(super) fn finish(mut self) -> HashMap<u16, Traced> {
        self.event_order.end();
        self.read();
        for response in self.responses.finish().responses {
            let port = response.flow.client.port();
            let traced = self.transactions.entry(port).or_default();
            (traced.began, traced.again) = (response.began, response.again);
            traced.response = Some(response.time);
        }
        self.transactions
    }

    fn read(&mut self) {
        while let Some(step) = self.event_order.pop() {
            self.responses.follow(&step);
            if let PacketEvent::Arrived(packet) = &step {
                let port = packet.packet_record.flow.client.port();
                let traced = self.transactions.entry(port).or_default();
                traced.came(packet);
                if self.keeps {
                    traced.kept.push(packet.clone());
                }
            }
        }
    }
}

impl Traced {
    fn came(&mut self, packet: &Packet) {
        let PacketRecord {
            connection,
            direction,
            position,
            arrived,
            fate,
            ..
        } = packet.packet_record;
        let sending = packet.tcp.as_ref().and_then(|tcp| tcp.sending);
        self.number = connection;
        self.packets += u32::from(direction == Direction::Down);
        // Linux never probes a single outstanding segment before its timeout (tcp_schedule_loss_probe). Where the two
        // look the same, they took the same time.
        if let Some(Sending::Timeout | Sending::TimeoutOrProbe) = sending {
            self.timeouts[direction as usize].push(arrived);
        }
        if let Fate::Dropped(reason) = fate {
            let data = packet.tcp.as_ref().filter(|tcp| tcp.payload > 0);
            let first = data.filter(|_| sending == Some(Sending::First));
            self.dropped.push(Dropped {
                direction,
                position,
                reason,
                offset: first.and_then(|tcp| tcp.sequence.checked_sub(1)),
            });
        }
    }

    /// Response time by the study's definition. Excludes the time of the client's program.
    pub(super) fn response_time(&self) -> Option<Span> {
        self.response
            .map(|response| response.t_conn + response.t_req + response.t_proc + response.t_resp)
    }

    /// Completion of the reply.
    pub(super) fn end(&self) -> Instant {
        self.response.map_or(Instant::FAR_FUTURE, |response| {
            self.began + response.total()
        })
    }

    /// Timeouts of the client's and of the server's end before the reply was complete.
    pub(super) fn timeouts(&self) -> [u32; 2] {
        let end = self.end();
        let before = |times: &Vec<Instant>| times.iter().filter(|time| **time < end).count() as u32;
        [before(&self.timeouts[0]), before(&self.timeouts[1])]
    }

    /// True if the links dropped exactly the intended packets.
    pub(super) fn is_exact(&self, drops: PlannedDrops) -> bool {
        let down = |reason| {
            move |dropped: &&Dropped| {
                dropped.direction == Direction::Down && dropped.reason == reason
            }
        };
        match drops {
            PlannedDrops::At(_) => {
                let as_planned = self.dropped.iter().filter(down(DropReason::Pattern));
                let positions = as_planned.map(|dropped| dropped.position);
                self.dropped.len() == drops.positions().count()
                    && positions.eq(drops.positions().map(u64::from))
            }
            PlannedDrops::Held { .. } => self.dropped.is_empty(),
            PlannedDrops::Percent(_) => {
                self.dropped.iter().filter(down(DropReason::Random)).count() == self.dropped.len()
            }
        }
    }

    /// True if an earlier retransmission moved the positions, so that other data was dropped than intended for segments
    /// of this size.
    pub(super) fn is_displaced(&self, job: &Job, segment: u32) -> bool {
        let other = |(dropped, position): (&Dropped, u32)| {
            let offset = job.service.offset(position, segment);
            offset.is_some() && offset != dropped.offset
        };
        self.dropped.iter().zip(job.drops.positions()).any(other)
    }

    /// True if one of the last data packets was dropped in its first transmission.
    pub(super) fn is_late_loss(&self, service: &PaperService, segment: u32) -> bool {
        let first_late = service.late(segment).next();
        let first_late = first_late.and_then(|position| service.offset(position, segment));
        let is_late = |dropped: &Dropped| dropped.offset.is_some() && dropped.offset >= first_late;
        self.dropped.iter().any(is_late)
    }
}
