//! Packets for tests, built by `etherparse` and not by the code under test.

use etherparse::{PacketBuilder, TcpOptionElement};

/// Window scale that a SYN announces.
pub(super) const SCALE: u8 = 7;

/// Sender of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestEnd {
    Client,
    Server,
}

/// Addresses of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct TestPackets {
    version: u8,
    /// Port of the client.
    port: u16,
}

impl TestPackets {
    pub(super) fn for_version(version: u8) -> Self {
        Self {
            version,
            port: 40_000,
        }
    }

    /// The same connection from another client port.
    pub(super) fn at_port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    /// An IP packet with `payload` bytes of data. `flags` lists those of syn, fin and rst that are set.
    pub(super) fn packet(
        self,
        from: TestEnd,
        sequence: u32,
        acknowledgment: Option<u32>,
        window: u16,
        payload: usize,
        flags: &str,
    ) -> Vec<u8> {
        let ends = [(1, self.port), (2, 80)];
        let [source, destination] = match from {
            TestEnd::Client => ends,
            TestEnd::Server => [ends[1], ends[0]],
        };
        let start = match self.version {
            4 => PacketBuilder::ipv4([10, 0, 0, source.0], [10, 0, 0, destination.0], 64),
            _ => PacketBuilder::ipv6([source.0; 16], [destination.0; 16], 64),
        };
        let mut tcp = start.tcp(source.1, destination.1, sequence, window);
        if let Some(acknowledgment) = acknowledgment {
            tcp = tcp.ack(acknowledgment);
        }
        for flag in flags.split_whitespace() {
            tcp = match flag {
                "syn" => tcp.syn(),
                "fin" => tcp.fin(),
                "rst" => tcp.rst(),
                other => panic!("no flag: {other}"),
            };
        }
        let options = [
            TcpOptionElement::Timestamp(sequence, 1),
            TcpOptionElement::WindowScale(SCALE),
        ];
        let tcp = tcp.options(&options).expect("options that fit");
        let mut packet = Vec::new();
        tcp.write(&mut packet, &vec![0; payload])
            .expect("a packet that fits");
        packet
    }
}
