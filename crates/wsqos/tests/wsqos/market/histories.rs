//! Random histories of a market: every admission and refusal is held against a witness that writes down
//! what was given, used and accepted, and knows nothing of how the market keeps its books.
//!
//! Some thousands by default; `POSTHASTE_HISTORIES=1000000` runs a million.

use posthaste_units::{Instant, Seed, Span, Stream};
use posthaste_wsqos::market::controller::Steps;
use posthaste_wsqos::market::{
    Admitted, Ask, By, Controller, Key, Market, Observed, Quote, Refused, Terms, Why,
};
use rand::RngExt as _;

use super::{eur, price};

const CLIENTS: [&str; 4] = ["ada", "grace", "edsger", "10.0.0.7"];
const BURST: u32 = 2;
/// In requests: what some dozens of intervals are off that are whole nanoseconds.
const SLACK: f64 = 1e-6;

/// A quote as it was handed out, and when it was used; the first use is the request that it came with.
struct Given {
    quote: Quote,
    token: String,
    uses: Vec<Instant>,
}

struct Witness {
    random: Stream,
    market: Market,
    now: Instant,
    capacity: f64,
    /// The terms name the capacity: no observation changes it.
    is_fixed: bool,
    life: Span,
    given: Vec<Given>,
    /// Every name that was ever published, with its price and when it was last.
    published: Vec<(String, u64, Instant)>,
}

impl Witness {
    fn new(seed: Seed) -> Self {
        let mut random = seed.stream("history");
        let life = Span::from_millis(random.random_range(200..4000));
        let fixed = random
            .random_bool(0.2)
            .then(|| random.random_range(0.0..20.0));
        let terms = Terms {
            // Quick steps, so that a history of some seconds sees many prices.
            controller: Controller::Steps(Steps {
                window: Span::from_millis(300),
                period: Span::from_millis(100),
                ..Steps::default()
            }),
            life,
            burst: BURST,
            most_rate: 8.0,
            capacity: fixed,
            ..Terms::new("standard", eur())
        };
        let market = Market::new(terms, Key::new(&random.random()));
        Self {
            market,
            now: Instant::ORIGIN + Span::from_millis(random.random_range(0..100_000)),
            capacity: fixed.unwrap_or(0.0),
            is_fixed: fixed.is_some(),
            life,
            given: Vec::new(),
            published: Vec::new(),
            random,
        }
    }

    fn observe(&mut self) {
        let busy = if self.random.random_bool(0.5) {
            1.0
        } else {
            0.2
        };
        let capacity = self.random.random_range(0.0..30.0);
        if !self.is_fixed {
            self.capacity = capacity;
        }
        let seen = Observed {
            at: self.now,
            busy,
            delay: Span::ZERO,
        };
        if let Some(offer) = self.market.observe(seen, capacity) {
            assert_eq!(&offer, self.market.current());
            assert_eq!(offer.life, self.life);
            self.published
                .push((offer.name, offer.price.micros(), self.now));
        }
    }

    /// A token to show: one that was given, to whomever, ever; sometimes damaged.
    fn token(&mut self) -> Option<(usize, String, bool)> {
        if self.given.is_empty() || self.random.random_bool(0.3) {
            return None;
        }
        // Most often one of the last, which may still live.
        let back = self.random.random_range(0..self.given.len().min(6));
        let which = self.given.len() - 1 - back;
        let mut token = self.given[which].token.clone();
        let damaged = self.random.random_bool(0.05);
        if damaged {
            let place = self.random.random_range(0..token.len());
            let other = if token.as_bytes()[place] == b'A' {
                "B"
            } else {
                "A"
            };
            token.replace_range(place..=place, other);
        }
        Some((which, token, damaged))
    }

    fn ask(&mut self) {
        let shown = self.token();
        let owner = shown
            .as_ref()
            .map(|(which, ..)| self.given[*which].quote.client.clone());
        let client = match owner {
            Some(owner) if self.random.random_bool(0.9) => owner,
            _ => CLIENTS[self.random.random_range(0..CLIENTS.len())].to_owned(),
        };
        let most = self
            .random
            .random_bool(0.4)
            .then(|| price(self.random.random_range(0..12) * 100_000));
        let selected = match self.random.random_range(0..4) {
            0 => Some(self.market.current().name.clone()),
            1 if !self.published.is_empty() => {
                let back = self.random.random_range(0..self.published.len().min(8));
                Some(self.published[self.published.len() - 1 - back].0.clone())
            }
            2 if self.random.random_bool(0.2) => Some("standard@9.99".to_owned()),
            _ => None,
        };
        let rate = self
            .random
            .random_bool(0.3)
            .then(|| self.random.random_range(-1.0..12.0));
        let ask = Ask {
            client: &client,
            selected: selected.as_deref(),
            most,
            token: shown.as_ref().map(|(_, token, _)| token.as_str()),
            rate,
        };
        let room = self.random.random_bool(0.7);
        let answer = self.market.admit(self.now, &ask, room);
        let shown = shown.as_ref().map(|(which, _, damaged)| (*which, *damaged));
        self.check(&ask, shown, room, answer);
    }

    fn check(
        &mut self,
        ask: &Ask<'_>,
        shown: Option<(usize, bool)>,
        room: bool,
        answer: Result<Admitted, Refused>,
    ) {
        let present = self.market.current().price.micros();
        let accepted = match (ask.most, ask.selected) {
            (Some(most), _) => Some(most.micros()),
            (None, Some(name)) => self.price_of(name),
            (None, None) => None,
        };
        let is_forged = shown.is_some_and(|(which, damaged)| {
            damaged || self.given[which].quote.client != ask.client
        });
        // Whether a quote was shown that may pay, and whether it must: within what the
        // rounding of intervals comes to, it may and need not.
        let pays = |slack: f64| {
            let own = shown.filter(|_| !is_forged);
            own.is_some_and(|(which, _)| {
                let given = &self.given[which];
                let price = given.quote.price.micros();
                let affordable = ask.most.is_none_or(|most| price <= most.micros());
                self.now < given.quote.until && affordable && given.allows(self.now, slack)
            })
        };
        let (may_pay, must_pay) = (pays(SLACK), pays(-SLACK));
        match answer {
            Ok(admitted) => {
                let price = admitted.price.micros();
                assert!(!is_forged, "let in with what was not its quote");
                assert!(
                    ask.most.is_none_or(|most| price <= most.micros()),
                    "paid more than it accepts"
                );
                match admitted.by {
                    By::Quote => {
                        assert!(may_pay, "a quote was used that does not pay");
                        let (which, _) = shown.expect("a quote was shown");
                        let given = &mut self.given[which];
                        assert_eq!(price, given.quote.price.micros());
                        given.uses.push(self.now);
                    }
                    By::Offer => {
                        assert!(
                            accepted.is_some_and(|accepted| price <= accepted),
                            "paid more than it accepts"
                        );
                        assert_eq!(price, present);
                    }
                    By::Free => assert_eq!((price, accepted), (0, None)),
                }
                assert!(
                    !must_pay || admitted.by == By::Quote,
                    "a quote that pays comes first"
                );
                assert!(room || admitted.by == By::Quote, "let in without room");
                self.note(ask, present, admitted);
            }
            Err(refused) => {
                assert!(
                    !must_pay,
                    "refused with a quote that pays: {:?}",
                    refused.why
                );
                assert_eq!(refused.current.micros(), present);
                let accepts = accepted.map_or(present == 0, |accepted| accepted >= present);
                match refused.why {
                    Why::Forged => assert!(is_forged),
                    Why::Full => assert!(!room && accepts),
                    _ => assert!(!accepts, "{:?}", refused.why),
                }
            }
        }
    }

    /// The price that a selected name stands for while it holds.
    fn price_of(&self, name: &str) -> Option<u64> {
        let current = self.market.current();
        if name == current.name {
            return Some(current.price.micros());
        }
        let (_, price, at) = self
            .published
            .iter()
            .rev()
            .find(|(known, ..)| known == name)?;
        (self.now.since(*at) < self.life).then_some(*price)
    }

    /// Notes a new quote, and that there was capacity for it.
    fn note(&mut self, ask: &Ask<'_>, present: u64, admitted: Admitted) {
        let Some((quote, token)) = admitted.quote else {
            return;
        };
        assert_ne!(admitted.by, By::Quote);
        assert_eq!(quote.client, ask.client);
        assert_eq!(quote.price.micros(), present);
        assert_eq!(quote.until, self.now + self.life);
        assert!(
            quote.rate <= ask.rate.unwrap_or(1.0).min(8.0),
            "{}",
            quote.rate
        );
        let alive = self
            .given
            .iter()
            .filter(|given| given.quote.until > self.now);
        let (mut sum, mut own) = (quote.rate, 0);
        for given in alive {
            sum += given.quote.rate;
            own += usize::from(given.quote.client == quote.client);
            assert_ne!(given.quote.number, quote.number);
        }
        assert!(
            sum <= self.capacity + 1e-6,
            "{sum} quoted of {}",
            self.capacity
        );
        assert_eq!(own, 0, "a second quote for {}", quote.client);
        let uses = vec![self.now];
        self.given.push(Given { quote, token, uses });
    }
}

impl Given {
    /// Whether one more use now leaves, in every stretch of time, as many as the rate allows, and a burst.
    fn allows(&self, now: Instant, slack: f64) -> bool {
        self.uses.iter().rev().enumerate().all(|(later, then)| {
            let uses = later as f64 + 2.0;
            let passed = now.since(*then).as_secs_f64();
            uses <= self.quote.rate * passed + f64::from(BURST) + slack
        })
    }
}

#[test]
fn nobody_pays_too_much_and_no_quote_that_holds_is_refused() {
    let wanted = std::env::var("POSTHASTE_HISTORIES").ok();
    let histories = wanted.map_or(3_000, |text| text.parse().expect("a number of histories"));
    let (mut quoted, mut used) = (0, 0);
    for number in 0..histories {
        let outcome = std::panic::catch_unwind(|| {
            let mut witness = Witness::new(Seed(2003).numbered("history", number));
            for _ in 0..60 {
                let pause = witness.random.random_range(0..400);
                witness.now += Span::from_millis(if pause < 350 { pause / 4 } else { pause * 4 });
                match witness.random.random_bool(0.2) {
                    true => witness.observe(),
                    false => witness.ask(),
                }
            }
            let used: usize = witness.given.iter().map(|given| given.uses.len() - 1).sum();
            (witness.given.len(), used)
        });
        match outcome {
            Ok((given, uses)) => (quoted, used) = (quoted + given, used + uses),
            Err(panic) => {
                eprintln!("in history {number}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    // The histories are worth their name: quotes are given and used in them.
    let all = histories as usize;
    assert!(
        quoted > all * 3 && used > all * 3,
        "{quoted} given, {used} used"
    );
}
