//! The edge of a DiffServ network (RFC 2475): sets the code point of packets before they enter the link, by connection
//! and regardless of the sender's mark.
//!
//! This shows the effect of marks that no program sets yet, and the effect of a network that removes marks.

use std::str::FromStr;

use posthaste_link::updated_checksum;
use posthaste_units::Dscp;
use thiserror::Error;

use crate::path::flow::Flow;

/// A marking rule for packets of some connections, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeRule {
    /// Connections to mark.
    pub flows: FlowSelector,
    /// Code point to set.
    pub dscp: Dscp,
}

/// Selection of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowSelector {
    /// All packets.
    Any,
    /// Connections from this client port.
    Client(u16),
    /// Connections to this server port.
    Server(u16),
}

/// A text that is not a marking rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} does not mark anything: write server:8080=af11, client:40000=ef or any=default")]
pub struct EdgeRuleError {
    text: String,
}

impl FromStr for EdgeRule {
    type Err = EdgeRuleError;

    fn from_str(text: &str) -> Result<Self, EdgeRuleError> {
        let read = || {
            let (flows, dscp) = text.split_once('=')?;
            let flows = match flows.split_once(':') {
                None if flows == "any" => FlowSelector::Any,
                Some(("client", port)) => FlowSelector::Client(port.parse().ok()?),
                Some(("server", port)) => FlowSelector::Server(port.parse().ok()?),
                _ => return None,
            };
            let dscp = dscp.parse().ok()?;
            Some(Self { flows, dscp })
        };
        read().ok_or_else(|| EdgeRuleError {
            text: text.to_owned(),
        })
    }
}

impl FlowSelector {
    fn has(self, flow: &Flow) -> bool {
        match self {
            Self::Any => true,
            Self::Client(port) => flow.client.port() == port,
            Self::Server(port) => flow.server.port() == port,
        }
    }
}

/// Marks an IP packet by the first rule that fits. Without one it is unchanged.
pub(crate) fn mark(rules: &[EdgeRule], flow: &Flow, packet: &mut [u8]) {
    if let Some(rule) = rules.iter().find(|rule| rule.flows.has(flow)) {
        set(packet, rule.dscp);
    }
}

/// Sets the code point and keeps the ECN bits.
fn set(packet: &mut [u8], dscp: Dscp) {
    match packet {
        [first, second, ..] if *first >> 4 == 6 => {
            *first = 0x60 | (dscp.get() >> 2);
            *second = (*second & 0x3f) | (dscp.get() << 6);
        }
        [first, class, ..] if *first >> 4 == 4 => {
            let old = *class;
            *class = (old & 3) | dscp.traffic_class();
            let new = *class;
            if let Some(sum) = packet.get_mut(10..12) {
                let before = u16::from_be_bytes([sum[0], sum[1]]);
                let updated = updated_checksum(before, old.into(), new.into());
                sum.copy_from_slice(&updated.to_be_bytes());
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{Ipv4Header, PacketBuilder};
    use posthaste_link::Packet as _;

    fn flow(text: (&str, &str)) -> Flow {
        Flow {
            protocol: 17,
            client: text.0.parse().unwrap(),
            server: text.1.parse().unwrap(),
        }
    }

    #[test]
    fn every_mark_over_every_other_leaves_a_sound_packet() {
        for (old, new) in (0..=255).flat_map(|old| [0, 10, 46, 63].map(|new| (old, new))) {
            let new = Dscp::new(new).unwrap();
            let mut header =
                Ipv4Header::new(8, 64, 17.into(), [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
            (header.dscp, header.ecn) = (
                (old >> 2).try_into().unwrap(),
                (old & 3).try_into().unwrap(),
            );
            header.identification = u16::from(old) * 251;
            let mut packet = Vec::new();
            header.write(&mut packet).unwrap();
            packet.extend([0; 8]);
            set(&mut packet, new);
            assert_eq!(packet.dscp(), new);
            let (read, _) = Ipv4Header::from_slice(&packet).unwrap();
            assert_eq!(read.ecn, header.ecn);
            assert_eq!(read.header_checksum, read.calc_header_checksum());

            let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(1, 2);
            let mut packet = Vec::new();
            builder.write(&mut packet, &[7; 9]).unwrap();
            packet[0] |= old >> 4;
            packet[1] |= old << 4 | 5;
            let before = packet.clone();
            set(&mut packet, new);
            assert_eq!(packet.dscp(), new);
            assert_eq!((packet[0] >> 4, packet[1] & 0x3f), (6, before[1] & 0x3f));
            assert_eq!(packet[2..], before[2..]);
        }
    }

    #[test]
    fn the_first_rule_that_fits_marks() {
        let rules = ["server:80=ef", "client:4000=af11", "any=le"];
        let rules = rules.map(|rule| rule.parse::<EdgeRule>().unwrap());
        let marked = |rules: &[EdgeRule], text| {
            let mut packet = vec![0x45; 20];
            mark(rules, &flow(text), &mut packet);
            packet.dscp()
        };
        assert_eq!(marked(&rules, ("10.0.0.1:4000", "10.0.0.2:80")), Dscp::EF);
        assert_eq!(marked(&rules, ("10.0.0.1:4000", "10.0.0.2:81")), Dscp::AF11);
        assert_eq!(marked(&rules, ("10.0.0.1:80", "10.0.0.2:4000")), Dscp::LE);
        assert_eq!(
            marked(&rules[..2], ("10.0.0.1:1", "10.0.0.2:2")),
            Dscp::of_traffic_class(0x45)
        );
    }

    #[test]
    fn rules_without_a_valid_mark_are_refused_with_the_remedy() {
        for wrong in [
            "",
            "any",
            "ef",
            "server=ef",
            "server:http=ef",
            "server:80=af44",
            "80=ef",
        ] {
            let error = wrong.parse::<EdgeRule>().unwrap_err().to_string();
            assert!(error.contains("server:8080=af11"), "{error}");
        }
    }
}
