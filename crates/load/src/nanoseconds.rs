//! Instants of a run in messages: nanoseconds since its origin.

use posthaste_units::Instant;
use serde::{Deserialize as _, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(instant: &Instant, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u64(instant.as_nanos())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Instant, D::Error> {
    Ok(Instant::from_nanos(u64::deserialize(from)?))
}
