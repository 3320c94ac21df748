//! Accounts by API key: identity, payment, and reports to a stand-in of the broker.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;

use posthaste_admission::Amount;
use posthaste_broker_client::accounts::{AccountKey, ChargeReport};
use posthaste_gateway::{GatewayConfig, RunningGateway, start};
use serde_json::json;
use tempfile::NamedTempFile;

use crate::priced::{DEAR, Priced, metrics};
use crate::support::{OriginConnection, SeenSignal, TestOrigin, config, field, get, wait_until};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Budget of the account at the stand-in, in units.
const BUDGET: u64 = 50;

/// A stand-in of the broker with one account, named ada.
struct StandIn {
    origin: TestOrigin,
    state: Arc<StandInState>,
    key: AccountKey,
    token: NamedTempFile,
}

#[derive(Default)]
struct StandInState {
    /// Replies with 503.
    is_away: AtomicBool,
    /// Books, and cuts off the reply.
    cuts_off: AtomicBool,
    /// Last batch of each gateway, and booked millionths.
    booked: Mutex<(BTreeMap<String, u64>, u64)>,
}

impl StandIn {
    fn start() -> Self {
        let (key, state) = (AccountKey::make().unwrap(), Arc::<StandInState>::default());
        let (digest, books) = (key.digest().to_string(), state.clone());
        let origin = TestOrigin::start(move |line| {
            if let Some(request) = line.request() {
                books.answer(line, &request, &digest);
            }
        });
        let mut token = NamedTempFile::new().unwrap();
        token.write_all(b"pht_gateway\n").unwrap();
        Self {
            origin,
            state,
            key,
            token,
        }
    }

    /// The table `[accounts]`.
    fn table(&self) -> String {
        let (address, token) = (self.origin.address, self.token.path());
        format!(
            "[accounts]\nevery = \"10ms\"\nunreported = \"3\"\nbroker = {{ url = \"http://{address}\", token = {token:?} }}\n"
        )
    }

    /// Field with the account's key.
    fn field(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.key.secret())
    }

    fn booked(&self) -> u64 {
        self.state.booked.lock().unwrap().1
    }
}

impl StandInState {
    fn answer(&self, line: &mut OriginConnection, request: &str, digest: &str) {
        if self.is_away.load(SeqCst) {
            return line.write("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
        }
        assert!(
            request
                .to_lowercase()
                .contains("authorization: bearer pht_gateway")
        );
        let (_, body) = request.split_once("\r\n\r\n").unwrap();
        let report: ChargeReport = serde_json::from_str(body).unwrap();
        let mut booked = self.booked.lock().unwrap();
        let last = booked.0.entry(report.gateway.to_string()).or_default();
        if report.sequence > *last {
            assert_eq!(report.sequence, *last + 1, "a batch is missing");
            *last = report.sequence;
            let charges = report.charges.iter().map(|charge| charge.charge.micros());
            booked.1 += charges.sum::<u64>();
        }
        let spent = Amount::from_micros(booked.1).to_string();
        drop(booked);
        if self.cuts_off.load(SeqCst) {
            return line.write("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{");
        }
        let money = |amount: String| json!({ "amount": amount, "currency": "EUR" });
        let ada = json!({
            "name": "ada", "key_sha256": digest, "budget": money(BUDGET.to_string()), "period": "24h",
            "max_price": money("1000".to_owned()), "spent": money(spent), "period_ends_in_ms": 3_600_000,
            "made": "2026-01-01T00:00:00Z",
        });
        let body =
            json!({ "known": report.known + 1, "more": false, "accounts": [ada] }).to_string();
        let length = body.len();
        line.write(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
        ));
    }
}

/// A gateway whose price is 1 EUR, before an upstream that fails at `/fail`.
fn priced(broker: &StandIn) -> Priced {
    let origin = TestOrigin::start(|line| {
        while let Some(request) = line.request() {
            let status = if request.contains("/fail") {
                "503 Failed"
            } else {
                "200 OK"
            };
            line.write(format!(
                "HTTP/1.1 {status}\r\nX-Busy: 0.9\r\nContent-Length: 2\r\n\r\nok"
            ));
        }
    });
    let shop = Priced::before(origin, &format!("{DEAR}{}", broker.table()));
    wait_until("the account is known and the price has risen", || {
        let is_known = shop.get(&broker.field()).status == 200;
        shop.get("");
        is_known && shop.price() > 0.0
    });
    shop
}

/// The price that a reply states, in millionths. 0 without one.
fn paid(shop: &Priced, fields: &str) -> u64 {
    let price = shop.fields(fields)("price").unwrap_or_default();
    let amount = price.split(' ').next().unwrap_or_default();
    posthaste_qos::micros(amount).unwrap_or(0)
}

#[test]
fn a_key_is_checked_named_in_the_log_and_not_forwarded() {
    let key = AccountKey::make().unwrap();
    let (origin, log) = (TestOrigin::answering(OK), NamedTempFile::new().unwrap());
    let text = |more: &str| {
        let digest = key.digest();
        format!(
            "access_log = {:?}\n[accounts]\n{more}\n[[accounts.account]]\nname = \"ada\"\nkey_sha256 = \"{digest}\"\n",
            log.path()
        )
    };
    let gateway = start(config(&[origin.address], &text(""))).unwrap();
    let field_of = |key: &str| format!("Authorization: Bearer {key}\r\n");
    assert_eq!(get(&gateway, "/", &field_of(key.secret())).status, 200);
    assert!(!origin.last_request().contains(key.secret()));
    assert_eq!(get(&gateway, "/", "").status, 200);
    for wrong in ["pha_wrong", &key.secret()[..20], "x"] {
        let reply = get(&gateway, "/", &field_of(wrong));
        assert_eq!(reply.status, 401);
        let challenge = field(&reply.head, "www-authenticate");
        assert_eq!(
            challenge,
            Some("bearer error=\"invalid_token\""),
            "{}",
            reply.head
        );
    }
    assert_eq!(origin.request_count(), 2);
    let forwards = text("key_field = \"X-Api-Key\"\nforward_key = true");
    gateway
        .reload(listening_as(&gateway, &origin, &forwards))
        .unwrap();
    wait_until("the new configuration is in use", || {
        get(&gateway, "/", &field_of("pha_wrong")).status == 200
    });
    let reply = get(&gateway, "/", &format!("X-Api-Key: {}\r\n", key.secret()));
    assert_eq!(reply.status, 200);
    assert!(origin.last_request().contains(key.secret()));
    wait_until("the log has the account", || {
        let lines = std::fs::read_to_string(log.path()).unwrap();
        lines.matches("\"account\":\"ada\"").count() == 2 && !lines.contains(key.secret())
    });
}

/// A further configuration of a running gateway.
fn listening_as(_gateway: &RunningGateway, origin: &TestOrigin, more: &str) -> GatewayConfig {
    config(&[origin.address], more)
}

#[test]
fn before_the_brokers_accounts_are_known_a_key_is_not_wrong() {
    let broker = StandIn::start();
    broker.state.is_away.store(true, SeqCst);
    let origin = TestOrigin::answering(OK);
    let gateway = start(config(&[origin.address], &broker.table())).unwrap();
    assert_eq!(get(&gateway, "/", &broker.field()).status, 503);
    assert_eq!(get(&gateway, "/", "").status, 200);
    broker.state.is_away.store(false, SeqCst);
    wait_until("the account is known", || {
        get(&gateway, "/", &broker.field()).status == 200
    });
    assert_eq!(
        get(&gateway, "/", "Authorization: Bearer x\r\n").status,
        401
    );
}

#[test]
fn only_an_account_pays_and_each_payment_is_booked_once() {
    let broker = StandIn::start();
    let shop = priced(&broker);
    let mut sum = broker_charged(&shop);
    // Others get a slot that is free, and pay nothing.
    for fields in ["Max-Price: 1000 EUR\r\n", ""] {
        let reply = shop.get(fields);
        assert_eq!(reply.status, 200);
        assert_eq!(field(&reply.head, "price"), Some("0.00 eur"));
    }
    assert!(unpaid(&shop) >= 2.0);
    assert_eq!(
        paid(&shop, &format!("{}Max-Price: 0.01 EUR\r\n", broker.field())),
        0
    );
    for round in 0..10 {
        // A reply that is cut off does not book twice.
        broker.state.cuts_off.store(round % 2 == 0, SeqCst);
        wait_until("an account with a budget pays", || {
            let micros = paid(&shop, &broker.field());
            sum += micros;
            broker.state.cuts_off.store(false, SeqCst);
            micros > 0
        });
    }
    let Priced { gateway, .. } = shop;
    drop(gateway);
    assert_eq!(
        broker.booked(),
        sum,
        "the last charges are reported at the end"
    );
}

/// Requests admitted without payment.
fn unpaid(shop: &Priced) -> f64 {
    metrics(&shop.gateway)("entered_total{by=\"unpaid\"}")
}

/// Charged so far, in millionths.
fn broker_charged(shop: &Priced) -> u64 {
    (metrics(&shop.gateway)("charged_total") * 1e6).round() as u64
}

#[test]
fn without_the_broker_an_account_spends_its_bound() {
    let broker = StandIn::start();
    let shop = priced(&broker);
    broker.state.is_away.store(true, SeqCst);
    let before = broker.booked();
    wait_until("the bound is spent", || {
        let before = unpaid(&shop);
        shop.get(&broker.field());
        unpaid(&shop) > before
    });
    let spent = broker_charged(&shop) - before;
    assert!(
        spent <= 3_000_000,
        "{spent} charged beside the bound of 3 EUR"
    );
    broker.state.is_away.store(false, SeqCst);
    wait_until("it can pay again", || paid(&shop, &broker.field()) > 0);
}

#[test]
fn a_budget_ends_and_a_failed_request_costs_nothing() {
    let broker = StandIn::start();
    let shop = priced(&broker);
    let before = broker_charged(&shop);
    let failed = get(&shop.gateway, "/fail", &broker.field());
    assert_eq!(failed.status, 503);
    assert_eq!(
        field(&failed.head, "price"),
        Some("0.00 eur"),
        "{}",
        failed.head
    );
    assert_eq!(broker_charged(&shop), before);
    wait_until("the budget is spent", || {
        let micros = paid(&shop, &broker.field());
        micros == 0 && broker.booked() + 1_000_000 > BUDGET * 1_000_000
    });
    assert!(broker.booked() <= BUDGET * 1_000_000, "{}", broker.booked());
}

#[test]
fn paying_requests_get_slots_before_the_others() {
    let broker = StandIn::start();
    let release = SeenSignal::default();
    let released = release.clone();
    let origin = TestOrigin::start(move |line| {
        while let Some(request) = line.request() {
            if request.contains("/slow") {
                released.wait();
            }
            line.write("HTTP/1.1 200 OK\r\nX-Busy: 0.9\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let more = format!(
        "[demand]\nwatch = {{ upstream = \"X-Busy\" }}\n\
         [protection]\npolicy = \"prices\"\nleast = 1\nmost = 1\nwait = \"60s\"\n\
         [prices]\nevery = \"20ms\"\n{DEAR}{}",
        broker.table()
    );
    let gateway = start(config(&[origin.address], &more)).unwrap();
    let count = |name: &str| metrics(&gateway)(name);
    wait_until("the account is known and the price has risen", || {
        get(&gateway, "/", &broker.field()).status == 200 && count("price ") > 0.0
    });
    let before = origin.request_count();
    let ask = |name: &str, fields: &str| get(&gateway, &format!("/slow?{name}"), fields).status;
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(ask("first", &broker.field()), 200));
        wait_until("the slot is taken", || origin.request_count() > before);
        scope.spawn(|| assert_eq!(ask("without", ""), 200));
        let waiting = |tier: &str| count(&format!("tier_waiting{{tier=\"{tier}\""));
        wait_until("one waits for nothing", || waiting("unpaid") == 1.0);
        scope.spawn(|| assert_eq!(ask("paying", &broker.field()), 200));
        wait_until("one waits that pays", || waiting("paid") == 1.0);
        release.tell();
    });
    let requests = origin.requests.lock().unwrap();
    let order: Vec<&str> = requests[before..]
        .iter()
        .filter_map(|request| request.split(['?', ' ']).nth(2))
        .collect();
    assert_eq!(order, ["first", "paying", "without"]);
}

#[test]
fn too_many_wrong_keys_of_a_client_are_limited() {
    let stand_in = StandIn::start();
    let origin = TestOrigin::answering(OK);
    let table = format!("[protection]\npolicy = \"prices\"\n{}", stand_in.table());
    let gateway = start(config(&[origin.address], &table)).unwrap();
    let own = stand_in.field();
    wait_until("the accounts are known", || {
        get(&gateway, "/", &own).status == 200
    });
    let wrong = || get(&gateway, "/", "Authorization: Bearer pha_wrong\r\n");
    assert_eq!(wrong().status, 401);
    wait_until("there were too many", || wrong().status == 429);
    let limited = wrong();
    if limited.status == 429 {
        assert!(field(&limited.head, "retry-after").is_some());
    }
    assert_eq!(get(&gateway, "/", &own).status, 200, "a right key");
    assert_eq!(get(&gateway, "/", "").status, 200, "no key");
}
