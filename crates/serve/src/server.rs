//! The server: threads, limits, and the handle that stops it.

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

/// Handles the requests of one thread. It stays on that thread, so it may hold `Rc` and `Cell`.
pub trait Handler: 'static {
    /// The body of replies.
    type Body: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Unpin + 'static;

    /// Handles one request. The handler decides to what extent it reads the body.
    ///
    /// A [`Dscp`](posthaste_units::Dscp) in the reply's extensions is the mark of its packets. It is set before the
    /// first byte, after the previous reply is acknowledged. An HTTP/2 connection keeps the mark of its first reply.
    fn handle(
        self: Rc<Self>,
        request: Request<Incoming>,
        peer: Rc<Peer>,
    ) -> impl Future<Output = Response<Self::Body>> + 'static;

    /// Observes a request that was rejected with `status` before any handler got it, because its head or framing is
    /// ambiguous.
    fn rejected(&self, _request: &Request<Incoming>, _peer: &Peer, _status: StatusCode) {}
}

/// Time limits of the phases of a connection. Checked about four times a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Without a request, on a new connection and between requests. Default 60 s.
    pub idle: Span,
    /// From a request's first byte, or the TLS handshake's start, to the end of its header. Default 10 s.
    pub head: Span,
    /// For the request's body to arrive. Default 30 s.
    pub body: Span,
    /// Without progress of the peer while data waits to be written. Default 30 s.
    pub write: Span,
    /// For requests in service to end after the server stops. Default 10 s.
    pub grace: Span,
}

/// Functions called around a thread's waits, for services that measure idle time.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Called before the thread waits for the network.
    pub before_wait: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Called after the wait.
    pub after_wait: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Checks the network after every task, so that requests are handled in order of arrival.
    pub in_order: bool,
}

/// Settings of a server. [`Server::start`] starts it.
#[derive(Clone)]
pub struct Server {
    /// Event loops, at least one.
    pub threads: usize,
    /// Processors: thread *i* runs on entry *i* modulo the list's length. Empty means no affinity.
    pub cpus: Vec<usize>,
    /// Maximum number of connections in service, over all threads. At the maximum nothing is accepted, so that the
    /// kernel's queue fills and then drops. `None` means as many as there are descriptors.
    pub concurrency: Option<usize>,
    /// Closes an unused connection when another waits and `concurrency` are in service. At the limit of descriptors
    /// this is always done. Default true.
    pub makes_room: bool,
    /// A connection may carry more than one request.
    pub keep_alive: bool,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Certificate and key, if the service uses TLS.
    pub tls: Option<Arc<ServerTls>>,
    /// Functions called around waits.
    pub hooks: Hooks,
    /// The counters of this server.
    pub counters: Arc<Counters>,
}

/// Reasons why a server did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// No threads, or no connections.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// A processor does not exist, or no thread or descriptor is available.
    #[error("cannot start: {0}")]
    Thread(#[from] io::Error),
}

/// A running server. Dropping it stops it and waits for the end.
#[derive(Debug)]
pub struct Running {
    /// Listening address. The port is the real one if 0 was requested.
    pub addr: SocketAddr,
    /// The counters of this server.
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
    /// Serves `listener` until stopped. `make` creates each thread's handler on that thread and may spawn tasks there
    /// (`tokio::task::spawn_local`).
    ///
    /// Returns after every thread is pinned and accepting, or with the error of one thread.
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
            // Each thread sends exactly once; an error here means that one has died before.
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

    /// Waits until every connection has closed after [`Running::stop`].
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
