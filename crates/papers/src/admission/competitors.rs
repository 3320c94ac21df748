//! The protections that are compared. Another one is one entry of [`COMPETITORS`].

use std::net::SocketAddr;
use std::path::Path;

use posthaste_study::Failure;
use posthaste_study::lab::Cores;

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
    /// Another proxy, with the function that returns its configuration.
    Program(Software, fn() -> String),
}

/// Name of the proxy without protection.
pub(super) const NOTHING: &str = "nothing";
/// Name of the gateway's adaptive limit.
pub(super) const LIMIT: &str = "gateway, limit";
/// Name of the adaptive limit with tiers.
pub(super) const TIERS: &str = "gateway, tiers";

/// All competitors, in the order of the pictures.
///
/// Each proxy that needs the capacity of the shop in its configuration knows it. Each proxy that can tell requests by
/// the field `X-Tier`, or clients by `X-Client`, believes these fields.
pub(super) const COMPETITORS: [Competitor; 10] = [
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
        kind: CompetitorKind::Gateway("[protection]\npolicy = \"limit\"\nclient = \"X-Client\"\n"),
    },
    Competitor {
        name: TIERS,
        kind: CompetitorKind::Gateway(
            "[protection]\npolicy = \"limit\"\nclient = \"X-Client\"\n\
             [[protection.tier]]\nname = \"important\"\nshare = \"80%\"\n\
             match = [{ headers = { X-Tier = \"important\" } }]\n\
             [[protection.tier]]\nname = \"other\"\nshare = \"20%\"\n",
        ),
    },
    Competitor {
        name: "gateway, prices",
        kind: CompetitorKind::Gateway(
            "[demand]\nwatch = { upstream = \"X-Busy\" }\n\
             [protection]\npolicy = \"prices\"\nmost = 16\nclient = \"X-Client\"\n\
             [prices]\nevery = \"50ms\"\nlife = \"500ms\"\nrate = \"20/s\"\nmost_rate = \"20/s\"\n\
             controller = { policy = \"proportional-integral\", target = \"97%\", band = \"1%\", delay = \"50ms\" }\n",
        ),
    },
];

impl Competitor {
    /// True if it is the gateway of this project.
    pub(super) const fn is_ours(&self) -> bool {
        matches!(self.kind, CompetitorKind::Gateway(_))
    }

    /// The settings in one line, for the parameters of the records.
    pub(super) fn settings(&self) -> String {
        let settings = match self.kind {
            CompetitorKind::Gateway(lines) => lines.to_owned(),
            CompetitorKind::Program(_, configuration) => configuration(),
        };
        let words = settings.lines().map(str::trim);
        words.collect::<Vec<_>>().join("; ")
    }

    /// Starts it between the clients and `origin`, on the server's core, with its files in `folder`. `None` if it is
    /// not installed.
    pub(super) fn start(
        &self,
        origin: SocketAddr,
        folder: &Path,
        cores: Cores,
    ) -> Result<Option<ProxyUnderTest>, Failure> {
        match self.kind {
            CompetitorKind::Gateway(lines) => {
                let core = cores.server.map(|core| core.to_string());
                let config = format!(
                    "listen = \"127.0.0.1:0\"\ncpus = [{}]\n\
                     [trust]\nforwarded = [\"127.0.0.1\"]\n\
                     {lines}\
                     [[route]]\npath = \"/\"\nupstream = [\"{origin}\"]\n",
                    core.unwrap_or_default()
                );
                let config = posthaste_gateway::GatewayConfig::read(&config)?;
                ProxyUnderTest::gateway(config).map(Some)
            }
            CompetitorKind::Program(software, configuration) => {
                software.start(folder, &configuration(), origin, cores.server)
            }
        }
    }
}
