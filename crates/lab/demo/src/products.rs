//! Shop, broker and gateway with ordinary configurations. The kernel chooses their ports; their files are temporary.

use std::fs;
use std::net::SocketAddr;

use posthaste_bookshop::{Catalogue, ServiceLaw};
use posthaste_broker::{Admin, Broker, StoreUrl};
use posthaste_gateway::GatewayConfig;
use posthaste_serve::Timeouts;
use posthaste_units::{Seed, Span};
use tempfile::TempDir;

use crate::DemoError;
use crate::controls::{AdmissionPolicy, CAPACITY, Controls, MARKS};

/// Interface type and provider of the offers at the broker.
pub(crate) const KIND: &str = "books";
const PROVIDER: &str = "bookshop";
/// Number of books in the shop.
const BOOKS: usize = 200;
/// Maximum number of requests queued at the shop: seven seconds of work. Longer than the clients' timeout, and the time
/// to recover from an overload.
const WAITING: usize = 700;
/// Time for requests in service to finish when a product stops.
const GRACE: Span = Span::from_millis(500);

/// The running products. Dropping them stops them and removes their files.
pub(crate) struct Products {
    // Drop order: clients before servers, the folder last.
    gateway: posthaste_gateway::RunningGateway,
    broker: Broker,
    shop: posthaste_serve::RunningServer,
    folder: TempDir,
    controls: Controls,
}

impl Products {
    /// Starts the products. `seed` determines the shop's books and times.
    pub(crate) fn start(seed: Seed, controls: &Controls) -> Result<Self, DemoError> {
        let folder = tempfile::Builder::new()
            .prefix("posthaste-demo-")
            .tempdir()
            .map_err(DemoError::Folder)?;
        let shop = posthaste_bookshop::start(posthaste_bookshop::BookshopConfig {
            listen: any_port(),
            service: Some(ServiceLaw::Md1(Span::from_secs(1) / u64::from(CAPACITY)).into()),
            concurrency: Some(WAITING),
            backlog: 16,
            books: BOOKS,
            seed,
            timeouts: timeouts(),
            ..posthaste_bookshop::BookshopConfig::default()
        })?;
        let store = StoreUrl::Sqlite(folder.path().join("offers.db"));
        let (_, token) = Admin::open(&store)?.make_token(PROVIDER)?;
        fs::write(folder.path().join("token"), token).map_err(DemoError::Folder)?;
        let broker = posthaste_broker::start(posthaste_broker::BrokerConfig {
            listen: any_port(),
            store,
            timeouts: timeouts(),
            ..posthaste_broker::BrokerConfig::default()
        })?;
        let config = configuration(controls, shop.addr, broker.addr, &folder)?;
        Ok(Self {
            gateway: posthaste_gateway::start(config)?,
            broker,
            shop,
            folder,
            controls: *controls,
        })
    }

    /// Address of the gateway.
    pub(crate) const fn gateway(&self) -> SocketAddr {
        self.gateway.addr
    }

    /// Admin address of the gateway.
    pub(crate) const fn admin(&self) -> SocketAddr {
        self.gateway.admin
    }

    /// URL of the broker.
    pub(crate) fn broker_url(&self) -> String {
        format!("http://{}", self.broker.addr)
    }

    /// Applies `controls` to the gateway. A change of protection needs a new gateway: it runs next to the old one until
    /// `hand_over` has redirected the clients.
    pub(crate) fn apply(
        &mut self,
        controls: &Controls,
        hand_over: impl FnOnce(&posthaste_gateway::RunningGateway),
    ) -> Result<(), DemoError> {
        let config = configuration(controls, self.shop.addr, self.broker.addr, &self.folder)?;
        if controls.protection != self.controls.protection {
            let next = posthaste_gateway::start(config)?;
            hand_over(&next);
            drop(std::mem::replace(&mut self.gateway, next));
        } else if controls.compression != self.controls.compression {
            self.gateway.reload(config)?;
        }
        self.controls = *controls;
        Ok(())
    }
}

/// ISBNs that clients request, as a CSV file.
pub(crate) fn isbns(seed: Seed) -> String {
    let catalogue = Catalogue::new(BOOKS, seed);
    let isbns = catalogue.books().iter().map(|book| book.isbn.as_str());
    std::iter::once("isbn")
        .chain(isbns)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Configuration of the gateway, in the file format. Health checks are disabled: excluding the only shop is a form of
/// protection, which must not interfere when none is selected.
fn configuration(
    controls: &Controls,
    shop: SocketAddr,
    broker: SocketAddr,
    folder: &TempDir,
) -> Result<GatewayConfig, DemoError> {
    let compression = controls.compression;
    let token = folder.path().join("token");
    let priced = |controller: &str| {
        format!(
            "[trust]
forwarded = [\"127.0.0.1\"]
[protection]
policy = \"prices\"
client = \"X-Client\"
[prices]
controller = {{ {controller} }}
[prices.broker]
url = \"http://{broker}\"
type = \"{KIND}\"
provider = \"{PROVIDER}\"
token = {token:?}"
        )
    };
    let protection = match controls.protection {
        AdmissionPolicy::ProportionalIntegral => priced("policy = \"proportional-integral\""),
        AdmissionPolicy::Steps => priced("policy = \"steps\", window = \"3s\", period = \"500ms\""),
        AdmissionPolicy::Rajomon => priced("policy = \"rajomon\""),
        AdmissionPolicy::Limit => "[protection]\npolicy = \"limit\"".to_owned(),
        AdmissionPolicy::Rate => {
            let rate = CAPACITY * 9 / 10;
            format!("[protection]\npolicy = \"rate\"\nrate = \"{rate}/s\"")
        }
        AdmissionPolicy::None => String::new(),
    };
    let marks = MARKS.map(|mark| format!("\"{mark}\"")).join(", ");
    // No cache: every policy would send cached compressed replies, which would hide the policies' decisions.
    let text = format!(
        "listen = \"127.0.0.1:0\"
[timeouts]
grace = \"{GRACE}\"
[demand]
watch = {{ upstream = \"X-Busy\" }}
[compression]
policy = \"{compression}\"
cache = \"0B\"
[marking]
policy = \"asked\"
allow = [{marks}]
{protection}
[[route]]
path = \"/\"
upstream = [\"{shop}\"]
health.failures = 1000000
"
    );
    Ok(GatewayConfig::read(&text)?)
}

fn timeouts() -> Timeouts {
    Timeouts {
        grace: GRACE,
        ..Timeouts::default()
    }
}

fn any_port() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controls::COMPRESSIONS;

    #[test]
    fn every_choice_makes_a_configuration() {
        let folder = tempfile::tempdir().unwrap();
        for protection in AdmissionPolicy::ALL {
            for compression in COMPRESSIONS {
                let controls = Controls {
                    protection,
                    compression,
                    ..Controls::default()
                };
                let made = configuration(&controls, any_port(), any_port(), &folder);
                assert!(made.is_ok(), "{controls:?}: {}", made.err().unwrap());
            }
        }
    }
}
