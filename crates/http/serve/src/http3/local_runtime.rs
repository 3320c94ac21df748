//! QUIC's own tasks on the serving thread.
//!
//! They are tasks of the same queue as requests, so that a reply leaves before a request that waits in turn is handled,
//! as with HTTP/2.

use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime};

/// Tokio, with tasks on the local set of the calling thread.
#[derive(Debug)]
pub(super) struct LocalRuntime;

impl Runtime for LocalRuntime {
    fn new_timer(&self, end: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(end)
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        tokio::task::spawn_local(task);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        TokioRuntime.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}
