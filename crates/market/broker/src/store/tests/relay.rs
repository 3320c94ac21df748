//! An interruptible connection between a broker and its database server.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A relay to a server.
#[derive(Debug)]
pub(crate) struct TestRelay {
    address: SocketAddr,
    state: Arc<RelayState>,
}

#[derive(Debug, Default)]
struct RelayState {
    /// Data is held back, as with a cut cable or a stopped server.
    silent: AtomicBool,
    /// New connections are closed.
    closed: AtomicBool,
    ended: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

impl TestRelay {
    /// Starts a relay to this server.
    pub(crate) fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(RelayState::default());
        let shared = state.clone();
        thread::spawn(move || accept(&listener, server, &shared));
        Self { address, state }
    }

    /// Address of the relay.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Holds back all data without closing connections, or resumes.
    pub(crate) fn silence(&self, silent: bool) {
        self.state.silent.store(silent, Ordering::SeqCst);
    }

    /// Resets all connections and rejects new ones.
    pub(crate) fn close(&self) {
        self.state.closed.store(true, Ordering::SeqCst);
        self.hang_up();
    }

    /// Accepts connections again.
    pub(crate) fn reopen(&self) {
        self.state.closed.store(false, Ordering::SeqCst);
    }

    fn hang_up(&self) {
        for stream in self.state.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for TestRelay {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        self.hang_up();
        // Wakes the accepting thread.
        drop(TcpStream::connect(self.address));
    }
}

fn accept(listener: &TcpListener, server: SocketAddr, state: &Arc<RelayState>) {
    for here in listener.incoming() {
        if state.ended.load(Ordering::SeqCst) {
            return;
        }
        let (Ok(here), Ok(there)) = (here, TcpStream::connect(server)) else {
            continue;
        };
        if state.closed.load(Ordering::SeqCst) {
            continue;
        }
        let ends = [&here, &there].map(|stream| stream.try_clone().unwrap());
        state.streams.lock().unwrap().extend(ends);
        let [up, down] = [(&here, &there), (&there, &here)]
            .map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()));
        for (from, to) in [up, down] {
            let state = state.clone();
            thread::spawn(move || pass(from, to, &state));
        }
    }
}

/// Forwards data, unless the relay is silent.
fn pass(mut from: TcpStream, mut to: TcpStream, state: &RelayState) {
    to.set_nodelay(true).unwrap();
    let mut bytes = [0; 1 << 14];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        while state.silent.load(Ordering::SeqCst) && !state.ended.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
