//! What one direction of a link does, as data.

use std::sync::Arc;

use posthaste_units::{BitRate, Ratio, Span};
use thiserror::Error;

use crate::pattern::Script;
use crate::{Background, Classes, Discipline, Jitter, Loss, Queue, Reordering};

/// What one direction of a link does. The default does nothing: no delay, no limit, no loss.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Bits that pass per second; `None` is without limit, and then nothing ever queues.
    pub bandwidth: Option<BitRate>,
    /// Delay of every packet in addition to its transmission: the mean where there is jitter.
    pub delay: Span,
    /// How delays vary.
    pub jitter: Option<Jitter>,
    /// Whether a packet whose delay is shorter waits for the one before it. Packets that
    /// reordering moves are exempt.
    pub keeps_order: bool,
    /// Which packets are lost by chance.
    pub loss: Option<Loss>,
    /// Probability of each bit to flip.
    pub bit_error_rate: Ratio,
    /// The share of packets that pass twice. The copy is a packet of its own in the queue and on
    /// the line; patterns pass it over.
    pub duplication: Ratio,
    /// Which packets change places by chance.
    pub reordering: Option<Reordering>,
    /// What waits for the bandwidth.
    pub queue: Queue,
    /// Bytes that the link adds to every IP packet: 14 for Ethernet's header.
    pub overhead: u32,
    /// In which order these things happen.
    pub order: Order,
    /// Shares of the bandwidth by code point, each with a queue of its own.
    pub classes: Option<Arc<Classes>>,
    /// What others send through the link.
    pub background: Option<Background>,
    /// What happens to which packet, decided beforehand.
    pub script: Option<Arc<Script>>,
}

/// In which order things happen to a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Pattern and chance, queue, bandwidth, delay. A dropped packet takes no time on the line.
    /// After dummynet as the packet-loss paper used it: in FreeBSD 6's
    /// `sys/netinet/ip_dummynet.c` a packet stays in its queue until it is through (`ready_event`)
    /// and then in the pipe for the delay of that moment (`move_pkt`).
    #[default]
    Dummynet,
    /// Pattern and chance, delay, bandwidth, as in netem: the delays of queued packets run at the
    /// same time, the queue's limit counts every packet in the link, and a copy can be lost by
    /// chance, where the packet itself is only lost if it has no copy.
    Netem,
}

/// Why a plan cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// Order netem with something netem does not have.
    #[error("netem's order has one drop-tail queue: leave {what} out, or use dummynet's order")]
    NotInNetem {
        /// What it does not have.
        what: &'static str,
    },
    /// A queue without room.
    #[error("a queue without room lets nothing pass: give it at least one packet and 1,500 bytes")]
    NoRoom,
    /// Classes that do not fit the bandwidth or each other.
    #[error("{0}")]
    Classes(#[from] crate::classes::ClassError),
    /// Background that cannot be.
    #[error("{0}")]
    Background(#[from] crate::background::BackgroundError),
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
        }
    }
}

impl Plan {
    /// Says what cannot be carried out. A link whose plan was not checked passes over the parts
    /// that this names.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.queue.packets == 0 || self.queue.bytes.is_some_and(|size| size.as_bytes() < 1500) {
            return Err(PlanError::NoRoom);
        }
        if self.order == Order::Netem {
            let not_in_netem = |what| Err(PlanError::NotInNetem { what });
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

    /// Bytes that a packet of so many takes on the line.
    pub(crate) fn length(&self, bytes: u32) -> u64 {
        u64::from(bytes) + u64::from(self.overhead)
    }
}
