//! One request and its reply: bodies, marks, and switches of protocol.

pub(crate) mod body;
pub(crate) mod in_service;
pub(crate) mod incoming;
pub(crate) mod mark;
pub(crate) mod reply_body;
pub(crate) mod tunnel;
