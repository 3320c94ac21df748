//! Tasks of the calling thread as boxed futures.
//!
//! A task of tokio is generic over its future, and each instance is some kilobytes of code in the crate that starts it.
//! A box makes one instance of all. Use it for tasks that live long, or as long as a connection.

use std::pin::Pin;

use tokio::task::{JoinHandle, spawn_local};

/// A boxed future without a result.
pub(crate) type BoxedTask = Pin<Box<dyn Future<Output = ()>>>;

/// Spawns a task on the calling thread. Panics outside of a `LocalSet`.
pub fn spawn_task(task: impl Future<Output = ()> + 'static) -> JoinHandle<()> {
    spawn(Box::pin(task))
}

fn spawn(task: BoxedTask) -> JoinHandle<()> {
    spawn_local(task)
}
