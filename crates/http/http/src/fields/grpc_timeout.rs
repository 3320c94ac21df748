//! Value of the field `grpc-timeout` (gRPC over HTTP/2).

use std::time::Duration;

/// Maximum number of digits.
const MAX_DIGITS: usize = 8;

/// Parses the value of a `grpc-timeout` field: one to eight digits and a unit out of `H`, `M`, `S`, `m`, `u`, `n`.
/// Returns `None` for anything else.
pub fn grpc_timeout(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if digits.is_empty() || digits.len() > MAX_DIGITS {
        return None;
    }
    let mut count = 0_u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        count = count * 10 + u64::from(digit - b'0');
    }
    Some(match unit {
        b'H' => Duration::from_secs(count * 3600),
        b'M' => Duration::from_secs(count * 60),
        b'S' => Duration::from_secs(count),
        b'm' => Duration::from_millis(count),
        b'u' => Duration::from_micros(count),
        b'n' => Duration::from_nanos(count),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_has_its_length() {
        for (value, wanted) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("3S", Duration::from_secs(3)),
            ("4m", Duration::from_millis(4)),
            ("5u", Duration::from_micros(5)),
            ("6n", Duration::from_nanos(6)),
            ("0m", Duration::ZERO),
            ("00000007S", Duration::from_secs(7)),
            ("99999999H", Duration::from_secs(359_999_996_400)),
        ] {
            assert_eq!(grpc_timeout(value.as_bytes()), Some(wanted), "{value}");
        }
    }

    #[test]
    fn anything_else_is_no_timeout() {
        for value in [
            "",
            "S",
            "1",
            "1s",
            "1h",
            "+1S",
            "-1S",
            "1.5S",
            " 1S",
            "1S ",
            "1 S",
            "123456789S",
            "1SS",
            "1S, 2S",
            "\u{661}S",
            "0x1S",
        ] {
            assert_eq!(grpc_timeout(value.as_bytes()), None, "{value}");
        }
    }
}
