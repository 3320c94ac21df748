//! HTTP/3 in memory: our client against scripted and hostile servers, and the parts of a server against clients.

mod hostile;
mod output;
mod qpack;
mod replies;
mod scripts;
mod server;
mod support;
