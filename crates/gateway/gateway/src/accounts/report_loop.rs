//! Reports of charges to the broker, outside the path of requests.
//!
//! A report is made every `accounts.every`, and at once when an account has charged half of its bound. A batch is sent
//! again until it is acknowledged. At the end of the gateway the last charges are reported, for a few seconds at most.

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use posthaste_admission::accounts::{Budget, ChargeBatch, Definition, MOST_CHARGES};
use posthaste_broker_client::accounts::{
    AccountState, ChargeReport, GatewayId, KeyError, ReportReply, ReportedCharge,
};
use posthaste_broker_client::{BrokerClient, Error};
use posthaste_gateway_config::AccountsConfig;
use posthaste_qos::Currency;
use posthaste_serve::Background;
use posthaste_units::Span;
use tokio::sync::watch;
use tokio::time::sleep;

use super::GatewayAccounts;
use super::counters::ReportEnd;
use crate::clock::now;
use crate::error::ResolveError;

/// Delay before a failed report is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Maximum time for the last reports.
const LAST: Duration = Duration::from_secs(5);

/// The running reports. Dropping it reports the last charges.
pub(crate) struct ReportLoop {
    accounts: Arc<GatewayAccounts>,
    is_last: watch::Sender<bool>,
    work: Background,
}

/// The broker, and this gateway's identity there.
pub(crate) struct ChargeReporter {
    client: BrokerClient,
    gateway: GatewayId,
    every: Span,
}

/// Consequence of a successful exchange.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Nothing but the next report in its time.
    Wait,
    /// Another exchange at once.
    Continue,
}

impl ReportLoop {
    /// Starts the reports.
    pub(crate) fn start(
        accounts: Arc<GatewayAccounts>,
        reporter: ChargeReporter,
    ) -> io::Result<Self> {
        let (is_last, stop) = watch::channel(false);
        let shared = accounts.clone();
        let work = Background::start("charges", move || async move {
            run(&shared, reporter, stop).await;
        })?;
        Ok(Self {
            accounts,
            is_last,
            work,
        })
    }
}

impl Drop for ReportLoop {
    fn drop(&mut self) {
        self.is_last.send_replace(true);
        if !self.work.finish(LAST) {
            let amount =
                posthaste_qos::decimal_text(self.accounts.lock().totals().pending.micros());
            tracing::error!(
                amount,
                "the last charges could not be reported: the broker may not have booked them"
            );
        }
    }
}

/// Reports until the charges after the stop are acknowledged.
async fn run(
    accounts: &GatewayAccounts,
    mut reporter: ChargeReporter,
    mut is_last: watch::Receiver<bool>,
) {
    let mut works = true;
    loop {
        let done = tokio::select! {
            biased;
            done = reporter.exchange(accounts) => done,
            // A report that hangs is begun again, with the same batch.
            _ = is_last.changed() => continue,
        };
        match &done {
            Ok(_) if !works => tracing::info!("charges are reported again"),
            Err(error) if works => tracing::warn!(%error, "charges cannot be reported"),
            _ => {}
        }
        works = done.is_ok();
        let stops = *is_last.borrow();
        // Without charges there is nothing to wait for, even if the broker is away.
        if stops && accounts.lock().is_reported() {
            return;
        }
        match done {
            Ok(Next::Continue) => {}
            Ok(Next::Wait) if stops => {}
            Ok(Next::Wait) => tokio::select! {
                biased;
                () = sleep(reporter.every.into()) => {}
                () = accounts.due.notified() => {}
                _ = is_last.changed() => {}
            },
            Err(_) => tokio::select! {
                biased;
                () = sleep(RETRY_DELAY) => {}
                _ = is_last.changed() => {}
            },
        }
    }
}

impl ChargeReporter {
    /// Reads the token and makes an identity. Returns `None` without a broker.
    pub(crate) fn new(config: &AccountsConfig) -> Result<Option<Self>, ResolveError> {
        let Some(broker) = &config.broker else {
            return Ok(None);
        };
        let secret = fs::read_to_string(&broker.token).and_then(|secret| match secret.trim() {
            "" => Err(io::Error::new(io::ErrorKind::InvalidData, "it is empty")),
            secret => Ok(secret.to_owned()),
        });
        let secret = secret.map_err(|error| ResolveError::AccountsToken {
            file: broker.token.clone(),
            error,
        })?;
        let client = BrokerClient::new(&broker.url)?;
        Ok(Some(Self {
            client: client.with_token(Some(secret)),
            gateway: GatewayId::make()?,
            every: config.every,
        }))
    }

    /// Sends the batch under way or the next one, and takes over the reply.
    async fn exchange(&mut self, accounts: &GatewayAccounts) -> Result<Next, ReportError> {
        let (batch, known) = {
            let mut accounts = accounts.lock();
            (accounts.seal(), accounts.known())
        };
        let report = self.report(&batch, known);
        let reply = self.client.report_charges(&report).await;
        let end = match &reply {
            Ok(_) => ReportEnd::Acknowledged,
            Err(Error::Refused { status: 409, .. }) => ReportEnd::Refused,
            Err(Error::Refused { status: 422, .. }) if !batch.charges.is_empty() => {
                ReportEnd::Refused
            }
            Err(_) => ReportEnd::Failed,
        };
        accounts.counters.reported(end);
        match (reply, end) {
            (Ok(reply), _) => Ok(take_over(accounts, &batch, known, reply)),
            (Err(error), ReportEnd::Refused) => {
                self.begin_again(accounts, &error)?;
                // After a pause, because the next report may be refused, too.
                Err(error.into())
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    fn report(&self, batch: &ChargeBatch, known: u64) -> ChargeReport {
        let charges = batch.charges.iter().map(|charge| ReportedCharge {
            account: charge.account.to_string(),
            charge: charge.amount,
            requests: charge.requests,
        });
        ChargeReport {
            gateway: self.gateway,
            sequence: batch.sequence,
            known,
            charges: charges.collect(),
        }
    }

    /// Takes another identity, because the broker cannot tell if it has booked the batch under way, or cannot book it.
    fn begin_again(&mut self, accounts: &GatewayAccounts, error: &Error) -> Result<(), KeyError> {
        self.gateway = GatewayId::make()?;
        let lost = accounts.lock().restart(now());
        let lost = lost.iter().flat_map(|batch| &batch.charges);
        let sum: u64 = lost.map(|charge| charge.amount.micros()).sum();
        accounts.counters.lost(sum);
        if sum > 0 {
            let amount = posthaste_qos::decimal_text(sum);
            tracing::error!(%error, amount, "the broker has refused charges: they may be lost");
        }
        Ok(())
    }
}

/// Failure of an exchange, which is repeated.
#[derive(Debug, thiserror::Error)]
enum ReportError {
    #[error(transparent)]
    Broker(#[from] Error),
    #[error(transparent)]
    Identity(#[from] KeyError),
}

/// Takes over the acknowledgement of a batch and the accounts in a reply, at once. `requested` is the version of the
/// accounts in the report.
fn take_over(
    shared: &GatewayAccounts,
    batch: &ChargeBatch,
    requested: u64,
    reply: ReportReply,
) -> Next {
    let ReportReply {
        known,
        more,
        accounts: states,
    } = reply;
    let mut accounts = shared.lock();
    warn_of_currency(&states, accounts.currency());
    let definitions = states.into_iter().map(definition).collect();
    accounts.acknowledge(now(), batch.sequence);
    // After a reload in the meantime all accounts are read again.
    let known = if accounts.known() == requested {
        known
    } else {
        accounts.known()
    };
    let ignored = accounts.apply(now(), definitions, known, more);
    drop(accounts);
    if ignored > 0 {
        tracing::warn!(
            ignored,
            "accounts of the broker have names of accounts of the configuration"
        );
    }
    // The first report is empty, and a batch has a maximum length: charges may wait behind both.
    let may_wait = batch.sequence == 0 || batch.charges.len() >= MOST_CHARGES;
    if more || may_wait && !shared.lock().is_reported() {
        Next::Continue
    } else {
        Next::Wait
    }
}

/// Warns of accounts that can pay nothing, because the prices have another currency.
fn warn_of_currency(states: &[AccountState], currency: Currency) {
    let count = in_other_currency(states, currency);
    if count > 0 {
        tracing::warn!(
            count,
            "accounts can pay nothing, because the prices are in {currency}: add accounts in {currency}, or set \
             prices.currency"
        );
    }
}

/// Number of open accounts in another currency.
fn in_other_currency(states: &[AccountState], currency: Currency) -> usize {
    let open = states.iter().filter(|state| state.closed.is_none());
    open.filter(|state| state.budget.currency() != currency)
        .count()
}

fn definition(state: AccountState) -> Definition {
    let ends_in = Span::from_nanos(state.period_ends_in_ms.saturating_mul(1_000_000));
    Definition {
        name: state.name,
        key: state.key_sha256.map(|digest| digest.0),
        subject: state.certificate,
        budget: Some(Budget {
            amount: state.budget,
            period: state.period,
            spent: state.spent,
            ends_in,
            max_price: state.max_price,
        }),
        is_closed: state.closed.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use posthaste_admission::Amount;
    use posthaste_broker_client::accounts::Hex;
    use serde_json::json;

    use super::*;
    use posthaste_gateway_config::GatewayConfig;

    /// A gateway whose configuration has the account "own", or none.
    fn config(has_own: bool) -> GatewayConfig {
        let own = if has_own {
            "[[accounts.account]]\nname = \"own\"\ncertificate = \"CN=own\"\n"
        } else {
            ""
        };
        let text = format!(
            "listen = \":80\"\n[[route]]\npath = \"/\"\nupstream = [\"127.0.0.1:9000\"]\n[accounts]\n{own}"
        );
        GatewayConfig::read(&text).unwrap()
    }

    /// An account at the broker.
    fn state(name: &str, currency: &str) -> AccountState {
        let money = |amount: &str| json!({ "amount": amount, "currency": currency });
        let state = json!({
            "name": name, "certificate": format!("CN={name}"), "budget": money("10"), "period": "24h",
            "spent": money("0"), "period_ends_in_ms": 3_600_000, "made": "2026-01-01T00:00:00Z",
        });
        serde_json::from_value(state).unwrap()
    }

    fn reply(known: u64, accounts: Vec<AccountState>) -> ReportReply {
        ReportReply {
            known,
            more: false,
            accounts,
        }
    }

    #[test]
    fn a_reload_during_a_report_reads_all_accounts_again() {
        let accounts = GatewayAccounts::new(&config(true));
        let empty = ChargeBatch::default();
        take_over(&accounts, &empty, 0, reply(7, vec![state("own", "EUR")]));
        assert_eq!(accounts.lock().known(), 7);
        // The account of the configuration goes while a report is under way, and the broker's takes its place.
        accounts.change(config(false).accounts.as_ref());
        take_over(&accounts, &empty, 7, reply(8, Vec::new()));
        assert_eq!(accounts.lock().known(), 0);
        take_over(&accounts, &empty, 0, reply(8, vec![state("own", "EUR")]));
        assert_eq!(accounts.lock().known(), 8);
        assert!(accounts.with_subject("CN=own").is_some());
    }

    #[test]
    fn charges_behind_a_full_batch_are_reported_at_once() {
        let accounts = GatewayAccounts::new(&config(false));
        let names: Vec<String> = (0..=MOST_CHARGES).map(|n| format!("a{n}")).collect();
        let states = names.iter().map(|name| state(name, "EUR")).collect();
        take_over(&accounts, &ChargeBatch::default(), 0, reply(1, states));
        for name in &names {
            let account = accounts.with_subject(&format!("CN={name}")).unwrap();
            let mut accounts = accounts.lock();
            let hold = accounts.hold(now(), &account, Amount::from_micros(1));
            accounts.charge(hold.unwrap());
        }
        for (length, next) in [(MOST_CHARGES, Next::Continue), (1, Next::Wait)] {
            let batch = accounts.lock().seal();
            assert_eq!(batch.charges.len(), length);
            assert!(take_over(&accounts, &batch, 1, reply(1, Vec::new())) == next);
        }
        assert!(accounts.lock().is_reported());
    }

    #[test]
    fn an_empty_file_has_no_token() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut config = config(false).accounts.unwrap();
        config.broker = Some(posthaste_gateway_config::AccountsBroker {
            url: "http://127.0.0.1:1".to_owned(),
            token: file.path().to_owned(),
        });
        let error = ChargeReporter::new(&config).err().unwrap().to_string();
        assert!(
            error.contains("it is empty: `posthaste broker token new"),
            "{error}"
        );
    }

    #[test]
    fn without_charges_the_end_does_not_wait_for_the_broker() {
        let reporter = ChargeReporter {
            // Nothing listens at this port.
            client: BrokerClient::new("http://127.0.0.1:1").unwrap(),
            gateway: Hex([1; 16]),
            every: Span::from_secs(1),
        };
        let accounts = GatewayAccounts::new(&config(false));
        let (_stop, stopped) = watch::channel(true);
        let patience = Duration::from_secs(60);
        let ended = posthaste_broker_client::wait(async {
            tokio::time::timeout(patience, run(&accounts, reporter, stopped)).await
        });
        assert!(ended.unwrap().is_ok(), "the end waits for the broker");
    }

    #[test]
    fn open_accounts_in_another_currency_are_counted() {
        let mut closed = state("eve", "USD");
        closed.closed = Some(closed.made);
        let states = [state("ada", "EUR"), state("bob", "USD"), closed];
        assert_eq!(in_other_currency(&states, "EUR".parse().unwrap()), 1);
    }
}
