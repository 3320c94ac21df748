//! Quantities with units: types for parsing, printing and calculation.
//!
//! Every crate above uses these types for time, rate, size and share. A millisecond is then never mistaken for a
//! second, and a wrong unit is rejected where it is entered. There is no clock here: an [`Instant`] is a number that
//! another crate has read from a clock.

mod bit_rate;
mod count;
mod dscp;
mod log_bucket;
mod parse;
mod quantity;
mod response;
mod schema;
mod seed;
mod time;
mod visible;

pub use bit_rate::BitRate;
pub use count::thousands;
pub use dscp::{Dscp, UnknownDscp};
pub use log_bucket::LogBucket;
pub use parse::ParseError;
pub use quantity::{Rate, Ratio, Size};
pub use response::ResponseTime;
pub use seed::{Seed, Stream};
pub use time::{Instant, Span};
pub use visible::{visible, visible_lines};
