//! Delay until a change is visible elsewhere: published at one broker, read from the stream of another.
//!
//! Both use one PostgreSQL. The time runs from sending the request for a change to reading its event. Changes follow at
//! a steady pace, one at a time. The time until the reply, which confirms durability, is measured too.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::bench::{Bench, Figure, Measure};
use crate::error::{Outcome, TaskError, check};
use crate::peers::broker::{broker_on, token};
use crate::postgres::Postgres;
use crate::site::Server;

/// Interval between changes.
const PACE: Duration = Duration::from_millis(5);
/// Maximum wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);
/// Target for 99 of 100 changes, in milliseconds.
const BAR: f64 = 20.0;

/// Changes at one broker, read at the other and at itself.
pub(crate) fn visible(bench: &Bench) -> Outcome<Vec<Figure>> {
    let site = &bench.site;
    let postgres = Postgres::start(site)?;
    let store = format!("{}/postgres", postgres.url());
    let token = token(site, &store)?;
    let near = broker_on(site, "near", &store)?;
    let far = broker_on(site, "far", &store)?;
    let changes = bench.or_quick(10_000, 500);
    let measure = |broker: &Server| {
        let (seen, replied) = changed(&near, broker, &token, changes)?;
        let at =
            |times: &[f64], share| Measure::new(quantile(times, share), "ms").n(times.len() as u64);
        Ok::<_, TaskError>([at(&seen, 0.99), at(&seen, 0.5), at(&replied, 0.99)])
    };
    let figure = |name: &str, measure| Figure::new(format!("changes at 200/s: {name}"), measure);
    let [p99, p50, reply] = measure(&far)?;
    let holds = p99.value <= BAR;
    let [here, ..] = measure(&near)?;
    Ok(vec![
        figure("seen at the other broker, p99", p99).target(format!("at most {BAR} ms"), holds),
        figure("seen at the other broker, p50", p50),
        figure("the publisher's reply, p99", reply),
        figure("seen at the same broker, p99", here),
    ])
}

/// Milliseconds until each change was read, and until its reply.
fn changed(
    near: &Server,
    far: &Server,
    token: &str,
    changes: usize,
) -> Outcome<(Vec<f64>, Vec<f64>)> {
    let events = follow(far)?;
    let publisher = connect(near)?;
    let mut replies = BufReader::new(&publisher);
    let (mut seen, mut replied) = (Vec::new(), Vec::new());
    for number in 0..changes {
        let name = format!("{} {number}", far.address);
        let path = format!("/v1/offers/books/ada/{}", name.replace(' ', "%20"));
        let offer = serde_json::json!({
            "name": name,
            "expires": "2100-01-01T00:00:00Z",
            "qos": { "price": { "amount": "0.40", "currency": "EUR" } },
        });
        let body = offer.to_string();
        let length = body.len();
        let request = format!(
            "PUT {path} HTTP/1.1\r\nHost: broker\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let sent = Instant::now();
        (&publisher).write_all(request.as_bytes()).map_err(broken)?;
        let status = head(&mut replies)?;
        replied.push(milliseconds(sent, Instant::now()));
        check(status.contains(" 201 "), || format!("{path}: {status}"))?;
        let at = loop {
            let (at, event) = events.recv_timeout(PATIENCE).map_err(broken)?;
            if event.contains(&format!("\"{name}\"")) {
                break at;
            }
        };
        seen.push(milliseconds(sent, at));
        std::thread::sleep(PACE.saturating_sub(sent.elapsed()));
    }
    Ok((seen, replied))
}

/// Lines of a broker's stream of changes with their times of reading, after the initial list.
fn follow(broker: &Server) -> Outcome<Receiver<(Instant, String)>> {
    let mut stream = connect(broker)?;
    let ask = "GET /v1/changes HTTP/1.1\r\nHost: broker\r\nAccept: text/event-stream\r\n\r\n";
    stream.write_all(ask.as_bytes()).map_err(broken)?;
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let (sender, events) = channel();
    let ready = lines.any(|line| line == "event: ready" || line == "event:ready");
    check(ready, || "the stream ends before the last change".into())?;
    std::thread::spawn(move || {
        // Until the receiver is dropped.
        lines.try_for_each(|line| sender.send((Instant::now(), line)))
    });
    Ok(events)
}

fn connect(broker: &Server) -> Outcome<TcpStream> {
    let stream = TcpStream::connect(broker.address).map_err(broken)?;
    stream.set_nodelay(true).map_err(broken)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(broken)?;
    Ok(stream)
}

/// The status line of a reply without a body.
fn head(replies: &mut impl std::io::BufRead) -> Outcome<String> {
    let mut lines = replies.lines();
    let mut line = || lines.next().unwrap_or(Ok(String::new())).map_err(broken);
    let status = line()?;
    while !line()?.is_empty() {}
    Ok(status)
}

fn milliseconds(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64() * 1e3
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let index = (sorted.len() as f64 * share) as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

fn broken(error: impl std::fmt::Display) -> TaskError {
    TaskError::Failed(format!("a broker's connection: {error}"))
}
