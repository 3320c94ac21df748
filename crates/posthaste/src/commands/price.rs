//! Prices as typed on the command line.

use posthaste_qos::{Money, MoneyError};

/// Parses a price. The error, as clap shows it, ends with the remedy.
pub(super) fn price(text: &str) -> Result<Money, String> {
    let wrong = |error: MoneyError| format!("{error}; write it as 0.40EUR");
    text.parse().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_written_as_people_do() {
        assert_eq!(price("0.40EUR").unwrap(), price("0.4 EUR").unwrap());
        for wrong in ["0.40", "EUR", "-1EUR", "0.40eur", "0.40EURO"] {
            assert!(price(wrong).is_err(), "{wrong}");
        }
    }
}
