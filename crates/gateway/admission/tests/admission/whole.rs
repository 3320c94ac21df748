//! The whole market at five times its capacity: clients with budgets that pay, keep their quotes and return, one
//! server, and a limit on the waiting requests.

use posthaste_admission::controller::ProportionalIntegral;
use posthaste_admission::{Ask, By, Controller, Key, Market, Observed, REFUSALS, Terms, Why};
use posthaste_units::{Instant, Ratio, Seed, Span, Stream};
use rand::RngExt as _;
use rand_distr::{Distribution as _, Exp1};

use super::{eur, price};

const SERVICE: f64 = 0.002;
const CLIENTS: usize = 500;
/// Requests in service above which only a quote admits.
const ROOM: f64 = 16.0;

struct BuyingClient {
    name: String,
    budget: u64,
    /// Token of its quote and the end of the quote.
    quote: Option<(String, Instant)>,
}

struct Town {
    market: Market,
    clients: Vec<BuyingClient>,
    random: Stream,
    now: f64,
    free_at: f64,
    promised: f64,
}

#[derive(Debug, Default)]
struct ClientResults {
    served: usize,
    by_quote: usize,
    refused: [usize; REFUSALS.len()],
    /// Waits in seconds.
    waits: Vec<f64>,
}

impl Town {
    fn new(controller: ProportionalIntegral, promised: f64) -> Self {
        let mut random = Seed(1).stream("town");
        let client = |number: usize| BuyingClient {
            name: format!("client {number}"),
            budget: random.random_range(0..1_000_000),
            quote: None,
        };
        let clients = (0..CLIENTS).map(client).collect();
        let terms = Terms {
            controller: Controller::ProportionalIntegral(controller),
            rate: 5.0,
            ..Terms::new("standard", eur())
        };
        Self {
            market: Market::new(terms, Key::new(&[3; 32])),
            clients,
            random,
            now: 0.0,
            free_at: 0.0,
            promised,
        }
    }

    fn run(&mut self, load: f64, seconds: f64) -> ClientResults {
        let mut seen = ClientResults::default();
        let end = self.now + seconds;
        let mut idle = 0.0;
        let (mut sampled, mut waited, mut came) = (self.now, 0.0, 0.0);
        while self.now < end {
            let gap: f64 = Exp1.sample(&mut self.random);
            let next = self.now + gap * SERVICE / load;
            idle += (next - self.free_at.max(self.now)).max(0.0);
            self.now = next;
            if self.now - sampled >= 0.2 {
                let busy = 1.0 - idle / (self.now - sampled);
                let delay = Span::from_secs_f64(waited / f64::max(came, 1.0));
                let at = self.at();
                self.market
                    .observe(Observed { at, busy, delay }, self.promised / SERVICE);
                (idle, sampled, waited, came) = (0.0, self.now, 0.0, 0.0);
            }
            if let Some(wait) = self.ask(&mut seen) {
                waited += wait;
                came += 1.0;
            }
        }
        seen.waits.sort_by(f64::total_cmp);
        seen
    }

    fn at(&self) -> Instant {
        Instant::ORIGIN + Span::from_secs_f64(self.now)
    }

    /// One request of a random client. Returns its wait if it is admitted.
    fn ask(&mut self, seen: &mut ClientResults) -> Option<f64> {
        let (now, wait) = (self.at(), (self.free_at - self.now).max(0.0));
        let index = self.random.random_range(0..self.clients.len());
        let client = &mut self.clients[index];
        client.quote.take_if(|(_, until)| *until <= now);
        let ask = Ask {
            client: &client.name,
            most: Some(price(client.budget)),
            token: client.quote.as_ref().map(|(token, _)| token.as_str()),
            ..Ask::default()
        };
        match self.market.admit(now, &ask, wait < ROOM * SERVICE) {
            Ok(admitted) => {
                assert!(admitted.price.micros() <= client.budget);
                if let Some((quote, token)) = admitted.quote {
                    client.quote = Some((token, quote.until));
                }
                seen.served += 1;
                seen.by_quote += usize::from(admitted.by == By::Quote);
                seen.waits.push(wait);
                self.free_at = self.free_at.max(self.now) + SERVICE;
                Some(wait)
            }
            Err(refused) => {
                let is_beyond = matches!(refused.why, Why::Overused | Why::Full);
                assert!(ask.token.is_none() || is_beyond, "{}", refused.why);
                seen.refused[refused.why.index()] += 1;
                None
            }
        }
    }
}

impl ClientResults {
    /// Served requests as a share of the server's capacity.
    fn goodput(&self, seconds: f64) -> f64 {
        self.served as f64 * SERVICE / seconds
    }

    /// 99th percentile of wait and service time.
    fn p99(&self) -> f64 {
        self.waits[self.waits.len() * 99 / 100] + SERVICE
    }
}

fn share(share: f64) -> Ratio {
    Ratio::new(share).expect("a share")
}

/// Measured one lifetime of a quote after the load step, because all earlier quotes are kept.
#[test]
fn an_overload_of_five_times_is_served_to_those_who_pay_most() {
    let controller = ProportionalIntegral {
        target: share(0.97),
        band: share(0.01),
        delay: Span::from_millis(20),
        ..ProportionalIntegral::default()
    };
    let mut town = Town::new(controller, 0.5);
    town.run(0.8, 30.0);
    let calm = town.run(0.8, 30.0);
    town.run(5.0, 2.0);
    let seen = town.run(5.0, 30.0);
    assert!(seen.goodput(30.0) > 0.95, "{}", seen.goodput(30.0));
    assert!(
        seen.p99() < 2.0 * calm.p99(),
        "{} after {}",
        seen.p99(),
        calm.p99()
    );
    assert!(
        seen.by_quote * 3 > seen.served,
        "{} of {}",
        seen.by_quote,
        seen.served
    );
    // The price causes nearly all rejections, and the limit few.
    let [by_price, full] = [Why::TooCheap, Why::Full].map(|why| seen.refused[why.index()]);
    assert!(full * 10 < by_price, "{full} and {by_price}");
}

/// The default target leaves reserve, because quotes are kept at any price and the load exceeds the target.
#[test]
fn by_default_some_of_the_service_stays_free() {
    let mut town = Town::new(ProportionalIntegral::default(), 0.75);
    town.run(0.8, 30.0);
    town.run(5.0, 2.0);
    let seen = town.run(5.0, 30.0);
    assert!(
        (0.75..0.95).contains(&seen.goodput(30.0)),
        "{}",
        seen.goodput(30.0)
    );
    assert!(seen.p99() < 0.05, "{}", seen.p99());
}
