//! ISBN-10: nine digits and a check digit that may be X.

use thiserror::Error;

/// Reasons why a text is not an ISBN-10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum IsbnError {
    /// Not ten characters without hyphens, or characters other than digits and a final X.
    #[error("an ISBN has ten digits, the last of which may be X; hyphens are allowed")]
    Shape,
    /// The check digit is wrong.
    #[error("the check digit is wrong: {0} was expected")]
    Checksum(char),
}

/// Computes the check digit of nine digits (ISO 2108:1992): weights 10 to 2, modulo 11.
pub(crate) fn check_digit(nine: &[u8]) -> char {
    let weights = (2..=10).rev();
    let sum: u32 = nine
        .iter()
        .zip(weights)
        .map(|(d, weight)| u32::from(d - b'0') * weight)
        .sum();
    match (11 - sum % 11) % 11 {
        10 => 'X',
        digit => char::from_digit(digit, 10).expect("one digit"),
    }
}

/// Normalises `text` to the listed form: ten characters, no hyphens, X in upper case.
pub fn normalise(text: &str) -> Result<String, IsbnError> {
    if text.len() > 20 {
        return Err(IsbnError::Shape);
    }
    let isbn: String = text
        .trim()
        .chars()
        .filter(|c| *c != '-')
        .map(|c| c.to_ascii_uppercase())
        .collect();
    let bytes = isbn.as_bytes();
    let digits = bytes.len() == 10 && bytes[..9].iter().all(u8::is_ascii_digit);
    if !digits || !(bytes[9].is_ascii_digit() || bytes[9] == b'X') {
        return Err(IsbnError::Shape);
    }
    match check_digit(&bytes[..9]) {
        right if right as u8 == bytes[9] => Ok(isbn),
        right => Err(IsbnError::Checksum(right)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_ones_pass() {
        for (written, kept) in [
            ("0-306-40615-2", "0306406152"),
            ("080442957x", "080442957X"),
        ] {
            assert_eq!(normalise(written).as_deref(), Ok(kept));
        }
    }

    #[test]
    fn every_single_wrong_digit_is_found() {
        for at in 0..10 {
            for digit in b'0'..=b'9' {
                let mut isbn = *b"0306406152";
                if std::mem::replace(&mut isbn[at], digit) != digit {
                    let text = String::from_utf8_lossy(&isbn).into_owned();
                    assert!(
                        matches!(normalise(&text), Err(IsbnError::Checksum(_))),
                        "{text}"
                    );
                }
            }
        }
    }

    #[test]
    fn other_shapes_are_refused() {
        for wrong in [
            "",
            "12345",
            "X306406152",
            "03064061522",
            "０３０６４０６１５２",
            "0306 40615",
        ] {
            assert_eq!(normalise(wrong), Err(IsbnError::Shape), "{wrong}");
        }
    }
}
