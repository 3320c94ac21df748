//! Accounts and charges over HTTP.

use base64::Engine as _;
use posthaste_broker::{Admin, TokenRole};
use posthaste_broker_client::accounts::{
    AccountChange, AccountKey, AccountState, ChargeQuery, ChargeReport, GatewayId, NewAccount,
    ReportReply, ReportedCharge,
};
use posthaste_broker_client::{BrokerClient, Error};
use posthaste_qos::Money;
use posthaste_units::Span;

use crate::support::{TestBroker, TestReply, send};

/// A broker with an operator and a gateway.
struct Accounts {
    broker: TestBroker,
    operator: String,
    gateway: String,
}

fn eur(amount: &str) -> Money {
    Money::new(amount, "EUR".parse().unwrap()).unwrap()
}

fn new(name: &str) -> NewAccount {
    NewAccount {
        name: name.to_owned(),
        key_sha256: Some(AccountKey::make().unwrap().digest()),
        certificate: None,
        budget: eur("10"),
        period: Span::from_secs(86_400),
        max_price: None,
    }
}

fn done<T>(call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    posthaste_broker_client::wait(call).unwrap()
}

impl Accounts {
    fn open() -> Self {
        let mut made = Vec::new();
        let broker = TestBroker::with(|store| {
            let mut admin = Admin::open(store).unwrap();
            for role in [TokenRole::Operator, TokenRole::Gateway] {
                made.push(admin.make_token_for(role, role.name()).unwrap().1);
            }
            posthaste_broker::BrokerConfig {
                store: store.clone(),
                ..posthaste_broker::BrokerConfig::default()
            }
        });
        let gateway = made.pop().unwrap();
        Self {
            broker,
            operator: made.pop().unwrap(),
            gateway,
        }
    }

    fn client(&self, token: &str) -> BrokerClient {
        let client = BrokerClient::new(&self.broker.url()).unwrap();
        client.with_token(Some(token.to_owned()))
    }

    fn add(&self, account: &NewAccount) -> Result<AccountState, Error> {
        done(self.client(&self.operator).add_account(account))
    }

    fn report(&self, report: &ChargeReport) -> Result<ReportReply, Error> {
        done(self.client(&self.gateway).report_charges(report))
    }

    fn get(&self, path: &str, field: &str) -> TestReply {
        send(self.broker.broker.addr, "GET", path, &[field], "")
    }

    fn as_operator(&self, path: &str) -> TestReply {
        self.get(path, &format!("Authorization: Bearer {}", self.operator))
    }
}

fn empty() -> ChargeReport {
    ChargeReport {
        gateway: GatewayId::make().unwrap(),
        sequence: 0,
        known: 0,
        charges: Vec::new(),
    }
}

fn batch(before: &ChargeReport, account: &str, amount: &str) -> ChargeReport {
    ChargeReport {
        sequence: before.sequence + 1,
        charges: vec![ReportedCharge {
            account: account.to_owned(),
            charge: eur(amount),
            requests: 3,
        }],
        ..before.clone()
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>, wanted: u16, text: &str) {
    match outcome {
        Err(Error::Refused { status, detail }) => {
            assert_eq!(status, wanted, "{detail}");
            assert!(detail.contains(text), "{detail}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_account_is_added_charged_changed_and_closed() {
    let accounts = Accounts::open();
    let added = accounts.add(&new("ada")).unwrap();
    assert_eq!((added.spent, added.budget), (eur("0"), eur("10")));
    refused(accounts.add(&new("ada")), 409, "take another name");
    let begin = empty();
    let reply = accounts.report(&begin).unwrap();
    assert_eq!(reply.accounts.len(), 1);
    let first = batch(&begin, "ada", "0.25");
    for _ in 0..2 {
        let reply = accounts.report(&first).unwrap();
        assert_eq!(reply.accounts[0].spent, eur("0.25"));
    }
    let operator = accounts.client(&accounts.operator);
    let change = AccountChange {
        budget: Some(eur("20")),
        max_price: Some(Some(eur("0.05"))),
        ..AccountChange::default()
    };
    let changed = done(operator.change_account("ada", &change)).unwrap();
    let expected = (eur("20"), Some(eur("0.05")), eur("0.25"));
    assert_eq!((changed.budget, changed.max_price, changed.spent), expected);
    done(operator.close_account("ada")).unwrap();
    refused(
        done(operator.close_account("ada")),
        409,
        "cannot be opened again",
    );
    refused(done(operator.close_account("eve")), 404, "accounts list");
    let listed = done(operator.accounts("", 10)).unwrap();
    assert!(listed[0].closed.is_some() && listed[0].key_sha256.is_none());
    let query = ChargeQuery {
        limit: 10,
        ..ChargeQuery::default()
    };
    let charges = done(operator.charges(&query)).unwrap();
    assert_eq!(
        (charges.len(), charges[0].charge, charges[0].requests),
        (1, eur("0.25"), 3)
    );
    let csv = accounts.as_operator("/v1/charges?format=csv&account=ada");
    let lines: Vec<&str> = csv.body.lines().collect();
    assert_eq!(lines.len(), 2, "{}", csv.body);
    assert!(lines[1].ends_with(",1,ada,0.25,EUR,3"), "{}", lines[1]);
}

#[test]
fn each_role_has_its_own_rights() {
    let accounts = Accounts::open();
    let begin = empty();
    for (token, text) in [
        (&accounts.operator, "this is an operator's token"),
        (&accounts.broker.token, "this is a provider's token"),
    ] {
        let outcome = done(accounts.client(token).report_charges(&begin));
        refused(outcome, 403, text);
    }
    for token in [&accounts.gateway, &accounts.broker.token] {
        let outcome = done(accounts.client(token).add_account(&new("ada")));
        refused(outcome, 403, "--role operator");
    }
    let nobody = done(accounts.client("pht_wrong").accounts("", 1));
    refused(nobody, 401, "unknown or revoked token");
    let path = "/v1/offers/books/gateway/Gold";
    let field = format!("Authorization: Bearer {}", accounts.gateway);
    let publishes = send(accounts.broker.broker.addr, "PUT", path, &[&field], "{}");
    assert_eq!(publishes.status, 403, "{}", publishes.body);
}

#[test]
fn unusable_accounts_and_charges_are_refused() {
    let accounts = Accounts::open();
    let unidentified = NewAccount {
        key_sha256: None,
        ..new("ada")
    };
    refused(accounts.add(&unidentified), 422, "nothing identifies");
    refused(
        accounts.add(&new("10.0.0.1")),
        422,
        "not a name of an account",
    );
    let short = NewAccount {
        period: Span::from_millis(1),
        ..new("ada")
    };
    refused(accounts.add(&short), 422, "write one from");
    let begin = empty();
    let early = batch(&begin, "ada", "1");
    refused(accounts.report(&early), 409, "begin as a new gateway");
    accounts.report(&begin).unwrap();
    refused(accounts.report(&early), 422, "no account \"ada\"");
    let many = ChargeReport {
        charges: vec![early.charges[0].clone(); 1_001],
        ..early
    };
    refused(accounts.report(&many), 422, "1000 at most");
    let unnamed = batch(&begin, "ada\0", "1");
    refused(accounts.report(&unnamed), 422, "not a name of an account");
    for path in ["/v1/accounts?after=%00", "/v1/charges?account=%00"] {
        let reply = accounts.as_operator(path);
        assert_eq!(reply.status, 400, "{path}: {}", reply.body);
    }
}

#[test]
fn an_operators_browser_sees_the_accounts_and_changes_none() {
    let accounts = Accounts::open();
    accounts.add(&new("ada")).unwrap();
    let login =
        base64::engine::general_purpose::STANDARD.encode(format!("any:{}", accounts.operator));
    let login = format!("Authorization: Basic {login}");
    let addr = accounts.broker.broker.addr;
    // The page of an attacker can make a browser send this, with the password.
    let eve = serde_json::to_string(&new("eve")).unwrap();
    let kind = "Content-Type: text/plain";
    let added = send(addr, "POST", "/v1/accounts", &[&login, kind], &eve);
    assert_eq!(added.status, 401, "{}", added.body);
    let closed = send(addr, "DELETE", "/v1/accounts/ada", &[&login], "");
    assert_eq!(closed.status, 401, "{}", closed.body);
    for path in ["/accounts", "/v1/accounts", "/v1/charges?format=csv"] {
        assert_eq!(accounts.get(path, &login).status, 200, "{path}");
    }
    let page = accounts.get("/accounts", "Accept: text/html");
    assert_eq!(page.status, 401);
    let challenge = page.field("WWW-Authenticate").unwrap_or_default();
    assert!(challenge.starts_with("Basic "), "{challenge}");
    let page = accounts.as_operator("/accounts");
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(
        page.body.contains("ada") && page.body.contains("10.00 EUR"),
        "{}",
        page.body
    );
    let metrics = accounts.get("/metrics", "Accept: text/plain").body;
    assert!(
        metrics.contains("posthaste_broker_charge_batches_total"),
        "{metrics}"
    );
    assert!(!metrics.contains("ada"), "{metrics}");
}
