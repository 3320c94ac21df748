//! Random loss. A model is a file in this folder and a variant of [`Loss`].

mod gilbert_elliott;
mod independent;

use std::fmt;
use std::str::FromStr;

use posthaste_units::{Ratio, Stream};

pub use gilbert_elliott::GilbertElliott;
pub use independent::Independent;

use crate::SpellingError;

/// A model of random loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Independent losses.
    Independent(Independent),
    /// Losses in bursts, by a channel with a good and a bad state.
    GilbertElliott(GilbertElliott),
}

/// State of a model on one link.
trait Process {
    /// Decides the loss of the next packet.
    fn loses(&mut self, draws: &mut Stream) -> bool;
}

/// State of any model, stored inline so that a restarted link allocates nothing.
pub(crate) enum Losing {
    Independent(Independent),
    GilbertElliott(gilbert_elliott::ChannelState),
}

impl Losing {
    /// Decides the loss of the next packet.
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

    /// Long-term share of lost packets.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Independent(model) => model.loss.get(),
            Self::GilbertElliott(model) => model.mean(),
        }
    }
}

impl FromStr for Loss {
    type Err = SpellingError;

    /// Parses `2%`, `bursts:2%:4` (2 % in bursts of 4 on average), or `gilbert-elliott:P:R:BAD:GOOD`, the four
    /// parameters of [`GilbertElliott`]. The last two are optional.
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
        let share = |text: &str| {
            let share = text.parse::<Ratio>();
            share.map_err(|reason| wrong().of_share(&reason))
        };
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
