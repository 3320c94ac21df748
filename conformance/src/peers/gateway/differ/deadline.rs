//! `grpc-timeout` to grpcio, directly and through the gateway: the deadline that the method sees.
//!
//! The reading is the remaining time in seconds, or `none` without a deadline. The frames are made here, because clients
//! of HTTP/2 correct values.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::super::doubtful::{block, frame};
use super::comparison::{CaseReading, ComparedCase, FamilyRule};
use super::each;
use super::programs::{CLIENT, ComparedPrograms, connect_from, read_some};
use crate::error::Outcome;

pub(super) const RULE: FamilyRule = FamilyRule {
    controls: &[
        ("no timeout", NONE),
        ("hours", "3600"),
        ("minutes", "120"),
        ("seconds", "100"),
        ("milliseconds", "70"),
        ("microseconds", "80"),
        ("leading zeros", "90"),
        ("8 digits", "99999999"),
    ],
    exceptions: &[],
    is_same,
    is_permitted: is_same,
};

/// The reading of a call without a deadline.
const NONE: &str = "none";

/// Time for a reply.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time between the call and the reading of the clock in the method, on a busy machine.
const DELAY: f64 = 10.0;

/// Deadlines below this time may have passed when the method reads its clock. They count as passed.
const SHORT: f64 = 1.0;

/// Field lines in the form of [`block`].
const FIELDS: &[(&str, &str)] = &[
    ("no timeout", ""),
    ("hours", "grpc-timeout: 1H"),
    ("minutes", "grpc-timeout: 2M"),
    ("seconds", "grpc-timeout: 100S"),
    ("milliseconds", "grpc-timeout: 70000m"),
    ("microseconds", "grpc-timeout: 80000000u"),
    ("nanoseconds", "grpc-timeout: 99999999n"),
    ("leading zeros", "grpc-timeout: 00000090S"),
    ("8 digits", "grpc-timeout: 99999999S"),
    ("8 digits, hours", "grpc-timeout: 99999999H"),
    ("9 digits", "grpc-timeout: 100000000S"),
    ("9 digits with leading zeros", "grpc-timeout: 000000090S"),
    ("20 digits", "grpc-timeout: 99999999999999999999S"),
    ("zero", "grpc-timeout: 0S"),
    ("zero nanoseconds", "grpc-timeout: 0n"),
    ("plus", "grpc-timeout: +90S"),
    ("minus", "grpc-timeout: -90S"),
    ("minus zero", "grpc-timeout: -0S"),
    ("blank in front", "grpc-timeout:  90S"),
    ("blank behind", "grpc-timeout: 90S "),
    ("blank between", "grpc-timeout: 90 S"),
    ("tab behind", "grpc-timeout: 90S\t"),
    ("lower-case seconds", "grpc-timeout: 90s"),
    ("lower-case hours", "grpc-timeout: 1h"),
    ("upper-case microseconds", "grpc-timeout: 90000000U"),
    ("no unit", "grpc-timeout: 90"),
    ("unit alone", "grpc-timeout: S"),
    ("another unit", "grpc-timeout: 90x"),
    ("two units", "grpc-timeout: 90SS"),
    ("ms", "grpc-timeout: 90000ms"),
    ("fraction", "grpc-timeout: 90.5S"),
    ("exponent", "grpc-timeout: 9e1S"),
    ("hexadecimal", "grpc-timeout: 0x5aS"),
    ("empty", "grpc-timeout: "),
    ("list", "grpc-timeout: 90S, 90S"),
    ("two fields", "grpc-timeout: 90S\ngrpc-timeout: 200S"),
    (
        "two fields, shorter last",
        "grpc-timeout: 200S\ngrpc-timeout: 90S",
    ),
    ("twice the same", "grpc-timeout: 90S\ngrpc-timeout: 90S"),
    (
        "a correct one, then a wrong one",
        "grpc-timeout: 90S\ngrpc-timeout: x",
    ),
    (
        "a wrong one, then a correct one",
        "grpc-timeout: x\ngrpc-timeout: 90S",
    ),
    ("other digits", "grpc-timeout: \u{661}S"),
];

/// A call of the method, up to its path and content type.
const CALL: &str = ":method: POST\n:scheme: http\n:authority: s\n:path: /peer.Peer/Remaining\n\
                    content-type: application/grpc\nte: trailers";

/// Calls the server with every case, directly and through the gateway.
pub(super) fn observe(programs: &ComparedPrograms<'_>) -> Outcome<Vec<ComparedCase>> {
    each(FIELDS, |_, (about, fields)| {
        Ok(ComparedCase {
            about: (*about).to_owned(),
            ours: call(programs.gateway.upgrade, fields)?,
            others: vec![("grpcio", call(programs.grpc, fields)?)],
        })
    })
}

/// Calls the method. Returns its message, or `None` if the call has none.
fn call(address: SocketAddr, fields: &str) -> Outcome<CaseReading> {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    let head = [block(CALL), block(fields)].concat();
    let bytes = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(SETTINGS, 0, 0, b""),
        frame(HEADERS, 4, 1, &head),
        frame(DATA, 1, 1, &[0; 5]),
    ];
    let mut stream = connect_from(CLIENT, address)?;
    let _ = stream.write_all(&bytes.concat());
    let (mut reply, end) = (Vec::new(), Instant::now() + PATIENCE);
    while message(&reply).is_none() && read_some(&mut stream, &mut reply, end)? {}
    // A refusal may have a body of text.
    let is_read = |text: &String| match text.parse::<f64>() {
        Ok(seconds) => seconds >= SHORT,
        Err(_) => text == NONE,
    };
    Ok(message(&reply).flatten().filter(is_read))
}

/// The message in frames of HTTP/2, `Some(None)` if stream 1 ends without one. `None` if they are incomplete.
fn message(mut frames: &[u8]) -> Option<Option<String>> {
    while let [l1, l2, l3, kind, flags, _, _, _, stream, rest @ ..] = frames {
        let length = u32::from_be_bytes([0, *l1, *l2, *l3]);
        let payload = rest.get(..usize::try_from(length).ok()?)?;
        match (kind, stream) {
            // A message begins with a byte for compression and its length.
            (0, 1) if payload.len() > 5 => {
                return Some(Some(String::from_utf8_lossy(&payload[5..]).into_owned()));
            }
            (0 | 1, 1) if flags & 1 == 1 => return Some(None),
            (3, 1) | (7, _) => return Some(None),
            _ => {}
        }
        frames = &rest[payload.len()..];
    }
    None
}

/// True for the same deadline: both none, or times that differ by a delay.
fn is_same(ours: &str, other: &str) -> bool {
    match (ours.parse::<f64>(), other.parse::<f64>()) {
        (Ok(ours), Ok(other)) => (ours - other).abs() < DELAY,
        _ => ours == other,
    }
}
