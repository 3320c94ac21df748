//! Compress this reply, and how? Policies by name, each one function from a question to a choice.
//!
//! [`Policy::decide`] asks in this order: may the reply be transformed at all, did the client refuse, is
//! there a coding that both know; only then the policy. A policy knows nothing of the others and keeps
//! nothing: what is remembered lies in [`Purse`], [`Prices`] and the [`Outlook`], which all share.

mod always;
mod ladder;
mod link;
mod never;
mod threshold;

use std::fmt;
use std::str::FromStr;

use posthaste_units::{Instant, Size, Span};
use schemars::JsonSchema;
use thiserror::Error;

use crate::accept::Accept;
use crate::demand::Outlook;
use crate::envelope::Envelope;
use crate::line::Line;
use crate::media::Media;
use crate::prices::{Prices, UNKNOWN_LENGTH};
use crate::purse::{Bill, Purse};
use crate::reason::Reason;
use crate::reply::{Reply, Rules};
use crate::step::{Codings, Menu, Step, Steps};
use crate::wish::{Form, Preference, Wish};

/// How a gateway decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, JsonSchema)]
#[schemars(rename_all = "lowercase", inline)]
pub enum Policy {
    /// Compresses nothing.
    Never,
    /// Compresses everything that may be compressed, at any load.
    Always,
    /// Compresses on request, and optional replies while CPU time is available: the rule of the papers.
    #[default]
    Threshold,
    /// As `threshold`, with slower and better steps while plenty of CPU time is available.
    Ladder,
    /// As `threshold`, if the compressed reply arrives earlier on the client's link.
    Link,
}

/// Every policy.
pub const POLICIES: [Policy; 5] = [
    Policy::Never,
    Policy::Always,
    Policy::Threshold,
    Policy::Ladder,
    Policy::Link,
];

/// Not the name of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no policy {0:?}: write one of {list}", list = POLICIES.map(Policy::name).join(", "))]
pub struct UnknownPolicy(pub String);

/// All that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// When it is asked.
    pub now: Instant,
    /// What the client wishes.
    pub preference: Preference,
    /// In which form it wants the reply, where its SOAP header says so.
    pub form: Form,
    /// Which codings it takes.
    pub accept: Accept,
    /// The reply's head.
    pub reply: Reply,
    /// The route's rules.
    pub rules: &'a Rules,
    /// The steps on offer.
    pub menu: &'a Menu,
    /// The steps whose result for this very reply is at hand, so that it costs nothing.
    pub at_hand: Steps,
    /// What can be afforded.
    pub outlook: Outlook,
    /// How long the deciding thread has been busy without a pause, which bounds what waits behind this
    /// reply; zero where nobody measures it.
    pub backlog: Span,
    /// The client's line, where the kernel knows it.
    pub line: Option<Line>,
    /// What each step costs and saves.
    pub prices: &'a Prices,
}

/// What becomes of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// How it is compressed; none leaves it as it is.
    pub step: Option<Step>,
    /// In which form.
    pub form: Form,
    /// Why.
    pub reason: Reason,
    /// What was paid for it, where the client had left it open and a policy watches the demand: the
    /// gateway reports what it spends, and closes it.
    pub bill: Option<Bill>,
}

/// A step that the client takes, with what it would cost and give here.
#[derive(Clone, Copy, Debug)]
struct Choice {
    step: Step,
    cpu: Span,
    out: Size,
}

impl Policy {
    /// Its name in configurations and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Always => "always",
            Self::Threshold => "threshold",
            Self::Ladder => "ladder",
            Self::Link => "link",
        }
    }

    /// Decides about one reply. Optional replies are paid for out of `purse`.
    pub fn decide(self, question: &Question<'_>, purse: &mut Purse) -> Decision {
        if let Some(reason) = question.obstacle() {
            return Decision::plain(reason);
        }
        let decision = match self {
            Self::Never => never::choose(),
            Self::Always => always::choose(question),
            Self::Threshold => threshold::choose(question, purse),
            Self::Ladder => ladder::choose(question, purse),
            Self::Link => link::choose(question, purse),
        };
        match decision.step {
            Some(_) => Decision {
                form: question.form(),
                ..decision
            },
            None => decision,
        }
    }
}

impl Decision {
    const fn plain(reason: Reason) -> Self {
        Self {
            step: None,
            form: Form::Content,
            reason,
            bill: None,
        }
    }

    const fn compressed(step: Step, reason: Reason, bill: Option<Bill>) -> Self {
        Self {
            step: Some(step),
            form: Form::Content,
            reason,
            bill,
        }
    }
}

impl Question<'_> {
    /// What stands before every policy: the reply's own rules, a refusal, no coding in common.
    pub fn obstacle(&self) -> Option<Reason> {
        if let Some(reason) = self.reply.obstacle(self.rules) {
            return Some(reason);
        }
        if self.preference.wish == Wish::Never {
            return Some(Reason::Refused);
        }
        self.codings().is_empty().then_some(Reason::NotAcceptable)
    }

    /// The form that is possible: the Body alone only of an envelope that is no fault, so that whoever
    /// answers for the client need not unpack it to see that the call failed.
    fn form(&self) -> Form {
        let reply = &self.reply;
        match reply.media == Media::Soap && reply.status == 200 {
            true => self.form,
            false => Form::Content,
        }
    }

    /// The codings to choose from.
    fn codings(&self) -> Codings {
        let offered = self.menu.codings();
        self.preference.codings(self.form(), &self.accept, offered)
    }

    /// The steps to choose from, in the menu's order.
    fn choices(&self) -> impl Iterator<Item = Choice> {
        let codings = self.codings();
        let steps = self.menu.steps().iter().copied();
        steps
            .filter(move |step| codings.has(step.coding()))
            .map(|step| self.choice(step))
    }

    fn choice(&self, step: Step) -> Choice {
        let estimate = self.prices.of(step, self.length());
        let out = match self.form() {
            Form::Content => estimate.out,
            Form::Body => Size::from_bytes(Envelope::packed_length(estimate.out.as_bytes())),
        };
        Choice {
            step,
            cpu: estimate.cpu,
            out,
        }
    }

    fn length(&self) -> Size {
        self.reply.length.unwrap_or(UNKNOWN_LENGTH)
    }

    /// Takes `choice` for a client that asks; for one that leaves it open, if it is at hand or the purse pays for
    /// it. What the purse does not pay for may be at hand by another step.
    fn settle(
        &self,
        choice: Choice,
        cheapest: Span,
        affordable: Reason,
        purse: &mut Purse,
    ) -> Decision {
        if self.preference.wish == Wish::Always {
            return Decision::compressed(choice.step, Reason::Asked, None);
        }
        let cached = |choice: Choice| Decision::compressed(choice.step, Reason::Cached, None);
        if self.is_at_hand(&choice) {
            return cached(choice);
        }
        let wish = self.preference.wish;
        purse.fill(self.now, &self.outlook);
        match purse.pay(wish, self.backlog, cheapest, choice.cpu) {
            Ok(bill) => Decision::compressed(choice.step, affordable, Some(bill)),
            Err(reason) => {
                let reason = match self.outlook.is_known {
                    true => reason,
                    false => Reason::DemandUnknown,
                };
                let at_hand = self.choices().find(|choice| self.is_at_hand(choice));
                at_hand.map_or(Decision::plain(reason), cached)
            }
        }
    }

    /// Whether there is nothing to compute: what is kept are contents, not Bodies.
    fn is_at_hand(&self, choice: &Choice) -> bool {
        self.form() == Form::Content && self.at_hand.has(choice.step)
    }
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let found = POLICIES.into_iter().find(|policy| policy.name() == text);
        found.ok_or_else(|| UnknownPolicy(text.to_owned()))
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
