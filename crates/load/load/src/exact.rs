//! Exact forms of quantities in messages.
//!
//! Quantities print four digits, and readers of JSON differ in the last bit of a float. All agents of a run need the
//! same bits: the sum of their arrivals must be one schedule. Times are therefore whole nanoseconds, rates and
//! weights are strings of their shortest decimal form, and bytes are Base64.
//!
//! Each module is for `#[serde(with = "...")]`. What is read has one form: it is written the same again.

use posthaste_units::{Instant, Span};
use serde::{Deserialize, Deserializer, Serializer, de};

/// A [`Span`] as nanoseconds.
pub(crate) mod nanos {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(span: &Span, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(span.as_nanos())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Span, D::Error> {
        u64::deserialize(from).map(Span::from_nanos)
    }
}

/// An [`Instant`] as nanoseconds since the run's origin.
pub(crate) mod instant {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(instant: &Instant, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(instant.as_nanos())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Instant, D::Error> {
        u64::deserialize(from).map(Instant::from_nanos)
    }
}

/// A [`Span`] as nanoseconds, or null.
pub(crate) mod optional_nanos {
    use super::*;
    use serde::Serialize as _;

    pub(crate) fn serialize<S: Serializer>(span: &Option<Span>, to: S) -> Result<S::Ok, S::Error> {
        span.map(Span::as_nanos).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Span>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Span::from_nanos))
    }
}

/// Ascending times as nanoseconds, each as the difference to the one before it.
pub(crate) mod ascending_nanos {
    use std::sync::Arc;

    use super::*;

    pub(crate) fn serialize<S: Serializer>(times: &Arc<[Span]>, to: S) -> Result<S::Ok, S::Error> {
        let before = [Span::ZERO].into_iter().chain(times.iter().copied());
        let pairs = before.zip(times.iter());
        to.collect_seq(pairs.map(|(before, time)| time.saturating_sub(before).as_nanos()))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[Span]>, D::Error> {
        let mut time: u64 = 0;
        let next = |difference: u64| {
            time = time.checked_add(difference)?;
            Some(Span::from_nanos(time))
        };
        let times: Option<Arc<[Span]>> = Vec::deserialize(from)?.into_iter().map(next).collect();
        times.ok_or_else(|| de::Error::custom("the times of a trace exceed 584 years"))
    }
}

/// A finite number that is not negative, as its shortest decimal string.
pub(crate) mod number {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(number: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(number)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        from.deserialize_str(Decimal)
    }

    struct Decimal;

    impl de::Visitor<'_> for Decimal {
        type Value = f64;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(
                "a finite number that is not negative, in its shortest decimal form, as a string",
            )
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<f64, E> {
            let number = text.parse::<f64>().ok().filter(|number| {
                number.is_finite() && number.is_sign_positive() && number.to_string() == text
            });
            number.ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
        }
    }
}

/// A [`Rate`](posthaste_units::Rate) as [`number`] of events per second.
pub(crate) mod per_second {
    use posthaste_units::Rate;

    use super::*;

    pub(crate) fn serialize<S: Serializer>(rate: &Rate, to: S) -> Result<S::Ok, S::Error> {
        number::serialize(&rate.as_per_second(), to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Rate, D::Error> {
        let rate = Rate::per_second(number::deserialize(from)?);
        rate.ok_or_else(|| de::Error::custom("a rate is finite"))
    }
}

/// Bytes in Base64 (RFC 4648, section 4, with padding).
pub(crate) mod base64 {
    use std::sync::Arc;

    use ::base64::Engine as _;
    use ::base64::engine::general_purpose::STANDARD;

    use super::*;

    pub(crate) fn serialize<S: Serializer>(bytes: &Arc<[u8]>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[u8]>, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = STANDARD.decode(text).map_err(de::Error::custom)?;
        Ok(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use posthaste_units::Rate;
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Exact {
        #[serde(with = "nanos")]
        span: Span,
        #[serde(with = "number")]
        weight: f64,
        #[serde(with = "per_second")]
        rate: Rate,
        #[serde(with = "base64")]
        bytes: std::sync::Arc<[u8]>,
        #[serde(with = "ascending_nanos")]
        times: std::sync::Arc<[Span]>,
    }

    #[test]
    fn another_spelling_is_refused() {
        let read = |weight: &str| {
            let form =
                format!(r#"{{"span":1,"weight":{weight},"rate":"0.1","bytes":"AA==","times":[]}}"#);
            serde_json::from_str::<Exact>(&form)
        };
        assert!(read(r#""0.1""#).is_ok());
        for other in [
            "0.1",
            r#""0.10""#,
            r#"".1""#,
            r#""1e-1""#,
            r#""+0.1""#,
            r#""-0""#,
            r#""-1""#,
            r#""NaN""#,
            r#""inf""#,
            r#""0.1 ""#,
            r#""""#,
        ] {
            assert!(read(other).is_err(), "{other} was accepted");
        }
        let late =
            r#"{"span":1,"weight":"1","rate":"1","bytes":"","times":[1,18446744073709551615]}"#;
        let error = serde_json::from_str::<Exact>(late).unwrap_err();
        assert!(error.to_string().contains("584 years"), "{error}");
    }

    proptest! {
        #[test]
        fn every_bit_arrives(
            span: u64,
            weight in 0f64..,
            rate in 0f64..,
            bytes: Vec<u8>,
            mut times: Vec<u64>,
        ) {
            times.sort_unstable();
            let value = Exact {
                span: Span::from_nanos(span),
                weight,
                rate: Rate::per_second(rate).unwrap(),
                bytes: bytes.into(),
                times: times.into_iter().map(Span::from_nanos).collect(),
            };
            let form = serde_json::to_string(&value).unwrap();
            let back: Exact = serde_json::from_str(&form).unwrap();
            prop_assert_eq!(back.weight.to_bits(), value.weight.to_bits());
            prop_assert_eq!(serde_json::to_string(&back).unwrap(), form);
            prop_assert_eq!(back, value);
        }
    }
}
