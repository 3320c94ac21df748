//! The client's end of HTTP/2 and HTTP/3 against scripted, hostile and real servers in memory.

mod bodies;
mod hostile;
mod hpack;
mod http3;
mod oracle;
mod repeated;
mod replies;
mod scripts;
mod shutdown;
mod support;
