//! One run of the QoSProxy on a DiffServ network: router, gateway, origin and clients.
//!
//! The router with the thesis's two classes is at the generator's end of the link, gateway and origin at the far end.
//! The cross traffic is in the link itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use posthaste_bookshop::NAMESPACE;
use posthaste_emulator::{EdgeRule, Emulation, EmulationOutcome as Emulated, FlowSelector, SERVER};
use posthaste_link::{BackgroundTraffic, Class, Classes, Plan, Sharing};
use posthaste_load::{
    Arrivals, Pace, Plan as Requests, RateStep, RequestSpec, Run, run, soap_request,
};
use posthaste_qos::NAMESPACES;
use posthaste_soap::Version;
use posthaste_study::{Failure, lab::starting};
use posthaste_units::{BitRate, Dscp, Rate, Seed, Span};

use crate::testbed::origin::FixedOrigin;

/// Bandwidth of the thesis's router and of the cross traffic, in bytes a second.
pub(super) const LINE: u64 = 1_024_000;
pub(super) const BACKGROUNDS: [u64; 2] = [800_000, 1_024_000];

/// Bytes of the thesis's reply without its HTTP header.
pub(super) const REPLY: usize = 8_830;

/// Port of the gateway at the far end of the link.
const PORT: u16 = 80;

/// Maximum number of concurrent replies. Requests due beyond it are not sent. Past the limit of a class, replies then
/// run one after another instead of slowing each other down.
pub(super) const CONNECTIONS: usize = 8;

/// Timeout of a reply. A later one has had losses that no client waits for.
const TIMEOUT: Span = Span::from_secs(2);

/// The marking component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkingPoint {
    /// No marks: replies are best effort, like the cross traffic.
    Nobody,
    /// The gateway, on request.
    Gateway,
    /// The router's edge, by address: the thesis's ideal.
    Address,
}

impl MarkingPoint {
    pub(super) const ALL: [Self; 3] = [Self::Nobody, Self::Gateway, Self::Address];

    /// Name in records and legends.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Nobody => "best effort",
            Self::Gateway => "marked by the gateway",
            Self::Address => "ideal: marked by address",
        }
    }
}

/// One run.
#[derive(Clone, Copy)]
pub(super) struct MarkedRun {
    pub(super) marks: MarkingPoint,
    pub(super) background: u64,
    pub(super) rate: f64,
    pub(super) seed: Seed,
    /// Requests due before this time do not count.
    pub(super) warm_up: Span,
    pub(super) length: Span,
}

/// Runs a cell to its end.
pub(super) fn play(cell: MarkedRun, stop: Arc<AtomicBool>) -> Result<(Run, Emulated), Failure> {
    let emulation = Emulation::new(Arc::default(), Arc::new(router(cell.background)?))
        .sharing(Sharing::Whole)
        .edge(edge(cell.marks))
        .seed(cell.seed)
        .real_time(true)
        .start()?;
    let served = emulation.server.run(move || {
        let origin = FixedOrigin::open(&message(), &[])?;
        let gateway = gateway(cell.marks, origin.address)?;
        Ok::<_, Failure>((origin, gateway))
    })?;
    let plan = requests(&cell)?;
    let generator = emulation.client.spawn(move || run(&plan, &stop, &mut ()));
    let run = generator.join().map_err(|_| "a generator panicked")??;
    drop(served);
    Ok((run, emulation.finish()?))
}

/// The thesis's router, from the service to the clients.
fn router(background: u64) -> Result<Plan, Failure> {
    let bits = |bytes: u64| BitRate::per_second(bytes * 8).ok_or("no rate");
    let class = |dscp: &[Dscp], percent: u64| {
        Ok::<_, Failure>(Class {
            dscp: dscp.to_vec(),
            rest: dscp.is_empty(),
            guaranteed: bits(LINE * percent / 100)?,
            ceiling: bits(LINE)?,
        })
    };
    let plan = Plan {
        bandwidth: Some(bits(LINE)?),
        classes: Some(Arc::new(Classes::new(vec![
            class(&[Dscp::AF11], 30)?,
            class(&[], 70)?,
        ]))),
        background: Some(BackgroundTraffic {
            dscp: Dscp::DEFAULT,
            rate: bits(background)?,
            bytes: 1500,
        }),
        ..Plan::default()
    };
    plan.check()?;
    Ok(plan)
}

fn edge(marks: MarkingPoint) -> Vec<EdgeRule> {
    let rule = EdgeRule {
        flows: FlowSelector::Server(PORT),
        dscp: Dscp::AF11,
    };
    match marks {
        MarkingPoint::Address => vec![rule],
        MarkingPoint::Nobody | MarkingPoint::Gateway => Vec::new(),
    }
}

fn gateway(
    marks: MarkingPoint,
    origin: SocketAddr,
) -> Result<posthaste_gateway::RunningGateway, Failure> {
    let policy = match marks {
        MarkingPoint::Gateway => "asked",
        MarkingPoint::Nobody | MarkingPoint::Address => "never",
    };
    let config = format!(
        "listen = \"{}:{PORT}\"\n\
         threads = 1\n\
         [compression]\n\
         policy = \"never\"\n\
         [marking]\n\
         policy = \"{policy}\"\n\
         [[route]]\n\
         path = \"/\"\n\
         upstream = [\"{origin}\"]\n",
        Ipv4Addr::UNSPECIFIED
    );
    let _turn = starting();
    Ok(posthaste_gateway::start(
        posthaste_gateway::GatewayConfig::read(&config)?,
    )?)
}

/// A SOAP message of the thesis's length.
pub(super) fn message() -> Vec<u8> {
    let soap = Version::Soap11.namespace();
    let (open, close) = (
        format!("<s:Envelope xmlns:s=\"{soap}\"><s:Body><r>"),
        "</r></s:Body></s:Envelope>",
    );
    let filling = "x".repeat(REPLY - open.len() - close.len());
    format!("{open}{filling}{close}").into_bytes()
}

/// The request of the clients. Its header gives throughput the highest priority, for any server that reads it.
pub(super) fn request(server: SocketAddr) -> RequestSpec {
    let url = format!("http://{server}/soap");
    let mut request = soap_request(&url, Version::Soap11, NAMESPACE, "<r/>");
    let (open, wsqos) = ("<soap:Body>", NAMESPACES[0]);
    let header = format!(
        "<soap:Header><q:WSQoSSoapHeader xmlns:q=\"{wsqos}\"><qosInfo><transportQoSPriorities>\
         <throughput>0</throughput></transportQoSPriorities></qosInfo></q:WSQoSSoapHeader></soap:Header>"
    );
    request.body = request.body.replacen(open, &format!("{header}{open}"), 1);
    request
}

fn requests(cell: &MarkedRun) -> Result<Requests, Failure> {
    let rate = Rate::per_second(cell.rate).ok_or("no rate")?;
    let pace = Pace::Open {
        arrivals: Arrivals::Constant,
        steps: vec![RateStep::steady(rate, cell.length)],
    };
    Ok(Requests {
        warm_up: cell.warm_up,
        connection_limit: CONNECTIONS,
        // Includes retries of a SYN that meets the queue of the cross traffic.
        connect_timeout: TIMEOUT,
        timeout: TIMEOUT,
        seed: cell.seed,
        ..Requests::new(vec![request((SERVER.v4, PORT).into())], pace)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reply_is_as_long_as_the_thesis_s() {
        assert_eq!(message().len(), REPLY);
    }
}
