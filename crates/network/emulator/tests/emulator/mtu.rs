//! Path MTU discovery of real kernels, with and without its messages.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use posthaste_emulator::RunningEmulation;
use posthaste_link::{Direction, DropReason, Fate, Mtu, Plan};

use crate::inside::{ReplyService, delay, emulation, seen, servers, transact};

const REPLY: usize = 200_000;

fn start(silent: bool) -> RunningEmulation {
    let plan = Plan {
        mtu: Some(Mtu {
            bytes: 1400,
            silent,
        }),
        ..delay(5)
    };
    emulation(plan).start().expect("an emulation")
}

fn service() -> ReplyService {
    ReplyService {
        request: 1000,
        reply: REPLY,
        processing: Duration::ZERO,
        connections: 1,
    }
}

/// The message reduces the segments of both IP versions, and the transfer completes.
pub(crate) fn discovered() {
    let running = start(false);
    for address in servers() {
        let (at, served) = service().start(&running, address);
        running.client.run(move || transact(at, 1000, REPLY));
        served.join().expect("served");
    }
    let seen = seen(&running);
    let outcome = running.finish().expect("an outcome");
    let dropped = outcome.down.link.dropped(DropReason::TooBig).packets;
    assert!(dropped >= 2, "{dropped}");
    let messages = seen.iter().filter(|record| {
        record.direction == Direction::Up && [1, 58].contains(&record.flow.protocol)
    });
    assert!(messages.count() as u64 >= dropped, "a message for each");
    for record in seen
        .iter()
        .filter(|record| matches!(record.fate, Fate::Delivered(_)))
    {
        assert!(record.length <= 1400, "{record:?}");
    }
    for protocol_is_v4 in [true, false] {
        let largest = seen
            .iter()
            .filter(|record| matches!(record.fate, Fate::Delivered(_)))
            .filter(|record| record.flow.client.is_ipv4() == protocol_is_v4)
            .map(|record| record.length)
            .max();
        assert_eq!(largest, Some(1400), "the segments fill the MTU");
    }
}

/// Without messages nothing longer arrives, and the transfer stalls.
pub(crate) fn black_hole() {
    let running = start(true);
    let (at, _served) = service().start(&running, servers()[0]);
    let received = running.client.run(move || {
        let mut stream = TcpStream::connect(at).expect("connected");
        stream.write_all(&[b'q'; 1000]).expect("sent");
        stream
            .set_read_timeout(Some(Duration::from_millis(700)))
            .expect("a limit");
        stream.read(&mut [0; 100])
    });
    assert!(received.is_err(), "{received:?}");
    let seen = seen(&running);
    let outcome = running.finish().expect("an outcome");
    assert!(outcome.down.link.dropped(DropReason::TooBig).packets > 2);
    assert!(
        seen.iter().all(|record| record.flow.protocol == 6),
        "no message"
    );
}
