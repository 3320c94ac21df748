//! The client's end of HTTP/3 against scripted and hostile servers in memory.

mod hostile;
mod output;
mod qpack;
mod replies;
mod scripts;
mod support;
