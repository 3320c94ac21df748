//! UDP datagrams as QUIC packets: their types by visible headers.

use posthaste_emulator::trace::{QuicDatagram, QuicPacketType};

use crate::within;

/// Any bytes as a UDP datagram: bounded, and nothing follows a packet that reaches to the end.
pub fn quic_datagram(bytes: &[u8]) {
    let read = within("QuicDatagram::read", bytes.len(), 0, 0, || {
        QuicDatagram::read(bytes)
    });
    let Some(datagram) = read else { return };
    assert_eq!(datagram.payload() as usize, bytes.len() - 8);
    let packets: Vec<QuicPacketType> = datagram.packets().collect();
    let (last, others) = packets.split_last().expect("a datagram has a packet");
    assert!(others.len() < 4);
    assert_eq!(
        datagram.has_long_header(),
        packets[0] != QuicPacketType::OneRtt
    );
    let has_length = |packet: &QuicPacketType| {
        matches!(
            packet,
            QuicPacketType::Initial | QuicPacketType::ZeroRtt | QuicPacketType::Handshake
        )
    };
    assert!(others.iter().all(has_length));
    // A packet with a length does not change with what follows it.
    if has_length(last) {
        let padded = QuicDatagram::read(&[bytes, &[0; 16]].concat()).expect("as before");
        let begins = padded.packets().take(packets.len());
        assert!(begins.eq(packets.iter().copied()));
    }
}
