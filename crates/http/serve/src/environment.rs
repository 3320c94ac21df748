//! The outside of a server: clocks, randomness, network, names and threads.
//!
//! A thread has the operating system's, until it runs work in an [`Environment`] by [`run_in`]. Timers are tokio's in
//! both cases; a simulation pauses its clock. The environment belongs to the running task and not to each value that
//! reads a clock, as tokio's own clock does: the serving code is compiled once, no signature carries it, and without an
//! environment each use costs the load of one flag of the thread.
//! See docs/decisions/0026-seam-for-virtual-time.md.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use posthaste_units::{Instant, Span};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::time::{ClockId, Timespec, clock_gettime};
use tokio::task::LocalSet;

use crate::socket::simulated::{SimulatedListener, SimulatedStream};

/// A future of an environment.
pub type Simulated<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The outside of the servers and clients of one simulated host. Everything in it is repeatable.
pub trait Environment: Send + Sync {
    /// Monotonic time from an origin of the environment, as fast as tokio's clock.
    fn now(&self) -> Instant;

    /// Wall-clock time. It may be set, also backwards.
    fn wall_clock(&self) -> SystemTime;

    /// CPU time of the host's processor, for its servers at once.
    fn processor_time(&self) -> Span;

    /// Fills `bytes` from the random stream of this name.
    fn fill_random(&self, stream: &str, bytes: &mut [u8]);

    /// Listens on an address, with an accept queue of `backlog`.
    fn listen(&self, address: SocketAddr, backlog: u32) -> io::Result<Arc<dyn SimulatedListener>>;

    /// Connects to an address. Has no time limit of its own.
    fn connect(&self, address: SocketAddr) -> Simulated<io::Result<SimulatedStream>>;

    /// Looks up the addresses of a host name, and for how long they are valid. An empty list is the answer that there
    /// are none; errors are failures to answer.
    fn look_up(&self, name: &str) -> Simulated<io::Result<(Vec<IpAddr>, Duration)>>;
}

thread_local! {
    /// True while the thread runs in an environment. Read before each use of the operating system.
    static IS_SIMULATED: Cell<bool> = const { Cell::new(false) };
    static CURRENT: RefCell<Option<Arc<dyn Environment>>> = const { RefCell::new(None) };
}

/// Runs `work` in an environment, with the tasks that it spawns by `tokio::task::spawn_local`. Their threads are tasks,
/// too. The tasks end with `work`.
pub fn run_in<T>(
    environment: Arc<dyn Environment>,
    work: impl Future<Output = T>,
) -> impl Future<Output = T> {
    EnvironmentFuture {
        environment,
        work: Some(Box::pin(
            async move { LocalSet::new().run_until(work).await },
        )),
    }
}

/// Monotonic time from an arbitrary origin.
#[inline]
pub fn now() -> Instant {
    match current() {
        None => Instant::from_nanos(nanos(clock_gettime(ClockId::Monotonic))),
        Some(environment) => environment.now(),
    }
}

/// Wall-clock time.
#[inline]
pub fn wall_clock() -> SystemTime {
    match current() {
        None => SystemTime::now(),
        Some(environment) => environment.wall_clock(),
    }
}

/// CPU time of the calling thread, or of the simulated host.
#[inline]
pub fn processor_time() -> Span {
    match current() {
        None => Span::from_nanos(nanos(clock_gettime(ClockId::ThreadCPUTime))),
        Some(environment) => environment.processor_time(),
    }
}

/// Random bytes, at most 256. A simulation draws them from the random stream of this name.
pub fn random<const N: usize>(stream: &str) -> Result<[u8; N], Errno> {
    const { assert!(N <= 256, "a longer read may be incomplete (getrandom(2))") };
    let mut bytes = [0; N];
    match current() {
        None => drop(getrandom(&mut bytes, GetRandomFlags::empty())?),
        Some(environment) => environment.fill_random(stream, &mut bytes),
    }
    Ok(bytes)
}

/// True while the thread runs in an environment.
#[inline]
pub fn is_simulated() -> bool {
    IS_SIMULATED.get()
}

/// The environment of the calling thread. `None` is the operating system.
#[inline]
pub fn current() -> Option<Arc<dyn Environment>> {
    if is_simulated() { of_thread() } else { None }
}

#[cold]
fn of_thread() -> Option<Arc<dyn Environment>> {
    CURRENT.with_borrow(Clone::clone)
}

fn nanos(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Work in an environment.
struct EnvironmentFuture<F> {
    environment: Arc<dyn Environment>,
    /// `None` at the end.
    work: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for EnvironmentFuture<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _guard = EnvironmentGuard::enter(&self.environment);
        let work = self.work.as_mut().expect("it is present until the drop");
        work.as_mut().poll(cx)
    }
}

impl<F> Drop for EnvironmentFuture<F> {
    fn drop(&mut self) {
        // Values of the work may read the clock when they are dropped.
        let _guard = EnvironmentGuard::enter(&self.environment);
        self.work = None;
    }
}

/// The time in an environment. Dropping it returns to the one before.
struct EnvironmentGuard(Option<Arc<dyn Environment>>);

impl EnvironmentGuard {
    fn enter(environment: &Arc<dyn Environment>) -> Self {
        IS_SIMULATED.set(true);
        Self(CURRENT.replace(Some(environment.clone())))
    }
}

impl Drop for EnvironmentGuard {
    fn drop(&mut self) {
        let before = self.0.take();
        IS_SIMULATED.set(before.is_some());
        CURRENT.set(before);
    }
}
