//! The protections that are compared. Another one is one entry of [`COMPETITORS`].

use std::net::SocketAddr;
use std::path::Path;

use posthaste_broker_client::accounts::AccountKey;
use posthaste_study::Failure;
use posthaste_study::lab::Cores;

use super::budgets::{self, BudgetBroker};
use super::configurations::{
    ADAPTIVE_CONCURRENCY, ADMISSION_CONTROL, HAPROXY, LIMIT_CONN, LIMIT_REQ, LIMIT_REQ_BY_TIER,
    envoy, nginx,
};
use crate::testbed::program::Software;
use crate::testbed::proxy::ProxyUnderTest;

/// A protection: its name in pictures, sentences and records, and its start.
pub(super) struct Competitor {
    pub(super) name: &'static str,
    pub(super) kind: CompetitorKind,
}

/// The program of a competitor, with its settings.
#[derive(Clone, Copy)]
pub(super) enum CompetitorKind {
    /// The gateway, with these lines before its route.
    Gateway(&'static str),
    /// The gateway with these lines before its route, and a broker with budgets of the clients.
    GatewayWithBudgets(&'static str),
    /// Another proxy, with the function that returns its configuration.
    Program(Software, fn() -> String),
}

/// Name of the proxy without protection.
pub(super) const NOTHING: &str = "nothing";
/// Name of the gateway's adaptive limit.
pub(super) const LIMIT: &str = "gateway, limit";
/// Name of the adaptive limit with tiers.
pub(super) const TIERS: &str = "gateway, tiers";
/// Name of the prices that are believed.
pub(super) const BELIEVED: &str = "gateway, prices";
/// Name of the prices with budgets.
pub(super) const BUDGETS: &str = "gateway, prices with budgets";

/// Lines of the gateway with prices, for a full service.
const PRICES: &str = "[demand]\nwatch = { upstream = \"X-Busy\" }\n\
     [protection]\npolicy = \"prices\"\nmost = 16\nclient = \"X-Client\"\n\
     [prices]\nevery = \"50ms\"\nlife = \"500ms\"\nrate = \"20/s\"\nmost_rate = \"20/s\"\n\
     controller = { policy = \"proportional-integral\", target = \"97%\", band = \"1%\", delay = \"50ms\" }\n";

/// A running competitor. Dropping it stops the proxy, and then the broker, to which a gateway reports its last charges.
pub(super) struct RunningCompetitor {
    pub(super) proxy: ProxyUnderTest,
    _broker: Option<BudgetBroker>,
}

/// All competitors, in the order of the pictures.
///
/// Each proxy that needs the capacity of the shop in its configuration knows it. Each proxy that can tell requests by
/// the field `X-Tier`, or clients by `X-Client`, believes these fields. With budgets, clients are told by their keys.
pub(super) const COMPETITORS: [Competitor; 11] = [
    Competitor {
        name: NOTHING,
        kind: CompetitorKind::Gateway("[protection]\npolicy = \"none\"\n"),
    },
    Competitor {
        name: "nginx, limit_req",
        kind: CompetitorKind::Program(Software::Nginx, || nginx(&LIMIT_REQ)),
    },
    Competitor {
        name: "nginx, limit_req by tier",
        kind: CompetitorKind::Program(Software::Nginx, || nginx(&LIMIT_REQ_BY_TIER)),
    },
    Competitor {
        name: "nginx, limit_conn",
        kind: CompetitorKind::Program(Software::Nginx, || nginx(&LIMIT_CONN)),
    },
    Competitor {
        name: "HAProxy, maxconn and priority",
        kind: CompetitorKind::Program(Software::Haproxy, || HAPROXY.to_owned()),
    },
    Competitor {
        name: "Envoy, adaptive concurrency",
        kind: CompetitorKind::Program(Software::Envoy, || envoy(ADAPTIVE_CONCURRENCY)),
    },
    Competitor {
        name: "Envoy, admission control",
        kind: CompetitorKind::Program(Software::Envoy, || envoy(ADMISSION_CONTROL)),
    },
    Competitor {
        name: LIMIT,
        kind: CompetitorKind::Gateway(
            "[protection]\npolicy = \"limit\"\nwait = \"150ms\"\nclient = \"X-Client\"\n",
        ),
    },
    Competitor {
        name: TIERS,
        kind: CompetitorKind::Gateway(
            "[protection]\npolicy = \"limit\"\nwait = \"150ms\"\nclient = \"X-Client\"\n\
             [[protection.tier]]\nname = \"important\"\nshare = \"80%\"\n\
             match = [{ headers = { X-Tier = \"important\" } }]\n\
             [[protection.tier]]\nname = \"other\"\nshare = \"20%\"\n",
        ),
    },
    Competitor {
        name: BELIEVED,
        kind: CompetitorKind::Gateway(PRICES),
    },
    Competitor {
        name: BUDGETS,
        kind: CompetitorKind::GatewayWithBudgets(PRICES),
    },
];

impl Competitor {
    /// True if it is the gateway of this project.
    pub(super) const fn is_ours(&self) -> bool {
        !matches!(self.kind, CompetitorKind::Program(..))
    }

    /// The settings in one line, for the parameters of the records.
    pub(super) fn settings(&self) -> String {
        let settings = match self.kind {
            CompetitorKind::Gateway(lines) => lines.to_owned(),
            CompetitorKind::GatewayWithBudgets(lines) => format!("{lines}{}", budgets::settings()),
            CompetitorKind::Program(_, configuration) => configuration(),
        };
        let lines = settings.lines().map(str::trim);
        lines.collect::<Vec<_>>().join("; ")
    }

    /// Starts it between the clients and `origin`, on the server's core, with its files in `folder`. Each client has
    /// one of the keys. `None` if it is not installed.
    pub(super) fn start(
        &self,
        origin: SocketAddr,
        folder: &Path,
        cores: Cores,
        keys: &[AccountKey],
    ) -> Result<Option<RunningCompetitor>, Failure> {
        let (proxy, broker) = match self.kind {
            CompetitorKind::Gateway(lines) => (Some(gateway(lines, origin, cores)?), None),
            CompetitorKind::GatewayWithBudgets(lines) => {
                let broker = BudgetBroker::start(keys, cores)?;
                let lines = format!("{lines}{}", broker.lines());
                let proxy = gateway(&lines, origin, cores)?;
                budgets::wait_until_known(&proxy)?;
                (Some(proxy), Some(broker))
            }
            CompetitorKind::Program(software, configuration) => (
                software.start(folder, &configuration(), origin, cores.server)?,
                None,
            ),
        };
        Ok(proxy.map(|proxy| RunningCompetitor {
            proxy,
            _broker: broker,
        }))
    }
}

/// Starts the gateway with these lines before its route.
fn gateway(lines: &str, origin: SocketAddr, cores: Cores) -> Result<ProxyUnderTest, Failure> {
    let core = cores.server.map(|core| core.to_string());
    let config = format!(
        "listen = \"127.0.0.1:0\"\ncpus = [{}]\n\
         [trust]\nforwarded = [\"127.0.0.1\"]\n\
         {lines}\
         [[route]]\npath = \"/\"\nupstream = [\"{origin}\"]\n",
        core.unwrap_or_default()
    );
    ProxyUnderTest::gateway(posthaste_gateway::GatewayConfig::read(&config)?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posthaste_serve::client::{ClientLimits, HttpClient, block_on, request};
    use posthaste_study::lab::starting;

    use super::super::scenarios::{KEY_FIELD, keys};
    use super::*;

    /// Longer than any exchange on loopback.
    const LIMITS: ClientLimits = ClientLimits {
        step: Duration::from_secs(60),
        total: Duration::MAX,
        body: usize::MAX,
    };

    #[test]
    fn a_gateway_knows_each_client_by_its_key() {
        let shop = {
            let _turn = starting();
            posthaste_bookshop::start(posthaste_bookshop::BookshopConfig {
                listen: ([127, 0, 0, 1], 0).into(),
                ..posthaste_bookshop::BookshopConfig::default()
            })
            .unwrap()
        };
        let cores = Cores {
            server: None,
            generator: None,
        };
        let keys = keys().unwrap();
        let is_this = |competitor: &&Competitor| competitor.name == BUDGETS;
        let competitor = COMPETITORS.iter().find(is_this).unwrap();
        let running = competitor.start(shop.addr, Path::new(""), cores, &keys);
        let running = running.unwrap().unwrap();
        let status = |key: &str| {
            let fields = [(KEY_FIELD, key)];
            let request = request("GET", "/isbns.csv", fields, "").unwrap();
            let client = HttpClient::at(running.proxy.address, LIMITS);
            let reply = block_on(client.fetch(request)).unwrap().unwrap();
            reply.status().as_u16()
        };
        for key in &keys {
            assert_eq!(status(key.secret()), 200);
        }
        assert_eq!(status(AccountKey::make().unwrap().secret()), 401);
        drop(running);
        shop.stop();
    }
}
