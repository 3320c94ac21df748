//! The paper's first service on its slowest line, without loss: a time that can be computed.

use std::time::Duration;

use posthaste_link::Plan;
use posthaste_units::{BitRate, Span};

use crate::inside::{Service, delay, emulation, servers, transact};

const REQUEST: usize = 1438;
const REPLY: usize = 12_974;
const PROCESSING: Duration = Duration::from_millis(200);
const BIT_RATE: u64 = 300_000;
/// IPv4 and TCP with time stamps.
const HEADERS: u64 = 52;
const SEGMENT: u64 = 1448;
/// Busy machines spoil some transactions; what is asked for is that the emulation is right.
const ATTEMPTS: usize = 10;

pub(crate) fn lossless() {
    let plan = Plan {
        bandwidth: BitRate::per_second(BIT_RATE),
        ..delay(10)
    };
    let running = emulation(plan).start().expect("an emulation");
    let computed = computed();
    let mut closest = Duration::MAX;
    for _ in 0..ATTEMPTS {
        let service = Service {
            request: REQUEST,
            reply: REPLY,
            processing: PROCESSING,
            connections: 1,
        };
        let (at, served) = service.start(&running, servers()[0]);
        let taken = running.client.run(move || transact(at, REQUEST, REPLY));
        served.join().expect("served");
        closest = closest.min(taken);
        if closest.abs_diff(computed) < Duration::from_micros(500) {
            break;
        }
    }
    let outcome = running.finish().expect("an outcome");
    assert!(
        closest.abs_diff(computed) < Duration::from_micros(500),
        "{closest:?} where {computed:?} was computed; the emulator was {} late at worst",
        outcome.lateness.max()
    );
}

/// SYN and SYN-ACK, the ACK that the request follows at once, the request, and the reply whose
/// segments all go at once into an initial window of ten.
fn computed() -> Duration {
    let segments = (REPLY as u64).div_ceil(SEGMENT);
    let bytes = 60 + 60 + HEADERS + (REQUEST as u64 + HEADERS) + REPLY as u64 + segments * HEADERS;
    let line = Span::from_nanos(bytes * 8 * 1_000_000_000 / BIT_RATE);
    Duration::from(line + Span::from_millis(10) * 4) + PROCESSING
}
