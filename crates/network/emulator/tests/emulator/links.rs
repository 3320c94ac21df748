//! Sharing of links, and the emulator's report of its own lateness.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use posthaste_emulator::{EmulationVerdict, RunningEmulation};
use posthaste_link::{Plan, Sharing};
use posthaste_units::{BitRate, Span};

use crate::inside::{ReplyService, delay, emulation, expect_once, held, servers, transact};

const REPLY: usize = 100_000;
const AT_ONCE: usize = 3;

/// 200 ms for each reply.
fn start(sharing: Sharing) -> (RunningEmulation, SocketAddr, Duration) {
    let plan = Plan {
        bandwidth: BitRate::per_second(4_000_000),
        ..delay(2)
    };
    let emulation = emulation(plan).sharing(sharing);
    let running = emulation.start().expect("an emulation");
    let service = ReplyService {
        request: 1,
        reply: REPLY,
        processing: Duration::ZERO,
        connections: 1 + AT_ONCE,
    };
    let (at, _served) = service.start(&running, servers()[0]);
    let alone = running.client.run(move || transact(at, 1, REPLY));
    (running, at, alone)
}

/// Time of several concurrent transactions.
fn together(running: &RunningEmulation, at: SocketAddr) -> Duration {
    let start = Instant::now();
    let clients: Vec<_> = (0..AT_ONCE)
        .map(|_| running.client.spawn(move || transact(at, 1, REPLY)))
        .collect();
    for client in clients {
        client.join().expect("a reply");
    }
    start.elapsed()
}

pub(crate) fn own() {
    expect_once(|| {
        let (running, at, alone) = start(Sharing::PerConnection);
        let together = together(&running, at);
        let outcome = running.finish().expect("an outcome");
        assert_eq!(outcome.connections, 1 + AT_ONCE as u64);
        held(together < alone * 3 / 2, || {
            format!("{together:?} where one takes {alone:?}")
        })
    });
}

pub(crate) fn shared() {
    expect_once(|| {
        let (running, at, alone) = start(Sharing::Whole);
        let together = together(&running, at);
        held(together > alone * 2, || {
            format!("{together:?} where one takes {alone:?}")
        })
    });
}

/// The verdict follows from the measured lateness, so a late histogram must give a late verdict.
pub(crate) fn late() {
    let running = emulation(delay(1)).start().expect("an emulation");
    let mut outcome = running.finish().expect("an outcome");
    assert_eq!(outcome.verdict(), EmulationVerdict::OnTime);
    (0..100).for_each(|_| outcome.lateness.record(Span::from_millis(3)));
    let verdict = outcome.verdict();
    assert!(matches!(verdict, EmulationVerdict::Late { .. }));
    assert!(
        verdict.to_string().contains("real-time priority"),
        "{verdict}"
    );
    outcome.down.bypassed.overrun = 1;
    assert_eq!(outcome.verdict(), EmulationVerdict::Lost { packets: 1 });
}
