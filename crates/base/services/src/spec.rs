//! The description of a service as text: a law, then misbehaviours, such as `md1:5ms,stall=300ms/30s,hang=2%`.
//!
//! Parts are separated by commas or plus signs. Printing and reading again gives the same spec.

mod elements;

use std::fmt;
use std::str::FromStr;

use posthaste_units::{Rate, Span};
use thiserror::Error;

use crate::law::{LAWS, ServiceLaw, nearest};
use crate::misbehaviour::{Autoscale, Cold, ErrorShare, Hysteresis, Stall, TokenBucket, Warm};
use crate::values::Percent;

pub use elements::{MISBEHAVIOURS, Misbehaviour};

/// A service: a law and its misbehaviours. [`LAWS`] and [`MISBEHAVIOURS`] document each element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServiceSpec {
    /// Law of service times, and the servers.
    pub law: ServiceLaw,
    /// Pauses.
    pub stall: Option<Stall>,
    /// Maximum number of requests in the system.
    pub queue: Option<u32>,
    /// Limit of the arrival rate.
    pub limit: Option<TokenBucket>,
    /// Arrival rate of congestion collapse.
    pub collapse: Option<Rate>,
    /// Slowness after overload.
    pub hysteresis: Option<Hysteresis>,
    /// Slowness at the beginning.
    pub cold: Option<Cold>,
    /// Speed after some activity.
    pub warm: Option<Warm>,
    /// Growth of the service time per active minute, as a share of the initial one.
    pub drift: Option<Percent>,
    /// Servers that are added under load.
    pub autoscale: Option<Autoscale>,
    /// Share of requests that are never answered.
    pub hang: Option<Percent>,
    /// Share of requests that fail.
    pub error: Option<ErrorShare>,
}

/// The reason why a text is not a service.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// The first part is not a law.
    #[error("{text:?} is no service law ({reason}): write {}", law_examples())]
    Law {
        /// The first part.
        text: String,
        /// The reason.
        reason: String,
    },
    /// A part has an unknown name.
    #[error("{part:?} is no misbehaviour of a service: {remedy}")]
    Name {
        /// The part.
        part: String,
        /// The nearest valid example, or all names.
        remedy: String,
    },
    /// A part has a wrong value.
    #[error("{part:?} is not valid ({reason}): write {example}")]
    Value {
        /// The part.
        part: String,
        /// The reason.
        reason: String,
        /// A valid example.
        example: &'static str,
    },
    /// Two parts contradict each other.
    #[error("{text:?} contradicts itself: {reason}")]
    Conflict {
        /// The whole text.
        text: String,
        /// The reason with the remedy.
        reason: String,
    },
}

fn law_examples() -> String {
    let examples: Vec<_> = LAWS.iter().map(|form| form.example).collect();
    let (last, others) = examples.split_last().expect("the table has laws");
    format!("{} or {last}", others.join(", "))
}

impl ServiceSpec {
    /// A service of this law that does not misbehave.
    pub const fn new(law: ServiceLaw) -> Self {
        Self {
            law,
            stall: None,
            queue: None,
            limit: None,
            collapse: None,
            hysteresis: None,
            cold: None,
            warm: None,
            drift: None,
            autoscale: None,
            hang: None,
            error: None,
        }
    }

    /// True if the service is its law alone.
    pub fn is_plain(&self) -> bool {
        *self == Self::new(self.law)
    }

    /// The service as it is after this active time, for good: `cold`, `warm` and `drift` are removed, and the law has
    /// the times that they give it. A cold or warm service changes no more after the longest of their times; a drifting
    /// one has no last state.
    pub fn at_age(&self, age: Span) -> Self {
        Self {
            law: self.law.scaled(self.factor_at(age)),
            cold: None,
            warm: None,
            drift: None,
            ..*self
        }
    }

    /// The factor of `cold`, `warm` and `drift` at an active time.
    pub(crate) fn factor_at(&self, active: Span) -> f64 {
        let mut factor = 1.0;
        if let Some(cold) = self.cold
            && active < cold.lasting
        {
            factor *= cold.factor;
        }
        if let Some(warm) = self.warm
            && active >= warm.after
        {
            factor /= warm.factor;
        }
        if let Some(drift) = self.drift {
            factor *= 1.0 + drift.share() * active.as_secs_f64() / 60.0;
        }
        factor
    }

    /// The first contradiction.
    fn conflict(&self) -> Option<String> {
        let law = self.law;
        if let Some(rate) = self.collapse {
            let Some(capacity) = law.capacity() else {
                return Some("inf has no capacity that could collapse: write md1:5ms".to_owned());
            };
            if rate.as_per_second() > capacity {
                return Some(format!(
                    "collapse is above the capacity of {law}: write a rate of at most {capacity}/s"
                ));
            }
        }
        if let Some(scale) = self.autoscale {
            let Some(servers) = law.servers() else {
                return Some("inf needs no more servers: leave autoscale out".to_owned());
            };
            if scale.most <= servers {
                return Some(format!(
                    "{law} has {servers} from the start: write autoscale={}/10s",
                    servers + 1
                ));
            }
        }
        if self.queue.is_some() && matches!(law, ServiceLaw::Mm1k { .. }) {
            return Some("mm1k has its limit as K: write mm1 with queue".to_owned());
        }
        None
    }
}

impl From<ServiceLaw> for ServiceSpec {
    fn from(law: ServiceLaw) -> Self {
        Self::new(law)
    }
}

impl FromStr for ServiceSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut parts = text.split([',', '+']).map(str::trim);
        let first = parts.next().unwrap_or_default();
        let law = ServiceLaw::read(first).map_err(|reason| SpecError::Law {
            text: first.to_owned(),
            reason,
        })?;
        let mut spec = Self::new(law);
        for part in parts {
            spec.read_part(part)?;
        }
        match spec.conflict() {
            None => Ok(spec),
            Some(reason) => Err(SpecError::Conflict {
                text: text.to_owned(),
                reason,
            }),
        }
    }
}

impl ServiceSpec {
    fn read_part(&mut self, part: &str) -> Result<(), SpecError> {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let find = |name: &str| MISBEHAVIOURS.iter().find(|known| known.name == name);
        let Some(known) = find(name) else {
            let near = nearest(name, MISBEHAVIOURS.iter().map(|known| known.name)).and_then(find);
            let remedy = near.map_or_else(
                || {
                    let names: Vec<_> = MISBEHAVIOURS.iter().map(|known| known.name).collect();
                    format!("there are {}", names.join(", "))
                },
                |near| format!("did you mean {}?", near.example),
            );
            return Err(SpecError::Name {
                part: part.to_owned(),
                remedy,
            });
        };
        (known.read)(self, value).map_err(|reason| SpecError::Value {
            part: part.to_owned(),
            reason,
            example: known.example,
        })
    }
}

impl fmt::Display for ServiceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.law.fmt(f)?;
        for known in MISBEHAVIOURS {
            if let Some(value) = (known.write)(self) {
                write!(f, ",{}={value}", known.name)?;
            }
        }
        Ok(())
    }
}
