//! Health checks of upstreams, separate from requests.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{HOST, HeaderValue, USER_AGENT};
use hyper::{Request, Uri};
use posthaste_units::Dscp;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::connection::UpstreamConnection;
use super::error::lacks_descriptors;
use super::target::UpstreamTarget;
use crate::config::Health;
use crate::request::body::RequestBody;

/// Running health checks. Dropping them stops them.
#[derive(Default)]
pub(crate) struct HealthChecks(Vec<AbortHandle>);

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
            let task = tokio::task::spawn_local(check(target.clone(), path.clone(), every));
            self.0.push(task.abort_handle());
        }
    }
}

impl Drop for HealthChecks {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

async fn check(target: Arc<UpstreamTarget>, path: Rc<Uri>, every: Duration) {
    loop {
        // A check that lasts a whole interval has failed.
        let checked = timeout(every, is_well(&target, &path, every)).await;
        let was_up = target.health.is_up();
        match checked {
            Ok(Some(true)) => target.health.succeeded(),
            Ok(None) => {}
            Ok(Some(false)) | Err(_) => drop(target.health.failed()),
        }
        if was_up != target.health.is_up() {
            let state = if was_up { "left out" } else { "asked again" };
            tracing::warn!(upstream = target.name, state, "by its health check");
        }
        sleep(every).await;
    }
}

/// Sends a check on a new connection. True for a status below 500; `None` if no file descriptor is available.
async fn is_well(target: &UpstreamTarget, path: &Uri, limit: Duration) -> Option<bool> {
    let stream = match target.connect(limit).await {
        Ok(stream) => stream,
        Err(error) => return (!lacks_descriptors(&error)).then_some(false),
    };
    let Ok(mut connection) = UpstreamConnection::new(stream, Dscp::DEFAULT).await else {
        return Some(false);
    };
    let mut request = Request::new(RequestBody::Nothing);
    *request.uri_mut() = path.clone();
    let host = target.host.clone();
    request.headers_mut().insert(HOST, host);
    let agent = HeaderValue::from_static("posthaste health check");
    request.headers_mut().insert(USER_AGENT, agent);
    let reply = connection.send(request, limit).await;
    Some(reply.is_ok_and(|reply| reply.status().as_u16() < 500))
}
