//! Routing by offers: a request goes to the cheapest offer at a broker that satisfies its terms.
//!
//! | module | content |
//! |---|---|
//! | `book` | the offers of the type as the broker tells them, bounded and filtered |
//! | `class` | measurements of one class of offers, shared by all threads |
//! | `endpoint` | an endpoint of offers as an upstream |
//! | `shared` | state of one route: book, classes, endpoints, and the published table |
//! | `following` | the task that follows the broker, judges the measurements and publishes the table |
//! | `report` | report of the measurements to the broker |
//! | `thread` | the table with the connections of one thread |
//! | `terms`, `selection`, `sending` | the stages of one request: read its terms, choose, send |
//! | `offer_request` | the outcome of the choice |
//! | `reply` | fields of replies, and rejections |
//!
//! Threads share a published table that never changes; each new one replaces it as a whole. A request keeps the table
//! with which it began. The choice itself is pure: `posthaste_qos::selection`.

mod book;
mod class;
mod endpoint;
pub(crate) mod following;
mod offer_request;
mod reply;
mod report;
mod selection;
mod sending;
pub(crate) mod shared;
mod terms;
pub(crate) mod thread;

pub(crate) use self::offer_request::Selection;
pub(crate) use self::sending::Destination;
pub(crate) use self::terms::strip as strip_terms;
