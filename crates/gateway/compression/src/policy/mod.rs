//! Compression policies by name, each a function from a question to a choice.
//!
//! [`Policy::decide`] checks in this order: the reply may be transformed, the client did not refuse, and both share a
//! coding. Only then it calls the policy. Policies are independent and stateless. The state is in [`CpuTokenBucket`] (CPU token
//! bucket), [`CostModel`] and [`LoadEstimate`] (load estimate), which all policies share.

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
use crate::client_path::ClientPath;
use crate::cost_model::{CostModel, UNKNOWN_LENGTH};
use crate::cpu_token_bucket::{CpuReservation, CpuTokenBucket};
use crate::envelope::packed_length;
use crate::load_controller::LoadEstimate;
use crate::media::Media;
use crate::preference::Preference;
use crate::reason::Reason;
use crate::reply::{Reply, Rules};
use crate::step::{Codings, Menu, Step, Steps};
use crate::wish::{Form, Wish};

/// Rule that decides about compression.
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

/// The inputs of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Time of the decision.
    pub now: Instant,
    /// The client's preference.
    pub preference: Preference,
    /// The form that the client's SOAP header requests.
    pub form: Form,
    /// The codings that the client accepts.
    pub accept: Accept,
    /// The reply's head.
    pub reply: Reply,
    /// The route's rules.
    pub rules: &'a Rules,
    /// The available steps.
    pub menu: &'a Menu,
    /// The steps with a cached result for this reply, at no cost.
    pub at_hand: Steps,
    /// The load estimate.
    pub estimate: LoadEstimate,
    /// Time that the deciding thread has been busy without a pause, an upper bound on the work queued behind this
    /// reply. Zero if not measured.
    pub backlog: Span,
    /// The client's network path, if the kernel knows it.
    pub line: Option<ClientPath>,
    /// The cost model.
    pub costs: &'a CostModel,
}

/// Decision about a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Compression step; `None` leaves the reply unchanged.
    pub step: Option<Step>,
    /// Form of compression.
    pub form: Form,
    /// Reason of the decision.
    pub reason: Reason,
    /// CPU reservation, if the reply was optional and the policy depends on the load. The gateway reports the CPU time
    /// that it uses and closes the reservation.
    pub reservation: Option<CpuReservation>,
}

/// A step that the client accepts, with its cost and result size for this reply.
#[derive(Clone, Copy, Debug)]
struct AffordableStep {
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

    /// Decides about one reply. Optional replies are charged to `bucket`.
    pub fn decide(self, question: &Question<'_>, bucket: &mut CpuTokenBucket) -> Decision {
        if let Some(reason) = question.obstacle() {
            return Decision::plain(reason);
        }
        let decision = match self {
            Self::Never => never::choose(),
            Self::Always => always::choose(question),
            Self::Threshold => threshold::choose(question, bucket),
            Self::Ladder => ladder::choose(question, bucket),
            Self::Link => link::choose(question, bucket),
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
            reservation: None,
        }
    }

    const fn compressed(step: Step, reason: Reason, reservation: Option<CpuReservation>) -> Self {
        Self {
            step: Some(step),
            form: Form::Content,
            reason,
            reservation,
        }
    }
}

impl Question<'_> {
    /// Obstacle before every policy: the reply's own rules, a refusal, or no common coding.
    pub fn obstacle(&self) -> Option<Reason> {
        if let Some(reason) = self.reply.obstacle(self.rules) {
            return Some(reason);
        }
        if self.preference.wish == Wish::Never {
            return Some(Reason::Refused);
        }
        self.codings().is_empty().then_some(Reason::NotAcceptable)
    }

    /// The possible form. The Body alone is compressed only in a SOAP reply with status 200. A fault stays readable,
    /// so that the client's SOAP library need not unpack it to detect the failed call.
    fn form(&self) -> Form {
        let reply = &self.reply;
        if reply.media == Media::Soap && reply.status == 200 {
            self.form
        } else {
            Form::Content
        }
    }

    /// The codings to choose from.
    fn codings(&self) -> Codings {
        let offered = self.menu.codings();
        self.preference.codings(self.form(), &self.accept, offered)
    }

    /// The steps to choose from, in the menu's order.
    fn choices(&self) -> impl Iterator<Item = AffordableStep> {
        let codings = self.codings();
        let steps = self.menu.steps().iter().copied();
        steps
            .filter(move |step| codings.has(step.coding()))
            .map(|step| self.choice(step))
    }

    fn choice(&self, step: Step) -> AffordableStep {
        let estimate = self.costs.estimate(step, self.length());
        let out = match self.form() {
            Form::Content => estimate.out,
            Form::Body => Size::from_bytes(packed_length(estimate.out.as_bytes())),
        };
        AffordableStep {
            step,
            cpu: estimate.cpu,
            out,
        }
    }

    fn length(&self) -> Size {
        self.reply.length.unwrap_or(UNKNOWN_LENGTH)
    }

    /// Uses `choice` if the client asks for compression. If it leaves it open, uses `choice` only if it is cached or
    /// the bucket has CPU time for it. Otherwise uses a cached result of another step, if any.
    fn settle(
        &self,
        choice: AffordableStep,
        cheapest: Span,
        affordable: Reason,
        bucket: &mut CpuTokenBucket,
    ) -> Decision {
        if self.preference.wish == Wish::Always {
            return Decision::compressed(choice.step, Reason::Asked, None);
        }
        let cached =
            |choice: AffordableStep| Decision::compressed(choice.step, Reason::Cached, None);
        if self.is_at_hand(&choice) {
            return cached(choice);
        }
        let wish = self.preference.wish;
        bucket.fill(self.now, &self.estimate);
        match bucket.try_reserve(wish, self.backlog, cheapest, choice.cpu) {
            Ok(reservation) => Decision::compressed(choice.step, affordable, Some(reservation)),
            Err(reason) => {
                let reason = if self.estimate.is_known {
                    reason
                } else {
                    Reason::DemandUnknown
                };
                let at_hand = self.choices().find(|choice| self.is_at_hand(choice));
                at_hand.map_or(Decision::plain(reason), cached)
            }
        }
    }

    /// Returns true for a cached result. Only contents are cached, not Bodies.
    fn is_at_hand(&self, choice: &AffordableStep) -> bool {
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
