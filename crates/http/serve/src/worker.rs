//! One thread's event loop: accept, serve, sweep, drain.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinHandle, LocalSet, yield_now};
use tokio::time::Instant;

use crate::connection::clock::{TICK, ticks_of};
use crate::connection::open_connection::OpenConnection;
use crate::connection::peer::Peer;
use crate::connection::state::ConnectionState;
use crate::connection::thread::ServerThread;
use crate::counters::add_one;
use crate::handler::Handler;
use crate::http;
#[cfg(feature = "http3")]
use crate::http3::{self, QuicAcceptor};
#[cfg(feature = "http3")]
use crate::http3_settings::Http3;
use crate::listening::listener::{Accepted, Listener, Listeners};
use crate::machine::cpus::pin_thread;
use crate::options::HttpServer;
use crate::task::spawn_task;

/// Connections accepted before accepted ones are served. Accepting all of them would delay each by all others: clients
/// without a reply open more, and the server never catches up after a short burst
/// (docs/decisions/0003-crowds-of-connections.md).
const ACCEPTS: u64 = 4;

/// First and maximum wait before another attempt when no slot is free.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(50));

/// Ticks between two warnings about lack of descriptors.
const WARN_EVERY: u32 = 4;

/// Arguments of a thread.
pub(crate) struct Worker {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) server: HttpServer,
    pub(crate) slots: Option<Arc<Semaphore>>,
    pub(crate) stopped: watch::Receiver<bool>,
    pub(crate) index: usize,
}

impl Worker {
    /// The arguments of another thread.
    pub(crate) fn with_index(&self, index: usize) -> io::Result<Self> {
        let listeners = self.listeners.iter().map(Listener::try_clone);
        Ok(Self {
            listeners: listeners.collect::<io::Result<_>>()?,
            server: self.server.clone(),
            slots: self.slots.clone(),
            stopped: self.stopped.clone(),
            index,
        })
    }

    /// Runs the loop to its end. Sends one message: success when it accepts, or the error.
    pub(crate) fn run<H: Handler>(self, make: &dyn Fn(usize) -> H, ready: &Sender<io::Result<()>>) {
        // The receiver may be gone already, after the error of another thread.
        let runtime = match self.prepare() {
            Ok(runtime) => runtime,
            Err(error) => return drop(ready.send(Err(error))),
        };
        LocalSet::new().block_on(&runtime, async move {
            let handler = Rc::new(make(self.index));
            let stopped = self.stopped.clone();
            match self.acceptor() {
                Ok(acceptor) => {
                    let _ = ready.send(Ok(()));
                    acceptor.serve_until(stopped, &handler).await;
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        });
    }

    /// Runs the loop in a task of the calling thread, for a simulation.
    pub(crate) fn spawn_local<H: Handler>(
        self,
        make: &dyn Fn(usize) -> H,
    ) -> io::Result<JoinHandle<()>> {
        let handler = Rc::new(make(self.index));
        let stopped = self.stopped.clone();
        let acceptor = self.acceptor()?;
        Ok(spawn_task(async move {
            acceptor.serve_until(stopped, &handler).await;
        }))
    }

    /// Registers the sockets with the runtime.
    fn acceptor(self) -> io::Result<Acceptor> {
        #[cfg(feature = "http3")]
        let quic = match self.server.http3.as_ref().filter(|_| self.index == 0) {
            Some(settings) => Some((http3::endpoint(settings, &self.server)?, settings.clone())),
            None => None,
        };
        Ok(Acceptor {
            listeners: Listeners::new(self.listeners)?,
            thread: Rc::new(ServerThread::new(self.server)?),
            slots: self.slots,
            #[cfg(feature = "http3")]
            quic,
        })
    }

    /// Pins the thread and builds its runtime.
    fn prepare(&self) -> io::Result<Runtime> {
        let server = &self.server;
        if let Some(count) = server.cpus.len().checked_sub(1) {
            pin_thread(&[server.cpus[self.index % (count + 1)]])?;
        }
        let mut builder = Builder::new_current_thread();
        builder.enable_io().enable_time();
        if let Some(hook) = server.hooks.before_wait.clone() {
            builder.on_thread_park(move || hook());
        }
        if let Some(hook) = server.hooks.after_wait.clone() {
            builder.on_thread_unpark(move || hook());
        }
        if server.hooks.in_order {
            builder.event_interval(1);
        }
        builder.build()
    }
}

/// The accepting part of a thread.
struct Acceptor {
    thread: Rc<ServerThread>,
    listeners: Listeners,
    slots: Option<Arc<Semaphore>>,
    /// The endpoint of HTTP/3 and its settings, on the first thread.
    #[cfg(feature = "http3")]
    quic: Option<(quinn::Endpoint, Http3)>,
}

impl Acceptor {
    /// Accepts and serves until stopped, then drains.
    async fn serve_until<H: Handler>(self, mut stopped: watch::Receiver<bool>, handler: &Rc<H>) {
        let thread = self.thread.clone();
        let sweeper = spawn_task(sweep(thread.clone()));
        #[cfg(feature = "http3")]
        let endpoint = self.serve_http3(handler);
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => {}
            () = self.accept(handler) => {}
        }
        // Closes the listeners.
        drop(self);
        drain(&thread).await;
        #[cfg(feature = "http3")]
        if let Some(endpoint) = endpoint {
            http3::finish(&endpoint).await;
        }
        sweeper.abort();
    }

    /// Serves HTTP/3 in a task of its own, if this thread has it.
    #[cfg(feature = "http3")]
    fn serve_http3<H: Handler>(&self, handler: &Rc<H>) -> Option<quinn::Endpoint> {
        let (endpoint, settings) = self.quic.clone()?;
        let acceptor = QuicAcceptor {
            thread: self.thread.clone(),
            endpoint: endpoint.clone(),
            slots: self.slots.clone(),
            body_limit: settings.body_limit,
            unproved: settings.unproved,
            handshakes: Rc::default(),
        };
        spawn_task(acceptor.accept(handler.clone()));
        Some(endpoint)
    }

    /// Accepts forever. Takes a connection slot before accepting, so that connections beyond the limit stay in the
    /// kernel's queue.
    async fn accept<H: Handler>(&self, handler: &Rc<H>) {
        let thread = &self.thread;
        let mut next = 0;
        let mut shortage = Shortage::default();
        loop {
            let slot = match &self.slots {
                Some(slots) => self.slot(slots).await,
                None => None,
            };
            match self.listeners.accept().await {
                Ok(accepted) => {
                    shortage.wait = BACK_OFF.0;
                    serve(thread, accepted, thread.next_number(), slot, handler);
                    next += 1;
                    if next % ACCEPTS == 0 {
                        yield_now().await;
                    }
                }
                Err(error) if is_the_peers(&error) => {
                    add_one(&thread.server.counters.accept_errors);
                }
                Err(error) => {
                    add_one(&thread.server.counters.accept_errors);
                    drop(slot);
                    shortage.relieve(thread, &error).await;
                }
            }
        }
    }

    /// Waits for a connection slot. If a client waits for it, an unused connection is closed.
    async fn slot(&self, slots: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
        let mut wait = BACK_OFF.0;
        loop {
            let free = slots.clone().acquire_owned();
            if !self.thread.server.evicts_unused {
                // The semaphore is never closed.
                return free.await.ok();
            }
            match tokio::time::timeout(wait, free).await {
                Ok(slot) => return slot.ok(),
                Err(_) if self.listeners.is_awaited() && self.thread.evict(false).await => {}
                Err(_) => wait = (wait * 2).min(BACK_OFF.1),
            }
        }
    }
}

/// A lack of descriptors.
struct Shortage {
    /// Time to wait before the next attempt.
    wait: Duration,
    /// Tick of the next permitted warning.
    warn_at: u32,
}

impl Default for Shortage {
    fn default() -> Self {
        Self {
            wait: BACK_OFF.0,
            warn_at: 0,
        }
    }
}

impl Shortage {
    /// Closes an unused connection, or waits.
    async fn relieve(&mut self, thread: &ServerThread, error: &io::Error) {
        // At first close only silent connections: another thread may have some even if this one has none.
        let only_silent = thread.server.threads > 1 && self.wait == BACK_OFF.0;
        if !thread.evict(only_silent).await {
            let now = thread.ticks.get();
            if now >= self.warn_at && !only_silent {
                self.warn_at = now + WARN_EVERY;
                tracing::warn!(%error, "accept failed and every connection is in use: raise the hard limit of open files (ulimit -Hn, or LimitNOFILE= of the service)");
            }
            tokio::time::sleep(self.wait).await;
            self.wait = (self.wait * 2).min(BACK_OFF.1);
        }
    }
}

/// True if a connection ended before it was accepted. Such errors are not of this process.
fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | Interrupted
    )
}

/// Serves an accepted connection, in a task of its own.
fn serve<H: Handler>(
    thread: &Rc<ServerThread>,
    accepted: Accepted,
    number: u64,
    slot: Option<OwnedSemaphorePermit>,
    handler: &Rc<H>,
) {
    let stream = accepted.stream;
    let connection = ConnectionState::new(stream.handle(), thread.ticks.get());
    let connection = Rc::new(connection);
    thread.open(number, &connection);
    let is_encrypted = thread.server.tls.is_some() && !accepted.is_plain;
    let address = accepted.address;
    let peer = Peer::new(address, is_encrypted, number, connection, thread.clone());
    let peer = Rc::new(peer);
    let handler = handler.clone();
    let open = OpenConnection::new(peer.clone(), slot);
    spawn_task(async move {
        // Dropped last, after the socket.
        let _open = open;
        http::serve(stream, peer, handler).await;
    });
}

/// Ends overdue connections, four times a second.
async fn sweep(thread: Rc<ServerThread>) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let start = Instant::now();
    let (limits, counters) = (&thread.server.timeouts, &thread.server.counters);
    loop {
        interval.tick().await;
        let now = ticks_of(start.elapsed());
        let before = thread.ticks.replace(now);
        debug_assert!(before <= now, "ticks never decrease");
        for connection in thread.connections.borrow().values() {
            connection.enforce_timeouts(now, limits, counters);
        }
    }
}

/// Lets every connection finish its request and close. Closes the rest after the grace time.
async fn drain(thread: &ServerThread) {
    thread.is_draining.set(true);
    let end = Instant::now() + Duration::from(thread.server.timeouts.grace);
    let mut poll = Duration::from_millis(1);
    for connection in thread.connections.borrow().values() {
        connection.ending.wake();
    }
    while !thread.connections.borrow().is_empty() && Instant::now() < end {
        tokio::time::sleep(poll).await;
        poll = (poll * 2).min(Duration::from_millis(50));
    }
    for connection in thread.connections.borrow().values() {
        add_one(&thread.server.counters.cut_off);
        connection.ending.end();
    }
    // One round of the loop, so that ended connections close.
    yield_now().await;
}
