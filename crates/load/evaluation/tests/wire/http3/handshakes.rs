//! Servers that break the rules of the handshake, or never end it: each has its outcome, and the client sends little.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_load::{Connections, Multiplexing, Outcome};
use posthaste_units::Span;

use super::handmade::{Answer, HandmadeHandshake, HandmadeServer, PING, Space, crypto};
use super::packets::{Identifiers, integer, retry};
use super::{all_are, plan, reason};
use crate::server::carried_out;

/// Attempts to connect in each run.
const ATTEMPTS: usize = 5;
/// Datagrams of an attempt that gets no valid packet: its Initial, again after a second without an answer, and its end.
const UNANSWERED: usize = 4;
/// Datagrams of an attempt other than acknowledgements: its Initial, probes at growing intervals, its end.
const PROBES: usize = 40;

/// The end of a run, and its datagrams as the server counts them.
struct HandmadeRun {
    outcome: Outcome,
    reason: String,
    sent: usize,
    received: usize,
}

/// Runs five requests, each on a connection of its own, against a server that answers so and never ends the handshake.
fn end_with(answer: impl FnMut(&[u8], bool) -> Answer + Send + 'static) -> HandmadeRun {
    end_within(Span::from_millis(400), answer)
}

/// Runs five requests, each on a connection of its own, against a server that answers so.
fn end_within(
    connect_timeout: Span,
    answer: impl FnMut(&[u8], bool) -> Answer + Send + 'static,
) -> HandmadeRun {
    let server = HandmadeServer::start(answer);
    let mut plan = plan(server.address, 100.0, 50, Multiplexing::default());
    plan.connections = Connections::New;
    plan.connect_timeout = connect_timeout;
    plan.timeout = Span::from_secs(5);
    let run = carried_out(&plan);
    assert_eq!(run.intended, ATTEMPTS as u64);
    let found = run.outcomes.iter().max_by_key(|(_, count)| *count);
    let (outcome, _) = found.expect("outcomes exist");
    all_are(&run, outcome);
    HandmadeRun {
        outcome,
        reason: reason(&run),
        sent: server.sent(),
        received: server.received(),
    }
}

/// Answers the first datagram of each client.
fn once(mut answer: impl FnMut(&[u8]) -> Answer) -> impl FnMut(&[u8], bool) -> Answer {
    move |datagram, is_first| {
        if is_first {
            answer(datagram)
        } else {
            Box::new(std::iter::empty())
        }
    }
}

/// Transport parameters (RFC 9000, section 18.2) of a good server.
fn good_parameters(client: &Identifiers, source: &[u8]) -> Vec<u8> {
    [
        parameter(0x00, &client.destination),
        parameter(0x0f, source),
        // 16 KiB for the connection and each stream, ten streams of each kind.
        parameter(0x04, &[0x80, 0, 0x40, 0]),
        parameter(0x05, &[0x80, 0, 0x40, 0]),
        parameter(0x06, &[0x80, 0, 0x40, 0]),
        parameter(0x07, &[0x80, 0, 0x40, 0]),
        parameter(0x08, &[10]),
        parameter(0x09, &[10]),
    ]
    .concat()
}

fn parameter(id: u8, value: &[u8]) -> Vec<u8> {
    [&[id, u8::try_from(value.len()).unwrap()], value].concat()
}

/// A handshake with good parameters.
fn handshake(datagram: &[u8]) -> HandmadeHandshake {
    HandmadeHandshake::begin(datagram, good_parameters)
}

/// A server that sends one flight with these transport parameters.
fn end_with_parameters(
    parameters: impl Fn(&Identifiers, &[u8]) -> Vec<u8> + Send + 'static,
) -> HandmadeRun {
    end_within(
        Span::from_secs(10),
        once(move |datagram| {
            let mut handshake = HandmadeHandshake::begin(datagram, &parameters);
            Box::new(handshake.flight(0).into_iter())
        }),
    )
}

/// Runs five requests on one connection against a server that accepts it with these datagrams and does not reply.
fn is_accepted(answer: impl Fn(&[u8]) -> Answer + Send + 'static) {
    let server = HandmadeServer::start(once(answer));
    let mut plan = plan(server.address, 100.0, 50, Multiplexing::default());
    // Longer than a handshake on a busy machine.
    plan.timeout = Span::from_secs(2);
    let run = carried_out(&plan);
    all_are(&run, Outcome::TimedOut);
    assert_eq!(run.connections, 1);
    let (sent, received) = (server.sent(), server.received());
    assert!(received <= PROBES, "{received} datagrams for {sent}");
}

#[test]
fn a_good_handshake_by_hand_is_accepted() {
    // The tests below are about their faults only if this one succeeds.
    is_accepted(|datagram| Box::new(handshake(datagram).flight(0).into_iter()));
}

#[test]
fn a_good_handshake_in_a_flood_is_accepted() {
    is_accepted(|datagram| {
        let mut datagrams = vec![forged(datagram, 0xc3, &[0, 0x44, 0x00]); 20];
        datagrams.extend(handshake(datagram).flight(0));
        // The kernel drops datagrams that the client has no time to read, so the flight comes again.
        Box::new(datagrams.into_iter().cycle())
    });
}

#[test]
fn bad_values_of_transport_parameters_violate_the_protocol() {
    let cases: [(&str, &[u8]); 10] = [
        ("ack_delay_exponent 21", &[0x0a, 1, 21]),
        ("max_ack_delay 16384", &[0x0b, 4, 0x80, 0, 0x40, 0]),
        ("active_connection_id_limit 1", &[0x0e, 1, 1]),
        ("max_udp_payload_size 1199", &[0x03, 2, 0x44, 0xaf]),
        ("ack_delay_exponent twice", &[0x0a, 1, 3, 0x0a, 1, 3]),
        ("initial_max_data twice", &[0x04, 1, 9]),
        ("a length beyond the end", &[0x0a, 9, 3]),
        ("a value shorter than its length", &[0x0a, 2, 3, 0]),
        (
            "a reset token of 15 bytes",
            &[&[0x02, 15][..], &[7; 15]].concat(),
        ),
        ("retry_source_connection_id without a Retry", &[0x10, 1, 7]),
    ];
    for (name, bytes) in cases {
        let bytes = bytes.to_vec();
        let ended = end_with_parameters(move |client, source| {
            [good_parameters(client, source), bytes.clone()].concat()
        });
        is_violation(name, &ended);
    }
}

#[test]
fn identifiers_in_transport_parameters_are_checked() {
    type Parameters = fn(&Identifiers, &[u8]) -> Vec<u8>;
    let cases: [(&str, Parameters); 5] = [
        ("none", |_, _| Vec::new()),
        ("no original identifier", |_, source| {
            parameter(0x0f, source)
        }),
        ("no identifier of the server", |client, _| {
            parameter(0x00, &client.destination)
        }),
        ("another original identifier", |_, source| {
            [parameter(0x00, b"otherwise"), parameter(0x0f, source)].concat()
        }),
        ("another identifier of the server", |client, _| {
            [
                parameter(0x00, &client.destination),
                parameter(0x0f, b"other"),
            ]
            .concat()
        }),
    ];
    for (name, parameters) in cases {
        is_violation(name, &end_with_parameters(parameters));
    }
}

/// Checks that the client has found a violation, and sent no more than its Initial, acknowledgements and the end.
fn is_violation(name: &str, ended: &HandmadeRun) {
    let reason = &ended.reason;
    assert_eq!(ended.outcome, Outcome::ProtocolError, "{name}: {reason}");
    assert!(
        reason.contains("the server violated QUIC"),
        "{name}: {reason}"
    );
    is_bounded(name, ended);
}

/// Checks that the client has sent no more than acknowledgements of the server's datagrams and some probes.
fn is_bounded(name: &str, ended: &HandmadeRun) {
    let HandmadeRun { sent, received, .. } = ended;
    assert!(
        *received <= sent + PROBES * ATTEMPTS,
        "{name}: {received} datagrams for {sent}"
    );
}

#[test]
fn a_flood_of_invalid_packets_has_no_answer() {
    type Packet = fn(&[u8]) -> Vec<u8>;
    let cases: [(&str, Packet); 5] = [
        ("Initial packets that no key opens", |datagram| {
            forged(datagram, 0xc3, &[0, 0x44, 0x00])
        }),
        ("Handshake packets before there are keys", |datagram| {
            forged(datagram, 0xe3, &[0x44, 0x00])
        }),
        ("0-RTT packets", |datagram| {
            forged(datagram, 0xd3, &[0x44, 0x00])
        }),
        ("short headers", |datagram| {
            let (client, _) = Identifiers::read(datagram);
            [&[0x43], &client.source[..], &[0xa5; 1_150]].concat()
        }),
        ("lengths beyond the end", |datagram| {
            forged(datagram, 0xc3, &[0, 0x7f, 0xff])
        }),
    ];
    for (name, packet) in cases {
        let ended = end_with(once(move |datagram| {
            let packet = packet(datagram);
            Box::new(std::iter::repeat(packet))
        }));
        assert_eq!(
            ended.outcome,
            Outcome::ConnectAborted,
            "{name}: {}",
            ended.reason
        );
        let HandmadeRun { sent, received, .. } = ended;
        assert!(
            received <= UNANSWERED * ATTEMPTS,
            "{name}: {received} for {sent}"
        );
    }
}

/// A long header for a client, with garbage behind it.
fn forged(datagram: &[u8], first: u8, rest: &[u8]) -> Vec<u8> {
    let (client, _) = Identifiers::read(datagram);
    let header = client.exchanged().header(first, 1);
    [&header[..], rest, &[0xa5; 1_100]].concat()
}

#[test]
fn a_flood_of_one_packet_has_one_answer() {
    let ended = end_with(once(|datagram| {
        let packet = handshake(datagram).packet(Space::Initial, &[PING]);
        Box::new(std::iter::repeat(packet))
    }));
    assert_eq!(ended.outcome, Outcome::ConnectAborted, "{}", ended.reason);
    let HandmadeRun { sent, received, .. } = ended;
    // One acknowledgement and one end more than without a valid packet.
    assert!(
        received <= (UNANSWERED + 2) * ATTEMPTS,
        "{received} for {sent}"
    );
}

#[test]
fn a_handshake_without_an_end_ends_with_the_connect_timeout() {
    type Endless = fn(&[u8]) -> Answer;
    let cases: [(&str, Endless); 5] = [
        ("PING in Initial packets", |datagram| {
            let mut handshake = handshake(datagram);
            Box::new(std::iter::repeat_with(move || {
                handshake.packet(Space::Initial, &[PING])
            }))
        }),
        ("PING after a flight that lacks a byte", |datagram| {
            let mut handshake = handshake(datagram);
            let flight = handshake.flight(1).into_iter();
            Box::new(flight.chain(std::iter::repeat_with(move || {
                handshake.packet(Space::Handshake, &[PING])
            })))
        }),
        ("the same bytes of the ServerHello", |datagram| {
            let mut handshake = handshake(datagram);
            Box::new(std::iter::repeat_with(move || {
                handshake.packet(Space::Initial, &crypto(0, &[2, 0]))
            }))
        }),
        ("a long ServerHello, byte by byte", |datagram| {
            Box::new(trickle(handshake(datagram), Space::Initial, 2))
        }),
        ("long EncryptedExtensions, byte by byte", |datagram| {
            let mut handshake = handshake(datagram);
            let hello = std::iter::once(handshake.hello());
            Box::new(hello.chain(trickle(handshake, Space::Handshake, 8)))
        }),
    ];
    for (name, endless) in cases {
        let ended = end_with(once(endless));
        assert_eq!(
            ended.outcome,
            Outcome::ConnectAborted,
            "{name}: {}",
            ended.reason
        );
        is_bounded(name, &ended);
    }
}

/// A message of this type with 65,000 bytes, one in each packet, without the last one.
fn trickle(
    mut handshake: HandmadeHandshake,
    space: Space,
    kind: u8,
) -> impl Iterator<Item = Vec<u8>> + Send {
    let [high, low] = 65_000_u16.to_be_bytes();
    let begin = handshake.packet(space, &crypto(0, &[kind, 0, high, low]));
    let rest = (4..65_003).map(move |offset| handshake.packet(space, &crypto(offset, &[0])));
    std::iter::once(begin).chain(rest)
}

#[test]
fn the_memory_of_a_handshake_is_limited() {
    let cases = [
        // A byte behind a gap of 1 MiB, which the client would have to keep.
        (
            crypto(1 << 20, b"x"),
            "received more data in CRYPTO frames than can be buffered",
        ),
        // The begin of a message of 16 MiB.
        (
            crypto(0, &[2, 0xff, 0xff, 0xff]),
            "HandshakePayloadTooLarge",
        ),
    ];
    for (frame, expected) in cases {
        let ended = end_within(
            Span::from_secs(10),
            once(move |datagram| {
                let mut handshake = handshake(datagram);
                let frame = frame.clone();
                Box::new(std::iter::repeat_with(move || {
                    handshake.packet(Space::Initial, &frame)
                }))
            }),
        );
        assert!(ended.reason.contains(expected), "{}", ended.reason);
        is_violation(expected, &ended);
    }
}

/// A STREAM frame: the control stream of the server, whose first frame is not SETTINGS (RFC 9114, section 6.2.1).
const WITHOUT_SETTINGS: [u8; 6] = [0x0a, 3, 3, 0, 0, 0];

#[test]
fn a_datagram_may_end_the_handshake_and_violate_http3() {
    let ended = end_within(
        Span::from_secs(10),
        once(|datagram| {
            let mut handshake = handshake(datagram);
            let mut whole = handshake.flight(0).concat();
            whole.extend(handshake.packet(Space::Application, &WITHOUT_SETTINGS));
            assert!(whole.len() < 1_400, "{} bytes", whole.len());
            Box::new(std::iter::once(whole))
        }),
    );
    assert_eq!(ended.outcome, Outcome::ProtocolError, "{}", ended.reason);
    assert!(ended.reason.contains("SETTINGS"), "{}", ended.reason);
    is_bounded("SETTINGS", &ended);
}

#[test]
fn a_loop_of_retries_ends_with_the_connect_timeout() {
    let (seen, tokens) = std::sync::mpsc::channel();
    let mut number = 0_u64;
    let ended = end_within(Span::from_secs(1), move |datagram, _| {
        let (client, rest) = Identifiers::read(datagram);
        let (length, rest) = integer(rest);
        let token = &rest[..length as usize];
        seen.send((client.source, token.to_vec())).unwrap();
        // A Retry with another identifier and another token each time.
        number += 1;
        let source = number.to_be_bytes();
        Box::new(std::iter::once(retry(datagram, source.to_vec(), &source)))
    });
    assert_eq!(ended.outcome, Outcome::ConnectAborted, "{}", ended.reason);
    let received = ended.received;
    assert!(
        received <= 2 * UNANSWERED * ATTEMPTS,
        "{received} datagrams"
    );
    // A client accepts one Retry, and ignores further ones (RFC 9000, section 17.2.5.2).
    let mut accepted = BTreeMap::<_, BTreeSet<_>>::new();
    for (client, token) in tokens.iter().filter(|(_, token)| !token.is_empty()) {
        accepted.entry(client).or_default().insert(token);
    }
    assert!(!accepted.is_empty());
    assert!(
        accepted.values().all(|tokens| tokens.len() == 1),
        "{accepted:?}"
    );
}
