//! A market: a shop, a gateway with prices in front of it, a broker with its offers, and buying clients.
//!
//! The shop simulates a law: its capacity is the same on any machine, and its replies state its busy share. Each client
//! is a generator of its own. Before every request, it consults its own broker, which follows the gateway's.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use posthaste_broker::{Admin, BrokerConfig, StoreUrl};
use posthaste_load::{Buying, Pace, Plan, RequestSpec, Run, WithoutOffers, run};
use posthaste_qos::{Definition, Money};
use posthaste_study::{Conditions, Failure, lab::starting};
use posthaste_units::{Seed, Span};
use tempfile::TempDir;

use crate::testbed::shop::fetch;

/// Type of the shop's interface and provider of its offers.
const KIND: &str = "books";
const PROVIDER: &str = "ada";

/// The running system. Dropping it stops it.
pub(super) struct Market {
    gateway: posthaste_gateway::RunningGateway,
    broker: posthaste_broker::Broker,
    shop: posthaste_bookshop::Running,
    _folder: TempDir,
    page: String,
}

/// One sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct PriceSample {
    /// Seconds since the start.
    pub(super) at: f64,
    pub(super) price: f64,
    /// Requests admitted so far.
    pub(super) entered: f64,
}

/// Results of all clients, with the samples.
pub(super) struct Course {
    /// One run per client.
    pub(super) runs: Vec<Run>,
    pub(super) samples: Vec<PriceSample>,
}

impl Market {
    /// Starts a shop with this law and a gateway with these lines in `[protection]` and `[prices]`. With empty
    /// `prices`, the gateway publishes no offers.
    pub(super) fn open(
        conditions: &Conditions<'_>,
        law: &str,
        protection: &str,
        prices: &str,
    ) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let store = StoreUrl::Sqlite(folder.path().join("offers.db"));
        let (_, token) = Admin::open(&store)?.make_token(PROVIDER)?;
        let token_file = folder.path().join("token");
        std::fs::write(&token_file, token)?;
        let start_guard = starting();
        let broker = posthaste_broker::start(BrokerConfig {
            listen: ([127, 0, 0, 1], 0).into(),
            store,
            ..BrokerConfig::default()
        })?;
        let shop = posthaste_bookshop::start(posthaste_bookshop::BookshopConfig {
            listen: ([127, 0, 0, 1], 0).into(),
            service: Some(law.parse()?),
            seed: conditions.seed,
            ..posthaste_bookshop::BookshopConfig::default()
        })?;
        let publish = match prices {
            "" => String::new(),
            _ => format!(
                "[prices]\n{prices}\n[prices.broker]\nurl = \"http://{}\"\ntype = \"{KIND}\"\nprovider = \"{PROVIDER}\"\ntoken = {:?}\n",
                broker.addr,
                token_file.display().to_string()
            ),
        };
        let config = format!(
            "listen = \"127.0.0.1:0\"\n\
             [demand]\nwatch = {{ upstream = \"X-Busy\" }}\n\
             [trust]\nforwarded = [\"127.0.0.1\"]\n\
             [protection]\nclient = \"X-Client\"\n{protection}\n\
             {publish}\
             [[route]]\npath = \"/\"\nupstream = [\"{}\"]\n",
            shop.addr
        );
        let gateway = posthaste_gateway::start(posthaste_gateway::GatewayConfig::read(&config)?)?;
        drop(start_guard);
        let isbns = fetch(shop.addr, "/isbns.csv")?;
        let isbn = isbns.lines().nth(1).ok_or("the shop has no book")?;
        Ok(Self {
            page: format!("http://{}/json/{isbn}", gateway.addr),
            gateway,
            broker,
            shop,
            _folder: folder,
        })
    }

    /// Plan of client `number` with a maximum price of `most`. Without a price, it consults no broker and states
    /// nothing.
    pub(super) fn client(&self, number: u64, most: Option<Money>, pace: Pace, seed: Seed) -> Plan {
        let buying = most.map(|most| Buying {
            broker: format!("http://{}", self.broker.addr),
            kind: Some(KIND.to_owned()),
            wanted: Definition {
                price: Some(most),
                ..Definition::default()
            },
            without: WithoutOffers::Decline,
            ask_every: None,
        });
        let mut request = RequestSpec::get(&self.page);
        request
            .headers
            .push(("X-Client".to_owned(), number.to_string()));
        Plan {
            buying,
            seed: Seed(seed.0.wrapping_add(number)),
            timeout: Span::from_secs(5),
            ..Plan::new(vec![request], pace)
        }
    }

    /// Runs all clients at the same time and samples the price meanwhile. `None` if stopped.
    pub(super) fn run(
        &self,
        clients: &[Plan],
        every: Span,
        stop: &AtomicBool,
    ) -> Result<Option<Course>, Failure> {
        let begun = Instant::now();
        let course = std::thread::scope(|scope| {
            let going: Vec<_> = clients
                .iter()
                .map(|plan| scope.spawn(move || run(plan, stop, &mut ())))
                .collect();
            let mut samples = Vec::new();
            while going.iter().any(|client| !client.is_finished()) {
                // A failed sample is omitted. The number of samples is checked afterwards.
                samples.extend(self.look(begun));
                std::thread::sleep(every.into());
            }
            let ended = going.into_iter().map(|client| {
                let run = client.join().map_err(|_| "a generator has panicked")?;
                run.map_err(Failure::from)
            });
            let runs = ended.collect::<Result<_, _>>()?;
            Ok::<_, Failure>(Course { runs, samples })
        })?;
        Ok((!course.runs.iter().any(|run| run.stopped)).then_some(course))
    }

    /// Reads a sample from the gateway's counters.
    fn look(&self, begun: Instant) -> Result<PriceSample, Failure> {
        let at = begun.elapsed().as_secs_f64();
        let text = fetch(self.gateway.admin, "/metrics")?;
        let sum = |name: &str| -> f64 {
            let name = format!("posthaste_gateway_{name}");
            let lines = text.lines().filter(|line| line.starts_with(&*name));
            lines
                .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
                .sum()
        };
        Ok(PriceSample {
            at,
            price: sum("price "),
            entered: sum("entered_total{"),
        })
    }
}

impl Drop for Market {
    fn drop(&mut self) {
        self.gateway.stop();
        self.broker.stop();
        self.shop.stop();
    }
}
