//! The forwarding stage: selects an endpoint and a connection, sends the request, receives the head of the reply.
//!
//! | module | content |
//! |---|---|
//! | `route_upstreams`, `target`, `endpoint` | shared by all threads: upstreams of a route, one upstream, one address |
//! | `members`, `pool`, `connection` | of one thread: the choice of an endpoint, and the connections to it |
//! | `http2_requests`, `http2` | requests over HTTP/2: the choice of a connection, and the connections |
//! | `names`, `resolution`, `changes` | names whose addresses change |
//! | `health`, `health_check` | exclusion after failed connections and checks |
//! | `ejection`, `ejection_state`, `watched_request` | exclusion after failed and slow replies |
//! | `retry`, `retry_budget` | further attempts |

pub(crate) mod body;
mod changes;
pub(crate) mod concurrency_limit;
mod connection;
mod early_hints;
mod ejection;
mod ejection_state;
pub(crate) mod endpoint;
pub(crate) mod error;
pub(crate) mod grpc_outcome;
pub(crate) mod health;
pub(crate) mod health_check;
mod health_request;
mod http1_fields;
mod http2;
mod http2_requests;
mod idle_timeout;
mod in_use;
mod keep_alive;
pub(crate) mod known_pools;
mod members;
pub(crate) mod names;
mod pool;
mod probe;
mod rejected;
pub(crate) mod reported_load;
pub(crate) mod resolution;
pub(crate) mod retry;
mod retry_budget;
pub(crate) mod route_upstreams;
pub(crate) mod switched;
pub(crate) mod target;
mod watched_request;

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use posthaste_gateway_config::{Timeouts, UpstreamProtocol};
use posthaste_serve::{MAX_FIELDS, Peer};
use posthaste_units::Dscp;
use tokio::time::{Instant, timeout_at};

use self::body::{Http1Body, UpstreamBody};
use self::connection::UpstreamConnection;
use self::early_hints::HintReceiver;
use self::ejection::Ejector;
use self::endpoint::UpstreamEndpoint;
use self::error::{UpstreamError, lacks_descriptors};
use self::http1_fields::Http1Fields;
use self::known_pools::KnownPools;
use self::members::{Member, Members, Tried};
use self::pool::PooledGuard;
use self::retry::{Retries, copy_to_repeat, copy_to_retry, is_safe};
use self::route_upstreams::RouteUpstreams;
use self::switched::Switches;
use self::target::UpstreamTarget;
use self::watched_request::WatchedRequest;
use crate::record::metrics::GatewayMetrics;
use crate::record::upstream_counters::UpstreamCounters;
use crate::request::body::RequestBody;
use crate::request::media::{is_grpc, may_pause};
use crate::request::trailers::RemovedTrailers;

/// The reason without a reply, and the request if nothing of it was sent.
pub(crate) type SendError = (UpstreamError, Option<Request<RequestBody>>);

/// The upstreams of a route, for one thread.
pub(crate) struct Upstreams {
    metrics: Arc<GatewayMetrics>,
    targets: Vec<Arc<UpstreamTarget>>,
    members: Members,
    may_speak_http2: bool,
    retries: Option<Retries>,
    ejector: Option<Arc<Ejector>>,
    /// `None` if no hints are forwarded.
    hints: Option<RemovedTrailers>,
    /// Maximum number of fields of a reply's head.
    max_fields: usize,
    connect: Duration,
    reply: Duration,
    reply_body: Duration,
    tunnel: Duration,
    idle: Duration,
}

impl Upstreams {
    pub(crate) fn new(
        metrics: &Arc<GatewayMetrics>,
        upstreams: &RouteUpstreams,
        timeouts: &Timeouts,
        pools: &KnownPools,
    ) -> Self {
        Self {
            metrics: metrics.clone(),
            may_speak_http2: upstreams.protocol != UpstreamProtocol::Http1,
            targets: upstreams.targets.clone(),
            members: Members::new(metrics, upstreams, pools),
            retries: Retries::new(&upstreams.retry, &upstreams.budget),
            ejector: upstreams.ejector.clone(),
            hints: None,
            max_fields: MAX_FIELDS,
            connect: timeouts.connect.into(),
            reply: timeouts.reply.into(),
            reply_body: timeouts.reply_body.into(),
            tunnel: timeouts.tunnel.into(),
            idle: timeouts.upstream_idle.into(),
        }
    }

    /// Sends the `request` of `peer` to the least busy endpoint, in packets with `mark`. Fails at the `deadline`.
    ///
    /// Retries once, on a fresh connection, if a reused connection closes before any reply and the request is GET,
    /// HEAD or OPTIONS without a body. A request that finds no connection, or of which nothing was sent, goes to the
    /// next endpoint.
    pub(crate) async fn send(
        &self,
        request: Request<RequestBody>,
        mark: Dscp,
        peer: &Peer,
        deadline: Option<Instant>,
    ) -> Result<(Response<UpstreamBody>, &UpstreamTarget), UpstreamError> {
        let outcome = match &self.retries {
            None => {
                let mut tried = Tried::new(deadline);
                let sent = self.send_to_any(request, mark, peer, &mut tried).await;
                sent.map_err(|(failure, _)| failure)
            }
            Some(retries) => {
                let sending = self.send_repeatedly(retries, request, mark, peer, deadline);
                Box::pin(sending).await
            }
        };
        outcome.inspect_err(|failure| self.count_failure(failure))
    }

    /// Sends the `request` as [`Upstreams::send`], without further attempts after a byte was sent, and without waiting for
    /// a lookup: the caller has other upstreams, and counts the last failure. An error includes the request if nothing of
    /// it was sent.
    pub(crate) async fn send_once(
        &self,
        request: Request<RequestBody>,
        mark: Dscp,
        peer: &Peer,
        deadline: Option<Instant>,
    ) -> Result<(Response<UpstreamBody>, &UpstreamTarget), SendError> {
        let mut tried = Tried::new(deadline);
        tried.has_others = true;
        self.send_to_any(request, mark, peer, &mut tried).await
    }

    /// Counts the failure with which a request has ended.
    pub(crate) fn count_failure(&self, failure: &UpstreamError) {
        if !failure.is_of_client() {
            self.metrics.failed(failure.kind());
        }
    }

    /// Sends a request again if it fails, as far as the rules of the route permit.
    async fn send_repeatedly(
        &self,
        retries: &Retries,
        mut request: Request<RequestBody>,
        mark: Dscp,
        peer: &Peer,
        deadline: Option<Instant>,
    ) -> Result<(Response<UpstreamBody>, &UpstreamTarget), UpstreamError> {
        retries.count_request();
        let mut tried = Tried::new(deadline);
        for _ in 0..retries.attempts() {
            let Some(again) = copy_to_retry(&request) else {
                break;
            };
            let outcome = self.send_to_any(request, mark, peer, &mut tried).await;
            let outcome = outcome.map_err(|(failure, _)| failure);
            let reply = outcome.as_ref().map(|(reply, _)| reply);
            if !retries.permit(reply, &self.metrics.upstreams) {
                return outcome;
            }
            // Dropping an incomplete reply closes its connection.
            drop(outcome);
            request = again;
        }
        let sent = self.send_to_any(request, mark, peer, &mut tried).await;
        sent.map_err(|(failure, _)| failure)
    }

    /// Tries endpoints one after another until one takes the request. If none does and a failed connection has caused
    /// another lookup of a name, waits for its result, for at most the time of a connection. An error includes the request
    /// if nothing of it was sent.
    async fn send_to_any(
        &self,
        mut request: Request<RequestBody>,
        mark: Dscp,
        peer: &Peer,
        tried: &mut Tried,
    ) -> Result<(Response<UpstreamBody>, &UpstreamTarget), SendError> {
        let mut last = self.members.reason_without_any();
        let mut wait_end = None;
        loop {
            let Some(member) = self.members.choose(tried) else {
                let end = *wait_end.get_or_insert_with(|| Instant::now() + self.connect);
                let end = tried.deadline.map_or(end, |deadline| deadline.min(end));
                // Boxed for the same reason as a connection: it is rare.
                if !tried.has_others && Box::pin(self.members.wait_for_change(end)).await {
                    continue;
                }
                let failure = if tried.is_late() {
                    UpstreamError::Deadline
                } else {
                    last
                };
                return Err((failure, Some(request)));
            };
            if !member.endpoint.health.try_use() {
                tried.failed.push(member.key());
                continue;
            }
            let ejector = self.ejector.as_ref();
            let watch =
                ejector.map(|ejector| WatchedRequest::start(ejector, request.body().progress()));
            let sent = match tried.deadline {
                None => self.send_to_one(&member, request, mark, peer).await,
                // Boxed, so that requests without a deadline do not carry space for it.
                Some(end) => Box::pin(self.send_until(end, &member, request, mark, peer)).await,
            };
            if let Some(watch) = watch {
                watch.end(&member, &sent, &self.targets, &self.metrics.upstreams);
            }
            if self.retries.is_some() {
                tried.attempted.push(member.key());
            }
            match sent {
                Ok(reply) => return Ok((reply, &self.targets[member.index])),
                Err((failure, None)) => return Err((failure, None)),
                Err((failure, Some(unsent))) => {
                    // A refused connection says less than the failure of another address.
                    if last.is_exclusion() || matches!(last, UpstreamError::Connect(_)) {
                        last = failure;
                    }
                    request = unsent;
                }
            }
            tried.failed.push(member.key());
        }
    }

    /// Sends a request with a deadline to one endpoint. Resets its stream at the deadline.
    async fn send_until(
        &self,
        deadline: Instant,
        member: &Member,
        request: Request<RequestBody>,
        mark: Dscp,
        peer: &Peer,
    ) -> Result<Response<UpstreamBody>, SendError> {
        let sending = self.send_to_one(member, request, mark, peer);
        let sent = timeout_at(deadline, sending).await;
        sent.unwrap_or(Err((UpstreamError::Deadline, None)))
    }

    /// Sends the request to one endpoint. An error includes the request if nothing of it was sent, or if it is safe to
    /// send again and found no second connection.
    async fn send_to_one(
        &self,
        member: &Member,
        mut request: Request<RequestBody>,
        mark: Dscp,
        peer: &Peer,
    ) -> Result<Response<UpstreamBody>, SendError> {
        let (target, endpoint, pool) = member.parts();
        // A switch gets a connection of its own, over HTTP/1.1.
        let switches = request.extensions().get::<Switches>().is_some();
        if !switches && target.speaks_http2(pool) {
            // Boxed, so that requests over HTTP/1.1 do not carry space for this future.
            return Box::pin(self.send_by_http2(member, request, mark, peer)).await;
        }
        let fields = Http1Fields::apply(request.headers_mut(), target);
        let (pooled, hints) = (pool.begin_use(), self.hints(peer));
        let is_head = *request.method() == Method::HEAD;
        let mut reuses = !switches && (!pool.closes_kept() || may_reuse(&request, peer));
        let mut connection = loop {
            while reuses
                && let Some(mut connection) = poll_fn(|cx| Poll::Ready(pool.take(cx, mark))).await
            {
                let again = copy_to_repeat(&request);
                match connection
                    .send_with_hints(request, self.reply, Some(&hints))
                    .await
                {
                    Ok(reply) => {
                        endpoint.health.connected();
                        let received = self.received(reply, connection, pooled, is_head);
                        return received.map_err(|failure| (failure, None));
                    }
                    Err((_, Some(unsent))) => request = unsent,
                    Err((failure, None)) => {
                        let was_closed = failure.is_close() && !connection.has_received();
                        if was_closed {
                            pool.note_close();
                        }
                        let again = again.filter(|_| was_closed);
                        let explained = |failure| match failure {
                            UpstreamError::Broken(error) if was_closed => target.closed(error),
                            other => other,
                        };
                        request = again.ok_or_else(|| (explained(failure), None))?;
                        // Other connections may have been closed for the same reason.
                        break;
                    }
                }
            }
            // Boxed: few requests need a new connection, and the future would enlarge them all.
            match Box::pin(self.connect(target, endpoint, mark, peer)).await {
                Ok(connection) => break connection,
                // A kept connection is better than none.
                Err(failure) if failure.is_ours() && !reuses && !switches => reuses = true,
                Err(failure) => {
                    fields.undo(request.headers_mut());
                    return Err((failure, Some(request)));
                }
            }
        };
        if !reuses && !switches {
            pool.close_oldest(mark);
        }
        if switches {
            connection.keep_for_switch();
        }
        let received = match connection
            .send_with_hints(request, self.reply, Some(&hints))
            .await
        {
            Ok(reply) => {
                connection.kept_for = keep_alive::stated(reply.headers());
                self.received(reply, connection, pooled, is_head)
            }
            Err((failure, _)) => Err(failure),
        };
        received.map_err(|failure| (failure, None))
    }

    /// Maximum wait for the head of a reply. A call may wait as long as its stream may pause: many servers send the head
    /// with the first message.
    fn head_limit(&self, request: &HeaderMap) -> Duration {
        if is_grpc(request) {
            self.reply.max(self.tunnel)
        } else {
            self.reply
        }
    }

    /// Maximum pause of the body of a reply.
    fn body_limit(&self, reply: &HeaderMap) -> Duration {
        if may_pause(reply) {
            self.reply_body.max(self.tunnel)
        } else {
            self.reply_body
        }
    }

    /// Sends hints of upstreams to clients, without fields that the route changes in replies.
    pub(crate) fn forward_hints(&mut self, removed: &RemovedTrailers) {
        self.hints = Some(removed.clone());
    }

    /// Limits the fields of a reply's head over HTTP/1.1.
    pub(crate) fn limit_fields(&mut self, most: usize) {
        self.max_fields = most;
    }

    /// The receiver of the hints before a reply.
    fn hints<'a>(&'a self, peer: &'a Peer) -> HintReceiver<'a> {
        HintReceiver {
            peer,
            removed: self.hints.as_ref(),
        }
    }

    /// The rules for further attempts, if there are any.
    pub(crate) fn retries(&self) -> Option<&Retries> {
        self.retries.as_ref()
    }

    pub(crate) fn counters(&self) -> &UpstreamCounters {
        &self.metrics.upstreams
    }

    /// True if no upstream of the route can get a call of gRPC. False for a route with offers alone.
    pub(crate) fn lacks_http2(&self) -> bool {
        self.has_any() && !self.targets.iter().any(|target| target.may_speak_http2())
    }

    /// False if the route has only offers.
    pub(crate) fn has_any(&self) -> bool {
        !self.targets.is_empty()
    }

    /// Fewest requests of this thread in flight to a usable endpoint. `None` if no endpoint is usable.
    pub(crate) fn least_in_flight(&self) -> Option<usize> {
        self.members.least_in_flight()
    }

    /// Adds the connections of each address.
    pub(crate) fn add_pools(&self, pools: &mut KnownPools) {
        self.members.add_pools(pools);
    }

    /// Closes the connections that no later configuration uses.
    pub(crate) fn retire(&self) {
        self.members.retire();
    }

    /// Closes connections that have been unused too long.
    pub(crate) fn close_unused(&self) {
        self.members.close_unused(self.idle);
    }

    async fn connect(
        &self,
        target: &UpstreamTarget,
        endpoint: &UpstreamEndpoint,
        mark: Dscp,
        peer: &Peer,
    ) -> Result<UpstreamConnection, UpstreamError> {
        let mut connected = target.connect(endpoint, self.connect).await;
        if connected.as_ref().is_err_and(lacks_descriptors) && peer.evict_unused().await {
            connected = target.connect(endpoint, self.connect).await;
        }
        let outcome = match connected {
            Ok(stream) => {
                if mark != Dscp::DEFAULT
                    && let Err(error) = stream.mark(mark)
                {
                    self.metrics.mark_refused(&error);
                }
                Ok(
                    UpstreamConnection::with_fields(stream, mark, self.max_fields)
                        .await
                        .map_err(UpstreamError::Broken)?,
                )
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(UpstreamError::ConnectTimeout)
            }
            Err(error) => Err(UpstreamError::Connect(error)),
        };
        match &outcome {
            Ok(_) => endpoint.health.connected(),
            Err(failure) => {
                if !failure.is_ours() && endpoint.health.failed() {
                    let (upstream, address) = (&target.name, endpoint.address);
                    tracing::warn!(upstream, %address, %failure, "excluded for a while");
                }
            }
        }
        outcome
    }

    fn received(
        &self,
        reply: Response<hyper::body::Incoming>,
        mut connection: UpstreamConnection,
        pooled: PooledGuard,
        is_head: bool,
    ) -> Result<Response<UpstreamBody>, UpstreamError> {
        if is_head && keep_alive::ends_with_connection(&reply) {
            connection.kept_for = Some(Duration::ZERO);
        }
        // Without a forwarded Upgrade, no client has requested this (RFC 9110, section 15.2.2).
        if reply.status() == StatusCode::SWITCHING_PROTOCOLS && !connection.switches() {
            return Err(UpstreamError::Switched);
        }
        let limit = self.body_limit(reply.headers());
        Ok(reply.map(|body| UpstreamBody::Http1(Http1Body::new(body, connection, pooled, limit))))
    }
}

/// True if a request may use a kept connection of an upstream that closes them without announcing it. A request that is safe to
/// send again may; any other may if it is not the first of its client's connection, because the client then knows this
/// case and sends it again if the connection closes without a reply.
fn may_reuse(request: &Request<RequestBody>, peer: &Peer) -> bool {
    is_safe(request.method(), request.body()) || !peer.is_first_request()
}
