//! Complete replies: judged and recorded.

use posthaste_units::Instant;

use super::LoopRequests;
use crate::exchange::OpenExchange;
use crate::exchange::slots::ExchangeSlot;
use crate::outcome::Outcome;
use crate::reply::decoding;
use crate::reply::inspect;

impl LoopRequests<'_> {
    /// Judges and records the complete reply of an exchange.
    pub(in super::super) fn end_replied(&mut self, open: ExchangeSlot, now: Instant) {
        self.end_events(open);
        let (outcome, reason) = self.judge(open);
        self.read_offers(open);
        let exchange = &mut self.exchanges[open];
        exchange.exchange.status = Some(exchange.reply.status());
        let exchange = self.exchanges.remove(open);
        self.recording.record_status(&exchange);
        if let Some(reason) = reason {
            let tally = &mut self.recording.tally;
            tally.explain(outcome, exchange.numbers(), || reason);
        }
        let done = now + exchange.moments.decoding.unwrap_or_default();
        self.end_attempt(&exchange, outcome, done);
    }

    /// Reads the end of a stream of events, which can complete an event.
    fn end_events(&mut self, open: ExchangeSlot) {
        let open = &mut self.exchanges[open];
        open.reply.end_events();
        open.record_gaps(&mut self.recording.tally.events, self.shared.window.start);
    }

    /// Decodes a complete reply if the plan says so, and returns its outcome.
    fn judge(&mut self, open: ExchangeSlot) -> (Outcome, Option<String>) {
        let slowdown = self.shared.plan.decoding;
        let OpenExchange {
            exchange, reply, ..
        } = &mut self.exchanges[open];
        if let Some(call) = reply.call() {
            let request = self.shared.mix.requests[exchange.request].numbered();
            let kind = request.call().expect("a plan has calls only, or none");
            let end = call.judge(reply.status(), kind);
            exchange.code = end.code;
            return (end.outcome, end.reason);
        }
        let decoded = match slowdown.map_or(Ok(None), |times| decoding::decode(reply, times)) {
            Ok(decoded) => decoded,
            Err(reason) => return (Outcome::Undecodable, Some(reason)),
        };
        let mut judgement = inspect::judge(reply);
        if judgement == (Outcome::Ok, None) {
            judgement.1 = reply.eventless_in_words();
        }
        if let Some((took, decoded)) = decoded {
            exchange.moments.decoding = Some(took);
            if self.recording.is_recorded(exchange) {
                self.recording.tally.decoded.merge(&decoded);
            }
        }
        judgement
    }
}
