//! Connections of a capture, with the client of each.

use std::collections::HashMap;
use std::net::IpAddr;

use posthaste_link::Direction;

use super::packet::{DecodedPacket, End, Opens, RelatedPacket};

/// The connections of a capture, with the client of each. Shared by the captures of both ends.
///
/// A SYN with another sequence number begins another connection between the same ends. It is the same connection in
/// each capture. Fragments, and packets without ports, are a connection of their own between two addresses, as on the
/// emulated link.
#[derive(Debug, Default)]
pub struct Connections {
    between: HashMap<Ends, Between>,
    /// Connections known from their beginning, by the sequence number of the SYN.
    begun: HashMap<(Ends, u32), CapturedConnection>,
    /// The client of the first connection between two addresses.
    clients: HashMap<(IpAddr, IpAddr), IpAddr>,
    count: u64,
    /// Connections whose client is assumed.
    assumed: u64,
    /// Captures begun so far.
    captures: u64,
    /// Port of servers whose connections have no SYN.
    server_port: Option<u16>,
}

/// The smaller end, the larger end, and the protocol.
type Ends = (End, End, u8);

/// Successive connections between two ends.
#[derive(Clone, Copy, Debug)]
struct Between {
    first: CapturedConnection,
    /// Connection of the last packet, and the capture that held it.
    last: CapturedConnection,
    capture: u64,
}

#[derive(Clone, Copy, Debug)]
struct CapturedConnection {
    number: u64,
    client: End,
    /// True if its beginning was seen.
    begun: bool,
}

fn ends(source: End, destination: End, protocol: u8) -> Ends {
    (source.min(destination), source.max(destination), protocol)
}

impl Connections {
    /// Connections of which the end with `server_port` is the server where no SYN shows it.
    pub fn with_server_port(server_port: Option<u16>) -> Self {
        Self {
            server_port,
            ..Self::default()
        }
    }

    /// Connections seen so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Connections among them without a SYN and without the port of the server, whose client is the end with the higher
    /// port, or else the first sender.
    pub fn assumed(&self) -> u64 {
        self.assumed
    }

    /// Begins another capture.
    pub(super) fn begin_capture(&mut self) {
        self.captures += 1;
    }

    /// Assigns a packet to its connection and direction.
    pub(super) fn assign(&mut self, packet: &DecodedPacket) -> (u64, Direction) {
        let ends = ends(packet.source, packet.destination, packet.protocol);
        let connection = self
            .known(&ends, packet.opens)
            .unwrap_or_else(|| self.begin(ends, packet));
        debug_assert!(
            (1..=self.count).contains(&connection.number),
            "a connection without a number"
        );
        let last = Between {
            first: connection,
            last: connection,
            capture: self.captures,
        };
        let between = self.between.entry(ends).or_insert(last);
        *between = Between {
            first: between.first,
            ..last
        };
        let is_up = connection.client == packet.source;
        let direction = if is_up {
            Direction::Up
        } else {
            Direction::Down
        };
        (connection.number, direction)
    }

    /// The known connection of a packet between these ends, unless the packet begins a new one.
    fn known(&mut self, ends: &Ends, opens: Opens) -> Option<CapturedConnection> {
        let between = self.between.get(ends);
        let is_new_here = between.is_some_and(|between| between.capture != self.captures);
        let Opens::ByClient(sequence) = opens else {
            // Another capture of the same traffic begins with the same connection, or not much later.
            return between.map(|between| {
                if is_new_here {
                    between.first
                } else {
                    between.last
                }
            });
        };
        if let Some(known) = self.begun.get(&(*ends, sequence)) {
            return Some(*known);
        }
        // The other capture began in the middle of this connection.
        let first = between.map(|between| between.first);
        let first = first.filter(|first| is_new_here && !first.begun)?;
        self.begun.insert((*ends, sequence), first);
        Some(first)
    }

    fn begin(&mut self, ends: Ends, packet: &DecodedPacket) -> CapturedConnection {
        self.count += 1;
        let (client, begun) = match packet.opens {
            Opens::ByClient(sequence) => (packet.source, Some(sequence)),
            Opens::ByServer(sequence) => (packet.destination, Some(sequence)),
            Opens::Nothing => (self.client(packet), None),
        };
        let connection = CapturedConnection {
            number: self.count,
            client,
            begun: begun.is_some(),
        };
        if let Some(sequence) = begun {
            self.begun.insert((ends, sequence), connection);
        }
        let addresses = (ends.0.0, ends.1.0);
        self.clients.entry(addresses).or_insert(client.0);
        connection
    }

    /// The client of a packet that opens nothing: that of the packet to which it belongs, or else of the first
    /// connection between its addresses, if it has no ports.
    fn client(&mut self, packet: &DecodedPacket) -> End {
        let (source, destination) = (packet.source, packet.destination);
        if let Some(related) = &packet.related {
            let is_up = self.is_up(related) != related.is_reverse;
            return if is_up { source } else { destination };
        }
        let addresses = (source.0.min(destination.0), source.0.max(destination.0));
        if source.1 == 0
            && destination.1 == 0
            && let Some(client) = self.clients.get(&addresses)
        {
            return if *client == source.0 {
                source
            } else {
                destination
            };
        }
        if let Some(is_up) = self.is_towards_server(source.1, destination.1) {
            return if is_up { source } else { destination };
        }
        self.assumed += 1;
        if destination.1 > source.1 {
            destination
        } else {
            source
        }
    }

    /// Direction by the port of the server. `None` if both ends have it or none.
    fn is_towards_server(&self, source: u16, destination: u16) -> Option<bool> {
        let port = self.server_port?;
        (source != destination && (source == port || destination == port))
            .then_some(destination == port)
    }

    /// True if the related packet travels up, in its connection or by its ports.
    fn is_up(&self, related: &RelatedPacket) -> bool {
        let ends = ends(related.source, related.destination, related.protocol);
        match self.between.get(&ends) {
            Some(between) => between.last.client == related.source,
            None => {
                let (source, destination) = (related.source.1, related.destination.1);
                self.is_towards_server(source, destination)
                    .unwrap_or(source >= destination)
            }
        }
    }
}
