//! The system under test: PostgreSQL, a broker on it, two gateways and a service.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::error::{Outcome, TaskError};
use crate::peers::broker::broker_at;
use crate::postgres::Postgres;
use crate::site::{Server, Site, free_address};
use crate::tools;

/// Gateways, and accounts of one gateway each.
pub(super) const GATEWAYS: usize = 2;

/// Accounts: one of each gateway, and one that both share.
pub(super) const ACCOUNTS: [&str; GATEWAYS + 1] = ["one", "two", "both"];

/// Price of every request, in millionths.
pub(super) const PRICE: u64 = 10_000;

/// Bound of charges that are not acknowledged, in millionths.
pub(super) const UNREPORTED: u64 = 200_000;

/// Time limit for a gateway to drain.
const DRAIN: Duration = Duration::from_secs(60);

/// The system. Each part can be killed and started again at its address.
pub(super) struct ChargeSystem<'s> {
    site: &'s Site,
    postgres: Postgres,
    broker_address: SocketAddr,
    broker: Option<Server>,
    gateways: Vec<(SocketAddr, PathBuf, Option<Server>)>,
    _service: Server,
    operator: String,
    /// Keys of the accounts.
    pub(super) keys: Vec<String>,
}

/// A part to kill.
#[derive(Clone, Copy, Debug)]
pub(super) enum Victim {
    Gateway(usize),
    Broker,
    Postgres,
}

impl Victim {
    pub(super) fn from_number(number: u64) -> Self {
        match number {
            0 | 1 => Self::Gateway(number as usize),
            2 => Self::Broker,
            _ => Self::Postgres,
        }
    }
}

impl<'s> ChargeSystem<'s> {
    /// Starts all parts.
    pub(super) fn start(site: &'s Site) -> Outcome<Self> {
        let postgres = Postgres::start(site)?;
        let service = site.bookshop(&["--service", "md1:5ms"])?;
        let store = format!("{}/postgres", postgres.url());
        let token = |role: &str| {
            let mut make = Command::new(&site.binary);
            make.args([
                "broker", "token", "new", role, "--role", role, "--store", &store,
            ]);
            Ok(site.run("token", &mut make, 30)?.stdout.trim().to_owned())
        };
        let (operator, gateway): (Outcome<String>, Outcome<String>) =
            (token("operator"), token("gateway"));
        let file = site.logs.join("gateway.token");
        tools::write(&file, gateway?)?;
        let broker_address = free_address()?;
        let mut this = Self {
            site,
            postgres,
            broker_address,
            broker: None,
            gateways: Vec::new(),
            _service: service,
            operator: operator?,
            keys: Vec::new(),
        };
        this.revive(Victim::Broker)?;
        for account in ACCOUNTS {
            let mut add = this.accounts(&["add", account, "--budget", "1000000EUR"]);
            add.args(["--max-price", "1EUR"]);
            let key = site.run("add", &mut add, 30)?.stdout.trim().to_owned();
            this.keys.push(key);
        }
        for number in 0..GATEWAYS {
            let address = free_address()?;
            let config = site.logs.join(format!("charges-{number}.toml"));
            let service = this._service.address;
            tools::write(
                &config,
                gateway_config(address, service, broker_address, &file),
            )?;
            this.gateways.push((address, config, None));
            this.revive(Victim::Gateway(number))?;
        }
        Ok(this)
    }

    /// Addresses of the gateways.
    pub(super) fn gateways(&self) -> Outcome<Vec<SocketAddr>> {
        Ok(self
            .gateways
            .iter()
            .map(|(address, _, _)| *address)
            .collect())
    }

    /// Kills a part.
    pub(super) fn kill(&mut self, victim: Victim) -> Outcome<()> {
        let server = match victim {
            Victim::Gateway(number) => self.gateways[number].2.take(),
            Victim::Broker => self.broker.take(),
            Victim::Postgres => return self.postgres.kill(),
        };
        match server {
            Some(server) => server.running.signal(Signal::KILL),
            None => Err(TaskError::Failed(format!("{victim:?} is not running"))),
        }
    }

    /// Starts a part again, at its address.
    pub(super) fn revive(&mut self, victim: Victim) -> Outcome<()> {
        match victim {
            Victim::Gateway(number) => {
                let (address, config, server) = &mut self.gateways[number];
                let mut serve = Command::new(&self.site.binary);
                serve.args(["gateway", "--config"]).arg(&*config);
                *server = Some(self.site.serve("gateway", &mut serve, *address)?);
            }
            Victim::Broker => {
                let store = format!("{}/postgres", self.postgres.url());
                let address = self.broker_address;
                // It needs its store to start, which may be the part killed before.
                self.broker = Some(broker_at(self.site, "broker", &store, address)?);
            }
            Victim::Postgres => self.postgres.restart(self.site)?,
        }
        Ok(())
    }

    /// Ends the gateways and waits until they have reported.
    pub(super) fn drain(&mut self) -> Outcome<()> {
        for (_, _, server) in &mut self.gateways {
            if let Some(server) = server.take() {
                server.running.signal(Signal::TERM)?;
                server.running.finish(DRAIN)?;
            }
        }
        Ok(())
    }

    /// All booked charges, a JSON object for each line.
    pub(super) fn charges(&self) -> Outcome<String> {
        let mut list = self.accounts(&["charges", "--json"]);
        Ok(self.site.run("charges", &mut list, 60)?.stdout)
    }

    fn accounts(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.site.binary);
        let url = format!("http://{}", self.broker_address);
        command
            .arg("accounts")
            .args(arguments)
            .args(["--broker", &url]);
        command.env("POSTHASTE_BROKER_TOKEN", &self.operator);
        command
    }
}

/// Configuration of a gateway whose price rises to [`PRICE`] with the first request and stays there under load.
fn gateway_config(
    listen: SocketAddr,
    service: SocketAddr,
    broker: SocketAddr,
    token: &std::path::Path,
) -> String {
    let (price, unreported) = (PRICE as f64 / 1e6, UNREPORTED as f64 / 1e6);
    let token = token.display();
    format!(
        "listen = \"{listen}\"\n\
         [protection]\npolicy = \"prices\"\nleast = 64\n\
         [prices]\nevery = \"20ms\"\n\
         controller = {{ policy = \"steps\", high = \"0%\", low = \"0%\", up = \"{price}\", most = \"{price}\", \
         window = \"20ms\", period = \"20ms\" }}\n\
         [accounts]\nevery = \"100ms\"\nunreported = \"{unreported}\"\n\
         broker = {{ url = \"http://{broker}\", token = \"{token}\" }}\n\
         [[route]]\npath = \"/\"\nupstream = [\"{service}\"]\n"
    )
}
