//! The current offer, as a refusal names it: `Current-Offer: standard@0.50;price="0.50 EUR"`.

use posthaste_qos::Money;

use super::known_offers::is_field_value;

/// Reads name and price. Ignores other parameters.
pub(super) fn read(value: &[u8]) -> Option<(String, Money)> {
    let mut parts = std::str::from_utf8(value).ok()?.split(';').map(str::trim);
    let name = parts.next().filter(|name| is_field_value(name))?;
    let price = parts.find_map(|part| part.strip_prefix("price="))?;
    let price = price.strip_prefix('"')?.strip_suffix('"')?;
    Some((name.to_owned(), price.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_current_offer_has_a_name_and_a_price() {
        let read =
            |value: &str| read(value.as_bytes()).map(|(name, price)| format!("{name} {price}"));
        let standard = Some("standard@0.50 0.50 EUR".to_owned());
        assert_eq!(read("standard@0.50;price=\"0.50 EUR\""), standard);
        assert_eq!(
            read(" standard@0.50 ; new=1; price=\"0.50 EUR\" "),
            standard
        );
        for wrong in [
            "",
            "a",
            ";price=\"1 EUR\"",
            "a;price=1 EUR",
            "a;price=\"1\"",
            "a;price=\"-1 EUR\"",
            "a\r\nX: y;price=\"1 EUR\"",
            "\u{e9};price=\"1 EUR\"",
        ] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }
}
