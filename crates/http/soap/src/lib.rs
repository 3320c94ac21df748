//! SOAP 1.1 and 1.2 and WSDL 1.1 as pure functions over bytes, with bounded reading and escaped writing.
//!
//! Nothing here opens a socket. A server reads a message in this order: [`http::media_type`] and [`http::soap_action`]
//! check the headers, [`xml::decode`] the bytes, [`Request::read`] the envelope. Every rejection becomes the [`Fault`]
//! that WS-I Basic Profile requires. An intermediary uses [`head::HeadScan`]
//! on the bytes that it forwards. A client uses [`wsdl::read`] to make requests and [`reply::inspect`] to tell a
//! fault from a reply. WS-Security, attachments, RPC style and SOAP encoding are absent.

mod envelope;
mod fault;
pub mod head;
pub mod http;
mod limits;
pub mod reply;
mod version;
pub mod write;
pub mod wsdl;
pub mod xml;

pub use envelope::{Field, HeaderBlock, Refusal, Request};
pub use fault::{Code, Detail, Fault};
pub use limits::{Limit, Limits};
pub use version::Version;

/// Namespace of posthaste's extensions of SOAP and WSDL.
pub const EXTENSION_NAMESPACE: &str = "urn:posthaste:wsqos";
