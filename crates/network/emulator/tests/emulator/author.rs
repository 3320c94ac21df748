//! The paper's first service on its slowest link, without loss: a time that can be computed.

use posthaste_emulator::transaction::{
    Course, Transaction, TransactionClient, TransactionEnd, TransactionServer,
};
use posthaste_emulator::{SERVER, response};
use posthaste_link::Plan;
use posthaste_units::{BitRate, Span};

use crate::inside::{delay, emulation, expect_once, held};

const REQUEST: u32 = 1438;
const REPLY: u32 = 12_974;
const BIT_RATE: u64 = 300_000;
/// IPv4 and TCP headers with time stamps.
const HEADERS: u64 = 52;
const SEGMENT: u64 = 1448;
/// Busy machines delay some transactions. The quickest must match.
const TRANSACTIONS: u16 = 10;
/// Maximum difference from the computed time.
const TOLERANCE: Span = Span::from_micros(500);

pub(crate) fn lossless() {
    expect_once(transactions);
}

/// Runs the transactions, and compares the quickest with the computed time.
fn transactions() -> Result<(), String> {
    let plan = Plan {
        bandwidth: BitRate::per_second(BIT_RATE),
        ..delay(10)
    };
    let mut running = emulation(plan)
        .packet_records(4096)
        .start()
        .expect("an emulation");
    let packet_records = running.packet_records.take().expect("asked for");
    let server = TransactionServer::start(&running.server).expect("a server");
    let transactions = (10_000..)
        .take(usize::from(TRANSACTIONS))
        .map(|port| Transaction {
            port,
            request: REQUEST,
            reply: REPLY,
            processing: Span::from_millis(20),
            fin_on_data: false,
        });
    let course = Course {
        at_once: 1,
        spacing: Span::ZERO,
        timeout: Span::from_secs(10),
    };
    let client = TransactionClient::start(&running.client, SERVER, transactions.collect(), course);
    let ended = client.finish().expect("a client");
    assert_eq!(ended, [TransactionEnd::Well; TRANSACTIONS as usize]);
    drop(server);
    let outcome = running.finish().expect("an outcome");
    let responses = response::read(packet_records.drain()).responses;
    assert_eq!(responses.len(), usize::from(TRANSACTIONS));
    assert!(
        responses
            .iter()
            .all(|response| response.reply == u64::from(REPLY))
    );
    // The server's processing time is subtracted. The client's passes while its ACK is on the line, so that the request
    // does not wait for it.
    let network = responses
        .iter()
        .map(|response| response.time.total().saturating_sub(response.time.t_proc));
    let (measured, computed) = (network.min().expect("ten"), computed());
    let apart = measured.as_nanos().abs_diff(computed.as_nanos());
    held(apart < TOLERANCE.as_nanos(), || {
        let worst = outcome.lateness.max();
        format!("{measured} where {computed} was computed; the emulator was {worst} late at worst")
    })
}

/// SYN and SYN-ACK, the ACK that the request follows at once, the request, and the reply whose segments all fit into an
/// initial window of ten.
fn computed() -> Span {
    let (request, reply) = (u64::from(REQUEST), u64::from(REPLY));
    let segments = reply.div_ceil(SEGMENT);
    let bytes = 60 + 60 + HEADERS + (request + HEADERS) + reply + segments * HEADERS;
    let line = Span::from_nanos(bytes * 8 * 1_000_000_000 / BIT_RATE);
    line + Span::from_millis(10) * 4
}
