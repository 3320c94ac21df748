//! A running server: its threads, and the handle that stops it.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

use thiserror::Error;
use tokio::sync::{Semaphore, watch};

use crate::counters::ConnectionCounters;
use crate::environment::is_simulated;
use crate::handler::Handler;
use crate::handler::any_handler::AnyHandler;
use crate::listening::listener::Listener;
use crate::machine::descriptors::open_files;
use crate::options::HttpServer;
use crate::worker::Worker;

/// Reasons why a server did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// No threads, or no connections.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// HTTP/3 without TLS.
    #[error("HTTP/3 needs a certificate and its key")]
    NoCertificate,
    /// A processor does not exist, or no thread or descriptor is available.
    #[error("cannot start: {0}")]
    Thread(#[from] io::Error),
}

/// A running server. Dropping it stops it and waits for the end.
#[derive(Debug)]
pub struct RunningServer {
    /// First listening address. The port is the real one if 0 was requested.
    pub addr: SocketAddr,
    /// All listening addresses, in the order of the listeners.
    pub addrs: Vec<SocketAddr>,
    /// The counters of this server.
    pub counters: Arc<ConnectionCounters>,
    stop: watch::Sender<bool>,
    threads: Vec<EventLoop>,
}

/// A running event loop.
#[derive(Debug)]
enum EventLoop {
    Thread(std::thread::JoinHandle<()>),
    /// Of a simulation.
    Task(tokio::task::JoinHandle<()>),
}

/// Creates the handler of a thread.
type MakeHandler<H> = dyn Fn(usize) -> H + Send + Sync;

impl HttpServer {
    /// Serves `listener` until stopped, with TLS if `tls` is set. `make` creates each thread's handler on that thread and
    /// may spawn tasks there (`tokio::task::spawn_local`).
    ///
    /// Returns after every thread is pinned and accepting, or with the error of one thread.
    pub fn start<H: Handler>(
        self,
        listener: TcpListener,
        make: impl Fn(usize) -> H + Send + Sync + 'static,
    ) -> Result<RunningServer, StartError> {
        self.start_on(vec![Listener::new(listener, false)], make)
    }

    /// Serves several listeners, at least one, like [`HttpServer::start`]. All share the threads and the limits.
    pub fn start_on<H: Handler>(
        self,
        listeners: Vec<Listener>,
        make: impl Fn(usize) -> H + Send + Sync + 'static,
    ) -> Result<RunningServer, StartError> {
        self.start_any(
            listeners,
            Arc::new(move |thread| AnyHandler::new(make(thread))),
        )
    }

    /// Not generic, so that the serving code of its handlers is compiled in this crate.
    fn start_any(
        self,
        listeners: Vec<Listener>,
        make: Arc<MakeHandler<AnyHandler>>,
    ) -> Result<RunningServer, StartError> {
        self.start_with(listeners, make)
    }

    /// Like [`HttpServer::start_on`], with serving code that is compiled for this handler alone. A request costs two
    /// allocations less, and a build takes longer: for services whose cost per request decides.
    pub fn start_specialised<H: Handler>(
        self,
        listeners: Vec<Listener>,
        make: impl Fn(usize) -> H + Send + Sync + 'static,
    ) -> Result<RunningServer, StartError> {
        self.start_with(listeners, Arc::new(make))
    }

    fn start_with<H: Handler>(
        self,
        listeners: Vec<Listener>,
        make: Arc<MakeHandler<H>>,
    ) -> Result<RunningServer, StartError> {
        self.validate(&listeners)?;
        open_files();
        let (stop, stopped) = watch::channel(false);
        let addrs = listeners.iter().map(Listener::address);
        let addrs = addrs.collect::<io::Result<Vec<_>>>()?;
        let mut running = RunningServer {
            addr: addrs[0],
            addrs,
            counters: self.counters.clone(),
            stop,
            threads: Vec::with_capacity(self.threads),
        };
        let (ready, started) = channel();
        let worker = Worker {
            listeners,
            slots: self.slots(),
            server: self,
            stopped,
            index: 0,
        };
        worker.spawn_all(&make, &ready, &mut running.threads)?;
        if !is_simulated() {
            wait_until_ready(&started, running.threads.len())?;
        }
        Ok(running)
    }

    fn validate(&self, listeners: &[Listener]) -> Result<(), StartError> {
        if listeners.is_empty() {
            return Err(StartError::Zero("the number of listeners"));
        }
        if self.threads == 0 {
            return Err(StartError::Zero("the number of threads"));
        }
        #[cfg(feature = "http3")]
        if self.http3.is_some() && self.tls.is_none() {
            return Err(StartError::NoCertificate);
        }
        if self.concurrency == Some(0) {
            return Err(StartError::Zero("the number of connections in service"));
        }
        Ok(())
    }

    /// Connection slots, shared by all threads.
    fn slots(&self) -> Option<Arc<Semaphore>> {
        let limit = self.concurrency?.min(Semaphore::MAX_PERMITS);
        Some(Arc::new(Semaphore::new(limit)))
    }
}

impl Worker {
    /// Starts a thread for each worker, or a task in a simulation.
    fn spawn_all<H: Handler>(
        self,
        make: &Arc<MakeHandler<H>>,
        ready: &Sender<io::Result<()>>,
        threads: &mut Vec<EventLoop>,
    ) -> io::Result<()> {
        for index in 0..self.server.threads {
            let worker = self.with_index(index)?;
            if is_simulated() {
                threads.push(EventLoop::Task(worker.spawn_local(&**make)?));
                continue;
            }
            let (make, ready) = (make.clone(), ready.clone());
            let thread = Builder::new()
                .name(format!("serve-{index}"))
                .spawn(move || worker.run(&*make, &ready))?;
            threads.push(EventLoop::Thread(thread));
        }
        assert_eq!(
            threads.len(),
            self.server.threads,
            "each event loop has a thread"
        );
        Ok(())
    }
}

/// Waits until every thread accepts. An error of the channel means that one has died before.
fn wait_until_ready(started: &Receiver<io::Result<()>>, threads: usize) -> io::Result<()> {
    for _ in 0..threads {
        started.recv().map_err(io::Error::other)??;
    }
    Ok(())
}

impl RunningServer {
    /// Stops accepting and lets requests in service end, within the grace time. Returns at once.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until every connection has closed after [`RunningServer::stop`].
    pub fn join(mut self) {
        self.wait();
    }

    /// Waits in a simulation until every connection has closed after [`RunningServer::stop`].
    pub async fn ended(&mut self) {
        for event_loop in &mut self.threads {
            if let EventLoop::Task(task) = event_loop
                && task.await.is_err()
            {
                tracing::error!("a serving task has panicked");
            }
        }
        self.threads.clear();
    }

    /// Event loops of a simulation end on their own.
    fn wait(&mut self) {
        for event_loop in self.threads.drain(..) {
            if let EventLoop::Thread(thread) = event_loop
                && thread.join().is_err()
            {
                tracing::error!("a serving thread has panicked");
            }
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stop();
        self.wait();
    }
}
