//! Clients that choose by price, with a minimal broker and service.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use jiff::{SignedDuration, Timestamp};
use posthaste_load::{Buying, Observer, Outcome, Plan, Run, RunError, Tick, WithoutOffers, run};
use posthaste_qos::{Definition, Money};
use posthaste_units::Span;

use crate::server::{carried_out, ok, pause, plan, serve};

/// A broker that sends the events of a test to every follower.
struct ScriptedBroker {
    address: SocketAddr,
    events: Arc<Mutex<Vec<String>>>,
    gone: Arc<AtomicBool>,
}

impl ScriptedBroker {
    fn open(offers: &[(&str, &str, i64)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let broker = Self {
            address: listener.local_addr().unwrap(),
            events: Arc::default(),
            gone: Arc::default(),
        };
        broker.tell("begin", "null");
        for (name, price, seconds) in offers {
            broker.put("books", name, price, *seconds);
        }
        broker.tell("ready", "null");
        let (events, gone) = (broker.events.clone(), broker.gone.clone());
        listener.set_nonblocking(true).unwrap();
        thread::spawn(move || {
            while !gone.load(Ordering::Relaxed) {
                if let Ok((stream, _)) = listener.accept() {
                    let (events, gone) = (events.clone(), gone.clone());
                    thread::spawn(move || Self::answer(stream, &events, &gone));
                }
                pause(2);
            }
        });
        broker
    }

    fn answer(mut stream: TcpStream, events: &Mutex<Vec<String>>, gone: &AtomicBool) {
        stream.set_nonblocking(false).unwrap();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        let mut next = 0;
        while !gone.load(Ordering::Relaxed) {
            let new = {
                let events = events.lock().unwrap();
                let from = std::mem::replace(&mut next, events.len());
                events[from..].concat()
            };
            if stream.write_all(new.as_bytes()).is_err() {
                return;
            }
            pause(2);
        }
    }

    fn tell(&self, event: &str, data: &str) {
        let mut events = self.events.lock().unwrap();
        let id = events.len();
        events.push(format!("id: {id}\nevent: {event}\ndata: {data}\n\n"));
    }

    fn put(&self, kind: &str, name: &str, price: &str, seconds: i64) {
        let expires = Timestamp::now() + SignedDuration::from_secs(seconds);
        let offer = serde_json::json!({
            "name": name, "expires": expires,
            "qos": { "price": { "amount": price, "currency": "EUR" } },
        });
        let put =
            serde_json::json!({ "type": kind, "provider": "ada", "name": name, "offer": offer });
        self.tell("put", &put.to_string());
    }
}

/// The heads of all requests that a service has received.
type Heads = Arc<Mutex<Vec<String>>>;

/// A service that answers with `reply` of the request's head.
fn service(reply: impl Fn(&str) -> String + Send + Sync + Clone + 'static) -> (SocketAddr, Heads) {
    let heads = Heads::default();
    let seen = heads.clone();
    let address = serve(move |mut stream| {
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let mut head = String::new();
        while let Some(Ok(line)) = lines.next() {
            if !line.is_empty() {
                head.push_str(&line);
                head.push('\n');
                continue;
            }
            let reply = reply(&head);
            seen.lock().unwrap().push(std::mem::take(&mut head));
            if stream.write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    });
    (address, heads)
}

/// Clients that pay 0.40 EUR at most for offers of this broker.
fn buying(mut plan: Plan, broker: SocketAddr, without: WithoutOffers) -> Plan {
    let price = Money::new("0.40", "EUR".parse().unwrap()).unwrap();
    plan.buying = Some(Buying {
        broker: format!("http://{broker}"),
        kind: Some("books".to_owned()),
        wanted: Definition {
            price: Some(price),
            ..Definition::default()
        },
        without,
        ask_every: None,
    });
    plan
}

/// Counts declined requests during the run.
#[derive(Clone, Default)]
struct Declined(Arc<AtomicU64>);

impl Observer for Declined {
    fn tick(&mut self, _: Span, tick: &Tick) {
        let count = tick.outcomes[Outcome::Declined];
        self.0.fetch_add(count, Ordering::Relaxed);
    }
}

/// Runs until `act`, which runs in parallel, has returned.
fn run_while(plan: &Plan, act: impl FnOnce(&Declined)) -> Run {
    let stop = &AtomicBool::new(false);
    let declined = Declined::default();
    thread::scope(|scope| {
        let mut observer = declined.clone();
        let running = scope.spawn(move || run(plan, stop, &mut observer).unwrap());
        act(&declined);
        stop.store(true, Ordering::Relaxed);
        running.join().unwrap()
    })
}

/// Waits until a request after the first `known` contains `says` and not `says_not`. Returns the number of requests.
fn await_request(heads: &Heads, known: usize, says: &str, says_not: &str) -> usize {
    for _ in 0..30_000 {
        let heads = heads.lock().unwrap();
        let new = heads[known..].iter();
        let mut wanted = new.filter(|head| head.contains(says) && !head.contains(says_not));
        if wanted.next().is_some() {
            return heads.len();
        }
        drop(heads);
        pause(2);
    }
    panic!("no request says {says:?}");
}

fn await_declined(declined: &Declined) {
    let before = declined.0.load(Ordering::Relaxed);
    while declined.0.load(Ordering::Relaxed) == before {
        pause(2);
    }
}

#[test]
fn requests_follow_the_offers_of_the_moment() {
    let broker = ScriptedBroker::open(&[("Silver", "0.40", 600)]);
    let (address, heads) = service(|_| ok("fine"));
    let plan = buying(
        plan(address, 200.0, 60_000),
        broker.address,
        WithoutOffers::Decline,
    );
    let run = run_while(&plan, |declined| {
        let known = await_request(
            &heads,
            0,
            "\nSelected-Offer: Silver\nMax-Price: 0.40 EUR\n",
            "Quote",
        );
        broker.put("books", "Gold", "0.30", 600);
        let known = await_request(&heads, known, "\nSelected-Offer: Gold\n", "Silver");
        broker.put("books", "Gold", "0.50", 600);
        broker.put("books", "Silver", "0.41", 600);
        await_declined(declined);
        broker.put("books", "Silver", "0.20", 600);
        await_request(&heads, known, "\nSelected-Offer: Silver\n", "Gold");
    });
    let reason = &run.reasons[&Outcome::Declined];
    assert!(reason.contains("price: 0.41 EUR offered"), "{reason}");
    assert!(run.outcomes[Outcome::Declined] > 0);
    assert_eq!(run.intended, run.outcomes.total());
    let sent = run.attempted();
    let ended = sent - run.outcomes[Outcome::InFlight];
    let seen = heads.lock().unwrap().len() as u64;
    assert!((ended..=sent).contains(&seen), "{seen} of {sent}");
}

#[test]
fn without_its_broker_a_client_does_as_it_was_told() {
    let broker = ScriptedBroker::open(&[("Silver", "0.40", 5)]);
    thread::scope(|scope| {
        for without in [WithoutOffers::Decline, WithoutOffers::Send] {
            let broker = &broker;
            scope.spawn(move || {
                let (address, heads) = service(|_| ok("fine"));
                let plan = buying(plan(address, 100.0, 60_000), broker.address, without);
                let run = run_while(&plan, |declined| {
                    await_request(&heads, 0, "Selected-Offer: Silver\n", "Quote");
                    broker.gone.store(true, Ordering::Relaxed);
                    let known = heads.lock().unwrap().len();
                    let known = await_request(&heads, known, "Selected-Offer: Silver\n", "Quote");
                    match without {
                        WithoutOffers::Decline => await_declined(declined),
                        WithoutOffers::Send => {
                            await_request(&heads, known, "Max-Price: 0.40 EUR\n", "Selected-Offer");
                        }
                    }
                });
                let declined = run.outcomes[Outcome::Declined];
                assert_eq!(
                    declined > 0,
                    without == WithoutOffers::Decline,
                    "{declined}"
                );
            });
        }
    });
}

#[test]
fn quotes_are_shown_and_refusals_counted() {
    let broker = ScriptedBroker::open(&[("Silver", "0.40", 600)]);
    let refused = Arc::new(AtomicU64::new(0));
    let refusals = refused.clone();
    let (address, heads) = service(move |head| {
        if !head.contains("\nQuote: to-ken\n") {
            return "HTTP/1.1 204 Fine\r\nQuote: to-ken;rate=10;life=60000\r\n\r\n".to_owned();
        }
        // A fault is a refusal if it names the present offer.
        let offer = "500 No\r\nCurrent-Offer: Silver;price=\"0.40 EUR\"";
        let answers = ["402 No", "429 No", "503 No", offer, "404 No", "500 No"];
        let answer = answers[refusals.fetch_add(1, Ordering::Relaxed) as usize % answers.len()];
        format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nQuote: nonsense\r\n\r\n")
    });
    let run = carried_out(&buying(
        plan(address, 100.0, 2000),
        broker.address,
        WithoutOffers::Decline,
    ));
    let quoted = refused.load(Ordering::Relaxed);
    let heads = heads.lock().unwrap();
    assert!(!heads[0].contains("Quote:"), "{}", heads[0]);
    // Nineteen of 200 requests on a machine without pauses.
    assert!((6..=60).contains(&quoted), "{quoted}");
    let quotes = run.quotes;
    assert_eq!((quotes.used, quotes.unreadable), (quoted, quoted));
    assert_eq!(quotes.refused, quoted / 6 * 4 + (quoted % 6).min(4));
}

#[test]
fn buyers_that_do_not_follow_keep_an_offer_until_refused() {
    let broker = ScriptedBroker::open(&[("Silver", "0.40", 600)]);
    let dear = Arc::new(AtomicBool::new(false));
    let is_dear = dear.clone();
    let (address, heads) = service(move |head| {
        if head.contains("Silver") {
            let offer = if is_dear.load(Ordering::Relaxed) {
                "Gold;price=\"0.41 EUR\""
            } else {
                "Bronze;price=\"0.40 EUR\""
            };
            return format!(
                "HTTP/1.1 402 No\r\nContent-Length: 0\r\nCurrent-Offer: {offer}\r\n\r\n"
            );
        }
        ok("fine")
    });
    let mut plan = buying(
        plan(address, 100.0, 60_000),
        broker.address,
        WithoutOffers::Decline,
    );
    plan.buying.as_mut().unwrap().ask_every = Some(Span::from_secs(3600));
    // The client does not learn of later offers.
    run_while(&plan, |_| {
        await_request(&heads, 0, "\nSelected-Offer: Silver\n", "Quote");
        broker.put("books", "Copper", "0.10", 600);
        await_request(&heads, 0, "\nSelected-Offer: Bronze\n", "Quote");
    });
    let seen = heads.lock().unwrap().join("\n");
    assert!(!seen.contains("Copper"), "{seen}");
    dear.store(true, Ordering::Relaxed);
    broker.put("books", "Copper", "0.90", 600);
    let run = run_while(&plan, await_declined);
    let reason = &run.reasons[&Outcome::Declined];
    assert!(reason.contains("Gold, for 0.41 EUR"), "{reason}");
    // With a short interval it learns of them.
    broker.put("books", "Copper", "0.10", 600);
    plan.buying.as_mut().unwrap().ask_every = Some(Span::from_millis(20));
    broker.put("books", "Silver", "0.05", 600);
    run_while(&plan, |_| {
        let known = await_request(&heads, 0, "\nSelected-Offer: Silver\n", "Quote");
        broker.put("books", "Silver", "0.90", 600);
        await_request(&heads, known, "\nSelected-Offer: Copper\n", "Quote");
    });
}

#[test]
fn a_broker_that_is_not_there_is_named_before_anything_is_sent() {
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (address, heads) = service(|_| ok("fine"));
    let plan = buying(plan(address, 100.0, 100), gone, WithoutOffers::Send);
    let refused = |stop: bool| run(&plan, &AtomicBool::new(stop), &mut ()).err().unwrap();
    let error = refused(false);
    let message = error.to_string();
    assert!(matches!(error, RunError::Broker { .. }), "{message}");
    assert!(
        message.contains(&gone.to_string()) && message.contains("for 10 s"),
        "{message}"
    );
    assert!(refused(true).to_string().contains("stopped"));
    assert!(heads.lock().unwrap().is_empty());
}
