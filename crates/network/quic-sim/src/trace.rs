//! Trace of every datagram of one transaction: packets, frames, cause and fate.
//!
//! The types of packets are read from their headers, as in the traces of the emulator. The types of frames are known
//! from the sender's counters.

use posthaste_link::quic::QuicDatagram;
use posthaste_link::{DeliveryMarks, Departure, Direction, Fate};
use posthaste_units::Instant;

use crate::{CarriedDatagram, DatagramWitness, Frames, OfferedDatagram, SentCause};

/// One datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracedDatagram {
    /// Direction of travel.
    pub direction: Direction,
    /// Position among the packets of its direction, from 1. Patterns refer to this number.
    pub position: u64,
    /// 0 for the original, 1 and up for copies made by the link.
    pub copy: u32,
    /// Time of arrival at the link.
    pub sent: Instant,
    /// Time of departure or drop.
    pub left: Instant,
    /// Delivery or drop.
    pub fate: Fate,
    /// Types of its packets. `None` if they cannot be read.
    pub packets: Option<QuicDatagram>,
    /// Bytes of UDP payload.
    pub bytes: usize,
    /// Types of its frames, as far as known.
    pub frames: Frames,
    /// Cause of the transmission.
    pub cause: SentCause,
    /// Time of the sender's previous datagram that elicits an acknowledgement. The timer of a probe runs from it.
    pub before: Option<Instant>,
}

/// Recorder of the datagrams of a transaction, in the order of transmission.
#[derive(Clone, Debug, Default)]
pub struct DatagramTrace {
    datagrams: Vec<TracedDatagram>,
    /// Index in the list of each datagram so far, up and down.
    places: [Vec<usize>; 2],
    /// Time of the last datagram that elicits an acknowledgement, up and down.
    last: [Option<Instant>; 2],
}

impl DatagramTrace {
    /// Creates an empty trace.
    pub fn new() -> Self {
        Self::default()
    }

    /// Datagrams in the order of transmission. Copies are at the end.
    pub fn datagrams(&self) -> &[TracedDatagram] {
        &self.datagrams
    }
}

impl DatagramWitness for DatagramTrace {
    fn sent(&mut self, sent: OfferedDatagram<'_>) {
        let way = sent.direction as usize;
        let places = &mut self.places[way];
        places.push(self.datagrams.len());
        let payload = &sent.datagram.payload;
        // The second probe of a timeout leaves with the first.
        let earlier = self.last[way].filter(|last| *last < sent.at);
        self.datagrams.push(TracedDatagram {
            direction: sent.direction,
            position: places.len() as u64,
            copy: 0,
            sent: sent.at,
            left: Instant::FAR_FUTURE,
            fate: Fate::Delivered(DeliveryMarks::default()),
            packets: QuicDatagram::of_payload(payload),
            bytes: payload.len(),
            frames: sent.frames,
            cause: sent.cause,
            before: earlier,
        });
        if sent.frames.elicits_ack() {
            self.last[way] = Some(sent.at);
        }
    }

    fn left(&mut self, direction: Direction, departure: &Departure<CarriedDatagram>) {
        let index = usize::try_from(departure.position - 1).ok();
        let places = &self.places[direction as usize];
        let Some(&position) = index.and_then(|index| places.get(index)) else {
            return;
        };
        let datagram = &mut self.datagrams[position];
        debug_assert_eq!(
            datagram.position, departure.position,
            "a datagram leaves at the position of another"
        );
        if departure.copy == 0 {
            (datagram.left, datagram.fate) = (departure.left, departure.fate);
            return;
        }
        let copy = TracedDatagram {
            copy: departure.copy,
            left: departure.left,
            fate: departure.fate,
            ..*datagram
        };
        self.datagrams.push(copy);
    }
}
