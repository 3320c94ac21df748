//! Validation of parameters before the start.

use posthaste_units::Ratio;
use thiserror::Error;

/// Reason why parameters are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum WrongParameter {
    /// Bounds in the wrong order.
    #[error("low must not be above high: {low} is more than {high}")]
    Bounds {
        /// The configured value.
        low: Ratio,
        /// The configured value.
        high: Ratio,
    },
    /// The value must be positive.
    #[error("{0} must be more than zero")]
    Zero(&'static str),
    /// The value must lie within bounds.
    #[error("{name} must be a number from {least} to {most}")]
    Range {
        /// Name of the parameter.
        name: &'static str,
        /// Minimum.
        least: f64,
        /// Maximum.
        most: f64,
    },
}

/// Fails with [`WrongParameter::Zero`] unless `is` holds.
pub(super) fn positive(name: &'static str, is: bool) -> Result<(), WrongParameter> {
    is.then_some(()).ok_or(WrongParameter::Zero(name))
}

/// Fails with [`WrongParameter::Range`] unless `number` lies within the bounds.
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
