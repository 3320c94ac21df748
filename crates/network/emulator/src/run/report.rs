//! Report of a run: the fate of the packets, in a few lines for people and as one JSON document.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::net::Ipv4Addr;
use std::sync::Arc;

use posthaste_link::pattern::Effect;
use posthaste_link::{
    Class, ClassCounters, Direction, DropReason, LinkCounters, PacketTally, Plan, Sharing,
};
use posthaste_units::{Seed, Size};
use serde::Serialize;

use crate::control::AppliedChangeDocument;
use crate::path::relay::Relayed;
use crate::{
    Addresses, DirectionOutcome, EmulationOutcome, EmulationVerdict, path::agent, path::stack,
};

/// Results of a run. `Display` writes them as lines for people.
#[derive(Debug, Serialize)]
pub struct RunReport {
    /// Exit status of the command, as a shell counts it.
    pub status: u8,
    seed: u64,
    server: Ipv4Addr,
    connections: u64,
    unrouted: u64,
    /// Name of the sharing of links: `shared` or `per-connection`.
    sharing: &'static str,
    #[serde(skip)]
    links: &'static str,
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
    /// Changes of the links, in order of time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<AppliedChangeDocument>,
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
    marked: u64,
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
    /// Delay under jitter that keeps the order of packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter: Option<JitterReport>,
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

/// Mean delay under jitter, without queue and transmission.
#[derive(Debug, Serialize)]
struct JitterReport {
    /// Delay of the plan. `None` if the pattern or a change of the running link sets it.
    configured_ms: Option<f64>,
    mean_ms: f64,
    /// The part of the mean in which packets waited for the ones before them.
    waited_ms: f64,
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
        sharing: Sharing,
        relayed: Relayed,
        seed: Seed,
        server: Addresses,
        status: u8,
    ) -> Self {
        let late = |quantile| outcome.lateness.quantile(quantile).as_micros_f64();
        let judgement = outcome.verdict();
        let has_new_delay = |direction| {
            let mut changes = outcome.changes.iter();
            changes.any(|applied| applied.change.sets("delay", direction))
        };
        let [client_tcp, server_tcp] = outcome.stacks.map(|stack| stack.map(StackReport::new));
        Self {
            status,
            seed: seed.0,
            server: server.v4,
            connections: outcome.connections,
            unrouted: outcome.unrouted,
            sharing: sharing.name(),
            links: sharing.describe([&plans[0], &plans[1]]),
            up: DirectionReport::new(&outcome.up, &plans[0], has_new_delay(Direction::Up)),
            down: DirectionReport::new(&outcome.down, &plans[1], has_new_delay(Direction::Down)),
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
            changes: outcome
                .changes
                .iter()
                .map(AppliedChangeDocument::from)
                .collect(),
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

    /// The probable reason if nothing crossed the link. None if something did, or was lost in front of it.
    fn reason_for_silence(&self) -> Option<String> {
        let ways = [&self.up, &self.down];
        let is_silent = |way: &DirectionReport| way.packets + way.overrun == 0;
        if self.connections > 0 || !ways.into_iter().all(is_silent) {
            return None;
        }
        let stacks = [&self.client_tcp, &self.server_tcp];
        let is_refused = ways.into_iter().any(|way| !way.refused.is_empty())
            || stacks.into_iter().flatten().any(StackReport::has_refused);
        Some(if is_refused {
            "every packet on its way to it was refused".to_owned()
        } else if self.unrouted > 0 {
            format!(
                "{} connections or datagrams of the command had no route; hosts with an IPv6 address are reached only \
                 if this machine has an IPv6 route",
                self.unrouted
            )
        } else {
            format!(
                "inside, 127.0.0.1 is the command's own machine; use {} with --to or --server",
                self.server
            )
        })
    }
}

impl DirectionReport {
    fn new(way: &DirectionOutcome, plan: &Plan, has_new_delay: bool) -> Self {
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
            marked: link.marked.packets,
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
            jitter: JitterReport::new(link, plan, has_new_delay),
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
        for (count, subject) in [
            (self.copied, "copied"),
            (self.corrupted, "with flipped bits"),
            (self.marked, "marked CE"),
            (self.reordered, "out of order"),
            (self.held, "still under way at the end"),
        ] {
            if count > 0 {
                let _ = write!(line, "; {count} {subject}");
            }
        }
        if !self.refused.is_empty() {
            let refused = list(&self.refused);
            let _ = write!(line, "; refused: {refused} ({})", self.remedies.join(", "));
        }
        line
    }

    /// The line, and a line for each part.
    fn write(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {name}  {}", self.line())?;
        for share in &self.classes {
            writeln!(f, "        {share}")?;
        }
        if let Some(background) = &self.background {
            writeln!(f, "        background: {background}")?;
        }
        if let Some(jitter) = &self.jitter {
            writeln!(f, "        {jitter}")?;
        }
        Ok(())
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

impl JitterReport {
    /// `None` if there is no jitter, or packets do not keep their order.
    /// `has_new_delay` states that a change of the running link set the delay.
    fn new(link: &LinkCounters, plan: &Plan, has_new_delay: bool) -> Option<Self> {
        let mut scripted = plan.script.iter().flat_map(|script| script.entries());
        let varies =
            has_new_delay || scripted.any(|(_, effect)| matches!(effect, Effect::DelayFrom(_)));
        Some(Self {
            mean_ms: link.jittered.mean()?.as_millis_f64(),
            configured_ms: (!varies).then(|| plan.delay.as_millis_f64()),
            waited_ms: link.jittered.mean_wait()?.as_millis_f64(),
        })
    }
}

impl fmt::Display for JitterReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "jitter: mean delay {:.1} ms", self.mean_ms)?;
        let Some(configured) = self.configured_ms else {
            return Ok(());
        };
        write!(f, ", configured {configured:.1} ms")?;
        if self.waited_ms > configured * 0.02 {
            f.write_str("; packets wait to keep their order, --overtake lets them pass")?;
        }
        Ok(())
    }
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

    /// True if it refused packets.
    fn has_refused(&self) -> bool {
        self.strays > 0 || !self.refused.is_empty()
    }

    fn line(&self) -> String {
        let mut line = format!("{} segments sent", self.segments_out);
        for (count, subject) in [
            (self.retransmissions, "again"),
            (self.timeouts, "timeouts"),
            (self.broken, "connections broken"),
            (self.strays, "of no connection"),
        ] {
            if count > 0 {
                let _ = write!(line, ", {count} {subject}");
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
            let _ = write!(
                line,
                "; {given_up} connections not followed to their end because of a limit"
            );
        }
        line
    }
}

fn list(counts: &BTreeMap<&'static str, u64>) -> String {
    let parts: Vec<String> = counts
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    parts.join(", ")
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connections = self.connections;
        let plural = if connections == 1 { "" } else { "s" };
        writeln!(f, "posthaste: {connections} connection{plural}")?;
        writeln!(f, "  link  {}", self.links)?;
        for (name, way) in [("up  ", &self.up), ("down", &self.down)] {
            way.write(name, f)?;
        }
        if let Some(reason) = self.reason_for_silence() {
            writeln!(f, "  nothing crossed the link: {reason}")?;
        }
        let LatenessReport { p50, p99, max } = &self.lateness_us;
        let priority = if self.real_time {
            ""
        } else {
            ", without real-time priority (`posthaste doctor` shows how to get it)"
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
        for AppliedChangeDocument { time_ms, change } in &self.changes {
            writeln!(f, "  change at {time_ms:.3} ms: {change}")?;
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
        let parts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, subject)| format!("{count} {subject}"))
            .collect();
        if !parts.is_empty() {
            writeln!(f, "  relay {}", parts.join(", "))?;
        }
        Ok(())
    }
}
