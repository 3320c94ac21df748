//! A running server: its threads, and the handle that stops it.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use thiserror::Error;
use tokio::sync::{Semaphore, watch};

use crate::counters::ConnectionCounters;
use crate::descriptors::open_files;
use crate::handler::Handler;
use crate::listener::Listener;
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
    threads: Vec<JoinHandle<()>>,
}

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
        let listener = Listener {
            socket: listener,
            is_plain: false,
        };
        self.start_on(vec![listener], make)
    }

    /// Serves several listeners, at least one, like [`HttpServer::start`]. All share the threads and the limits.
    pub fn start_on<H: Handler>(
        self,
        listeners: Vec<Listener>,
        make: impl Fn(usize) -> H + Send + Sync + 'static,
    ) -> Result<RunningServer, StartError> {
        self.validate(&listeners)?;
        open_files();
        let (stop, stopped) = watch::channel(false);
        let addrs = listeners
            .iter()
            .map(|listener| listener.socket.local_addr());
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
        worker.spawn_all(Arc::new(make), &ready, &mut running.threads)?;
        wait_until_ready(&started, running.threads.len())?;
        Ok(running)
    }

    fn validate(&self, listeners: &[Listener]) -> Result<(), StartError> {
        if listeners.is_empty() {
            return Err(StartError::Zero("the number of listeners"));
        }
        if self.threads == 0 {
            return Err(StartError::Zero("the number of threads"));
        }
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
    /// Starts a thread for each worker.
    fn spawn_all<H: Handler>(
        self,
        make: Arc<impl Fn(usize) -> H + Send + Sync + 'static>,
        ready: &Sender<io::Result<()>>,
        threads: &mut Vec<JoinHandle<()>>,
    ) -> io::Result<()> {
        for index in 0..self.server.threads {
            let worker = self.with_index(index)?;
            let (make, ready) = (make.clone(), ready.clone());
            let thread = Builder::new()
                .name(format!("serve-{index}"))
                .spawn(move || worker.run(&*make, &ready))?;
            threads.push(thread);
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

    fn wait(&mut self) {
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
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
