//! Requests of clients that choose by price.

use jiff::Timestamp;

use super::LoopRequests;
use crate::exchange::slots::ExchangeSlot;
use crate::exchange::{HttpExchange, OpenExchange};
use crate::outcome::Outcome;

/// Statuses that refuse a request with a quote: too expensive, too many, overloaded.
const REFUSALS: [u16; 3] = [402, 429, 503];

/// Status of every SOAP fault, whatever its reason.
const FAULT: u16 = 500;

impl LoopRequests<'_> {
    /// Chooses an offer for a request, if clients choose. Returns false if the request is declined.
    pub(in super::super) fn choose_offer(&mut self, exchange: &HttpExchange) -> bool {
        let Some(buyer) = &mut self.buyer else {
            return true;
        };
        let Err(reason) = buyer.choose(Timestamp::now()) else {
            return true;
        };
        let tally = &mut self.recording.tally;
        tally.explain(Outcome::Declined, exchange.numbers(), || reason.to_owned());
        self.end_attempt(exchange, Outcome::Declined, exchange.moments.sent);
        false
    }

    /// Records that a request was sent with a quote.
    pub(in super::super) fn record_quote_use(&mut self, exchange: &HttpExchange) {
        if let Some(buyer) = &mut self.buyer {
            buyer.quotes.record_use(exchange.moments.written);
        }
        if self.recording.is_recorded(exchange) {
            self.recording.tally.quotes.used += 1;
        }
    }

    /// Reads the quote or the current offer of a reply. Counts refused quotes and unreadable values.
    pub(super) fn read_offers(&mut self, open: ExchangeSlot) {
        let Some(buyer) = &mut self.buyer else {
            return;
        };
        let OpenExchange {
            exchange, reply, ..
        } = &self.exchanges[open];
        let quote = reply.quote().is_none_or(|value| {
            let now = self.shared.clock.now();
            buyer.quotes.take(value, exchange.moments.written, now)
        });
        let is_refusal = match reply.status() {
            FAULT => reply.offer().is_some(),
            status => REFUSALS.contains(&status),
        };
        let offer = reply.offer().filter(|_| is_refusal);
        let offer = offer.is_none_or(|value| buyer.apply_current_offer(value));
        if self.recording.is_recorded(exchange) {
            let quotes = &mut self.recording.tally.quotes;
            quotes.refused += u64::from(exchange.quoted && is_refusal);
            quotes.unreadable += u64::from(!quote) + u64::from(!offer);
        }
    }
}
