//! `link`: compress where the reply arrives earlier for it, with the step that makes it arrive earliest.
//!
//! Arriving takes the processor's time at its present price and the line's time for what is left. The
//! price is the time itself over the idle share, 1/(1 - busy): the mean wait in a queue grows so. For
//! clients that leave it open it rises further as the purse empties, so that what can be afforded goes
//! where it saves most: it settles where those who find it worth its price take just what comes in.
//! Where the kernel does not know the line yet, it is [`threshold`](super::threshold).

use posthaste_units::{Size, Span};

use super::{Choice, Decision, Question, threshold};
use crate::line::Line;
use crate::purse::Purse;
use crate::reason::Reason;
use crate::wish::Wish;

/// A processor that is busier, and a purse that is emptier, raise the price no further.
const LEAST: f64 = 0.01;

pub(super) fn choose(question: &Question<'_>, purse: &mut Purse) -> Decision {
    let Some(line) = question.line else {
        return threshold::choose(question, purse);
    };
    let idle = (1.0 - f64::from(question.outlook.busy)).max(LEAST);
    purse.fill(question.now, &question.outlook);
    let left = match question.preference.wish {
        Wish::Always => 1.0,
        wish => purse.fullness(wish).max(LEAST),
    };
    // What is at hand takes no time to make.
    let cpu = |choice: &Choice| match question.is_at_hand(choice) {
        true => Span::ZERO,
        false => choice.cpu,
    };
    let arrives = |choice: &Choice| arrival(&line, cpu(choice), choice.out, idle * left);
    let Some(fastest) = question.choices().min_by_key(arrives) else {
        return Decision::plain(Reason::NotAcceptable);
    };
    let plain = line.time(question.length());
    if question.preference.wish != Wish::Always && arrives(&fastest) >= plain {
        return Decision::plain(Reason::SavesNoTime);
    }
    let cheapest = question.choices().map(|choice| choice.cpu).min();
    let cheapest = cheapest.unwrap_or(fastest.cpu);
    question.settle(fastest, cheapest, Reason::SavesTime, purse)
}

fn arrival(line: &Line, cpu: Span, out: Size, plenty: f64) -> Span {
    Span::from_secs_f64(cpu.as_secs_f64() / plenty) + line.time(out)
}
