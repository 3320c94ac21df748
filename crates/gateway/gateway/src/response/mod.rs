//! The stages of a reply: adjust its head, compress it, mark it, send its body.

pub(crate) mod body;
mod buffered_body;
pub(crate) mod cache;
pub(crate) mod call_refusal;
mod codec;
pub(crate) mod compress;
mod compressed_body;
pub(crate) mod grpc;
pub(crate) mod head;
mod logged_body;
pub(crate) mod marking;
pub(crate) mod redirect;
pub(crate) mod rejection;
pub(crate) mod route_compression;
mod vary;
pub(crate) mod worker;
