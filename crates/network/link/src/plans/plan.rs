//! Description of one direction of a link, as data.

use std::sync::Arc;

use posthaste_units::{BitRate, Instant, Ratio, Span};
use thiserror::Error;

use crate::pattern::Script;
use crate::{
    BackgroundTraffic, Classes, Discipline, Jitter, Loss, Mtu, Packet, Queue, Reordering, Step,
};

/// One direction of a link. The default has no delay, no limit and no loss.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Bandwidth in bit/s. `None` is without limit, and then nothing queues.
    pub bandwidth: Option<BitRate>,
    /// Delay of every packet in addition to its transmission; the mean if there is jitter.
    pub delay: Span,
    /// Variation of delays.
    pub jitter: Option<Jitter>,
    /// Keeps packets in order: one with a shorter delay waits for the one before it. Packets moved by reordering are
    /// exempt.
    pub keeps_order: bool,
    /// Model of random losses.
    pub loss: Option<Loss>,
    /// Probability of a flip for each bit.
    pub bit_error_rate: Ratio,
    /// Share of duplicated packets. A copy is a separate packet in the queue and on the line. Patterns do not count it.
    pub duplication: Ratio,
    /// Random reordering of packets.
    pub reordering: Option<Reordering>,
    /// Queue in front of the bandwidth.
    pub queue: Queue,
    /// Bytes that the link adds to every IP packet: 14 for the header of Ethernet.
    pub overhead: u32,
    /// Order of the stages.
    pub order: Order,
    /// Traffic classes by code point, each with its own queue.
    pub classes: Option<Arc<Classes>>,
    /// Cross traffic in the link.
    pub background: Option<BackgroundTraffic>,
    /// Pattern: effects on single packets, decided before the run.
    pub script: Option<Arc<Script>>,
    /// MTU of the network behind the link.
    pub mtu: Option<Mtu>,
    /// Drops every packet that arrives before this time, on the clock of the packets. Set by a
    /// [change](crate::change).
    pub outage_until: Option<Instant>,
    /// Decides the departure of a packet when its transmission begins, not on its arrival, so that a
    /// [change](crate::change) holds for the packets in the queue. Without effect in netem's order. Cross traffic after
    /// an idle time is drawn differently.
    pub changeable: bool,
}

/// Order of the stages for a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Pattern and random decisions, queue, bandwidth, delay. A dropped packet takes no time on the line.
    ///
    /// After dummynet as the packet-loss paper used it: in FreeBSD 6's `sys/netinet/ip_dummynet.c` a packet stays in
    /// its queue until it is transmitted (`ready_event`), and then in the pipe for the delay of that moment
    /// (`move_pkt`).
    #[default]
    Dummynet,
    /// Pattern and random decisions, delay, bandwidth, as in netem. The delays of queued packets run at the same time.
    /// The queue's limit counts every packet in the link. A copy can be lost at random, while the packet itself is lost
    /// only if it has no copy.
    Netem,
}

/// Error in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// Order netem with a feature that netem lacks.
    #[error("netem's order has one drop-tail queue: leave {feature} out, or use dummynet's order")]
    NotInNetem {
        /// The feature.
        feature: &'static str,
    },
    /// Packets that go at once, in a link without delay.
    #[error(
        "packets that go at once overtake those that are delayed, and nothing is delayed: give the link a delay, or hold packets back instead (hold:25%:3)"
    )]
    NothingToOvertake,
    /// A queue without capacity.
    #[error("a queue without room lets nothing pass: give it at least one packet and 1,500 bytes")]
    NoRoom,
    /// A threshold that no queue reaches.
    #[error(
        "step:{threshold} marks nothing: the queue never holds that many, give it a larger limit"
    )]
    NeverMarks {
        /// The threshold in packets.
        threshold: u32,
    },
    /// Classes that do not fit the bandwidth or each other.
    #[error("{0}")]
    Classes(#[from] crate::plans::classes::ClassError),
    /// Invalid cross traffic.
    #[error("{0}")]
    Background(#[from] crate::plans::background::BackgroundError),
}

impl Order {
    /// Queue without an option: 50 packets in dummynet (dummynet(4)), a limit of 1,000 packets in netem (tc-netem(8)).
    pub fn queue(self) -> Queue {
        let packets = match self {
            Self::Dummynet => 50,
            Self::Netem => 1000,
        };
        Queue {
            packets,
            ..Queue::default()
        }
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            bandwidth: None,
            delay: Span::ZERO,
            jitter: None,
            keeps_order: true,
            loss: None,
            bit_error_rate: Ratio::default(),
            duplication: Ratio::default(),
            reordering: None,
            queue: Queue::default(),
            overhead: 0,
            order: Order::default(),
            classes: None,
            background: None,
            script: None,
            mtu: None,
            outage_until: None,
            changeable: false,
        }
    }
}

impl Plan {
    /// Checks the plan. A link with an unchecked plan ignores the parts in error.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.queue.packets == 0 || self.queue.bytes.is_some_and(|size| size.as_bytes() < 1500) {
            return Err(PlanError::NoRoom);
        }
        if let Discipline::Step(Step::Packets(threshold)) = self.queue.discipline
            // The packet in transmission may count in addition.
            && u64::from(threshold) > u64::from(self.queue.packets) + 1
        {
            return Err(PlanError::NeverMarks { threshold });
        }
        let at_once = matches!(self.reordering, Some(Reordering::AtOnce { .. }));
        if at_once && !self.delays() {
            return Err(PlanError::NothingToOvertake);
        }
        if self.order == Order::Netem {
            let not_in_netem = |feature| Err(PlanError::NotInNetem { feature });
            if self.queue.discipline != Discipline::DropTail {
                return not_in_netem("the other discipline");
            }
            if self.classes.is_some() {
                return not_in_netem("the classes");
            }
            if self.background.is_some() {
                return not_in_netem("the background");
            }
        }
        if let Some(classes) = &self.classes {
            classes.check(self.bandwidth)?;
        }
        if let Some(background) = &self.background {
            background.check(self.bandwidth)?;
        }
        Ok(())
    }

    /// True if some packets can be delayed in addition to their transmission.
    fn delays(&self) -> bool {
        let jitters = self
            .jitter
            .is_some_and(|jitter| jitter.spread.width(self.delay) > Span::ZERO);
        let scripted = || self.script.as_ref().is_some_and(|script| script.delays());
        self.delay > Span::ZERO || jitters || scripted()
    }

    /// True if the packet is too long for the network behind the link and may not be fragmented.
    pub(crate) fn is_too_big(&self, packet: &impl Packet) -> bool {
        self.mtu
            .is_some_and(|mtu| packet.bytes() > mtu.bytes && !packet.may_be_fragmented())
    }

    /// True if a packet that arrives at `now` meets an outage.
    pub(crate) fn is_out(&self, now: Instant) -> bool {
        self.outage_until.is_some_and(|end| now < end)
    }

    /// Bytes on the line of a packet with `bytes` bytes.
    pub(crate) fn length(&self, bytes: u32) -> u64 {
        u64::from(bytes) + u64::from(self.overhead)
    }
}
