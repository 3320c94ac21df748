//! The overload paper: a Web service compared with a plain page on a server past its limit.
//!
//! Three studies provide the records of seven figures: [`wire`] counts bytes, [`closed`] and [`open`] load the bookshop
//! like singleclient and sclient. They share the testbed in [`testbed`] and the axes in [`curves`]. The paper's own numbers
//! are defined here only.

mod closed;
mod curves;
mod early_rejection;
mod facts;
pub(crate) mod fig_05;
pub(crate) mod fig_06;
pub(crate) mod fig_07;
pub(crate) mod fig_08;
pub(crate) mod fig_09;
pub(crate) mod fig_10;
pub(crate) mod fig_11;
pub(crate) mod forms;
mod open;
mod testbed;
mod wire;

/// Short citation of the paper.
const PAPER: &str = "Tian, Voigt, Naumowicz, Ritter, Schiller: Performance Impact of Web Services on Internet Servers, PDCS 2003";

/// Numbers that the paper states.
mod paper {
    /// Content of request and reply together, in bytes.
    pub(super) const CONTENT: f64 = 589.0;
    /// All bytes of the Web service ("more than").
    pub(super) const SERVICE_BYTES: f64 = 3900.0;
    /// All bytes of the page ("about").
    pub(super) const PAGE_BYTES: f64 = 1200.0;
    /// Rate at which the page's response time rises and its throughput peaks, requests per second.
    pub(super) const PAGE_CAPACITY: f64 = 180.0;
    /// Rate at which the Web service's response time rises, requests per second.
    pub(super) const SERVICE_CAPACITY: f64 = 145.0;
    /// Highest rate that throughput follows, requests per second.
    pub(super) const FOLLOWS_TO: f64 = 140.0;
    /// Lowest rate with rejections in the paper's figure, requests per second.
    pub(super) const REJECTIONS_FROM: f64 = 120.0;
    /// Highest rate at which the page has no rejections, requests per second.
    pub(super) const PAGE_REJECTS_AFTER: f64 = 190.0;
    /// Highest rate at which the Web service has no rejections, requests per second.
    pub(super) const SERVICE_REJECTS_AFTER: f64 = 150.0;
    /// Throughput lost to compression, requests per second.
    pub(super) const COMPRESSION_LOSS: f64 = 50.0;
}
