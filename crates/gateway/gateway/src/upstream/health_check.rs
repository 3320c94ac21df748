//! Health checks of endpoints, separate from requests.
//!
//! One task per upstream follows its addresses; it has one task per address.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::{StatusCode, Uri};
use posthaste_gateway_config::{Health, StatusRanges, UpstreamProtocol};
use posthaste_serve::spawn_task;
use posthaste_units::Dscp;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::connection::UpstreamConnection;
use super::endpoint::UpstreamEndpoint;
use super::error::lacks_descriptors;
use super::health_request::health_request;
use super::http2::check_by_http2;
use super::target::UpstreamTarget;

/// Running health checks. Dropping them stops them.
#[derive(Default)]
pub(crate) struct HealthChecks(Vec<RunningTask>);

/// The check of a route.
struct RouteCheck {
    path: Uri,
    passing: StatusRanges,
    /// Interval and timeout.
    every: Duration,
}

/// Result of a check.
enum CheckResult {
    Replied(StatusCode),
    /// No reply, or no connection.
    Failed,
    /// Not made: the gateway lacks a file descriptor.
    Skipped,
}

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
        let check = Rc::new(RouteCheck {
            path,
            passing: health.statuses.clone(),
            every: health.every.into(),
        });
        for target in targets {
            let following = follow(target.clone(), check.clone());
            self.0.push(RunningTask::spawn(following));
        }
    }
}

impl RunningTask {
    fn spawn(task: impl Future<Output = ()> + 'static) -> Self {
        Self(spawn_task(task).abort_handle())
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Checks every endpoint of an upstream, as long as it has the address.
async fn follow(target: Arc<UpstreamTarget>, check: Rc<RouteCheck>) {
    let mut sets = target.follow();
    let mut running = BTreeMap::<SocketAddr, (Arc<UpstreamEndpoint>, RunningTask)>::new();
    loop {
        let endpoints = sets.borrow_and_update().clone();
        let is_current = |known: &Arc<UpstreamEndpoint>| {
            let mut endpoints = endpoints.iter();
            endpoints.any(|endpoint| Arc::ptr_eq(endpoint, known))
        };
        running.retain(|_, (endpoint, _)| is_current(endpoint));
        for endpoint in endpoints.iter() {
            running.entry(endpoint.address).or_insert_with(|| {
                let checking = repeat(target.clone(), endpoint.clone(), check.clone());
                (endpoint.clone(), RunningTask::spawn(checking))
            });
        }
        if sets.changed().await.is_err() {
            return;
        }
    }
}

async fn repeat(
    target: Arc<UpstreamTarget>,
    endpoint: Arc<UpstreamEndpoint>,
    check: Rc<RouteCheck>,
) {
    let health = &endpoint.health;
    loop {
        // A check that lasts a whole interval has failed.
        let result = timeout(check.every, check.run(&target, &endpoint)).await;
        let result = result.unwrap_or(CheckResult::Failed);
        let was_up = health.is_up();
        let mut status = "none".to_owned();
        match result {
            CheckResult::Replied(replied) => {
                status = replied.as_str().to_owned();
                if check.passing.contains(replied.as_u16()) {
                    health.succeeded();
                } else {
                    health.failed();
                }
            }
            CheckResult::Failed => drop(health.failed()),
            CheckResult::Skipped => {}
        }
        if was_up != health.is_up() {
            let state = if was_up { "excluded" } else { "in use again" };
            let (upstream, address) = (&target.name, endpoint.address);
            tracing::warn!(upstream, %address, state, status, "by its health check");
        }
        sleep(check.every).await;
    }
}

impl RouteCheck {
    /// Sends a check on a new connection.
    async fn run(&self, target: &UpstreamTarget, endpoint: &UpstreamEndpoint) -> CheckResult {
        let limit = self.every;
        let connected = if target.protocol == UpstreamProtocol::Http1 {
            target.connect(endpoint, limit).await
        } else {
            target.connect_for_http2(endpoint, limit).await
        };
        let stream = match connected {
            Ok(stream) => stream,
            Err(error) if lacks_descriptors(&error) => return CheckResult::Skipped,
            Err(_) => return CheckResult::Failed,
        };
        if target.protocol == UpstreamProtocol::Http2 || stream.agreed_on_http2() {
            let status = check_by_http2(stream, target, &self.path, limit).await;
            return status.map_or(CheckResult::Failed, CheckResult::Replied);
        }
        let Ok(mut connection) = UpstreamConnection::new(stream, Dscp::DEFAULT).await else {
            return CheckResult::Failed;
        };
        let request = health_request(target, &self.path);
        match connection.send(request, limit).await {
            Ok(reply) => CheckResult::Replied(reply.status()),
            Err(_) => CheckResult::Failed,
        }
    }
}
