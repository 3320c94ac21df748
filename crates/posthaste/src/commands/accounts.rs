//! `posthaste accounts`: clients with budgets at a broker, for operators.

use std::ops::ControlFlow;

use jiff::Timestamp;
use posthaste_broker_client::BrokerClient;
use posthaste_broker_client::accounts::{
    AccountChange, AccountKey, AccountState, ChargeQuery, ChargeRecord, KeyDigest, NewAccount,
    fault_of_account_name, fault_of_subject,
};
use posthaste_qos::Money;
use posthaste_units::Span;

use super::broker_access::{BrokerAccess, wait};
use super::price::price;
use super::{Failure, print, tell};

/// Number of entries per page of a list.
const PAGE: usize = 1_000;

/// Give clients budgets, and list their charges.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  A token for yourself and one for a gateway, both at the broker's machine:
    posthaste broker token new --role operator me > operator.token
    posthaste broker token new --role gateway gw1 > gateway.token
  A client with 10 EUR a day; the key that it prints is for the client:
    posthaste accounts add ada --budget 10EUR --period 24h --max-price 0.05EUR --token-file operator.token
  What everyone has spent:
    posthaste accounts list --token-file operator.token
  A new key without a new account, and more money:
    posthaste accounts change ada --new-key --budget 20EUR --token-file operator.token
  What a client was charged since yesterday (CSV):
    posthaste accounts charges --account ada --from 2026-11-25T00:00:00Z --token-file operator.token

Exit codes: 0 all well, 2 usage, 3 the broker refused or cannot be reached.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: AccountVerb,
}

#[derive(clap::Subcommand)]
enum AccountVerb {
    /// Add an account and print its API key, once
    Add(Box<Add>),
    /// Every account by name, with its spending in this period (CSV)
    List {
        #[command(flatten)]
        broker: BrokerAccess,
        /// Print a JSON object for each line
        #[arg(long)]
        json: bool,
    },
    /// Change an account
    Change(Box<Change>),
    /// Close an account for good; its charges are kept
    Close {
        /// The account's name
        name: String,
        #[command(flatten)]
        broker: BrokerAccess,
    },
    /// Booked charges, the oldest first (CSV)
    Charges {
        /// Only this account
        #[arg(long, value_name = "NAME")]
        account: Option<String>,
        /// Only from this time on, as 2026-11-25T00:00:00Z
        #[arg(long, value_name = "TIME")]
        from: Option<Timestamp>,
        /// Only before this time
        #[arg(long, value_name = "TIME")]
        until: Option<Timestamp>,
        #[command(flatten)]
        broker: BrokerAccess,
        /// Print a JSON object for each line
        #[arg(long)]
        json: bool,
    },
}

#[derive(clap::Args)]
struct Add {
    /// The account's name: a letter, then letters, digits, -, _ or .
    #[arg(value_parser = account_name)]
    name: String,
    /// Money for one period, as 10EUR
    #[arg(long, value_name = "MONEY", value_parser = price)]
    budget: Money,
    /// Length of a period, counted from 1970: the whole budget is there again when one ends
    #[arg(long, value_name = "TIME", default_value = "24h")]
    period: Span,
    /// Price accepted by requests that state none, as 0.05EUR
    #[arg(long, value_name = "PRICE", value_parser = price)]
    max_price: Option<Money>,
    /// Subject of the client's certificate, as openssl x509 -noout -subject -nameopt RFC2253 shows it
    #[arg(long, value_name = "SUBJECT", value_parser = certificate)]
    certificate: Option<String>,
    /// Take the SHA-256 digest of a key that the client has, instead of making a key
    #[arg(long, value_name = "DIGEST")]
    key_sha256: Option<KeyDigest>,
    /// Make no key: only the certificate identifies the client
    #[arg(long, conflicts_with = "key_sha256", requires = "certificate")]
    no_key: bool,
    #[command(flatten)]
    broker: BrokerAccess,
}

#[derive(clap::Args)]
struct Change {
    /// The account's name
    #[arg(value_parser = account_name)]
    name: String,
    /// Money for one period, in the currency of the account
    #[arg(long, value_name = "MONEY", value_parser = price)]
    budget: Option<Money>,
    /// Length of a period
    #[arg(long, value_name = "TIME")]
    period: Option<Span>,
    /// Price accepted by requests that state none
    #[arg(long, value_name = "PRICE", value_parser = price, conflicts_with = "no_max_price")]
    max_price: Option<Money>,
    /// Requests that state no price accept none
    #[arg(long)]
    no_max_price: bool,
    /// Subject of the client's certificate
    #[arg(long, value_name = "SUBJECT", value_parser = certificate, conflicts_with = "no_certificate")]
    certificate: Option<String>,
    /// No certificate identifies the client
    #[arg(long)]
    no_certificate: bool,
    /// Make a new key and print it; the old one is wrong from now on
    #[arg(long, conflicts_with = "no_key")]
    new_key: bool,
    /// No key identifies the client
    #[arg(long)]
    no_key: bool,
    #[command(flatten)]
    broker: BrokerAccess,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.verb {
            AccountVerb::Add(add) => add.run(),
            AccountVerb::List { broker, json } => list(&operator(&broker)?, json),
            AccountVerb::Change(change) => change.run(),
            AccountVerb::Close { name, broker } => wait(operator(&broker)?.close_account(&name)),
            AccountVerb::Charges {
                account,
                from,
                until,
                broker,
                json,
            } => {
                let query = ChargeQuery {
                    account,
                    from,
                    until,
                    after: 0,
                    limit: PAGE,
                };
                charges(&operator(&broker)?, query, json)
            }
        }
    }
}

impl Add {
    fn run(self) -> Result<(), Failure> {
        let client = operator(&self.broker)?;
        let makes_key = !self.no_key && self.key_sha256.is_none();
        let key = makes_key.then(AccountKey::make).transpose();
        let key = key.map_err(Failure::run)?;
        let new = NewAccount {
            name: self.name,
            key_sha256: key.as_ref().map(AccountKey::digest).or(self.key_sha256),
            certificate: self.certificate,
            budget: self.budget,
            period: self.period,
            max_price: self.max_price,
        };
        let AccountState {
            name,
            budget,
            period,
            ..
        } = wait(client.add_account(&new))?;
        note!("account {name}: {budget} for each {period}");
        show(key)
    }
}

impl Change {
    fn run(self) -> Result<(), Failure> {
        let client = operator(&self.broker)?;
        let key = self.new_key.then(AccountKey::make).transpose();
        let key = key.map_err(Failure::run)?;
        let change = AccountChange {
            key_sha256: match &key {
                Some(key) => Some(Some(key.digest())),
                None => self.no_key.then_some(None),
            },
            certificate: match self.certificate {
                Some(subject) => Some(Some(subject)),
                None => self.no_certificate.then_some(None),
            },
            budget: self.budget,
            period: self.period,
            max_price: match self.max_price {
                Some(price) => Some(Some(price)),
                None => self.no_max_price.then_some(None),
            },
        };
        if change == AccountChange::default() {
            return Err(Failure::usage(
                "nothing to change: give --budget, --period, --max-price, --certificate or --new-key",
            ));
        }
        let AccountState {
            name,
            budget,
            period,
            ..
        } = wait(client.change_account(&self.name, &change))?;
        note!("account {name}: {budget} for each {period}");
        show(key)
    }
}

/// A client with an operator's token.
fn operator(broker: &BrokerAccess) -> Result<BrokerClient, Failure> {
    broker.bearer(
        "accounts need an operator's token: give a file with it by --token-file FILE, or set POSTHASTE_BROKER_TOKEN; \
         `posthaste broker token new --role operator NAME` makes one",
    )
}

/// Prints a new key, once.
fn show(key: Option<AccountKey>) -> Result<(), Failure> {
    let Some(key) = key else {
        return Ok(());
    };
    note!("its key, which is not shown again:");
    print(&format!("{}\n", key.secret()))
}

fn list(client: &BrokerClient, json: bool) -> Result<(), Failure> {
    let head = [
        "name",
        "spent",
        "budget",
        "currency",
        "period",
        "max_price",
        "certificate",
        "made",
        "closed",
    ];
    let mut out = Lines::begin(&head, json)?;
    let mut after = String::new();
    loop {
        let page = wait(client.accounts(&after, PAGE))?;
        for account in &page {
            out.add(account, &row(account))?;
        }
        if out.print()?.is_break() {
            return Ok(());
        }
        match page.into_iter().nth(PAGE - 1) {
            Some(last) => after = last.name,
            None => return Ok(()),
        }
    }
}

fn row(account: &AccountState) -> [String; 9] {
    let time = |at: Option<Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
    let price = account.max_price.map(|price| price.amount());
    [
        account.name.clone(),
        account.spent.amount(),
        account.budget.amount(),
        account.budget.currency().to_string(),
        account.period.to_string(),
        price.unwrap_or_default(),
        account.certificate.clone().unwrap_or_default(),
        time(Some(account.made)),
        time(account.closed),
    ]
}

fn charges(client: &BrokerClient, mut query: ChargeQuery, json: bool) -> Result<(), Failure> {
    let head = [
        "number", "at", "period", "gateway", "sequence", "account", "amount", "currency",
        "requests",
    ];
    let mut out = Lines::begin(&head, json)?;
    loop {
        let page = wait(client.charges(&query))?;
        for record in &page {
            out.add(record, &record_row(record))?;
        }
        if out.print()?.is_break() {
            return Ok(());
        }
        match page.get(PAGE - 1) {
            Some(last) => query.after = last.number,
            None => return Ok(()),
        }
    }
}

fn record_row(record: &ChargeRecord) -> [String; 9] {
    [
        record.number.to_string(),
        record.at.to_string(),
        record.period.to_string(),
        record.gateway.to_string(),
        record.sequence.to_string(),
        record.account.clone(),
        record.charge.amount(),
        record.charge.currency().to_string(),
        record.requests.to_string(),
    ]
}

/// Entries of a list, as CSV or as JSON line by line. Holds one page, because a list can have millions of entries.
enum Lines {
    Csv(Box<csv::Writer<Vec<u8>>>),
    Json(String),
}

impl Lines {
    fn begin(head: &[&str], json: bool) -> Result<Self, Failure> {
        if json {
            return Ok(Self::Json(String::new()));
        }
        let mut out = csv::Writer::from_writer(Vec::new());
        out.write_record(head).map_err(Failure::run)?;
        Ok(Self::Csv(Box::new(out)))
    }

    fn add(&mut self, value: &impl serde::Serialize, row: &[String]) -> Result<(), Failure> {
        match self {
            Self::Csv(out) => out.write_record(row).map_err(Failure::run),
            Self::Json(out) => {
                *out += &serde_json::to_string(value).map_err(Failure::run)?;
                out.push('\n');
                Ok(())
            }
        }
    }

    /// Prints the entries since the last call. Returns `Break` if the reader has closed.
    fn print(&mut self) -> Result<ControlFlow<()>, Failure> {
        let text = match self {
            Self::Csv(out) => {
                let page = std::mem::replace(&mut **out, csv::Writer::from_writer(Vec::new()));
                let bytes = page.into_inner().map_err(Failure::run)?;
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Self::Json(out) => std::mem::take(out),
        };
        tell(&text)
    }
}

fn account_name(text: &str) -> Result<String, String> {
    fault_of_account_name(text).map_or_else(|| Ok(text.to_owned()), Err)
}

fn certificate(text: &str) -> Result<String, String> {
    fault_of_subject(text).map_or_else(|| Ok(text.to_owned()), Err)
}
