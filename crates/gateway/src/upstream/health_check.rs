//! Health checks of endpoints, separate from requests.
//!
//! One task per upstream follows its addresses; it has one task per address.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use posthaste_units::Dscp;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::connection::UpstreamConnection;
use super::endpoint::UpstreamEndpoint;
use super::error::lacks_descriptors;
use super::health_request::health_request;
use super::http2::check_by_http2;
use super::target::UpstreamTarget;
use crate::config::{Health, UpstreamProtocol};

/// Running health checks. Dropping them stops them.
#[derive(Default)]
pub(crate) struct HealthChecks(Vec<RunningTask>);

/// A task that ends with this handle.
struct RunningTask(AbortHandle);

impl HealthChecks {
    /// Starts checks of `targets` on the calling thread, if a path is configured.
    pub(crate) fn add(&mut self, health: &Health, targets: &[Arc<UpstreamTarget>]) {
        let Some(path) = health
            .path
            .as_ref()
            .and_then(|path| path.parse::<Uri>().ok())
        else {
            return;
        };
        let every = Duration::from(health.every);
        let path = Rc::new(path);
        for target in targets {
            let following = follow(target.clone(), path.clone(), every);
            self.0.push(RunningTask::spawn(following));
        }
    }
}

impl RunningTask {
    fn spawn(task: impl Future<Output = ()> + 'static) -> Self {
        Self(tokio::task::spawn_local(task).abort_handle())
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Checks every endpoint of an upstream, as long as it has the address.
async fn follow(target: Arc<UpstreamTarget>, path: Rc<Uri>, every: Duration) {
    let mut sets = target.follow();
    let mut running = HashMap::<SocketAddr, (Arc<UpstreamEndpoint>, RunningTask)>::new();
    loop {
        let endpoints = sets.borrow_and_update().clone();
        let is_current = |known: &Arc<UpstreamEndpoint>| {
            let mut endpoints = endpoints.iter();
            endpoints.any(|endpoint| Arc::ptr_eq(endpoint, known))
        };
        running.retain(|_, (endpoint, _)| is_current(endpoint));
        for endpoint in endpoints.iter() {
            running.entry(endpoint.address).or_insert_with(|| {
                let checking = check(target.clone(), endpoint.clone(), path.clone(), every);
                (endpoint.clone(), RunningTask::spawn(checking))
            });
        }
        if sets.changed().await.is_err() {
            return;
        }
    }
}

async fn check(
    target: Arc<UpstreamTarget>,
    endpoint: Arc<UpstreamEndpoint>,
    path: Rc<Uri>,
    every: Duration,
) {
    let health = &endpoint.health;
    loop {
        // A check that lasts a whole interval has failed.
        let checked = timeout(every, is_well(&target, &endpoint, &path, every)).await;
        let was_up = health.is_up();
        match checked {
            Ok(Some(true)) => health.succeeded(),
            Ok(None) => {}
            Ok(Some(false)) | Err(_) => drop(health.failed()),
        }
        if was_up != health.is_up() {
            let state = if was_up { "left out" } else { "asked again" };
            let (upstream, address) = (&target.name, endpoint.address);
            tracing::warn!(upstream, %address, state, "by its health check");
        }
        sleep(every).await;
    }
}

/// Sends a check on a new connection. True for a status below 500; `None` if no file descriptor is available.
async fn is_well(
    target: &UpstreamTarget,
    endpoint: &UpstreamEndpoint,
    path: &Uri,
    limit: Duration,
) -> Option<bool> {
    let is_http1 = target.protocol == UpstreamProtocol::Http1;
    let connected = match is_http1 {
        true => target.connect(endpoint, limit).await,
        false => target.connect_for_http2(endpoint, limit).await,
    };
    let stream = match connected {
        Ok(stream) => stream,
        Err(error) => return (!lacks_descriptors(&error)).then_some(false),
    };
    if target.protocol == UpstreamProtocol::Http2 || stream.agreed_on_http2() {
        return Some(check_by_http2(stream, target, path, limit).await);
    }
    let Ok(mut connection) = UpstreamConnection::new(stream, Dscp::DEFAULT).await else {
        return Some(false);
    };
    let reply = connection.send(health_request(target, path), limit).await;
    Some(reply.is_ok_and(|reply| reply.status().as_u16() < 500))
}
