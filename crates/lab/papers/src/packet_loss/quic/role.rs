//! Roles of packets by their place and size. Cells are compared by the role of the lost packet.
//!
//! A position names different packets over different transports, and even over one, because the number of
//! acknowledgements before the reply depends on timing. All sizes are of IP packets.

use std::fmt;

use super::transport::LostPacket;

/// Size above which a packet has more than acknowledgements, a control stream, or the end of a connection.
const DATA: u32 = 80;
/// Minimum size of a full packet of a reply.
const FULL: u32 = 1000;
/// Number of consecutive full packets that begin a reply: more than any flight of a handshake has here.
const REPLY: usize = 3;

/// The role of a lost packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum PacketRole {
    /// No packet was lost.
    None,
    /// The client's packet with data of this number, from 1: a SYN or an Initial packet is the first.
    Client(u32),
    /// The same of the server, before the reply.
    Server(u32),
    /// The packet of the reply of this number, from 1.
    Reply(u32),
    /// The client's packet without data at this position.
    ClientAck(u32),
    /// The same of the server.
    ServerAck(u32),
}

impl PacketRole {
    /// The role of the lost packet among the packets of its transaction, from the client and from the server. `None`
    /// if there was no packet at its position, or if losses are random.
    pub(in super::super) fn from_packets(
        lost: LostPacket,
        packets: &[Vec<u32>; 2],
    ) -> Option<Self> {
        let [up, down] = packets;
        let at = |packets: &[u32], position: u32| -> Option<Vec<u32>> {
            let packets = packets.get(..position as usize)?;
            (position > 0).then(|| packets.to_vec())
        };
        Some(match lost {
            LostPacket::None => Self::None,
            LostPacket::Percent(_) => return None,
            LostPacket::Up(position) => {
                let before = at(up, position)?;
                match number(&before) {
                    Some(number) => Self::Client(number),
                    None => Self::ClientAck(position),
                }
            }
            LostPacket::Down(position) => {
                let before = at(down, position)?;
                // A lost first packet is sent again and again, and no reply begins before it.
                let begin = match position {
                    1 => usize::MAX,
                    _ => reply_begins(down),
                };
                match (number(&before), before.get(begin..)) {
                    (None, _) => Self::ServerAck(position),
                    (Some(_), Some(reply @ [_, ..])) => Self::Reply(data(reply)),
                    (Some(number), _) => Self::Server(number),
                }
            }
        })
    }
}

/// The name in records.
impl fmt::Display for PacketRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Client(number) => write!(f, "client {number}"),
            Self::Server(number) => write!(f, "server {number}"),
            Self::Reply(number) => write!(f, "reply {number}"),
            Self::ClientAck(position) => write!(f, "client ack at {position}"),
            Self::ServerAck(position) => write!(f, "server ack at {position}"),
        }
    }
}

/// Number of packets of the reply of a transaction without a loss. A copy of the last one, which a probe of TCP sends
/// while the reply waits in a queue, does not count.
pub(in super::super) fn reply_packets(packets: &[Vec<u32>; 2]) -> u32 {
    let down = &packets[1];
    let reply = down.get(reply_begins(down)..).unwrap_or_default();
    let mut sizes: Vec<u32> = reply.iter().copied().filter(|size| *size > DATA).collect();
    let full = sizes.iter().take(REPLY).min().copied();
    while let [.., last, copy] = sizes[..]
        && last == copy
        && Some(last) < full
    {
        sizes.pop();
    }
    sizes.len() as u32
}

/// Index of the first packet of the reply.
fn reply_begins(down: &[u32]) -> usize {
    let full = |packets: &[u32]| packets.iter().all(|size| *size >= FULL);
    let mut windows = down.windows(REPLY).skip(1);
    windows.position(full).map_or(down.len(), |index| index + 1)
}

/// Number of the last of these packets among those with data. The first packet counts, whatever its size.
fn number(packets: &[u32]) -> Option<u32> {
    match packets {
        [] => None,
        [_] => Some(1),
        [_, rest @ .., last] => (*last > DATA).then(|| data(rest) + 2),
    }
}

fn data(packets: &[u32]) -> u32 {
    packets.iter().filter(|size| **size > DATA).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_have_the_role_of_their_size_and_place() {
        let quic = [
            vec![1228, 1228, 530, 63, 90, 62, 66],
            vec![
                1228, 166, 231, 69, 63, 1228, 1228, 1228, 1228, 1228, 109, 66,
            ],
        ];
        let role = |lost| PacketRole::from_packets(lost, &quic).map(|role| role.to_string());
        let down = |position| role(LostPacket::Down(position)).unwrap_or_default();
        let up = |position| role(LostPacket::Up(position)).unwrap_or_default();
        assert_eq!([1, 2, 3].map(down), ["server 1", "server 2", "server 3"]);
        assert_eq!(
            [5, 6, 11].map(down),
            ["server ack at 5", "reply 1", "reply 6"]
        );
        assert_eq!([12, 13].map(down), ["server ack at 12", ""]);
        assert_eq!(
            [1, 3, 4].map(up),
            ["client 1", "client 3", "client ack at 4"]
        );
        assert_eq!(reply_packets(&quic), 6);
        let tcp = [
            vec![60, 52, 1490, 52],
            vec![60, 52, 1500, 1500, 1500, 1440, 52],
        ];
        let role = |lost| PacketRole::from_packets(lost, &tcp).map(|role| role.to_string());
        assert_eq!(role(LostPacket::Down(6)).as_deref(), Some("reply 4"));
        assert_eq!(role(LostPacket::Up(3)).as_deref(), Some("client 2"));
        assert_eq!(reply_packets(&tcp), 4);
        let [up, mut down] = tcp;
        down.insert(6, 1440);
        assert_eq!(reply_packets(&[up, down]), 4, "the last one is a copy");
    }

    #[test]
    fn a_lost_first_flight_that_is_sent_three_times_is_no_reply() {
        let down = vec![1228, 166, 1228, 1228, 1228, 79, 231, 1228, 1228, 1228, 109];
        let packets = [vec![1228], down];
        let role = PacketRole::from_packets(LostPacket::Down(1), &packets);
        assert_eq!(role, Some(PacketRole::Server(1)));
    }
}
