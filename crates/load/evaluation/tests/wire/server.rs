//! Minimal servers with exactly known behaviour.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use posthaste_load::{Connections, Outcome, Pace, Plan, RateStep, RequestSpec, Run, run};
use posthaste_units::{Rate, Span};

/// Starts a server that handles each connection with `act`, in a thread of its own.
pub(crate) fn serve(act: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let act = act.clone();
            thread::spawn(move || act(stream));
        }
    });
    address
}

/// Starts a server that answers every request of a connection with `reply`, and then closes if `close`.
pub(crate) fn answering(
    reply: impl AsRef<[u8]> + Send + Sync + Clone + 'static,
    close: bool,
) -> SocketAddr {
    serve(move |mut stream| {
        while read_request(&mut stream) {
            if stream.write_all(reply.as_ref()).is_err() || close {
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
        }
    })
}

/// Reads one request without a body. Returns false at the end of the stream.
pub(crate) fn read_request(stream: &mut impl Read) -> bool {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => seen.push(byte[0]),
            _ => return false,
        }
    }
    true
}

pub(crate) fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Time limit of a test that waits for a reply that does not come.
pub(crate) const IN_VAIN: Span = Span::from_millis(400);

/// An open-loop plan. Its time limit suffices for a busy machine.
pub(crate) fn plan(address: SocketAddr, per_second: f64, millis: u64) -> Plan {
    let rate = Rate::per_second(per_second).unwrap();
    let pace = Pace::Open {
        arrivals: posthaste_load::Arrivals::Constant,
        steps: vec![RateStep::steady(rate, Span::from_millis(millis))],
    };
    let mut plan = Plan::new(vec![RequestSpec::get(format!("http://{address}/"))], pace);
    plan.timeout = Span::from_secs(30);
    plan.connect_timeout = Span::from_millis(100);
    plan
}

pub(crate) fn carried_out(plan: &Plan) -> Run {
    let run = run(plan, &AtomicBool::new(false), &mut ()).unwrap();
    assert_eq!(run.intended, run.outcomes.total());
    run
}

/// Runs ten requests against `address` over both kinds of connections. All must have the same outcome.
pub(crate) fn all_end_as(address: SocketAddr, expected: Outcome) -> Run {
    let mut last = None;
    for connections in [Connections::New, Connections::KeepAlive] {
        let mut plan = plan(address, 100.0, 100);
        plan.connections = connections;
        if expected == Outcome::TimedOut {
            plan.timeout = IN_VAIN;
        }
        let run = carried_out(&plan);
        assert_eq!(
            run.outcomes[expected], 10,
            "{connections:?}: {:?} {:?}",
            run.outcomes, run.reasons
        );
        last = Some(run);
    }
    last.unwrap()
}

pub(crate) fn pause(millis: u64) {
    thread::sleep(Duration::from_millis(millis));
}
