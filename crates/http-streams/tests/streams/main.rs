//! The client's end of HTTP/2 against scripted, hostile and real servers in memory.

mod bodies;
mod hostile;
mod hpack;
mod oracle;
mod repeated;
mod replies;
mod scripts;
mod shutdown;
mod support;
