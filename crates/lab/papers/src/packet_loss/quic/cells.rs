//! Cells: transactions with one server, service, line and role of the lost packet. They differ by chance alone.

use std::collections::BTreeMap;

use posthaste_study::{RecordRow, RecordTable, RecordValue, Records, estimate};
use posthaste_units::Span;

use super::super::line::NetworkLine;
use super::role::{PacketRole, reply_packets};
use super::server::{OfferedService, ServerStack};
use super::transport::{QuicJob, Transport};

/// The way in which a transaction was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum CellSource {
    /// Through the kernel, over an emulated line.
    Emulated,
    /// In virtual time.
    Simulated,
}

impl CellSource {
    /// Name in records.
    const fn key(self) -> &'static str {
        match self {
            Self::Emulated => "emulated",
            Self::Simulated => "simulated",
        }
    }
}

/// The configuration of cells, except line and loss.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct CellKind {
    pub(in super::super) source: CellSource,
    pub(in super::super) stack: ServerStack,
    pub(in super::super) transport: Transport,
    /// Time between a request and its reply.
    pub(in super::super) processing: Span,
    /// Key of the service.
    pub(in super::super) service: &'static str,
    /// Key of a change of the options, or nothing.
    pub(in super::super) variant: &'static str,
}

/// Variant of cells whose TCP connections are kept.
const KEPT: &str = "kept";
/// Variant of cells whose delays vary.
const VARIES: &str = "varies";
/// Both.
const KEPT_VARIES: &str = "kept, varies";

impl CellKind {
    /// The same cells with delays that vary as in the paper.
    pub(in super::super) fn varying(self) -> Self {
        let variant = if self.is_kept() { KEPT_VARIES } else { VARIES };
        Self { variant, ..self }
    }

    /// True if the TCP connections of its cells are kept.
    pub(in super::super) fn is_kept(&self) -> bool {
        [KEPT, KEPT_VARIES].contains(&self.variant)
    }

    /// The cells of a server, without a change.
    pub(in super::super) const fn new(source: CellSource, offered: &OfferedService) -> Self {
        Self {
            source,
            stack: offered.stack,
            transport: offered.transport,
            processing: offered.processing,
            service: offered.service.key,
            variant: if offered.is_kept { KEPT } else { "" },
        }
    }
}

/// Response times of cells, while they are collected.
#[derive(Default)]
pub(in super::super) struct CellTimes {
    times: BTreeMap<(CellKind, [u32; 2], PacketRole), Vec<f64>>,
    /// Packets of the replies without a loss.
    replies: BTreeMap<(CellKind, [u32; 2]), u32>,
}

impl CellTimes {
    /// Adds a transaction, if it lost what was planned. Its response time is infinite without a reply.
    pub(in super::super) fn add(
        &mut self,
        kind: &CellKind,
        job: &QuicJob,
        packets: &[Vec<u32>; 2],
        response: Option<Span>,
    ) {
        let Some(role) = PacketRole::from_packets(job.lost, packets) else {
            return;
        };
        let line = [job.line.kbit, job.line.ms];
        if role == PacketRole::None {
            self.replies
                .insert((kind.clone(), line), reply_packets(packets));
        }
        let ms = response.map_or(f64::INFINITY, Span::as_millis_f64);
        let key = (kind.clone(), line, role);
        self.times.entry(key).or_default().push(ms);
    }

    /// Adds those of another collection.
    pub(in super::super) fn merge(&mut self, other: Self) {
        for (key, mut times) in other.times {
            self.times.entry(key).or_default().append(&mut times);
        }
        self.replies.extend(other.replies);
    }

    /// The table of all cells.
    pub(in super::super) fn table(&self) -> RecordTable {
        let mut table = RecordTable::new([
            "source",
            "stack",
            "transport",
            "processing_ms",
            "service",
            "variant",
            "kbit",
            "ms",
            "lost",
            "reply_packets",
            "transactions",
            "median_ms",
            "low_ms",
            "high_ms",
        ]);
        for ((kind, line, role), times) in &self.times {
            let packets = self.replies.get(&(kind.clone(), *line)).copied();
            let time = estimate(times);
            let mut row: Vec<RecordValue> = vec![
                kind.source.key().into(),
                kind.stack.name().into(),
                kind.transport.key().into(),
                kind.processing.as_millis_f64().into(),
                kind.service.into(),
                kind.variant.into(),
            ];
            row.extend(line.map(|number| RecordValue::from(u64::from(number))));
            row.push(role.to_string().into());
            row.push(u64::from(packets.unwrap_or(0)).into());
            row.push((times.len() as u64).into());
            row.extend([time.median, time.low, time.high].map(RecordValue::from));
            table.push(row);
        }
        table
    }
}

/// The cells of one kind in records.
#[derive(Clone, Debug)]
pub(in super::super) struct QuicCells<'a> {
    kind: CellKind,
    lines: BTreeMap<[u32; 2], LineCells<'a>>,
}

impl<'a> QuicCells<'a> {
    /// Selects the cells of this kind.
    pub(in super::super) fn new(records: &'a Records, kind: CellKind) -> Self {
        let mut lines = BTreeMap::<_, LineCells<'_>>::new();
        let is_of_kind = |row: &RecordRow<'_>| {
            row.text("variant") == kind.variant
                && row.text("source") == kind.source.key()
                && row.text("stack") == kind.stack.name()
                && row.text("transport") == kind.transport.key()
                && row.text("service") == kind.service
                && row.number("processing_ms") == kind.processing.as_millis_f64()
        };
        for row in records.table("cells").rows().filter(is_of_kind) {
            let line = ["kbit", "ms"].map(|column| row.number(column) as u32);
            let rows = &mut lines.entry(line).or_default().rows;
            rows.insert(row.text("lost").to_owned(), row);
        }
        Self { kind, lines }
    }

    /// True if their TCP connections are kept.
    pub(in super::super) fn is_kept(&self) -> bool {
        self.kind.is_kept()
    }

    /// True if there are none.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The cells on a line.
    pub(in super::super) fn on(&self, line: NetworkLine) -> LineCells<'a> {
        let cells = self.lines.get(&[line.kbit, line.ms]);
        cells.cloned().unwrap_or_default()
    }
}

/// The cells of one kind on one line, by the role of the lost packet.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct LineCells<'a> {
    rows: BTreeMap<String, RecordRow<'a>>,
}

impl<'a> LineCells<'a> {
    /// The cell of a role.
    pub(in super::super) fn row(&self, role: PacketRole) -> Option<&RecordRow<'a>> {
        self.rows.get(&role.to_string())
    }

    /// The cell of a role by its name in records.
    pub(in super::super) fn named(&self, role: &str) -> Option<&RecordRow<'a>> {
        self.rows.get(role)
    }

    /// Median response time with the loss of a packet, in ms. NaN if it was not measured.
    pub(in super::super) fn ms(&self, role: PacketRole) -> f64 {
        self.row(role)
            .map_or(f64::NAN, |row| row.number("median_ms"))
    }

    /// Cost of the loss of a packet: the response time with it minus the one without, in ms.
    pub(in super::super) fn cost(&self, role: PacketRole) -> f64 {
        self.ms(role) - self.ms(PacketRole::None)
    }

    /// Number of packets of the reply.
    pub(in super::super) fn reply_packets(&self) -> u32 {
        let row = self.row(PacketRole::None);
        row.map_or(0.0, |row| row.number("reply_packets")) as u32
    }

    /// The packet of the reply with `behind` packets behind it.
    pub(in super::super) fn reply(&self, behind: u32) -> PacketRole {
        PacketRole::Reply(self.reply_packets().saturating_sub(behind))
    }

    /// The cells with a lost packet of data, with their roles.
    pub(in super::super) fn with_data_lost(&self) -> impl Iterator<Item = (&str, &RecordRow<'a>)> {
        let rows = self.rows.iter().map(|(role, row)| (role.as_str(), row));
        rows.filter(|(role, _)| *role != "none" && !role.contains("ack"))
    }

    /// Mean response time of a loss among the last three packets over one of a packet in the middle of the reply, minus
    /// one: the paper's relative increase.
    pub(in super::super) fn increase(&self) -> f64 {
        let late = (0..3).map(|behind| self.ms(self.reply(behind)));
        late.sum::<f64>() / 3.0 / self.ms(self.reply(5)) - 1.0
    }
}
