//! Quotes of a service: a price that holds for one client, at a rate, for a time.
//!
//! `Quote: TOKEN;rate=5;life=2000` permits 5 requests per second for 2,000 ms from its issue. The newest quote counts.
//! The request whose reply carried the quote counts as its first use. Clients use a quote no faster than its rate,
//! until shortly before its end.

use posthaste_units::{Instant, Span};
use serde::{Deserialize, Serialize};

/// A quote is not used this shortly before its end, because the request has to arrive in time.
const MARGIN: Span = Span::from_millis(50);
/// Maximum lifetime in milliseconds. Longer lifetimes are reduced to it.
const LONGEST_LIFE: u64 = 24 * 60 * 60 * 1000;

/// Counts of quotes in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuoteUse {
    /// Requests that carried a quote.
    pub used: u64,
    /// Requests with a quote that were refused: status 402, 429 or 503.
    pub refused: u64,
    /// Quotes and current offers that could not be parsed.
    pub unreadable: u64,
}

impl QuoteUse {
    /// Adds the counts of another loop.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.used += other.used;
        self.refused += other.refused;
        self.unreadable += other.unreadable;
    }
}

/// The last quote of one client, and its next permitted use.
#[derive(Debug, Default)]
pub(crate) struct Quotes {
    newest: Option<Quote>,
    /// Time of the last use; at first, of the arrival.
    last: Instant,
}

#[derive(Clone, Debug, PartialEq)]
struct Quote {
    token: String,
    /// Interval between two uses.
    apart: Span,
    life: Span,
    until: Instant,
}

impl Quotes {
    /// Reads the quote of the reply that came `now` to the request of `sent`. Returns false if it cannot be parsed.
    pub(crate) fn take(&mut self, value: &[u8], sent: Instant, now: Instant) -> bool {
        let Some(mut quote) = Quote::read(value) else {
            return false;
        };
        // It was issued at some time between the two.
        quote.until = sent + quote.life.saturating_sub(MARGIN);
        let newest = self.newest.as_ref();
        if newest.is_none_or(|newest| newest.token != quote.token) {
            self.last = now;
        }
        self.newest = Some(quote);
        true
    }

    /// Returns the token, if a request of `now` may carry it.
    pub(crate) fn usable(&self, now: Instant) -> Option<&str> {
        let quote = self.newest.as_ref()?;
        let due = self.last + quote.apart <= now && now < quote.until;
        due.then_some(&*quote.token)
    }

    /// Records that a request of `now` carries it.
    pub(crate) const fn record_use(&mut self, now: Instant) {
        self.last = now;
    }
}

impl Quote {
    /// Reads a token and its parameters, in any order. Ignores unknown parameters.
    fn read(value: &[u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(value).ok()?.split(';').map(str::trim);
        let token = parts.next()?;
        let plain = |b: u8| b.is_ascii_graphic() && !b"\",".contains(&b);
        if token.is_empty() || !token.bytes().all(plain) {
            return None;
        }
        let (mut rate, mut life) = (None, None);
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name {
                "rate" => rate = Some(value.parse::<f64>().ok()?),
                "life" => life = Some(value.parse::<u64>().ok()?),
                _ => {}
            }
        }
        let rate = rate.filter(|rate| rate.is_finite() && *rate > 0.0)?;
        let life = Span::from_millis(life?.min(LONGEST_LIFE));
        Some(Self {
            token: token.to_owned(),
            // Rounded up, so the rate is never exceeded. A cast saturates.
            apart: Span::from_nanos((1e9 / rate).ceil() as u64),
            life,
            until: Instant::ORIGIN,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: u64) -> Instant {
        Instant::ORIGIN + Span::from_millis(millis)
    }

    fn after(value: &str) -> Quotes {
        let mut quotes = Quotes::default();
        quotes.take(value.as_bytes(), at(1000), at(1100));
        quotes
    }

    #[test]
    fn a_quote_is_used_at_its_rate_until_shortly_before_its_end() {
        let mut quotes = after("t0k-en_;rate=5;life=2000");
        let due = |quotes: &Quotes, millis| quotes.usable(at(millis)).map(str::to_owned);
        let token = Some("t0k-en_".to_owned());
        assert_eq!(due(&quotes, 1299), None, "it was used first when it came");
        assert_eq!(due(&quotes, 1300), token);
        quotes.record_use(at(1310));
        assert_eq!(due(&quotes, 1509), None);
        assert_eq!(due(&quotes, 1510), token);
        // Repeated with another rate: its last use stands.
        assert!(quotes.take(b"t0k-en_;rate=2;life=2000", at(1400), at(1450)));
        assert_eq!(due(&quotes, 1809), None);
        assert_eq!(due(&quotes, 1810), token);
        assert_eq!(due(&quotes, 3349), token);
        assert_eq!(due(&quotes, 3350), None, "50 ms before it ends");
    }

    #[test]
    fn the_newest_quote_counts_and_nonsense_does_not() {
        let mut quotes = after("a;rate=1000;life=2000");
        assert!(quotes.take(b" b ; life=2000 ; new=1 ;rate=0.5", at(1100), at(1100)));
        let before = format!("{quotes:?}");
        for wrong in [
            "",
            "b",
            ";rate=1;life=1",
            "b;rate=1",
            "b;life=1",
            "b;rate=0;life=1",
            "b;rate=-1;life=1",
            "b;rate=inf;life=1",
            "b;rate=NaN;life=1",
            "b;rate=1;life=-1",
            "b;rate=1;life=1.5",
            "b\r\n X: y;rate=1;life=1",
            "b c;rate=1;life=1",
            "b,c;rate=1;life=1",
            "\u{e9};rate=1;life=1",
        ] {
            assert!(
                !quotes.take(wrong.as_bytes(), at(1200), at(1200)),
                "{wrong:?}"
            );
        }
        assert_eq!(format!("{quotes:?}"), before);
        assert_eq!(quotes.usable(at(3000)), None);
        assert!(quotes.take(b"c;rate=1000;life=99999999999999", at(1200), at(1200)));
        assert_eq!(quotes.usable(at(3000)), Some("c"));
    }

    proptest! {
        /// For any order of events, no quote is used beyond its rate or its life, as counted by a service that lets one
        /// request through at once and counts the request of the quote as the first.
        #[test]
        fn no_quote_is_used_beyond_its_rate(
            acts in proptest::collection::vec((0u64..400, 0u32..4, 1u32..40, 100u64..3000), 1..200)
        ) {
            let mut quotes = Quotes::default();
            let mut now = at(0);
            // By token: the next permitted use, the interval, the end.
            let mut given = std::collections::BTreeMap::<String, (f64, f64, Instant)>::new();
            for (pause, token, rate, life) in acts {
                now += Span::from_millis(pause);
                if let Some(token) = quotes.usable(now).map(str::to_owned) {
                    let (next, apart, until) = given.get_mut(&token).unwrap();
                    let seconds = now.since(Instant::ORIGIN).as_secs_f64();
                    prop_assert!(seconds >= *next - 1e-9, "{token}: {seconds} before {next}");
                    prop_assert!(now < *until);
                    *next = seconds + *apart;
                    quotes.record_use(now);
                }
                if token > 0 {
                    let name = format!("{token}-{rate}");
                    let value = format!("{name};rate={rate};life={life}");
                    prop_assert!(quotes.take(value.as_bytes(), now, now));
                    let apart = 1.0 / f64::from(rate);
                    let first = now.since(Instant::ORIGIN).as_secs_f64() + apart;
                    let entry = given.entry(name).or_insert((first, apart, now));
                    entry.2 = now + Span::from_millis(life);
                }
            }
        }
    }
}
