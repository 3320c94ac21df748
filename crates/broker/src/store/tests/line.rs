//! A line between a broker and its server that can be cut.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A relay to a server.
#[derive(Debug)]
pub(crate) struct Line {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What comes is kept and not passed on, as where a cable is cut, or a server stands still.
    silent: AtomicBool,
    /// Whoever comes is sent away.
    closed: AtomicBool,
    ended: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

impl Line {
    /// To this server.
    pub(crate) fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let shared = state.clone();
        thread::spawn(move || accept(&listener, server, &shared));
        Self { address, state }
    }

    /// The end of the line on this side.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Nothing gets through, and nobody is told; or it does again.
    pub(crate) fn silence(&self, silent: bool) {
        self.state.silent.store(silent, Ordering::SeqCst);
    }

    /// Every connection is reset, and no other is taken.
    pub(crate) fn close(&self) {
        self.state.closed.store(true, Ordering::SeqCst);
        self.hang_up();
    }

    /// Connections are taken again.
    pub(crate) fn reopen(&self) {
        self.state.closed.store(false, Ordering::SeqCst);
    }

    fn hang_up(&self) {
        for stream in self.state.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        self.hang_up();
        // Wakes the one who accepts.
        drop(TcpStream::connect(self.address));
    }
}

fn accept(listener: &TcpListener, server: SocketAddr, state: &Arc<State>) {
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

/// Passes on what comes, unless the line is silent.
fn pass(mut from: TcpStream, mut to: TcpStream, state: &State) {
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
