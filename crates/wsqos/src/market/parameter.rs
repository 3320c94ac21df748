//! Parameters that nothing could work with, named before anything starts.

use posthaste_units::Ratio;
use thiserror::Error;

/// Why something cannot work with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum WrongParameter {
    /// Bounds that are the wrong way round.
    #[error("low must not be above high: {low} is more than {high}")]
    Bounds {
        /// As configured.
        low: Ratio,
        /// As configured.
        high: Ratio,
    },
    /// It must be more than zero.
    #[error("{0} must be more than zero")]
    Zero(&'static str),
    /// It must lie within bounds.
    #[error("{name} must be a number from {least} to {most}")]
    Range {
        /// Which.
        name: &'static str,
        /// At least.
        least: f64,
        /// At most.
        most: f64,
    },
}

/// That a comparison with zero has come out well.
pub(super) fn positive(name: &'static str, is: bool) -> Result<(), WrongParameter> {
    is.then_some(()).ok_or(WrongParameter::Zero(name))
}

/// That a number lies within bounds.
pub(super) fn within(
    name: &'static str,
    number: f64,
    least: f64,
    most: f64,
) -> Result<(), WrongParameter> {
    let fits = (least..=most).contains(&number);
    let wrong = WrongParameter::Range { name, least, most };
    fits.then_some(()).ok_or(wrong)
}
