//! The preparation of a run: everything that can fail before the first request is due.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant as WallInstant;

use posthaste_http::streams::catalogue::FieldCatalogue;
use posthaste_units::Span;
use rustls::pki_types::ServerName;

use crate::buying::{Buying, FollowedCatalogue};
use crate::clock::RunClock;
use crate::error::RunError;
use crate::event_loop::Shared;
use crate::exchange::stream_client::StreamSetUp;
use crate::plan::mix::Mix;
use crate::plan::protocol::Protocol;
use crate::plan::share::Share;
use crate::plan::{Connections, Plan};
use crate::request::{Request, RequestContext, RequestError, RequestSpec};
use crate::stop::StopOrders;
use crate::target::{NameLookUp, RequestTarget, TargetError, TargetOrigin, TargetPolicy};
use crate::transport::quic::{QlogDirectory, QlogOptions};
use crate::transport::tls::{self, TlsError};

/// Descriptors reserved for the rest of the process.
const SPARE_DESCRIPTORS: u64 = 64;
/// Safe methods (RFC 9110, section 9.2.1): a repetition changes nothing at the server.
const SAFE_METHODS: [&str; 4] = ["GET", "HEAD", "OPTIONS", "TRACE"];

/// Prepares the requests, the servers and the offers of a share of `plan`.
pub(crate) fn prepare<'r>(
    plan: &'r Plan,
    share: Share,
    stop: StopOrders<'r>,
    policy: &dyn TargetPolicy,
) -> Result<Shared<'r>, RunError> {
    check(plan)?;
    if let Some(buying) = plan.buying.as_ref().filter(|_| policy.is_restrictive()) {
        permit_broker(buying, policy)?;
    }
    let Targets {
        requests,
        origins,
        dns,
        catalogue,
    } = look_up_targets(plan, policy)?;
    if plan.protocol.quic().is_some() {
        check_encrypted(&origins)?;
    }
    let names = server_names(&origins)?;
    let tls = (!names.is_empty())
        .then(|| plan.tls.config(plan.protocol.alpn()))
        .transpose()?;
    let create = |options: &QlogOptions| {
        QlogDirectory::create(options).map_err(|reason| RunError::Qlog {
            path: options.directory.clone(),
            reason,
        })
    };
    let qlog = plan.qlog.as_ref().map(create).transpose()?;
    let qlog = qlog.map(Arc::new);
    let streams = catalogue
        .map(|catalogue| {
            let (tls, qlog) = (tls.as_deref(), qlog.clone());
            StreamSetUp::new(plan.protocol, &catalogue, tls, origins.len(), qlog)
        })
        .transpose()?;
    let buying = plan.buying.as_ref();
    let offers = buying.map(|buying| FollowedCatalogue::follow(buying, stop.now));
    Ok(Shared {
        plan,
        share,
        mix: Mix::new(requests, plan),
        origins,
        dns,
        names,
        // TLS is a part of QUIC.
        tls: tls.filter(|_| plan.protocol.quic().is_none()),
        streams,
        qlog,
        clock: RunClock::new(WallInstant::now()),
        offers: offers.transpose()?,
        stop,
        incomplete: AtomicBool::new(false),
        budget: plan.decoding.map(|_| Arc::default()),
        limit: connection_limit(plan, share),
        window: plan.window(),
        recorder: None,
    })
}

/// Rejects a plan without requests, and cores that this machine does not have.
fn check(plan: &Plan) -> Result<(), RunError> {
    if plan.requests.is_empty() {
        return Err(RunError::Plan(
            "nothing to request: the mix is empty".to_owned(),
        ));
    }
    if plan.is_empty() {
        return Err(RunError::Plan(
            "nothing would be sent: raise the rate or the duration".to_owned(),
        ));
    }
    check_protocol(plan)?;
    let here = posthaste_serve::available_cpus();
    if let Some(cpu) = plan.cpus.iter().find(|cpu| !here.contains(cpu)) {
        return Err(RunError::Plan(format!(
            "there is no core {cpu} to run on: there are {here:?}"
        )));
    }
    Ok(())
}

/// Rejects options that the protocol does not have.
fn check_protocol(plan: &Plan) -> Result<(), RunError> {
    let is_call = |spec: &RequestSpec| spec.grpc.is_some();
    if plan.has_calls() && !plan.requests.iter().all(is_call) {
        return Err(RunError::Plan(
            "gRPC calls and other requests need a run each".to_owned(),
        ));
    }
    if plan.qlog.is_some() && plan.protocol.quic().is_none() {
        return Err(RunError::Plan(
            "--qlog is for QUIC: add --http 3".to_owned(),
        ));
    }
    let Some(multiplexing) = plan.protocol.multiplexing() else {
        return if plan.has_calls() {
            Err(RunError::Plan("gRPC calls need HTTP/2".to_owned()))
        } else {
            Ok(())
        };
    };
    if plan.protocol.quic().is_some() && plan.has_calls() {
        return Err(RunError::Plan(
            "gRPC calls need HTTP/2: leave --http 3 out".to_owned(),
        ));
    }
    check_early_data(plan)?;
    let (connections, threads) = (multiplexing.connections, plan.threads);
    if connections == 0 || connections % threads != 0 {
        return Err(RunError::Plan(format!(
            "{connections} connections cannot be shared by {threads} threads: \
             give --connections a multiple of --threads"
        )));
    }
    if multiplexing.streams == Some(0) {
        return Err(RunError::Plan(
            "nothing can be sent with --streams 0: give it 1 or more".to_owned(),
        ));
    }
    if plan.buying.is_some() {
        return Err(RunError::Plan(format!(
            "clients that choose by price use HTTP/1.1: leave --broker out, or --http {}",
            plan.protocol.name()
        )));
    }
    Ok(())
}

/// Rejects early data with requests that must not be repeated. An attacker who sees early data can send it again, and a
/// server can process it twice (RFC 8470).
fn check_early_data(plan: &Plan) -> Result<(), RunError> {
    if !plan.protocol.has_early_data() {
        return Ok(());
    }
    let mut methods = plan.requests.iter().map(|spec| spec.method.as_str());
    match methods.find(|method| !SAFE_METHODS.contains(method)) {
        Some(method) => Err(RunError::Plan(format!(
            "{method} does not go with --early-data, because an attacker can repeat early data: \
             leave --early-data out, or use {}",
            SAFE_METHODS.join(", ")
        ))),
        None => Ok(()),
    }
}

/// Rejects servers without TLS, which QUIC always has.
fn check_encrypted(origins: &[TargetOrigin]) -> Result<(), RunError> {
    match origins.iter().find(|origin| !origin.tls) {
        Some(origin) => Err(RunError::Plan(format!(
            "HTTP/3 is encrypted: give {} with https://, or --http 1.1 or 2",
            origin.authority()
        ))),
        None => Ok(()),
    }
}

/// Checks that this process may connect to the broker.
fn permit_broker(buying: &Buying, policy: &dyn TargetPolicy) -> Result<(), RunError> {
    let names = NameLookUp {
        stated: &[],
        known: &[],
        policy,
    };
    match RequestTarget::look_up_with(&buying.broker, &names) {
        Err(error @ TargetError::NotPermitted(_)) => Err(RequestError::from(error).into()),
        // Other errors are those of the connection to the broker.
        _ => Ok(()),
    }
}

/// The requests of a mix, and their servers.
struct Targets {
    requests: Vec<Request>,
    origins: Vec<TargetOrigin>,
    /// Duration of the name look-up of each server.
    dns: Vec<Span>,
    /// The fields of all requests, if the protocol numbers them.
    catalogue: Option<FieldCatalogue>,
}

/// Prepares each request. A name is looked up once for all requests of the mix.
fn look_up_targets(plan: &Plan, policy: &dyn TargetPolicy) -> Result<Targets, RunError> {
    let keep_alive = plan.connections == Connections::KeepAlive;
    let (mut origins, mut requests, mut dns) = (Vec::<TargetOrigin>::new(), Vec::new(), Vec::new());
    let mut known = Vec::new();
    let mut context = RequestContext {
        data: &plan.data,
        keep_alive,
        catalogue: match plan.protocol {
            Protocol::Http1 => None,
            Protocol::Http2(_) | Protocol::Http3 { .. } => Some(FieldCatalogue::default()),
        },
    };
    for spec in &plan.requests {
        let names = NameLookUp {
            stated: &plan.resolve,
            known: &known,
            policy,
        };
        let target = RequestTarget::look_up_with(&spec.url, &names).map_err(RequestError::from)?;
        let index = origins.iter().position(|origin| *origin == target.origin);
        let index = index.unwrap_or_else(|| {
            dns.push(target.dns);
            known.extend(target.origin.as_resolve());
            origins.push(target.origin.clone());
            origins.len() - 1
        });
        let request = Request::prepare(spec, &target, index, &mut context)?;
        requests.push(request);
    }
    let catalogue = context.catalogue;
    Ok(Targets {
        requests,
        origins,
        dns,
        catalogue,
    })
}

/// The names that the certificates of TLS servers must prove, by index of the server.
fn server_names(origins: &[TargetOrigin]) -> Result<HashMap<usize, ServerName<'static>>, TlsError> {
    let secure = origins.iter().enumerate().filter(|(_, origin)| origin.tls);
    secure
        .map(|(index, origin)| Ok((index, tls::server_name(&origin.host)?)))
        .collect()
}

/// Returns the maximum number of connections per loop.
fn connection_limit(plan: &Plan, share: Share) -> usize {
    let descriptors = posthaste_serve::open_files();
    let usable = descriptors.saturating_sub(SPARE_DESCRIPTORS).max(1);
    let usable = usize::try_from(usable).unwrap_or(usize::MAX);
    let limit = (plan.connection_limit / plan.threads).min(usable / share.loops);
    limit.max(1)
}
