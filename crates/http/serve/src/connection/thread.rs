//! State shared by the connections of a thread.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;

#[cfg(feature = "http3")]
use hyper::header::HeaderValue;
use tokio::task::yield_now;

use crate::connection::eviction::EvictionCandidates;
use crate::connection::state::ConnectionState;
use crate::counters::add_one;
#[cfg(feature = "http3")]
use crate::http3_settings::Http3;
use crate::options::HttpServer;

/// State shared by the connections of a thread.
pub(crate) struct ServerThread {
    pub(crate) server: HttpServer,
    pub(crate) is_draining: Cell<bool>,
    /// Ticks since the start: the clock of the time limits, free to read.
    pub(crate) ticks: Cell<u32>,
    /// By number, so that the sweep and the drain have one order.
    pub(crate) connections: RefCell<BTreeMap<u64, Rc<ConnectionState>>>,
    pub(crate) candidates: EvictionCandidates,
    /// The announcement of HTTP/3, if the server has it.
    #[cfg(feature = "http3")]
    pub(crate) http3: Option<HeaderValue>,
    /// Connections opened so far.
    opened: Cell<u64>,
}

impl ServerThread {
    pub(crate) fn new(server: HttpServer) -> io::Result<Self> {
        Ok(Self {
            #[cfg(feature = "http3")]
            http3: server.http3.as_ref().map(Http3::announcement).transpose()?,
            opened: Cell::new(0),
            server,
            is_draining: Cell::new(false),
            ticks: Cell::new(0),
            connections: RefCell::default(),
            candidates: EvictionCandidates::default(),
        })
    }

    /// The number of the next connection, from 0.
    pub(crate) fn next_number(&self) -> u64 {
        self.opened.replace(self.opened.get() + 1)
    }

    /// Records an accepted connection.
    pub(crate) fn open(&self, number: u64, connection: &Rc<ConnectionState>) {
        add_one(&self.server.counters.accepted);
        self.candidates.insert(number, connection.clone());
        let mut connections = self.connections.borrow_mut();
        connections.insert(number, connection.clone());
        debug_assert!(
            self.server
                .concurrency
                .is_none_or(|limit| connections.len() <= limit),
            "more connections are open than there are slots"
        );
    }

    /// Records the end of a connection.
    pub(crate) fn close(&self, number: u64) {
        let open = self.connections.borrow_mut().remove(&number);
        debug_assert!(open.is_some(), "connection {number} closes once");
        self.candidates.remove_silent(number);
        add_one(&self.server.counters.closed);
    }

    /// Closes an unused connection of this thread and waits until its descriptor is free. False if every one is in use.
    ///
    /// With `only_silent`, connections that ever sent a request are kept.
    pub(crate) async fn evict(&self, only_silent: bool) -> bool {
        let now = self.ticks.get();
        let silent = self.candidates.silent(now);
        let unused = if only_silent {
            silent
        } else {
            silent.or_else(|| self.candidates.idle(&self.connections.borrow(), now))
        };
        let Some((number, connection)) = unused else {
            return false;
        };
        add_one(&self.server.counters.evicted);
        if connection.has_sent_request() {
            connection.ending.end_unused();
        } else {
            connection.ending.end();
        }
        while self.connections.borrow().contains_key(&number) {
            yield_now().await;
        }
        true
    }

    /// Ready when the server drains. The drain wakes every connection.
    pub(crate) async fn draining(&self) {
        poll_fn(|_| {
            if self.is_draining.get() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}
