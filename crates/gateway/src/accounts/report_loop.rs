//! Reports of charges to the broker, outside the path of requests.
//!
//! A report is made every `accounts.every`, and at once when an account has charged half of its bound. A batch is sent
//! again until it is acknowledged. At the end of the gateway the last charges are reported, for a few seconds at most.

use std::fs;
use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use posthaste_admission::accounts::{Budget, ChargeBatch, Definition};
use posthaste_broker_client::accounts::{
    AccountState, ChargeReport, GatewayId, KeyError, ReportReply, ReportedCharge,
};
use posthaste_broker_client::{BrokerClient, Error};
use posthaste_serve::Background;
use posthaste_units::Span;
use tokio::sync::watch;
use tokio::time::sleep;

use super::GatewayAccounts;
use super::counters::ReportEnd;
use crate::clock::now;
use crate::config::AccountsConfig;
use crate::error::ResolveError;

/// Delay before a failed report is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Maximum time for the last reports.
const LAST: Duration = Duration::from_secs(5);

/// The running reports. Dropping it reports the last charges.
pub(crate) struct ReportLoop {
    is_last: watch::Sender<bool>,
    /// Shared between threads only because the gateway is.
    has_ended: Mutex<Receiver<()>>,
    _thread: Background,
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
        let (ended, has_ended) = channel();
        let thread = Background::start("charges", move || async move {
            run(&accounts, reporter, stop).await;
            // Nobody waits if the gateway was not dropped.
            let _ = ended.send(());
        })?;
        Ok(Self {
            is_last,
            has_ended: Mutex::new(has_ended),
            _thread: thread,
        })
    }
}

impl Drop for ReportLoop {
    fn drop(&mut self) {
        self.is_last.send_replace(true);
        let has_ended = self.has_ended.get_mut();
        let has_ended = has_ended.unwrap_or_else(PoisonError::into_inner);
        if has_ended.recv_timeout(LAST).is_err() {
            tracing::error!("the last charges could not be reported: they are lost");
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
        if stops && works && accounts.lock().is_reported() {
            return;
        }
        match done {
            Ok(Next::Continue) => {}
            Ok(Next::Wait) if stops => {}
            Ok(Next::Wait) => tokio::select! {
                () = sleep(reporter.every.into()) => {}
                () = accounts.due.notified() => {}
                _ = is_last.changed() => {}
            },
            Err(_) => tokio::select! {
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
        let secret = fs::read_to_string(&broker.token);
        let secret = secret.map_err(|error| ResolveError::AccountsToken {
            file: broker.token.clone(),
            error,
        })?;
        let client = BrokerClient::new(&broker.url)?;
        Ok(Some(Self {
            client: client.with_token(Some(secret.trim().to_owned())),
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
            Err(Error::Refused {
                status: 409 | 422, ..
            }) => ReportEnd::Refused,
            Err(_) => ReportEnd::Failed,
        };
        accounts.counters.reported(end);
        match (reply, end) {
            (Ok(reply), _) => Ok(take_over(accounts, batch.sequence, reply)),
            (Err(error), ReportEnd::Refused) => {
                self.begin_again(accounts, &error)?;
                Ok(Next::Continue)
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

    /// Takes another identity, because the broker cannot tell if it has booked the batch under way.
    fn begin_again(&mut self, accounts: &GatewayAccounts, error: &Error) -> Result<(), KeyError> {
        self.gateway = GatewayId::make()?;
        let lost = accounts.lock().restart(now());
        let lost = lost.iter().flat_map(|batch| &batch.charges);
        let sum: u64 = lost.map(|charge| charge.amount.micros()).sum();
        accounts.counters.lost(sum);
        let amount = posthaste_qos::decimal_text(sum);
        tracing::error!(%error, amount, "the broker does not know this gateway: charges may be lost");
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

/// Takes over an acknowledgement and the accounts in a reply, at once.
fn take_over(shared: &GatewayAccounts, sequence: u64, reply: ReportReply) -> Next {
    let ReportReply {
        known,
        more,
        accounts: states,
    } = reply;
    let definitions = states.into_iter().map(definition).collect();
    let mut accounts = shared.lock();
    accounts.acknowledge(now(), sequence);
    let ignored = accounts.apply(now(), definitions, (known, more));
    drop(accounts);
    if ignored > 0 {
        tracing::warn!(
            ignored,
            "accounts of the broker have names of accounts of the configuration"
        );
    }
    // The first report is empty, and charges may wait behind it.
    match more || sequence == 0 && !shared.lock().is_reported() {
        true => Next::Continue,
        false => Next::Wait,
    }
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
