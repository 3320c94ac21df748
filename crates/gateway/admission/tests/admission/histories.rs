//! Random histories of a market. An independent model records issued, used and accepted quotes and checks every
//! admission and rejection, without knowledge of the market's data structures.
//!
//! Some thousands by default; `POSTHASTE_HISTORIES=1000000` runs a million.

use posthaste_admission::controller::Steps;
use posthaste_admission::{
    Admitted, Ask, By, Controller, Key, Market, Observed, Payer, Published, Quote, Refused, Terms,
    Why,
};
use posthaste_units::{Instant, Ratio, Seed, Span, Stream};
use rand::RngExt as _;

use super::{eur, price};

const CLIENTS: [&str; 4] = ["ada", "grace", "edsger", "10.0.0.7"];
const BURST: u32 = 2;
/// Rounding error, in requests, of some dozens of intervals in whole nanoseconds.
const SLACK: f64 = 1e-6;

/// An issued quote and the times of its use. The first use is the request that it came with.
struct IssuedQuote {
    quote: Quote,
    token: String,
    uses: Vec<Instant>,
}

/// Expected result of a request.
struct ExpectedResult {
    /// The current price, and the part of it that this request would pay.
    full: u64,
    present: u64,
    accepted: Option<u64>,
    is_forged: bool,
    /// The shown quote, if it is the client's own, and the price that the request would pay by it.
    own: Option<usize>,
    quoted: Option<u64>,
    may_pay: bool,
    must_pay: bool,
    /// The quote or the selected offer is for requests that leave compression to the server.
    needs_open: bool,
}

struct Witness {
    random: Stream,
    market: Market,
    now: Instant,
    capacity: f64,
    /// The terms state the capacity, so observations do not change it.
    is_fixed: bool,
    life: Span,
    /// Discount in percent.
    discount: u64,
    given: Vec<IssuedQuote>,
    /// Every published offer and the time of its last publication.
    published: Vec<(Published, Instant)>,
    seen: HistoryEvents,
}

/// Events of a history.
#[derive(Default)]
struct HistoryEvents {
    quoted: usize,
    used: usize,
    /// Requests admitted below the full price, by their accepted price and by a quote.
    reduced: [usize; 2],
    not_open: usize,
}

impl Witness {
    fn new(seed: Seed) -> Self {
        let mut random = seed.stream("history");
        let life = Span::from_millis(random.random_range(200..4000));
        let fixed = random
            .random_bool(0.2)
            .then(|| random.random_range(0.0..20.0));
        let discount = if random.random_bool(0.6) {
            random.random_range(1..=90)
        } else {
            0
        };
        let terms = Terms {
            discount: Ratio::new(discount as f64 / 100.0).expect("a share"),
            // Quick steps, so that a history of some seconds has many prices.
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
            discount,
            given: Vec::new(),
            published: Vec::new(),
            seen: HistoryEvents::default(),
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
        let offers = self.market.observe(seen, capacity).to_vec();
        if offers.is_empty() {
            return;
        }
        assert_eq!(offers.len(), if self.discount > 0 { 2 } else { 1 });
        for offer in offers {
            assert_eq!(&offer, self.market.current(offer.open));
            assert_eq!(offer.life, self.life);
            self.published.push((offer, self.now));
        }
    }

    /// Price of a request, in millionths.
    fn due(&self, full: u64, open: bool) -> u64 {
        if open {
            full - full * self.discount / 100
        } else {
            full
        }
    }

    /// A token to show: any issued one, of any client, sometimes damaged.
    fn token(&mut self) -> Option<(usize, String, bool)> {
        if self.given.is_empty() || self.random.random_bool(0.3) {
            return None;
        }
        // Usually one of the latest, which may still be live.
        let back = self.random.random_range(0..self.given.len().min(6));
        let which = self.given.len() - 1 - back;
        let mut token = self.given[which].token.clone();
        let damaged = self.random.random_bool(0.05);
        if damaged {
            let index = self.random.random_range(0..token.len());
            let other = if token.as_bytes()[index] == b'A' {
                "B"
            } else {
                "A"
            };
            token.replace_range(index..=index, other);
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
            0 => Some(
                self.market
                    .current(self.random.random_bool(0.5))
                    .name
                    .clone(),
            ),
            1 if !self.published.is_empty() => {
                let back = self.random.random_range(0..self.published.len().min(8));
                Some(
                    self.published[self.published.len() - 1 - back]
                        .0
                        .name
                        .clone(),
                )
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
            open: self.random.random_bool(0.5),
            unquoted: false,
            payer: Payer::Anyone,
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
        let case = self.case(ask, shown);
        match answer {
            Ok(admitted) => self.check_admitted(ask, &case, room, admitted),
            Err(refused) => self.check_refused(ask, &case, room, refused),
        }
    }

    /// The expected result of a request that shows this quote, possibly damaged.
    fn case(&self, ask: &Ask<'_>, shown: Option<(usize, bool)>) -> ExpectedResult {
        let full = self.market.current(false).price.micros();
        let selected = ask.selected.and_then(|name| self.offer(name));
        let is_own = |(which, damaged): (usize, bool)| {
            !damaged && self.given[which].quote.client == ask.client
        };
        let own = shown.filter(|shown| is_own(*shown)).map(|(which, _)| which);
        let quote = own.map(|which| &self.given[which].quote);
        let quoted = quote.map(|quote| {
            if quote.open {
                quote.price.micros()
            } else {
                self.due(quote.price.micros(), ask.open)
            }
        });
        // Within the rounding error of intervals, a quote may or may not pay.
        let pays = |slack: f64| {
            own.is_some_and(|which| {
                let given = &self.given[which];
                let affordable = ask.most.is_none_or(|most| quoted <= Some(most.micros()));
                let is_for_it = ask.open || !given.quote.open;
                self.now < given.quote.until
                    && is_for_it
                    && affordable
                    && given.allows(self.now, slack)
            })
        };
        ExpectedResult {
            full,
            present: self.due(full, ask.open),
            accepted: match (ask.most, &selected) {
                (Some(most), _) => Some(most.micros()),
                (None, offer) => offer.as_ref().map(|offer| offer.price.micros()),
            },
            is_forged: shown.is_some() && own.is_none(),
            own,
            quoted,
            may_pay: pays(SLACK),
            must_pay: pays(-SLACK),
            needs_open: quote.is_some_and(|quote| quote.open)
                || selected.is_some_and(|offer| offer.open),
        }
    }

    fn check_admitted(
        &mut self,
        ask: &Ask<'_>,
        case: &ExpectedResult,
        room: bool,
        admitted: Admitted,
    ) {
        let price = admitted.price.micros();
        assert!(!case.is_forged, "let in with what was not its quote");
        assert!(
            ask.most.is_none_or(|most| price <= most.micros()),
            "paid more than it accepts"
        );
        match admitted.by {
            By::Quote => {
                assert!(case.may_pay, "a quote was used that does not pay");
                let given = &mut self.given[case.own.expect("a quote was shown")];
                assert_eq!(Some(price), case.quoted);
                assert!(price <= given.quote.price.micros());
                given.uses.push(self.now);
                self.seen.reduced[1] += usize::from(ask.open && self.discount > 0);
            }
            By::Offer => {
                assert!(
                    case.accepted.is_some_and(|accepted| price <= accepted),
                    "paid more than it accepts"
                );
                assert_eq!(price, case.present);
                self.seen.reduced[0] += usize::from(price < case.full);
            }
            By::Free => assert_eq!((price, case.accepted), (0, None)),
        }
        assert!(
            !case.must_pay || admitted.by == By::Quote,
            "a quote that pays comes first"
        );
        assert!(room || admitted.by == By::Quote, "let in without room");
        self.note(ask, case.present, admitted);
    }

    fn check_refused(
        &mut self,
        ask: &Ask<'_>,
        case: &ExpectedResult,
        room: bool,
        refused: Refused,
    ) {
        let why = refused.why;
        assert!(!case.must_pay, "refused with a quote that pays: {why:?}");
        assert_eq!(refused.current.micros(), case.present);
        let accepts = case
            .accepted
            .map_or(case.present == 0, |accepted| accepted >= case.present);
        match why {
            Why::Forged => assert!(case.is_forged),
            Why::Full => assert!(!room && accepts),
            Why::NotOpen => {
                assert!(case.needs_open && !ask.open && !accepts);
                self.seen.not_open += 1;
            }
            _ => assert!(!accepts, "{why:?}"),
        }
    }

    /// The valid offer with this name.
    fn offer(&self, name: &str) -> Option<Published> {
        let present = [false, true].map(|open| self.market.current(open));
        if let Some(offer) = present.into_iter().find(|offer| offer.name == name) {
            return Some(offer.clone());
        }
        let mut latest = self.published.iter().rev();
        let (offer, at) = latest.find(|(offer, _)| offer.name == name)?;
        (self.now.since(*at) < self.life).then(|| offer.clone())
    }

    /// Records a new quote and checks the capacity.
    fn note(&mut self, ask: &Ask<'_>, present: u64, admitted: Admitted) {
        let Some((quote, token)) = admitted.quote else {
            return;
        };
        assert_ne!(admitted.by, By::Quote);
        assert_eq!(quote.client, ask.client);
        assert_eq!(quote.price.micros(), present);
        assert_eq!(quote.open, ask.open && self.discount > 0);
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
        self.given.push(IssuedQuote { quote, token, uses });
    }
}

impl IssuedQuote {
    /// Returns true if one more use now keeps the rate and the burst over every interval of time.
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
    let mut all = HistoryEvents::default();
    for number in 0..histories {
        let outcome = std::panic::catch_unwind(|| {
            let mut witness = Witness::new(Seed(2003).numbered("history", number));
            for _ in 0..60 {
                let pause = witness.random.random_range(0..400);
                witness.now += Span::from_millis(if pause < 350 { pause / 4 } else { pause * 4 });
                if witness.random.random_bool(0.2) {
                    witness.observe();
                } else {
                    witness.ask();
                }
            }
            let uses = witness.given.iter().map(|given| given.uses.len() - 1);
            HistoryEvents {
                quoted: witness.given.len(),
                used: uses.sum(),
                ..witness.seen
            }
        });
        match outcome {
            Ok(seen) => {
                all.quoted += seen.quoted;
                all.used += seen.used;
                all.reduced[0] += seen.reduced[0];
                all.reduced[1] += seen.reduced[1];
                all.not_open += seen.not_open;
            }
            Err(panic) => {
                eprintln!("in history {number}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    // Checks the histories themselves: quotes are issued and used in them, also at the lower price.
    let times = histories as usize;
    let HistoryEvents {
        quoted,
        used,
        reduced: [accepted, by_quote],
        not_open,
    } = all;
    assert!(
        quoted > times * 3 && used > times * 3,
        "{quoted} given, {used} used"
    );
    assert!(
        accepted > times && by_quote > times && not_open > times / 2,
        "{accepted} and {by_quote} entered below the full price, {not_open} were refused it"
    );
}
