//! One thread's event loop: accept, serve, sweep, drain.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{LocalSet, yield_now};
use tokio::time::Instant;

use crate::connection::{Connection, Peer};
use crate::counters::add_one;
use crate::server::{Handler, Server};
use crate::speak;

/// How often time limits are looked at: their accuracy.
const SWEEP: Duration = Duration::from_millis(250);

/// Connections accepted before those that have been are served. Whoever accepts all that wait has each of them wait for
/// the others: clients that get no reply open more, and after a crowd of a moment it never catches up.
const ACCEPTS: u64 = 4;

/// How long to wait after a failed accept before the first and at most before any further try.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// What a thread is started with.
pub(crate) struct Part {
    pub(crate) listener: std::net::TcpListener,
    pub(crate) server: Server,
    pub(crate) slots: Option<Arc<Semaphore>>,
    pub(crate) stopped: watch::Receiver<bool>,
    pub(crate) index: usize,
}

/// What the connections of a thread share.
pub(crate) struct Thread {
    pub(crate) server: Server,
    pub(crate) draining: Cell<bool>,
    /// Sweeps since the start: the clock of the time limits, free to read.
    pub(crate) ticks: Cell<u32>,
    connections: RefCell<HashMap<u64, Rc<Connection>>>,
}

/// Runs the loop to its end. Sends one message: that it accepts, or why it cannot.
pub(crate) fn run<H: Handler>(
    part: Part,
    make: &(impl Fn(usize) -> H + ?Sized),
    ready: &Sender<io::Result<()>>,
) {
    let prepared = prepare(&part);
    let runtime = match prepared {
        Ok(runtime) => runtime,
        Err(error) => return drop(ready.send(Err(error))),
    };
    LocalSet::new().block_on(&runtime, async move {
        let handler = Rc::new(make(part.index));
        match TcpListener::from_std(part.listener) {
            Ok(listener) => {
                let _ = ready.send(Ok(()));
                let thread = Rc::new(Thread {
                    server: part.server,
                    draining: Cell::new(false),
                    ticks: Cell::new(0),
                    connections: RefCell::default(),
                });
                let sweeper = tokio::task::spawn_local(sweep(thread.clone()));
                let mut stopped = part.stopped;
                tokio::select! {
                    () = accept(&thread, &listener, part.slots, &handler) => {}
                    _ = stopped.wait_for(|stop| *stop) => {}
                }
                drop(listener);
                drain(&thread).await;
                sweeper.abort();
            }
            Err(error) => drop(ready.send(Err(error))),
        }
    });
}

fn prepare(part: &Part) -> io::Result<tokio::runtime::Runtime> {
    let server = &part.server;
    if let Some(count) = server.cpus.len().checked_sub(1) {
        crate::pin_thread(&[server.cpus[part.index % (count + 1)]])?;
    }
    let mut builder = tokio::runtime::Builder::new_current_thread();
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

/// Accepts for ever. A place in service is taken before a connection is, so that what cannot be
/// served stays in the kernel's queue.
async fn accept<H: Handler>(
    thread: &Rc<Thread>,
    listener: &TcpListener,
    slots: Option<Arc<Semaphore>>,
    handler: &Rc<H>,
) {
    let mut next = 0;
    let mut wait = BACK_OFF.0;
    loop {
        let slot = match &slots {
            // The semaphore is never closed.
            Some(slots) => slots.clone().acquire_owned().await.ok(),
            None => None,
        };
        match listener.accept().await {
            Ok((stream, address)) => {
                wait = BACK_OFF.0;
                add_one(&thread.server.counters.accepted);
                let connection = Rc::new(Connection::new(thread.ticks.get()));
                thread
                    .connections
                    .borrow_mut()
                    .insert(next, connection.clone());
                let peer = Peer {
                    address,
                    number: next,
                    note: Rc::default(),
                    ip: OnceCell::new(),
                    timer: connection.timer.clone(),
                    connection,
                    thread: thread.clone(),
                };
                next += 1;
                serve(stream, Rc::new(peer), slot, handler.clone());
                if next % ACCEPTS == 0 {
                    yield_now().await;
                }
            }
            Err(error) if is_the_peers(&error) => {
                add_one(&thread.server.counters.accept_errors);
            }
            Err(error) => {
                add_one(&thread.server.counters.accept_errors);
                tracing::warn!(%error, ?wait, "accept failed: raise the hard limit of open files (ulimit -Hn, or LimitNOFILE= of the service)");
                drop(slot);
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(BACK_OFF.1);
            }
        }
    }
}

/// Errors of a connection that ended before it was accepted, not of this process.
fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | Interrupted
    )
}

fn serve<H: Handler>(
    stream: TcpStream,
    peer: Rc<Peer>,
    slot: Option<OwnedSemaphorePermit>,
    handler: Rc<H>,
) {
    tokio::task::spawn_local(async move {
        speak::run(stream, peer.clone(), handler).await;
        peer.thread.connections.borrow_mut().remove(&peer.number);
        add_one(&peer.thread.server.counters.closed);
        drop(slot);
    });
}

/// Ends the connections whose time is over, four times a second.
async fn sweep(thread: Rc<Thread>) {
    let mut interval = tokio::time::interval(SWEEP);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let start = Instant::now();
    loop {
        interval.tick().await;
        let ticks = start.elapsed().as_millis() / SWEEP.as_millis();
        thread.ticks.set(u32::try_from(ticks).unwrap_or(u32::MAX));
        for connection in thread.connections.borrow().values() {
            connection.judge(&thread);
        }
    }
}

/// Lets every connection finish its request and close; cuts off what is left after the grace time.
async fn drain(thread: &Rc<Thread>) {
    thread.draining.set(true);
    let end = Instant::now() + Duration::from(thread.server.timeouts.grace);
    let mut poll = Duration::from_millis(1);
    for connection in thread.connections.borrow().values() {
        connection.wake();
    }
    while !thread.connections.borrow().is_empty() && Instant::now() < end {
        tokio::time::sleep(poll).await;
        poll = (poll * 2).min(Duration::from_millis(50));
    }
    for connection in thread.connections.borrow().values() {
        add_one(&thread.server.counters.cut_off);
        connection.end();
    }
    // One turn of the loop for the ended ones to close.
    yield_now().await;
}

/// A time limit in sweeps, at least one.
pub(crate) fn in_ticks(limit: posthaste_units::Span) -> u32 {
    let ticks = Duration::from(limit)
        .as_millis()
        .div_ceil(SWEEP.as_millis());
    u32::try_from(ticks).unwrap_or(u32::MAX).max(1)
}
