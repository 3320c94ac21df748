//! The testbed of all studies of load on a gateway: a proxy between a generator and an origin, on two cores.
//!
//! The proxy has a core of its own. Generator and origin share the other, where the origin has priority (the generator
//! runs at nice 19). All of them run in this process, except third-party proxies, which are programs.
//!
//! Other testbeds use the same parts: a [`shop`] behind a gateway, one [`measured`] run of the generator, the rates of
//! several runs ([`sweep`]), readings of their [`curves`], and the checks of the [`instrument`].

pub(crate) mod curves;
pub(crate) mod instrument;
pub(crate) mod measured;
pub(crate) mod origin;
pub(crate) mod program;
pub(crate) mod proxy;
pub(crate) mod shop;
pub(crate) mod sweep;
pub(crate) mod threads;

use std::net::Ipv4Addr;

use posthaste_bookshop::Size;
use posthaste_compression::Wish;
use posthaste_load::{Connections, Pace, Plan, RequestSpec};
use posthaste_study::lab::{Cores, Lab};
use posthaste_study::{Conditions, Failure, Records};
use posthaste_units::Span;

use self::origin::FixedOrigin;
use self::proxy::ProxyUnderTest;
use self::shop::ShopBehindGateway;

/// The paper's reply.
pub(crate) const REPLY: Size = Size::Heavy1;

/// Slowdown of a gateway. Without it, the generator would reach its own limit beyond the gateway's.
pub(crate) const SLOWDOWN: u32 = 4;

/// Timeout of a new connection, as with sclient.
pub(crate) const CONNECT_TIMEOUT: Span = Span::from_millis(50);

/// Timeout of a reply, so that a slow proxy does not delay the end of a run.
pub(crate) const TIMEOUT: Span = Span::from_secs(2);

/// The origin, and the requests.
pub(crate) struct Testbed {
    pub(crate) origin: FixedOrigin,
    pub(crate) cores: Cores,
    /// Address of gateways, with any port.
    pub(crate) listen: Ipv4Addr,
    /// Bytes of the reply.
    pub(crate) length: usize,
    /// Requests by preference, in the order of [`Wish::ALL`].
    requests: Vec<RequestSpec>,
}

impl Testbed {
    /// Starts an origin with the bookshop's reply of this size, for clients that accept these codings.
    pub(crate) fn open(
        conditions: &Conditions<'_>,
        reply: Size,
        codings: &str,
    ) -> Result<Self, Failure> {
        let shop = ShopBehindGateway::open(([127, 0, 0, 1], 0).into(), conditions.seed)?;
        let request = |wish| {
            let mut request = shop.request(reply, wish);
            let field = ("Accept-Encoding".to_owned(), codings.to_owned());
            request.headers.push(field);
            request
        };
        let requests = Wish::ALL.map(request).into();
        Ok(Self {
            requests,
            ..Self::with_message(&shop.message(reply)?)?
        })
    }

    /// Starts an origin with this message, for clients with requests of their own.
    pub(crate) fn with_message(message: &[u8]) -> Result<Self, Failure> {
        let cores = Cores::here();
        let generator: Vec<usize> = cores.generator.into_iter().collect();
        Ok(Self {
            origin: FixedOrigin::open(message, &generator)?,
            length: message.len(),
            cores,
            listen: Ipv4Addr::LOCALHOST,
            requests: Vec::new(),
        })
    }

    /// The origin itself, without a proxy.
    pub(crate) fn nothing(&self) -> ProxyUnderTest {
        ProxyUnderTest::none(self.origin.address)
    }

    /// Starts a gateway with this slowdown and these lines in its configuration, before its route and in it. Its cache
    /// is off: the repeated reply stands for many different ones, and each is compressed.
    pub(crate) fn gateway(
        &self,
        slowdown: u32,
        before: &str,
        route: &str,
    ) -> Result<ProxyUnderTest, Failure> {
        let mut config = self.configuration(before, route)?;
        config.slowdown = slowdown;
        config.compression.cache = posthaste_units::Size::from_bytes(0);
        ProxyUnderTest::gateway(config)
    }

    /// Starts a gateway with a cache for repeated replies.
    pub(crate) fn caching_gateway(&self, before: &str) -> Result<ProxyUnderTest, Failure> {
        ProxyUnderTest::gateway(self.configuration(before, "")?)
    }

    fn configuration(
        &self,
        before: &str,
        route: &str,
    ) -> Result<posthaste_gateway::GatewayConfig, Failure> {
        let core = self.cores.server.map(|core| core.to_string());
        let config = format!(
            "listen = \"{}:0\"\n\
             cpus = [{}]\n\
             {before}\n\
             [[route]]\n\
             path = \"/\"\n\
             upstream = [\"{}\"]\n\
             {route}\n",
            self.listen,
            core.unwrap_or_default(),
            self.origin.address
        );
        Ok(posthaste_gateway::GatewayConfig::read(&config)?)
    }

    /// A plan for clients with these preferences, each in its share.
    pub(crate) fn plan(
        &self,
        proxy: &ProxyUnderTest,
        wishes: &[(Wish, f64)],
        connections: Connections,
        pace: Pace,
    ) -> Plan {
        let request = |(wish, weight): &(Wish, f64)| RequestSpec {
            name: wish.name().to_owned(),
            weight: *weight,
            url: format!("http://{}/soap", proxy.address),
            ..self.requests[*wish as usize].clone()
        };
        Plan {
            connections,
            connect_timeout: CONNECT_TIMEOUT,
            timeout: TIMEOUT,
            cpus: self.cores.generator.into_iter().collect(),
            ..Plan::new(wishes.iter().map(request).collect(), pace)
        }
    }

    /// Records the parameters that all runs on this testbed share.
    pub(crate) fn describe(&self, records: &mut Records, conditions: &Conditions<'_>) {
        let cores = self.cores.describe();
        describe(records, conditions, self.cores);
        records.set_parameter("timeout", TIMEOUT);
        records.set_parameter(
            "cores",
            format!("{cores}; the origin next to the generator"),
        );
    }
}

/// Records the parameters that all runs with these cores share.
pub(crate) fn describe(records: &mut Records, conditions: &Conditions<'_>, cores: Cores) {
    records.set_parameter("cores", cores.describe());
    records.set_parameter("network", conditions.lab.describe());
    records.set_parameter("connect timeout", CONNECT_TIMEOUT);
    let own = *conditions.lab == Lab::Own;
    records.set_number("own namespace", f64::from(u8::from(own)));
    let shared = cores.server.is_none();
    records.set_number("shared core", f64::from(u8::from(shared)));
}

/// Records the slowdown of a server.
pub(crate) fn describe_slowdown(records: &mut Records, slowdown: u32) {
    let description = format!("{slowdown} times this machine's processor time");
    records.set_parameter("cost of a request", description);
}

/// Records the real-time priority of an emulation.
pub(crate) fn describe_real_time(records: &mut Records, granted: bool) {
    let granted = ["not granted", "granted"][usize::from(granted)];
    records.set_parameter("real-time priority", granted);
}

/// A plan for one repeated request, by the generator on its core.
pub(crate) fn plan_of(request: RequestSpec, pace: Pace, cores: Cores) -> Plan {
    Plan {
        connections: Connections::New,
        connect_timeout: CONNECT_TIMEOUT,
        timeout: TIMEOUT,
        cpus: cores.generator.into_iter().collect(),
        ..Plan::new(vec![request], pace)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::measured::runs;
    use super::*;
    use crate::test_study;

    #[test]
    fn a_row_has_a_cell_for_every_column() {
        let lab = Lab::Shared("a test".to_owned());
        let stop = AtomicBool::new(false);
        let testbed = Testbed::open(&test_study::conditions(&lab, &stop), REPLY, "gzip").unwrap();
        let proxy = testbed.gateway(1, "", "").unwrap();
        let pace = Pace::Closed {
            clients: 2,
            length: Span::from_millis(50),
        };
        let wishes = [(Wish::Always, 0.5), (Wish::Never, 0.5)];
        let plan = testbed.plan(&proxy, &wishes, Connections::KeepAlive, pace);
        let measured = proxy.measure(&plan, &stop).unwrap().unwrap();
        let row = measured.row("it", 1.0, 1, measured.packed());
        let mut table = runs();
        table.push(row);
        let row = table.rows().next().unwrap();
        assert_eq!(
            row.number("syn_retransmits"),
            measured.kernel.syn_retransmits as f64
        );
        assert_eq!(row.number("intended"), measured.run.intended as f64);
        // Exactly the clients that asked have compressed replies.
        assert!((row.number("packed") - 1.0).abs() < 1e-12 && row.number("denied") == 0.0);
        assert!((6_500.0..16_000.0).contains(&row.number("reply_bytes")));
        assert!(row.number("busy") > 0.0);
    }
}
