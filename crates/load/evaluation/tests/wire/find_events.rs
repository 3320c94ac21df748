//! `--find` with figures of events, against servers whose streams have a known law.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use posthaste_evaluation::{
    Capacity, Effort, FindError, FindVerdict, LimitedBy, LocalRunner, TrialReport, find,
};
use posthaste_load::{EventFormat, EventPlan};
use posthaste_units::Span;

use crate::server::{pause, plan, read_request, serve};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";

/// Searches for `seconds` with a reply limit of a second, and an end mark if `marked`.
fn searched(
    address: SocketAddr,
    objective: &str,
    seconds: u64,
    marked: bool,
) -> Result<Capacity, FindError> {
    let mut plan = plan(address, 1.0, 1);
    plan.timeout = Span::from_secs(1);
    plan.events = Some(EventPlan {
        format: EventFormat::Sse,
        end_mark: marked.then(|| "[DONE]".to_owned()),
    });
    let effort = Effort {
        budget: Span::from_secs(seconds),
        ..Effort::default()
    };
    let stop = AtomicBool::new(false);
    let objective = objective.parse().unwrap();
    find(
        &plan,
        &objective,
        effort,
        &mut LocalRunner(&stop),
        &mut |_: &TrialReport| (),
    )
}

/// A server that answers each request with the events of `body`, 10 ms apart, after 200 ms, and closes. A shorter reply
/// could be as short as the lateness of a busy machine, which makes the generator the limit.
fn answering(body: &'static str) -> SocketAddr {
    serve(move |mut stream: TcpStream| {
        if read_request(&mut stream) {
            pause(200);
            let _ = stream.write_all(HEAD);
            for event in body.split_inclusive("\n\n") {
                let _ = stream.write_all(event.as_bytes());
                pause(10);
            }
        }
    })
}

/// Checks that a search does not show any rate to hold. Returns the answer in words, unless the machine was too busy to
/// blame the server.
fn fails(address: SocketAddr, objective: &str, marked: bool) -> Option<String> {
    let found = searched(address, objective, 3, marked).unwrap();
    assert_eq!(found.held_at_per_s, None, "{objective}: {found:?}");
    if found.verdict() == FindVerdict::Fails {
        assert_eq!(found.failed_at_per_s, Some(20.0), "{objective}");
        return Some(found.to_string());
    }
    assert_eq!(found.limited_by, LimitedBy::Generator, "{objective}");
    None
}

#[test]
fn a_figure_without_any_event_violates_its_objective() {
    const UNKNOWN: &str = "no reply had enough events";
    const FAILED: &str = "100.00 % of requests failed";
    let (eventless, single) = (answering(": comment\n\n"), answering("data: 1\n\n"));
    let cases = [
        (eventless, "first<1h", FAILED),
        (eventless, "first-p50<1h", FAILED),
        (eventless, "gap<1h", UNKNOWN),
        (eventless, "events>1/h", FAILED),
        (single, "gap<1h", UNKNOWN),
        (single, "gap-p50<1h", UNKNOWN),
        (single, "gap-mean<1h", UNKNOWN),
        (single, "events>1/h", UNKNOWN),
    ];
    std::thread::scope(|scope| {
        for (address, objective, reason) in cases {
            scope.spawn(move || {
                let found = fails(address, objective, false);
                let agrees = found.as_deref().is_none_or(|found| found.contains(reason));
                assert!(agrees, "{objective}: {found:?}");
            });
        }
    });
}

#[test]
fn a_stream_without_its_end_mark_has_failed() {
    let cut = answering("data: 1\n\ndata: 2\n\n");
    std::thread::scope(|scope| {
        for objective in ["first<1h", "gap<1h", "events>1/h", "p99<1h"] {
            scope.spawn(move || {
                let found = fails(cut, objective, true);
                let failed = "100.00 % of requests failed";
                let agrees = found.as_deref().is_none_or(|found| found.contains(failed));
                assert!(agrees, "{objective}: {found:?}");
            });
        }
    });
}

#[test]
fn a_search_needs_events_for_their_figures() {
    let plan = plan(answering(""), 1.0, 1);
    let objective = "first<1s".parse().unwrap();
    let stop = AtomicBool::new(false);
    let found = find(
        &plan,
        &objective,
        Effort::default(),
        &mut LocalRunner(&stop),
        &mut |_| (),
    );
    assert!(matches!(found, Err(FindError::NoEvents(_))), "{found:?}");
}

/// Counts the streams that are open, and ends with its owner.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A server whose streams have three gaps of 10 ms, or of 200 ms while more than ten are open: at 300 streams per
/// second and more.
fn slowing() -> SocketAddr {
    let open = Arc::new(AtomicUsize::new(0));
    serve(move |mut stream: TcpStream| {
        if !read_request(&mut stream) || stream.write_all(HEAD).is_err() {
            return;
        }
        let is_slow = open.fetch_add(1, Ordering::Relaxed) >= 10;
        let _open = Open(Arc::clone(&open));
        for _ in 0..4 {
            if stream.write_all(b"data: 1\n\n").is_err() {
                return;
            }
            pause(if is_slow { 200 } else { 10 });
        }
    })
}

#[test]
fn the_rate_at_which_streams_slow_down_is_found() {
    let address = slowing();
    for (objective, counted) in [("gap-p50<100ms", "gaps"), ("events>10/s", "streams")] {
        let found = searched(address, objective, 20, false).unwrap();
        // A busy machine may slow streams at lower rates, but none is fast at more than 1,000/s. Around 226/s the
        // service may be slow in one trial and fast in the next: it then counts as one that changed.
        let ends = [found.held_at_per_s, found.failed_at_per_s];
        let known = |rate: f64| (20.0..=1_400.0).contains(&rate);
        assert!(ends.into_iter().flatten().all(known), "{found:?}");
        // Too few long trials may be left on a busy machine to say where the end is; that one trial was slow is sure.
        let is_slow = |trial: &TrialReport| trial.excess.is_none_or(|excess| excess > 1.0);
        assert!(found.trials.iter().any(is_slow), "{found:?}");
        assert!(found.trials[0].to_string().contains(counted), "{found:?}");
        let gaps = |trial: &TrialReport| trial.times == 3 * trial.requests;
        let first = &found.trials[0];
        assert_eq!(gaps(first), counted == "gaps", "{first:?}");
    }
}
