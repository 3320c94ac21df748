//! WSDL 1.1, document/literal wrapped: written for our services, read from any service.
//!
//! [`Service`] describes one of our services and becomes a document that WS-I Basic Profile accepts. [`Description`] is
//! the part of any service's document that a client needs: addresses, operations, and enough of the schema to make a
//! request. Other styles (rpc, encoded) are rejected by name.

mod description;
mod elements;
mod read;
mod schema;
mod service;

pub use description::{
    Described, Description, EnvelopeError, Extension, Field, FindError, Input, Operation, Port,
    Wrapper,
};
pub use read::{ReadError, read};
pub use service::{Element, Kind, Offered, Record, Service};

pub(crate) const WSDL: &str = "http://schemas.xmlsoap.org/wsdl/";
pub(crate) const SOAP11: &str = "http://schemas.xmlsoap.org/wsdl/soap/";
pub(crate) const SOAP12: &str = "http://schemas.xmlsoap.org/wsdl/soap12/";
pub(crate) const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
/// The only transport that R2702 permits.
pub(crate) const TRANSPORT: &str = "http://schemas.xmlsoap.org/soap/http";
