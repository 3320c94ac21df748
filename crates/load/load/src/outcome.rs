//! Outcomes of a request, and the identity that every run must satisfy.
//!
//! Each intended request ends in exactly one [`Outcome`]. `intended = sum of outcomes` is asserted after every run,
//! also after Ctrl-C. A request that is neither counted nor explained would make all other figures of the run
//! worthless.

use std::fmt;
use std::ops::{AddAssign, Index, IndexMut};

use posthaste_units::Span;
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The end of one intended request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// A complete reply with a status below 400 that is no SOAP fault. For a gRPC call, one with the status OK.
    Ok,
    /// A complete reply that is a SOAP fault, with any status.
    SoapFault,
    /// A complete reply with a status of 400 or more.
    StatusError,
    /// A complete reply to a gRPC call with a status other than OK.
    GrpcError,
    /// No connection within the connect timeout, or none possible (host unreachable).
    ConnectAborted,
    /// Connected as far as this end can see, but the server's kernel never acknowledged the request: its accept queue
    /// was full when the last packet of the handshake came.
    Unanswered,
    /// The connection attempt was answered with a reset.
    Refused,
    /// The peer reset the connection, or closed it without a byte of reply.
    Reset,
    /// No complete reply within the timeout.
    TimedOut,
    /// The TLS handshake failed.
    TlsFailed,
    /// Not HTTP, or a body shorter or longer than announced. For a gRPC call also a reply without a valid status, with
    /// a cut or too long message, or with another number of messages than the method has.
    ProtocolError,
    /// Ended because another request's reply on its connection violated the protocol. Only over HTTP/2.
    Collateral,
    /// The server stated that it did not process the request (RFC 9113, section 8.7). Only over HTTP/2.
    Rejected,
    /// A complete reply whose content does not match Content-Encoding, or has an unknown coding. Only if the plan
    /// decodes, and for gRPC calls, if a message is compressed.
    Undecodable,
    /// A coded reply given up while it came, because the memory for such replies was used up. Only if the plan decodes.
    MemoryLimit,
    /// Never sent: the generator's own limit was reached, of open connections or of its speed.
    Dropped,
    /// Never sent: its connection had no free stream within the timeout. Only over HTTP/2.
    NoStream,
    /// Never sent: this machine had no descriptor, no port or no memory left.
    ClientFailed,
    /// Never sent: no offer met the client's requirements and maximum price.
    Declined,
    /// Still unfinished when the run was stopped.
    InFlight,
    /// Its agent was lost, so it is not known whether it was sent. Only with agents.
    Lost,
}

impl Outcome {
    /// Every outcome, in the order in which reports list them.
    pub const ALL: [Self; 21] = [
        Self::Ok,
        Self::SoapFault,
        Self::StatusError,
        Self::GrpcError,
        Self::ConnectAborted,
        Self::Unanswered,
        Self::Refused,
        Self::Reset,
        Self::TimedOut,
        Self::TlsFailed,
        Self::ProtocolError,
        Self::Collateral,
        Self::Rejected,
        Self::Undecodable,
        Self::MemoryLimit,
        Self::Dropped,
        Self::NoStream,
        Self::ClientFailed,
        Self::Declined,
        Self::InFlight,
        Self::Lost,
    ];

    /// The name in JSON, CSV and assertions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::SoapFault => "soap-fault",
            Self::StatusError => "status-error",
            Self::GrpcError => "grpc-error",
            Self::ConnectAborted => "connect-aborted",
            Self::Unanswered => "unanswered",
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::TimedOut => "timed-out",
            Self::TlsFailed => "tls-failed",
            Self::ProtocolError => "protocol-error",
            Self::Collateral => "collateral",
            Self::Rejected => "rejected",
            Self::Undecodable => "undecodable",
            Self::MemoryLimit => "memory-limit",
            Self::Dropped => "dropped",
            Self::NoStream => "no-stream",
            Self::ClientFailed => "client-failed",
            Self::Declined => "declined",
            Self::InFlight => "in-flight",
            Self::Lost => "lost",
        }
    }

    /// The outcome called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// A short explanation for readers of a report.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "complete reply",
            Self::SoapFault => "complete reply that is a SOAP fault",
            Self::StatusError => "complete reply with status 400 or above",
            Self::GrpcError => "complete gRPC reply with a status other than OK",
            Self::ConnectAborted => "no connection within the connect timeout",
            Self::Unanswered => "connected here, never acknowledged there",
            Self::Refused => "connection refused",
            Self::Reset => "connection ended by the peer before a complete reply",
            Self::TimedOut => "no complete reply within the timeout",
            Self::TlsFailed => "TLS handshake failed",
            Self::ProtocolError => {
                "not HTTP, a body shorter than announced, or a head above 300 KiB or 1,024 fields"
            }
            Self::Collateral => "ended with a connection on which another reply was invalid",
            Self::Rejected => "the server states that it did not process the request",
            Self::Undecodable => "complete reply whose content cannot be decoded",
            Self::MemoryLimit => {
                "coded reply given up: no memory left to keep it until it is decoded"
            }
            Self::Dropped => "not sent: the generator's limit of open connections, or of its speed",
            Self::NoStream => "not sent: no free stream on its connection within the timeout",
            Self::ClientFailed => "not sent: no descriptor, port or memory here",
            Self::Declined => "not sent: no offer at the price the client pays",
            Self::InFlight => "unfinished when the run was stopped",
            Self::Lost => "its agent was lost: whether it was sent is not known",
        }
    }

    /// True if the reply is complete, with any status.
    pub(crate) const fn is_complete(self) -> bool {
        matches!(
            self,
            Self::Ok | Self::SoapFault | Self::StatusError | Self::GrpcError
        )
    }

    /// Returns the time that a request without a complete reply was waited for, given the time until it ended. Its
    /// response time is longer than that. `None` if no reply would have come after any wait.
    pub(crate) const fn waited(self, until_end: Span) -> Option<Span> {
        match self {
            Self::ConnectAborted
            | Self::Unanswered
            | Self::TimedOut
            | Self::NoStream
            | Self::InFlight => Some(until_end),
            _ => None,
        }
    }

    /// True if at least a SYN was sent for the request. A request unfinished when the run was stopped is included;
    /// those not begun are counted apart.
    pub const fn was_attempted(self) -> bool {
        !matches!(
            self,
            Self::Dropped | Self::NoStream | Self::ClientFailed | Self::Declined | Self::Lost
        )
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<str>::deserialize(from)?;
        Self::from_name(&name).ok_or_else(|| D::Error::custom(format!("unknown outcome {name:?}")))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Number of requests for each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes([u64; Outcome::ALL.len()]);

impl Outcomes {
    /// All requests counted, with any outcome.
    pub fn total(&self) -> u64 {
        self.0.iter().copied().fold(0, u64::saturating_add)
    }

    /// Requests that were attempted, or would have been in a run that was not stopped.
    pub(crate) fn attempted(&self) -> u64 {
        self.iter()
            .filter(|(outcome, _)| outcome.was_attempted())
            .map(|(_, count)| count)
            .sum()
    }

    /// All requests except [`Outcome::Ok`].
    pub fn failed(&self) -> u64 {
        self.total() - self[Outcome::Ok]
    }

    /// Outcome and count, in report order, zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (Outcome, u64)> + '_ {
        Outcome::ALL
            .into_iter()
            .map(|outcome| (outcome, self[outcome]))
    }
}

impl Index<Outcome> for Outcomes {
    type Output = u64;
    fn index(&self, outcome: Outcome) -> &u64 {
        &self.0[outcome as usize]
    }
}

impl IndexMut<Outcome> for Outcomes {
    fn index_mut(&mut self, outcome: Outcome) -> &mut u64 {
        &mut self.0[outcome as usize]
    }
}

impl AddAssign for Outcomes {
    fn add_assign(&mut self, other: Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

impl Serialize for Outcomes {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(Some(Outcome::ALL.len()))?;
        for (outcome, count) in self.iter() {
            map.serialize_entry(outcome.name(), &count)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Outcomes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let counts = std::collections::BTreeMap::<Outcome, u64>::deserialize(from)?;
        let mut outcomes = Self::default();
        for (outcome, count) in counts {
            outcomes[outcome] = count;
        }
        Ok(outcomes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for (index, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, index, "{outcome} indexes another's count");
            assert_eq!(Outcome::from_name(outcome.name()), Some(outcome));
        }
        assert_eq!(Outcome::from_name("fine"), None);
    }

    #[test]
    fn json_holds_every_key_and_reads_back() {
        let mut outcomes = Outcomes::default();
        outcomes[Outcome::Ok] = 7;
        outcomes[Outcome::InFlight] = 2;
        let json = serde_json::to_string(&outcomes).unwrap();
        assert_eq!(json.matches(':').count(), Outcome::ALL.len());
        assert_eq!(serde_json::from_str::<Outcomes>(&json).unwrap(), outcomes);
        assert_eq!((outcomes.total(), outcomes.failed()), (9, 2));
    }
}
