//! Compact storage of offers.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posthaste_units::{Rate, Ratio, Span};

use crate::{Definition, Info, Money, Offer, Priorities, Priority, Server};

/// An offer without its name.
#[derive(Debug)]
pub(super) enum StoredOffer {
    /// An offer with only numbers, priorities and a price, and nothing for single operations.
    Plain(Box<Plain>),
    /// Any other offer.
    Whole(Box<Definition>, Timestamp),
    /// Either of these, with the service's URL.
    Placed(Box<(StoredOffer, Box<str>)>),
}

/// Values of a plain offer. `stated` has one bit for each stated value; the others are 0.
#[derive(Debug)]
pub(super) struct Plain {
    pub(super) expires: Timestamp,
    price: Option<Money>,
    time: Span,
    rate: Rate,
    reliability: Ratio,
    availability: Ratio,
    priorities: [Priority; 4],
    stated: u8,
}

impl StoredOffer {
    pub(super) fn from_offer(offer: &Offer) -> Self {
        let Offer { expires, qos, .. } = offer;
        let kept = match Plain::from_definition(qos, *expires) {
            Some(plain) => Self::Plain(Box::new(plain)),
            None => Self::Whole(Box::new(qos.clone()), *expires),
        };
        match &offer.endpoint {
            Some(endpoint) => Self::Placed(Box::new((kept, endpoint.as_str().into()))),
            None => kept,
        }
    }

    pub(super) fn expires(&self) -> Timestamp {
        match self {
            Self::Plain(plain) => plain.expires,
            Self::Whole(_, expires) => *expires,
            Self::Placed(placed) => placed.0.expires(),
        }
    }

    /// The offer, with an empty name.
    pub(super) fn offer(&self) -> Offer {
        let qos = match self {
            Self::Plain(plain) => plain.definition(),
            Self::Whole(qos, _) => Definition::clone(qos),
            Self::Placed(placed) => {
                let (kept, endpoint) = &**placed;
                return Offer {
                    endpoint: Some(endpoint.to_string()),
                    ..kept.offer()
                };
            }
        };
        Offer {
            name: String::new(),
            expires: self.expires(),
            endpoint: None,
            qos,
        }
    }
}

impl Plain {
    /// Returns `None` if `qos` contains more than numbers, priorities and a price.
    fn from_definition(qos: &Definition, expires: Timestamp) -> Option<Self> {
        let Info {
            server,
            transport,
            security,
        } = &qos.default;
        let simple = qos.operations.is_empty() && qos.contracts.is_empty() && security.is_empty();
        if !simple || !server.custom.is_empty() || !transport.custom.is_empty() {
            return None;
        }
        let priorities = [
            transport.delay,
            transport.jitter,
            transport.throughput,
            transport.packet_loss,
        ];
        let numbers = [
            server.processing_time.is_some(),
            server.requests_per_second.is_some(),
            server.reliability.is_some(),
            server.availability.is_some(),
        ];
        let stated = numbers.into_iter().chain(priorities.map(|p| p.is_some()));
        let bit = |(position, stated): (usize, bool)| u8::from(stated) << position;
        let plain = Self {
            expires,
            price: qos.price,
            time: server.processing_time.unwrap_or_default(),
            rate: server.requests_per_second.unwrap_or_default(),
            reliability: server.reliability.unwrap_or_default(),
            availability: server.availability.unwrap_or_default(),
            priorities: priorities.map(Option::unwrap_or_default),
            stated: stated.enumerate().map(bit).sum(),
        };
        debug_assert_eq!(plain.definition(), *qos, "a plain offer loses no value");
        Some(plain)
    }

    fn definition(&self) -> Definition {
        let is_stated = |position: usize| self.stated & (1 << position) != 0;
        let priority =
            |position: usize| is_stated(4 + position).then_some(self.priorities[position]);
        Definition {
            default: Info {
                server: Server {
                    processing_time: is_stated(0).then_some(self.time),
                    requests_per_second: is_stated(1).then_some(self.rate),
                    reliability: is_stated(2).then_some(self.reliability),
                    availability: is_stated(3).then_some(self.availability),
                    custom: Vec::new(),
                },
                transport: Priorities {
                    delay: priority(0),
                    jitter: priority(1),
                    throughput: priority(2),
                    packet_loss: priority(3),
                    custom: Vec::new(),
                },
                security: Vec::new(),
            },
            operations: BTreeMap::new(),
            contracts: Vec::new(),
            price: self.price,
        }
    }
}
