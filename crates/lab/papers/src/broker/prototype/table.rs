//! Table, index and query of the database prototypes, the same for SQLite and PostgreSQL.
//!
//! A missing promise is stored as the worst possible value. A missing requirement is a bound that every value meets. So
//! each bound is a plain comparison that the index can evaluate.

use jiff::Timestamp;
use posthaste_qos::{Definition, Offer, World, is_adequate};
use posthaste_units::{Rate, Ratio};

use posthaste_study::Failure;

/// Columns of the table.
pub(super) const COLUMNS: &str = "(number INTEGER PRIMARY KEY, kind TEXT, price BIGINT, expires BIGINT,
    processing_time BIGINT, requests DOUBLE PRECISION, reliability DOUBLE PRECISION, availability DOUBLE PRECISION,
    provider TEXT, body TEXT)";

/// Index in the order of preference, with all compared columns.
pub(super) const INDEX: &str = "CREATE INDEX preferred ON offers
    (kind, price, expires DESC, number, processing_time, availability, reliability, requests)";

/// Query for the cheapest adequate offer of a type, after skipping the first `$8`.
pub(super) const BEST: &str = "SELECT provider, body FROM offers WHERE number =
    (SELECT number FROM offers WHERE kind = $1 AND price <= $2 AND expires > $3 AND processing_time <= $4
         AND requests >= $5 AND reliability >= $6 AND availability >= $7
     ORDER BY price, expires DESC, number LIMIT 1 OFFSET $8)";

/// Compared values of an offer or a requirement.
pub(super) struct Bounds {
    /// Price in millionths of the base currency.
    pub(super) price: i64,
    /// Time in microseconds since 1970.
    pub(super) time: i64,
    /// Processing time in nanoseconds.
    pub(super) processing_time: i64,
    /// Requests per second.
    pub(super) requests: f64,
    pub(super) reliability: f64,
    pub(super) availability: f64,
}

impl Bounds {
    /// Values of an offer that expires at `time`, or of a requirement stated at `time`.
    pub(super) fn from_definition(qos: &Definition, time: Timestamp, world: &World<'_>) -> Self {
        let server = &qos.default.server;
        let price = qos.price.and_then(|price| world.rates.in_base(price));
        Self {
            price: price.map_or(i64::MAX, saturated),
            time: time.as_microsecond(),
            processing_time: server
                .processing_time
                .map_or(i64::MAX, |time| saturated(time.as_nanos())),
            requests: server
                .requests_per_second
                .map_or(f64::NEG_INFINITY, Rate::as_per_second),
            reliability: server.reliability.map_or(f64::NEG_INFINITY, Ratio::get),
            availability: server.availability.map_or(f64::NEG_INFINITY, Ratio::get),
        }
    }
}

/// First offer that is also adequate in properties without a column. `ask(n)` skips n rows, returns provider and JSON.
pub(super) fn first_adequate(
    wanted: &Definition,
    world: &World<'_>,
    mut ask: impl FnMut(i64) -> Result<Option<(String, String)>, Failure>,
) -> Result<Option<(String, Offer)>, Failure> {
    for skipped in 0.. {
        let Some((provider, body)) = ask(skipped)? else {
            break;
        };
        let offer: Offer = serde_json::from_str(&body)?;
        if is_adequate(&offer, wanted, world) {
            return Ok(Some((provider, offer)));
        }
    }
    Ok(None)
}

/// Converts to a database integer, saturating.
fn saturated(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
