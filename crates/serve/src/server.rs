//! A server: threads, limits, and the handle that ends it.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use hyper::body::Body;
use hyper::{Request, Response, StatusCode};
use posthaste_units::Span;
use thiserror::Error;
use tokio::sync::{Semaphore, watch};

use crate::connection::Peer;
use crate::counters::Counters;
use crate::incoming::Incoming;
use crate::tls::ServerTls;
use crate::worker;

/// Answers the requests of one thread; never moved to another, so it may hold `Rc` and `Cell`.
pub trait Handler: 'static {
    /// The body of replies.
    type Body: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Unpin + 'static;

    /// Answers one request. Reading the request's body, and how much of it, is up to the handler.
    ///
    /// A [`Dscp`](posthaste_units::Dscp) among the reply's extensions is the mark of its packets. It is set before
    /// the reply's first byte, once the former reply is acknowledged; an HTTP/2 connection keeps that of its first.
    fn handle(
        self: Rc<Self>,
        request: Request<Incoming>,
        peer: Rc<Peer>,
    ) -> impl Future<Output = Response<Self::Body>> + 'static;

    /// Takes note of a request that was answered with `status` before any handler got it: its head can be read in two
    /// ways, or its framing.
    fn rejected(&self, _request: &Request<Incoming>, _peer: &Peer, _status: StatusCode) {}
}

/// How long each phase of a connection may take before it is ended. Judged about four times a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Without a request, on a new connection and between requests. Default 60 s.
    pub idle: Span,
    /// From a request's first byte, or the TLS handshake's start, to the end of its header. Default 10 s.
    pub head: Span,
    /// For the request's body to arrive. Default 30 s.
    pub body: Span,
    /// Without a peer's taking anything of what is ready to be written. Default 30 s.
    pub write: Span,
    /// For requests in service to end once the server stops. Default 10 s.
    pub grace: Span,
}

/// What a thread does around its waiting; for services that need to know when they were idle.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Called before the thread waits for the network.
    pub before_wait: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Called after it has waited.
    pub after_wait: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Look at the network after every task, so that requests are taken in the order they came.
    pub in_order: bool,
}

/// How a server is to run; [`Server::start`] starts it.
#[derive(Clone)]
pub struct Server {
    /// Event loops, at least one.
    pub threads: usize,
    /// Processors: thread *i* runs on entry *i* modulo the list's length; empty leaves them free.
    pub cpus: Vec<usize>,
    /// Connections in service at most, over all threads. Beyond it nothing is accepted, so that the
    /// kernel's queue fills and then drops. `None` is as many as there are descriptors.
    pub concurrency: Option<usize>,
    /// Closes an unused connection for one that waits where `concurrency` are in service, as is always done at the limit
    /// of descriptors. Default true.
    pub makes_room: bool,
    /// Whether a connection may carry more than one request.
    pub keep_alive: bool,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Certificate and key, where the service speaks TLS.
    pub tls: Option<Arc<ServerTls>>,
    /// Calls around waiting.
    pub hooks: Hooks,
    /// The counters to count in.
    pub counters: Arc<Counters>,
}

/// Why a server did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// No threads, or no connections.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// A processor that is not there, or no thread or descriptors to be had.
    #[error("cannot start: {0}")]
    Thread(#[from] io::Error),
}

/// A server at work. Dropping it stops it and waits for the end.
#[derive(Debug)]
pub struct Running {
    /// Where it listens; the port is the real one when 0 was asked for.
    pub addr: SocketAddr,
    /// Its counters.
    pub counters: Arc<Counters>,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            idle: Span::from_secs(60),
            head: Span::from_secs(10),
            body: Span::from_secs(30),
            write: Span::from_secs(30),
            grace: Span::from_secs(10),
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            threads: 1,
            cpus: Vec::new(),
            concurrency: None,
            makes_room: true,
            keep_alive: true,
            timeouts: Timeouts::default(),
            tls: None,
            hooks: Hooks::default(),
            counters: Arc::default(),
        }
    }
}

impl Server {
    /// Serves `listener` until stopped; `make` makes each thread's handler, on that thread, where it
    /// may spawn tasks that stay there (`tokio::task::spawn_local`).
    ///
    /// Returns once every thread is pinned and accepting, or with what kept one from it.
    pub fn start<H: Handler>(
        self,
        listener: TcpListener,
        make: impl Fn(usize) -> H + Send + Sync + 'static,
    ) -> Result<Running, StartError> {
        if self.threads == 0 {
            return Err(StartError::Zero("the number of threads"));
        }
        if self.concurrency == Some(0) {
            return Err(StartError::Zero("the number of connections in service"));
        }
        crate::open_files();
        let addr = listener.local_addr()?;
        let slots = self
            .concurrency
            .map(|n| Arc::new(Semaphore::new(n.min(Semaphore::MAX_PERMITS))));
        let (stop, stopped) = watch::channel(false);
        let make = Arc::new(make);
        let mut running = Running {
            addr,
            counters: self.counters.clone(),
            stop,
            threads: Vec::with_capacity(self.threads),
        };
        let (ready, started) = std::sync::mpsc::channel();
        for index in 0..self.threads {
            let part = worker::Part {
                listener: listener.try_clone()?,
                server: self.clone(),
                slots: slots.clone(),
                stopped: stopped.clone(),
                index,
            };
            let (make, ready) = (make.clone(), ready.clone());
            let body = move || worker::run(part, &*make, &ready);
            let thread = std::thread::Builder::new()
                .name(format!("serve-{index}"))
                .spawn(body)?;
            running.threads.push(thread);
        }
        for _ in 0..self.threads {
            // Each thread sends exactly once; an error here means that one has died before that.
            let outcome = started.recv().map_err(io::Error::other)?;
            outcome?;
        }
        Ok(running)
    }
}

impl Running {
    /// Stops accepting and lets requests in service end, within the grace time. Returns at once.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until every connection is over after [`Running::stop`].
    pub fn join(mut self) {
        self.wait();
    }

    fn wait(&mut self) {
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a serving thread has panicked");
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        self.wait();
    }
}
