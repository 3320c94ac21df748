//! One thread's event loop: accept, serve, sweep, drain.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::io;
use std::os::fd::AsRawFd as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{LocalSet, yield_now};
use tokio::time::Instant;

use crate::connection::{Connection, Peer};
use crate::counters::add_one;
use crate::room::{Room, make_room};
use crate::server::{Handler, Server};
use crate::speak;

/// Interval and accuracy of time limits.
const SWEEP: Duration = Duration::from_millis(250);

/// Connections accepted before accepted ones are served. Accepting all of them would delay each by all others: clients
/// without a reply open more, and the server never catches up after a short burst
/// (docs/decisions/0003-crowds-of-connections.md).
const ACCEPTS: u64 = 4;

/// First and maximum wait before another attempt when no slot is free.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(50));

/// Sweeps between two warnings about lack of descriptors.
const WARN_EVERY: u32 = 4;

/// Arguments of a thread.
pub(crate) struct Part {
    pub(crate) listener: std::net::TcpListener,
    pub(crate) server: Server,
    pub(crate) slots: Option<Arc<Semaphore>>,
    pub(crate) stopped: watch::Receiver<bool>,
    pub(crate) index: usize,
}

/// State shared by the connections of a thread.
pub(crate) struct Thread {
    pub(crate) server: Server,
    pub(crate) draining: Cell<bool>,
    /// Sweeps since the start: the clock of the time limits, free to read.
    pub(crate) ticks: Cell<u32>,
    pub(crate) connections: RefCell<HashMap<u64, Rc<Connection>>>,
    pub(crate) room: Room,
}

/// Runs the loop to its end. Sends one message: success when it accepts, or the error.
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
                    room: Room::default(),
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

/// Accepts forever. Takes a connection slot before accepting, so that connections beyond the limit stay in the kernel's
/// queue.
async fn accept<H: Handler>(
    thread: &Rc<Thread>,
    listener: &TcpListener,
    slots: Option<Arc<Semaphore>>,
    handler: &Rc<H>,
) {
    let mut next = 0;
    let mut wait = BACK_OFF.0;
    let mut warn_at = 0;
    loop {
        let slot = match &slots {
            Some(slots) => place(thread, listener, slots).await,
            None => None,
        };
        match listener.accept().await {
            Ok((stream, address)) => {
                wait = BACK_OFF.0;
                add_one(&thread.server.counters.accepted);
                let connection = Rc::new(Connection::new(stream.as_raw_fd(), thread.ticks.get()));
                thread.room.enter(next, connection.clone());
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
                drop(slot);
                // At first close only silent connections: another thread may have some even if this one has none.
                let only_silent = thread.server.threads > 1 && wait == BACK_OFF.0;
                if !make_room(thread, only_silent).await {
                    let now = thread.ticks.get();
                    if now >= warn_at && !only_silent {
                        warn_at = now + WARN_EVERY;
                        tracing::warn!(%error, "accept failed and every connection is in use: raise the hard limit of open files (ulimit -Hn, or LimitNOFILE= of the service)");
                    }
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(BACK_OFF.1);
                }
            }
        }
    }
}

/// Waits for a connection slot. If a client waits for it, an unused connection is closed.
async fn place(
    thread: &Thread,
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<OwnedSemaphorePermit> {
    let mut wait = BACK_OFF.0;
    loop {
        let free = slots.clone().acquire_owned();
        if !thread.server.makes_room {
            // The semaphore is never closed.
            return free.await.ok();
        }
        match tokio::time::timeout(wait, free).await {
            Ok(slot) => return slot.ok(),
            Err(_) if is_awaited(listener) && make_room(thread, false).await => {}
            Err(_) => wait = (wait * 2).min(BACK_OFF.1),
        }
    }
}

/// True if a connection waits to be accepted.
fn is_awaited(listener: &TcpListener) -> bool {
    let mut listener = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut listener, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// True if a connection ended before it was accepted. Such errors are not of this process.
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
        peer.thread.room.is_silent_no_more(peer.number);
        add_one(&peer.thread.server.counters.closed);
        drop(slot);
    });
}

/// Ends overdue connections, four times a second.
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

/// Lets every connection finish its request and close. Closes the rest after the grace time.
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
    // One round of the loop, so that ended connections close.
    yield_now().await;
}

/// Converts a time limit to sweeps, at least one.
pub(crate) fn in_ticks(limit: posthaste_units::Span) -> u32 {
    let ticks = Duration::from(limit)
        .as_millis()
        .div_ceil(SWEEP.as_millis());
    u32::try_from(ticks).unwrap_or(u32::MAX).max(1)
}
