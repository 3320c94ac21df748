//! Report of a run: the fate of the packets, in a few lines for people and as one JSON document.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use posthaste_link::pattern::Effect;
use posthaste_link::{Class, ClassCounters, DropReason, LinkCounters, PacketTally, Plan};
use posthaste_units::{Seed, Size};
use serde::Serialize;

use crate::relay::Relayed;
use crate::{DirectionOutcome, EmulationOutcome, EmulationVerdict, SERVER, agent, stack};

/// Results of a run. `Display` writes them as lines for people.
#[derive(Debug, Serialize)]
pub struct RunReport {
    /// Exit status of the command, as a shell counts it.
    pub status: u8,
    seed: u64,
    connections: u64,
    up: DirectionReport,
    down: DirectionReport,
    lateness_us: LatenessReport,
    verdict: &'static str,
    #[serde(skip)]
    judgement: EmulationVerdict,
    real_time: bool,
    pauses: u64,
    unrecorded: u64,
    untraced: u64,
    relay: RelayReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_acks: Option<AgentReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_tcp: Option<StackReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_tcp: Option<StackReport>,
}

#[derive(Debug, Serialize)]
struct DirectionReport {
    packets: u64,
    bytes: u64,
    delivered: u64,
    copied: u64,
    corrupted: u64,
    reordered: u64,
    dropped: BTreeMap<&'static str, u64>,
    /// True if the pattern contains drops of packets that never came.
    pattern_missed: bool,
    refused: BTreeMap<&'static str, u64>,
    overrun: u64,
    unsent: u64,
    held: u64,
    /// Classes of a link shared by all connections.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    classes: Vec<ClassReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    background: Option<CrossTrafficReport>,
    #[serde(skip)]
    remedies: Vec<&'static str>,
}

/// Counts of a class.
#[derive(Debug, Serialize)]
struct ClassReport {
    /// The class in the form of `--class`.
    class: String,
    guaranteed: TrafficCount,
    borrowed: TrafficCount,
    dropped: TrafficCount,
}

/// Counts of cross traffic.
#[derive(Debug, Serialize)]
struct CrossTrafficReport {
    sent: TrafficCount,
    dropped: TrafficCount,
}

#[derive(Debug, Serialize)]
struct TrafficCount {
    packets: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct LatenessReport {
    p50: f64,
    p99: f64,
    max: f64,
}

#[derive(Debug, Serialize)]
struct RelayReport {
    connections: u64,
    unreachable: u64,
    resets: u64,
    flows: u64,
    datagrams_lost: u64,
    refused: u64,
}

/// Counts of a TCP stack that replaced a kernel's.
#[derive(Debug, Serialize)]
struct StackReport {
    connections: u64,
    broken: u64,
    segments_out: u64,
    segments_in: u64,
    retransmissions: u64,
    timeouts: u64,
    strays: u64,
    refused: BTreeMap<&'static str, u64>,
}

/// Counts of the duplicate-ACK agent.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct AgentReport {
    counts: BTreeMap<&'static str, u64>,
    /// Ends of holes, by kind. Zeros are omitted.
    #[serde(skip)]
    ends: BTreeMap<&'static str, u64>,
}

impl RunReport {
    /// Creates the report of a run that has ended.
    pub fn new(
        outcome: &EmulationOutcome,
        plans: &[Arc<Plan>; 2],
        relayed: Relayed,
        seed: Seed,
        status: u8,
    ) -> Self {
        let late = |quantile| outcome.lateness.quantile(quantile).as_micros_f64();
        let judgement = outcome.verdict();
        let [client_tcp, server_tcp] = outcome.stacks.map(|stack| stack.map(StackReport::new));
        Self {
            status,
            seed: seed.0,
            connections: outcome.connections,
            up: DirectionReport::new(&outcome.up, &plans[0]),
            down: DirectionReport::new(&outcome.down, &plans[1]),
            lateness_us: LatenessReport {
                p50: late(0.5),
                p99: late(0.99),
                max: outcome.lateness.max().as_micros_f64(),
            },
            verdict: match judgement {
                EmulationVerdict::OnTime => "on-time",
                EmulationVerdict::Late { .. } => "late",
                EmulationVerdict::Lost { .. } => "lost",
            },
            judgement,
            real_time: outcome.real_time,
            pauses: outcome.pauses,
            unrecorded: outcome.unrecorded,
            untraced: outcome.unseen,
            duplicate_acks: outcome.duplicate_acks.as_ref().map(AgentReport::new),
            client_tcp,
            server_tcp,
            relay: RelayReport {
                connections: relayed.connections,
                unreachable: relayed.unreachable,
                resets: relayed.resets,
                flows: relayed.flows,
                datagrams_lost: relayed.datagrams_lost,
                refused: relayed.refused,
            },
        }
    }

    /// True if the run was on time and nothing needs attention.
    pub fn is_well(&self) -> bool {
        let odd = |way: &DirectionReport| way.pattern_missed || !way.refused.is_empty();
        self.judgement == EmulationVerdict::OnTime
            && ![&self.up, &self.down].into_iter().any(odd)
            && self.unrecorded + self.untraced == 0
            && self.relay.refused + self.relay.datagrams_lost + self.relay.unreachable == 0
    }
}

impl DirectionReport {
    fn new(way: &DirectionOutcome, plan: &Plan) -> Self {
        let link: &LinkCounters = &way.link;
        let mut scripted = plan.script.iter().flat_map(|script| script.entries());
        let drops = scripted.any(|(_, effect)| effect == Effect::Drop);
        let dropped = DropReason::ALL
            .into_iter()
            .map(|reason| (reason.name(), link.dropped(reason)));
        Self {
            packets: link.pushed.packets,
            bytes: link.pushed.bytes,
            delivered: link.delivered.packets,
            copied: link.copied.packets,
            corrupted: link.corrupted.packets,
            reordered: link.reordered.packets,
            dropped: dropped
                .map(|(name, tally)| (name, tally.packets))
                .filter(|(_, packets)| *packets > 0)
                .collect(),
            pattern_missed: drops && link.dropped(DropReason::Pattern).packets == 0,
            refused: way
                .bypassed
                .refusals()
                .map(|(refusal, packets)| (refusal.name(), packets))
                .collect(),
            overrun: way.bypassed.overrun,
            unsent: way.bypassed.unsent,
            held: way.bypassed.held,
            classes: class_reports(way, plan),
            background: way.background.map(|background| CrossTrafficReport {
                sent: background.sent.into(),
                dropped: background.dropped.into(),
            }),
            remedies: way
                .bypassed
                .refusals()
                .map(|(refusal, _)| refusal.remedy())
                .collect(),
        }
    }

    /// One line: the packets sent, then those lost or changed.
    fn line(&self) -> String {
        let mut line = format!("{} packets, {}", self.packets, Size::from_bytes(self.bytes));
        let lost: u64 = self.dropped.values().sum();
        if lost > 0 {
            let _ = write!(line, "; {lost} dropped: {}", list(&self.dropped));
        }
        if self.pattern_missed {
            line.push_str("; none that the pattern drops ever came");
        }
        for (count, what) in [
            (self.copied, "copied"),
            (self.corrupted, "with flipped bits"),
            (self.reordered, "out of order"),
            (self.held, "still under way at the end"),
        ] {
            if count > 0 {
                let _ = write!(line, "; {count} {what}");
            }
        }
        if !self.refused.is_empty() {
            let refused = list(&self.refused);
            let _ = write!(line, "; refused: {refused} ({})", self.remedies.join(", "));
        }
        line
    }
}

/// The classes of a direction with their counts.
fn class_reports(way: &DirectionOutcome, plan: &Plan) -> Vec<ClassReport> {
    let classes = plan.classes.iter().flat_map(|classes| &classes.list);
    let share = |(class, counters): (&Class, &ClassCounters)| ClassReport {
        class: class.to_string(),
        guaranteed: counters.guaranteed.into(),
        borrowed: counters.borrowed.into(),
        dropped: counters.dropped.into(),
    };
    classes.zip(&way.classes).map(share).collect()
}

impl From<PacketTally> for TrafficCount {
    fn from(PacketTally { packets, bytes }: PacketTally) -> Self {
        Self { packets, bytes }
    }
}

impl fmt::Display for TrafficCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.packets, Size::from_bytes(self.bytes))
    }
}

impl fmt::Display for ClassReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            class,
            guaranteed,
            borrowed,
            dropped,
        } = self;
        write!(
            f,
            "{class}: {guaranteed} guaranteed, {borrowed} borrowed, {dropped} dropped"
        )
    }
}

impl fmt::Display for CrossTrafficReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} dropped", self.sent, self.dropped)
    }
}

impl StackReport {
    fn new(counters: stack::StackCounters) -> Self {
        let mut refused: BTreeMap<_, _> = counters
            .refusals()
            .map(|(refusal, packets)| (refusal.name(), packets))
            .collect();
        if counters.overfull > 0 {
            refused.insert("overfull", counters.overfull);
        }
        Self {
            connections: counters.connections,
            broken: counters.broken,
            segments_out: counters.segments_out,
            segments_in: counters.segments_in,
            retransmissions: counters.retransmissions,
            timeouts: counters.timeouts,
            strays: counters.strays,
            refused,
        }
    }

    fn line(&self) -> String {
        let mut line = format!("{} segments sent", self.segments_out);
        for (count, what) in [
            (self.retransmissions, "again"),
            (self.timeouts, "timeouts"),
            (self.broken, "connections broken"),
            (self.strays, "of no connection"),
        ] {
            if count > 0 {
                let _ = write!(line, ", {count} {what}");
            }
        }
        if !self.refused.is_empty() {
            let _ = write!(line, "; refused: {}", list(&self.refused));
        }
        line
    }
}

impl AgentReport {
    fn new(counters: &agent::AgentCounters) -> Self {
        let ends = counters.ends().into_iter();
        Self {
            counts: counters.named().collect(),
            ends: ends.filter(|(_, count)| *count > 0).collect(),
        }
    }

    /// One line: the packets that the agent sent, then the ends of the holes.
    fn line(&self) -> String {
        let [injected, started, given_up] =
            ["injected", "started", "given_up"].map(|name| self.counts[name]);
        let mut line = format!("{injected} duplicates sent; {started} holes seen");
        if !self.ends.is_empty() {
            let _ = write!(line, ": {}", list(&self.ends));
        }
        if given_up > 0 {
            let _ = write!(line, "; {given_up} connections given up for want of room");
        }
        line
    }
}

fn list(counts: &BTreeMap<&'static str, u64>) -> String {
    let words: Vec<String> = counts
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    words.join(", ")
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connections = self.connections;
        let plural = if connections == 1 { "" } else { "s" };
        writeln!(f, "posthaste: {connections} connection{plural}")?;
        for (name, way) in [("up  ", &self.up), ("down", &self.down)] {
            writeln!(f, "  {name}  {}", way.line())?;
            for share in &way.classes {
                writeln!(f, "        {share}")?;
            }
            if let Some(background) = &way.background {
                writeln!(f, "        background: {background}")?;
            }
        }
        if connections == 0 && self.up.packets + self.down.packets == 0 {
            writeln!(
                f,
                "  nothing crossed the link: inside, 127.0.0.1 is the command's own machine; use {} with --to or --server",
                SERVER.v4
            )?;
        }
        let LatenessReport { p50, p99, max } = &self.lateness_us;
        let priority = if self.real_time {
            ""
        } else {
            ", without real-time priority (`posthaste doctor` says how to get it)"
        };
        writeln!(
            f,
            "  late  {p50:.0} us (median), {p99:.0} us (p99), {max:.0} us (max){priority}"
        )?;
        if self.judgement != EmulationVerdict::OnTime {
            writeln!(f, "  {}", self.judgement)?;
        }
        for (missing, file) in [(self.unrecorded, "record"), (self.untraced, "trace")] {
            if missing > 0 {
                writeln!(
                    f,
                    "  {missing} packets are missing in the {file}: its file was too slow"
                )?;
            }
        }
        if let Some(acks) = &self.duplicate_acks {
            writeln!(f, "  acks  {}", acks.line())?;
        }
        for (tcp, whose) in [(&self.client_tcp, "client"), (&self.server_tcp, "server")] {
            if let Some(tcp) = tcp {
                writeln!(f, "  tcp   {whose}: {}", tcp.line())?;
            }
        }
        let relay = &self.relay;
        let counts = [
            (relay.connections, "connections"),
            (relay.flows, "flows of datagrams"),
            (relay.unreachable, "refused or unreachable outside"),
            (relay.resets, "reset"),
            (relay.datagrams_lost, "datagrams not carried"),
            (relay.refused, "destinations that could not be opened"),
        ];
        let said: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if !said.is_empty() {
            writeln!(f, "  relay {}", said.join(", "))?;
        }
        Ok(())
    }
}
