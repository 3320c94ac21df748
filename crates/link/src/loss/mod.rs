//! Loss by chance. A model is a file beside this one and a line in [`Loss`].

mod gilbert_elliott;
mod independent;

use std::fmt;
use std::str::FromStr;

use posthaste_units::{Ratio, Stream};

pub use gilbert_elliott::GilbertElliott;
pub use independent::Independent;

use crate::SpellingError;

/// Which packets are lost by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Each by itself.
    Independent(Independent),
    /// In bursts, by a line that is good or bad.
    GilbertElliott(GilbertElliott),
}

/// A model at work on one link.
trait Process {
    /// Whether the next packet is lost.
    fn loses(&mut self, draws: &mut Stream) -> bool;
}

/// Whichever model is at work: kept in place, so that a link that begins anew allocates nothing.
pub(crate) enum Losing {
    Independent(Independent),
    GilbertElliott(gilbert_elliott::Line),
}

impl Losing {
    /// Whether the next packet is lost.
    pub(crate) fn loses(&mut self, draws: &mut Stream) -> bool {
        match self {
            Self::Independent(model) => model.loses(draws),
            Self::GilbertElliott(line) => line.loses(draws),
        }
    }
}

impl Loss {
    pub(crate) fn start(&self, draws: &mut Stream) -> Losing {
        match *self {
            Self::Independent(model) => Losing::Independent(model),
            Self::GilbertElliott(model) => Losing::GilbertElliott(model.start(draws)),
        }
    }

    /// The share of packets lost in the long run.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Independent(model) => model.loss.get(),
            Self::GilbertElliott(model) => model.mean(),
        }
    }
}

impl FromStr for Loss {
    type Err = SpellingError;

    /// `2%`; `bursts:2%:4` (2 % in bursts of 4 on average); `gilbert-elliott:P:R:BAD:GOOD`, the
    /// four parameters of [`GilbertElliott`], of which the last two may be left out.
    fn from_str(text: &str) -> Result<Self, SpellingError> {
        let wrong = || {
            SpellingError::new(
                text,
                "a loss",
                "2%, bursts:2%:4 (mean length 4) or gilbert-elliott:1%:30% (good to bad, bad to good[, loss in bad, loss in good])",
            )
        };
        let mut parts = text.split(':');
        let kind = parts.next().unwrap_or_default();
        let rest: Vec<&str> = parts.collect();
        let share = |text: &str| text.parse::<Ratio>().map_err(|_| wrong());
        match (kind, rest.as_slice()) {
            (loss, []) => Ok(Self::Independent(Independent { loss: share(loss)? })),
            ("bursts", [loss, length]) => {
                let length = length.parse().map_err(|_| wrong())?;
                let model = GilbertElliott::bursts(share(loss)?, length);
                model.map(Self::GilbertElliott).ok_or_else(wrong)
            }
            ("gilbert-elliott", [to_bad, to_good, states @ ..]) if states.len() <= 2 => {
                let mut model = GilbertElliott::simple(share(to_bad)?, share(to_good)?);
                if let Some(bad) = states.first() {
                    model.loss_in_bad = share(bad)?;
                }
                if let Some(good) = states.get(1) {
                    model.loss_in_good = share(good)?;
                }
                Ok(Self::GilbertElliott(model))
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Independent(model) => model.loss.fmt(f),
            Self::GilbertElliott(model) => write!(
                f,
                "gilbert-elliott:{}:{}:{}:{}",
                model.to_bad, model.to_good, model.loss_in_bad, model.loss_in_good
            ),
        }
    }
}
