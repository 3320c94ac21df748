//! Quantities as people write them and as the rooms compute with them.
//!
//! Every room above takes time, rate, size and share as one of these types, so that a
//! millisecond is never mistaken for a second and a wrong unit is refused where it is typed.
//! There is no clock here: an [`Instant`] is a number that some shell room has read.

mod bit_rate;
mod dscp;
mod parse;
mod quantity;
mod response;
mod schema;
mod seed;
mod time;

pub use bit_rate::BitRate;
pub use dscp::{Dscp, UnknownDscp};
pub use parse::ParseError;
pub use quantity::{Rate, Ratio, Size};
pub use response::ResponseTime;
pub use seed::{Seed, Stream};
pub use time::{Instant, Span};
