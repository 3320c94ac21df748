//! The forwarding stage: selects an upstream and a connection, sends the request, receives the head of the reply.

mod check;
mod health;
mod line;
mod patience;
mod pool;
mod probe;
mod reported;
mod target;

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::header::HOST;
use hyper::{Method, Request, Response, StatusCode};
use posthaste_serve::Peer;
use posthaste_units::Dscp;
use rustix::io::Errno;

use self::line::Line;
use self::pool::{Home, Pool};
use crate::body::{BodyError, Outgoing};
use crate::config::Timeouts;
use crate::context::GatewayContext;

pub(crate) use self::check::Checks;
pub(crate) use self::health::State;
pub(crate) use self::line::Passing;
pub(crate) use self::target::Target;
pub use self::target::TargetError;

/// Reasons for a missing or incomplete reply.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Every upstream of the route is excluded.
    #[error("no upstream is healthy")]
    NoneHealthy,
    /// The connection failed.
    #[error("the upstream cannot be connected to: {0}")]
    Connect(io::Error),
    /// The connection timed out.
    #[error("the upstream did not take the connection in time")]
    ConnectTimeout,
    /// The connection broke, or its data is not HTTP.
    #[error("the upstream's reply is broken: {0}")]
    Broken(hyper::Error),
    /// The upstream closed a reused connection without a reply, and the request cannot be sent twice.
    #[error(
        "the upstream closed a kept connection without announcing it (Connection: close), and this request cannot be sent twice: {0}"
    )]
    Closed(hyper::Error),
    /// Status 101, which no request has asked for.
    #[error("the upstream switched protocols unasked")]
    Switched,
    /// The head of the reply timed out.
    #[error("the upstream did not reply in time")]
    ReplyTimeout,
    /// The reply could not be compressed.
    #[error("the reply could not be compressed: {0}")]
    Codec(io::Error),
    /// The body of the reply timed out.
    #[error("the upstream stopped in the middle of its reply")]
    Stalled,
}

impl Failure {
    /// Names of the kinds, in the order of [`Failure::kind`].
    pub(crate) const KINDS: [&'static str; 9] = [
        "none-healthy",
        "connect",
        "connect-timeout",
        "broken",
        "reply-timeout",
        "codec",
        "stalled",
        "closed",
        "switched",
    ];

    /// The client's error in its own request, if that ended the exchange.
    pub(crate) fn of_client(&self) -> Option<&BodyError> {
        let Self::Broken(error) = self else {
            return None;
        };
        error.source()?.downcast_ref()
    }

    /// True if the upstream closed the connection instead of replying.
    fn is_close(&self) -> bool {
        let Self::Broken(error) = self else {
            return false;
        };
        let cause = error.source();
        error.is_incomplete_message() || cause.is_some_and(|cause| cause.is::<io::Error>())
    }

    /// True if the failure says nothing about the upstream: this process or machine lacks resources.
    fn is_ours(&self) -> bool {
        let Self::Connect(error) = self else {
            return false;
        };
        let errno = Errno::from_io_error(error);
        let ours = [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOBUFS,
            Errno::NOMEM,
            Errno::ADDRNOTAVAIL,
        ];
        errno.is_some_and(|errno| ours.contains(&errno))
    }

    /// Index of the kind in [`Failure::KINDS`].
    pub(crate) const fn kind(&self) -> usize {
        match self {
            Self::NoneHealthy => 0,
            Self::Connect(_) => 1,
            Self::ConnectTimeout => 2,
            Self::Broken(_) => 3,
            Self::ReplyTimeout => 4,
            Self::Codec(_) => 5,
            Self::Stalled => 6,
            Self::Closed(_) => 7,
            Self::Switched => 8,
        }
    }
}

/// The reason without a reply, and the request if nothing of it was sent.
type Unanswered = (Failure, Option<Request<Outgoing>>);

/// The upstreams of a route, for one thread.
pub(crate) struct Upstreams {
    context: Arc<GatewayContext>,
    members: Vec<(Arc<Target>, Rc<Pool>)>,
    connect: Duration,
    reply: Duration,
    reply_body: Duration,
    idle: Duration,
}

impl Upstreams {
    pub(crate) fn new(
        context: &Arc<GatewayContext>,
        targets: &[Arc<Target>],
        timeouts: &Timeouts,
    ) -> Self {
        let member = |target: &Arc<Target>| (target.clone(), Rc::new(Pool::new(context.clone())));
        Self {
            context: context.clone(),
            members: targets.iter().map(member).collect(),
            connect: timeouts.connect.into(),
            reply: timeouts.reply.into(),
            reply_body: timeouts.reply_body.into(),
            idle: timeouts.upstream_idle.into(),
        }
    }

    /// Sends the `request` of `peer` to the least busy upstream, in packets with `mark`.
    ///
    /// Retries once, on a fresh connection, if a reused connection closes before any reply and the request is GET,
    /// HEAD or OPTIONS without a body. A request of which nothing was sent goes to the next upstream.
    pub(crate) async fn ask(
        &self,
        request: Request<Outgoing>,
        mark: Dscp,
        peer: &Peer,
    ) -> Result<(Response<Passing>, &Target), Failure> {
        let outcome = self.ask_each(request, mark, peer).await;
        outcome.inspect_err(|failure| {
            if failure.of_client().is_none() {
                self.context.metrics.failed(failure);
            }
        })
    }

    /// Tries upstreams one after another until one takes the request.
    async fn ask_each(
        &self,
        mut request: Request<Outgoing>,
        mark: Dscp,
        peer: &Peer,
    ) -> Result<(Response<Passing>, &Target), Failure> {
        let mut refused = Vec::new();
        let mut last = Failure::NoneHealthy;
        while let Some(index) = self.choose(&refused) {
            let (target, pool) = &self.members[index];
            if !target.health.lets_in() {
                refused.push(index);
                continue;
            }
            match self.ask_one(target, pool, request, mark, peer).await {
                Ok(reply) => return Ok((reply, target)),
                Err((failure, None)) => return Err(failure),
                Err((failure, Some(unsent))) => (last, request) = (failure, unsent),
            }
            refused.push(index);
        }
        Err(last)
    }

    /// Sends the request to one upstream. An error includes the request if nothing of it was sent.
    async fn ask_one(
        &self,
        target: &Target,
        pool: &Rc<Pool>,
        mut request: Request<Outgoing>,
        mark: Dscp,
        peer: &Peer,
    ) -> Result<Response<Passing>, Unanswered> {
        // HTTP/1.0 requires no Host: the upstream's name replaces it.
        let names_host = request.headers().contains_key(HOST);
        if !names_host {
            request.headers_mut().insert(HOST, target.host.clone());
        }
        let home = pool.enter();
        let mut was_sent = false;
        while let Some(mut line) = poll_fn(|cx| Poll::Ready(pool.take(cx, mark))).await {
            let again = copy_to_repeat(&request);
            match line.send(request, self.reply).await {
                Ok(reply) => {
                    target.health.connected();
                    let received = self.received(reply, line, home);
                    return received.map_err(|failure| (failure, None));
                }
                Err((_, Some(unsent))) => request = unsent,
                Err((failure, None)) => {
                    let was_closed = failure.is_close() && !line.has_heard();
                    let again = again.filter(|_| was_closed);
                    let told = |failure| match failure {
                        Failure::Broken(error) if was_closed => target.closed(error),
                        other => other,
                    };
                    request = again.ok_or_else(|| (told(failure), None))?;
                    was_sent = true;
                    // Other connections may have been closed for the same reason.
                    break;
                }
            }
        }
        // Boxed: few requests need a new connection, and the future would enlarge them all.
        let mut line = match Box::pin(self.connect(target, mark, peer)).await {
            Ok(line) => line,
            Err(failure) => {
                if !names_host {
                    request.headers_mut().remove(HOST);
                }
                return Err((failure, (!was_sent).then_some(request)));
            }
        };
        let received = match line.send(request, self.reply).await {
            Ok(reply) => self.received(reply, line, home),
            Err((failure, _)) => Err(failure),
        };
        received.map_err(|failure| (failure, None))
    }

    /// Closes connections that have been unused too long.
    pub(crate) fn close_unused(&self) {
        for (_, pool) in &self.members {
            pool.close_unused(self.idle);
        }
    }

    /// Returns the index of the least busy healthy upstream that is not in `refused`.
    fn choose(&self, refused: &[usize]) -> Option<usize> {
        let members = self.members.iter().enumerate();
        let least = members
            .filter(|(index, (target, _))| target.health.is_up() && !refused.contains(index))
            .min_by_key(|(_, (_, pool))| pool.in_use());
        least.map(|(index, _)| index)
    }

    async fn connect(&self, target: &Target, mark: Dscp, peer: &Peer) -> Result<Line, Failure> {
        let mut connected = target.connect(self.connect).await;
        if connected.as_ref().is_err_and(lacks_descriptors) && peer.evict_unused().await {
            connected = target.connect(self.connect).await;
        }
        let outcome = match connected {
            Ok(stream) => {
                if mark != Dscp::DEFAULT
                    && let Err(error) = stream.mark(mark)
                {
                    self.context.metrics.mark_refused(&error);
                }
                Ok(Line::new(stream, mark).await.map_err(Failure::Broken)?)
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(Failure::ConnectTimeout),
            Err(error) => Err(Failure::Connect(error)),
        };
        match &outcome {
            Ok(_) => target.health.connected(),
            Err(failure) => {
                if !failure.is_ours() && target.health.failed() {
                    tracing::warn!(upstream = target.name, %failure, "left out for a while");
                }
            }
        }
        outcome
    }

    fn received(
        &self,
        reply: Response<hyper::body::Incoming>,
        line: Line,
        home: Home,
    ) -> Result<Response<Passing>, Failure> {
        // Upgrade is not forwarded, so no client has requested this (RFC 9110, section 15.2.2).
        if reply.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Failure::Switched);
        }
        Ok(reply.map(|body| Passing::new(body, line, home, self.reply_body)))
    }
}

/// True if this process or the machine has no descriptor left.
fn lacks_descriptors(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE)
    )
}

/// Returns a copy of a request that is safe to send again (RFC 9110, section 9.2.1).
fn copy_to_repeat(request: &Request<Outgoing>) -> Option<Request<Outgoing>> {
    let safe = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    let Outgoing::Nothing = request.body() else {
        return None;
    };
    safe.then(|| {
        let mut copy = Request::new(Outgoing::Nothing);
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.headers_mut() = request.headers().clone();
        copy
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_this_process_has_no_descriptor_left_is_not_held_against_an_upstream() {
        let failed = |errno: Errno| Failure::Connect(errno.into());
        assert!(failed(Errno::MFILE).is_ours() && failed(Errno::ADDRNOTAVAIL).is_ours());
        assert!(!failed(Errno::CONNREFUSED).is_ours() && !Failure::ConnectTimeout.is_ours());
    }
}
