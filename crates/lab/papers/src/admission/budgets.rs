//! Budgets of the clients, kept by a broker of the same process.
//!
//! Each client is an account. Its API key is in each of its requests, behind every competitor, so that all of them get
//! the same requests.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use posthaste_broker::{Admin, Broker, BrokerConfig, StoreUrl, TokenRole};
use posthaste_broker_client::accounts::{AccountKey, NewAccount};
use posthaste_broker_client::{BrokerClient, wait};
use posthaste_qos::Money;
use posthaste_study::Failure;
use posthaste_study::lab::{Cores, starting};
use posthaste_units::Span;
use tempfile::TempDir;

use super::scenarios::{CLIENTS, FAIR, KEY_FIELD, MAX_PRICES};
use crate::testbed::proxy::ProxyUnderTest;

/// Period of the budgets: the shortest that the broker allows, so that each run has several.
const PERIOD: Span = Span::from_secs(1);

/// Currency of budgets and prices.
const CURRENCY: &str = "EUR";

/// Maximum time until the gateway knows the accounts.
const PATIENCE: Duration = Duration::from_secs(30);

/// A broker with an account of each client. Dropping it stops it.
pub(super) struct BudgetBroker {
    broker: Broker,
    /// File with the token of a gateway.
    token: PathBuf,
    _folder: TempDir,
}

/// Budget of each client for a period, in millionths.
///
/// It pays for the client's equal part of the capacity at the maximum prices of its requests. With ten clients and 200
/// requests per second, half of them important, that is 10 * 0.90 EUR + 10 * 0.10 EUR = 10 EUR per second. So a client
/// that sends no more than its part lacks no money, on average, at any price that it accepts. The hostile client
/// accepts the highest price, 1 EUR, for 200 requests per second, and can pay 10 of them.
fn budget() -> u64 {
    let parts = FAIR.iter().zip(MAX_PRICES);
    let per_second: f64 = parts.map(|(rate, price)| rate * price as f64).sum();
    (per_second * PERIOD.as_secs_f64()).round() as u64
}

/// The budgets and the settings of the gateway about accounts, for the parameters of the records.
pub(super) fn settings() -> String {
    let budget = posthaste_qos::decimal_text(budget());
    format!(
        "{}budget of each client: {budget} {CURRENCY} for each {PERIOD}",
        accounts_table()
    )
}

/// The table `[accounts]` without its broker. The charges that the broker has not acknowledged have the whole budget
/// as bound: there is one gateway, and the bound should stop no client that has money left.
fn accounts_table() -> String {
    let unreported = posthaste_qos::decimal_text(budget());
    format!(
        "[accounts]\nkey_field = \"{KEY_FIELD}\"\nevery = \"50ms\"\nunreported = \"{unreported}\"\n"
    )
}

impl BudgetBroker {
    /// Starts a broker next to the generators, with an account for each key.
    pub(super) fn start(keys: &[AccountKey], cores: Cores) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let store = StoreUrl::Sqlite(folder.path().join("accounts.db"));
        let mut admin = Admin::open(&store)?;
        let (_, operator) = admin.make_token_for(TokenRole::Operator, "study")?;
        let (_, secret) = admin.make_token_for(TokenRole::Gateway, "gateway")?;
        let token = folder.path().join("token");
        std::fs::write(&token, secret)?;
        let broker = {
            let _turn = starting();
            posthaste_broker::start(BrokerConfig {
                listen: ([127, 0, 0, 1], 0).into(),
                cpus: cores.generator.into_iter().collect(),
                store,
                ..BrokerConfig::default()
            })?
        };
        let operator = BrokerClient::new(&url(&broker))?.with_token(Some(operator));
        let budget = Money::from_micros(budget(), CURRENCY.parse()?).ok_or("no budget")?;
        for (client, key) in keys.iter().enumerate() {
            wait(operator.add_account(&NewAccount {
                name: format!("client-{client}"),
                key_sha256: Some(key.digest()),
                certificate: None,
                budget,
                period: PERIOD,
                max_price: None,
            }))??;
        }
        Ok(Self {
            broker,
            token,
            _folder: folder,
        })
    }

    /// Lines of the gateway's configuration.
    pub(super) fn lines(&self) -> String {
        format!(
            "{}broker = {{ url = \"{}\", token = {:?} }}\n",
            accounts_table(),
            url(&self.broker),
            self.token.display().to_string()
        )
    }
}

fn url(broker: &Broker) -> String {
    format!("http://{}", broker.addr)
}

/// Waits until the gateway knows all accounts. Before, it rejects requests with a key.
pub(super) fn wait_until_known(gateway: &ProxyUnderTest) -> Result<(), Failure> {
    let end = Instant::now() + PATIENCE;
    while gateway.open_accounts()? != Some(CLIENTS as f64) {
        if Instant::now() > end {
            return Err(format!("the gateway knows no accounts within {PATIENCE:?}").into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_pays_the_equal_part_of_a_client() {
        assert_eq!(budget(), 10 * 900_000 + 10 * 100_000);
    }
}
