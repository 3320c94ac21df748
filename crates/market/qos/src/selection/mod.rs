//! Selection of the cheapest adequate offer for one request, by promised and by measured quality.
//!
//! | module | content |
//! |---|---|
//! | `terms` | the demands of one request, and the fields that state them |
//! | `quality` | response times and failures of the last minutes, of one class of offers |
//! | `table`, `columns` | offers of one type in one currency, by price |
//! | `choice` | the choice among them, and the reasons against cheaper ones |
//!
//! # Rules
//!
//! 1. An offer is adequate if its promise satisfies the terms and its measurement does not contradict them.
//! 2. A measurement contradicts only with at least [`MIN_REQUESTS`] requests. Below that, the promise counts.
//! 3. Failures and abandoned requests count as slower than any bound.
//! 4. Without a stated reliability, an offer that fails more than half of its requests is used only if there is no
//!    other.
//! 5. The cheapest adequate offer is taken; of equal prices, the one whose endpoint has the fewest requests in flight.
//!
//! Promises are judged as by [`is_adequate`](crate::is_adequate), and a test compares both. One choice is a scan of a
//! flat array up to the first adequate offer; it allocates nothing.

mod choice;
mod columns;
mod quality;
mod table;
mod terms;

pub use choice::{Choice, Ground, NoOffer, PassReason, TermBounds};
pub use quality::{MIN_REQUESTS, MeasuredEnd, MeasuredQuality, QualityWindow, StartTick};
pub use table::{OfferTable, Promised, RoutedOffer};
pub use terms::{LatencyBound, Percentile, RequestTerms, TermError};
