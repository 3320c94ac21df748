//! `link`: compresses if the reply then arrives earlier, with the step that makes it arrive earliest.
//!
//! The arrival time is the CPU time, weighted, plus the transfer time of the result. The weight is 1/(1 - busy),
//! because the mean wait in a queue grows like that. For optional replies the weight also rises as the token bucket
//! empties, so that CPU time goes to the replies that gain most. It settles at the weight at which demand equals the
//! allowance. Without data about the client's path, the policy is [`threshold`](super::threshold).

use posthaste_units::{Size, Span};

use super::{AffordableStep, Decision, Question, threshold};
use crate::client_path::ClientPath;
use crate::cpu_token_bucket::CpuTokenBucket;
use crate::reason::Reason;
use crate::wish::Wish;

/// Lower bound of the idle share and of the bucket's fill level. It limits the weight.
const LEAST: f64 = 0.01;

pub(super) fn choose(question: &Question<'_>, bucket: &mut CpuTokenBucket) -> Decision {
    let Some(line) = question.line else {
        return threshold::choose(question, bucket);
    };
    let idle = (1.0 - f64::from(question.estimate.busy)).max(LEAST);
    bucket.fill(question.now, &question.estimate);
    let left = match question.preference.wish {
        Wish::Always => 1.0,
        wish => bucket.fullness(wish).max(LEAST),
    };
    // Cached results cost no CPU time.
    let cpu = |choice: &AffordableStep| {
        if question.is_at_hand(choice) {
            Span::ZERO
        } else {
            choice.cpu
        }
    };
    let arrives = |choice: &AffordableStep| arrival(&line, cpu(choice), choice.out, idle * left);
    let Some(fastest) = question.choices().min_by_key(arrives) else {
        return Decision::plain(Reason::NotAcceptable);
    };
    let plain = line.time(question.length());
    if question.preference.wish != Wish::Always && arrives(&fastest) >= plain {
        return Decision::plain(Reason::SavesNoTime);
    }
    let cheapest = question.choices().map(|choice| choice.cpu).min();
    let cheapest = cheapest.unwrap_or(fastest.cpu);
    question.settle(fastest, cheapest, Reason::SavesTime, bucket)
}

fn arrival(line: &ClientPath, cpu: Span, out: Size, plenty: f64) -> Span {
    Span::from_secs_f64(cpu.as_secs_f64() / plenty) + line.time(out)
}
