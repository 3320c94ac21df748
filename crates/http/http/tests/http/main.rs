//! The crate from outside.

#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "streams")]
mod streams;
