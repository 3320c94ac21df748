//! Tiers of importance, waiting requests, and limits of routes and clients.

use std::fs;
use std::sync::{Arc, Mutex};
use std::thread;

use posthaste_gateway::{RunningGateway, start};

use crate::priced::metrics;
use crate::support::{OK, SeenSignal, TestClient, TestOrigin, config, field, get, wait_until};
use crate::watching::fetch_admin;

/// One slot, and two tiers by network: 127.0.0.2 is important. Requests wait for up to a minute.
const TWO: &str = "[protection]\npolicy = \"limit\"\nleast = 1\nmost = 1\nwait = \"60s\"\n\
    [[protection.tier]]\nname = \"high\"\nshare = \"80%\"\nmatch = [{ headers = { X-Tier = \"high\" } }]\n\
    [[protection.tier]]\nname = \"low\"\nshare = \"20%\"\n[trust]\nforwarded = [\"127.0.0.1\"]\n";

const HIGH: &str = "X-Tier: high\r\n";

/// A gateway with one slot, taken by a request, and the statuses of others in the order of their replies.
struct OneSlot {
    gateway: RunningGateway,
    origin: TestOrigin,
    release: SeenSignal,
    replies: Arc<Mutex<Vec<(&'static str, u16)>>>,
    clients: Vec<thread::JoinHandle<()>>,
}

impl OneSlot {
    fn new(more: &str) -> Self {
        let (origin, release) = TestOrigin::holding();
        let gateway = start(config(&[origin.address], more)).unwrap();
        let mut new = Self {
            gateway,
            origin,
            release,
            replies: Arc::default(),
            clients: Vec::new(),
        };
        new.send("first", "");
        wait_until("the slot is taken", || new.origin.request_count() == 1);
        new
    }

    fn send(&mut self, name: &'static str, fields: &str) {
        let request = format!("GET /slow?{name} HTTP/1.1\r\nHost: shop\r\n{fields}\r\n");
        let mut client = TestClient::new(&self.gateway);
        let replies = self.replies.clone();
        self.clients.push(thread::spawn(move || {
            let reply = client.send(request).reply(false).unwrap();
            replies.lock().unwrap().push((name, reply.status));
        }));
    }

    /// Sends a request that waits.
    fn send_waiting(&mut self, name: &'static str, fields: &str, tier: &str) {
        let waiting = format!("tier_waiting{{tier=\"{tier}\"");
        let before = metrics(&self.gateway)(&waiting);
        self.send(name, fields);
        wait_until("it waits", || metrics(&self.gateway)(&waiting) > before);
    }

    /// Lets all requests end. Returns the names in the order in which the origin got them.
    fn finish(self) -> (Vec<String>, Vec<(&'static str, u16)>) {
        self.release.tell();
        self.clients
            .into_iter()
            .for_each(|client| client.join().unwrap());
        let name = |request: &String| {
            let target = request.split(' ').nth(1).unwrap_or_default();
            target.split('?').nth(1).unwrap_or_default().to_owned()
        };
        let order = self
            .origin
            .requests
            .lock()
            .unwrap()
            .iter()
            .map(name)
            .collect();
        let replies = self.replies.lock().unwrap().clone();
        (order, replies)
    }
}

#[test]
fn a_free_slot_goes_to_the_most_important_request_that_waits() {
    let mut slot = OneSlot::new(TWO);
    slot.send_waiting("low", "", "low");
    slot.send_waiting("high", HIGH, "high");
    let (order, replies) = slot.finish();
    assert_eq!(order, ["first", "high", "low"]);
    assert!(
        replies.iter().all(|(_, status)| *status == 200),
        "{replies:?}"
    );
}

#[test]
fn within_a_tier_the_slots_are_shared_by_the_clients() {
    let more = TWO.replace("wait = \"60s\"", "wait = \"60s\"\nclient = \"X-Client\"");
    let mut slot = OneSlot::new(&more);
    for (name, client) in [
        ("a1", "a"),
        ("a2", "a"),
        ("a3", "a"),
        ("a4", "a"),
        ("a5", "a"),
        ("a6", "a"),
        ("b1", "b"),
    ] {
        slot.send_waiting(name, &format!("X-Client: {client}\r\n"), "low");
    }
    let (order, _) = slot.finish();
    assert_eq!(order[..3], ["first", "a1", "b1"]);
}

#[test]
fn a_request_that_has_waited_too_long_is_rejected_and_counted() {
    let more = TWO.replace("60s", "50ms");
    let mut slot = OneSlot::new(&more);
    slot.send("low", "");
    wait_until("it is rejected", || slot.replies.lock().unwrap().len() == 1);
    let count = metrics(&slot.gateway);
    assert_eq!(count("turned_away_total{reason=\"wait\"}"), 1.0);
    assert_eq!(count("tier_rejected_total{tier=\"low\""), 1.0);
    assert_eq!(count("tier_waiting{tier=\"low\""), 0.0);
    drop(count);
    let reply = get(&slot.gateway, "/slow", "");
    assert_eq!(reply.status, 503);
    assert!(field(&reply.head, "retry-after").is_some());
    let (order, replies) = slot.finish();
    assert_eq!(order, ["first"]);
    assert_eq!(replies, [("low", 503), ("first", 200)]);
}

#[test]
fn a_client_that_leaves_gives_up_its_place() {
    let mut slot = OneSlot::new(TWO);
    let mut leaving = TestClient::new(&slot.gateway);
    leaving.send("GET /slow?gone HTTP/1.1\r\nHost: shop\r\n\r\n");
    let waiting = "tier_waiting{tier=\"low\"";
    wait_until("it waits", || metrics(&slot.gateway)(waiting) == 1.0);
    drop(leaving);
    wait_until("it has left", || metrics(&slot.gateway)(waiting) == 0.0);
    slot.send_waiting("stays", "", "low");
    assert_eq!(metrics(&slot.gateway)("in_service "), 1.0);
    let (order, _) = slot.finish();
    assert_eq!(order, ["first", "stays"]);
}

#[test]
fn of_too_many_waiting_requests_the_least_important_is_rejected() {
    let more = TWO.replace("wait = \"60s\"", "wait = \"60s\"\nwaiting = 1");
    let mut slot = OneSlot::new(&more);
    slot.send_waiting("low", "", "low");
    slot.send_waiting("high", HIGH, "high");
    wait_until("one is rejected", || {
        slot.replies.lock().unwrap().len() == 1
    });
    let (order, replies) = slot.finish();
    assert_eq!(order, ["first", "high"]);
    assert_eq!(replies[0], ("low", 503));
}

/// Anyone can write a header field.
#[test]
fn the_tier_is_believed_from_trusted_networks_only() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let more = format!("access_log = {:?}\n{TWO}", log.path());
    for (networks, wanted) in [
        ("127.0.0.1", "\"tier\":\"high\""),
        ("192.0.2.1", "\"tier\":\"low\""),
    ] {
        let origin = TestOrigin::answering(OK);
        let more = more.replace("\"127.0.0.1\"", &format!("{networks:?}"));
        let gateway = start(config(&[origin.address], &more)).unwrap();
        get(&gateway, "/", HIGH);
        let last = || {
            fs::read_to_string(log.path())
                .unwrap()
                .lines()
                .last()
                .map(str::to_owned)
        };
        wait_until("it is logged", || {
            last().is_some_and(|line| line.contains("\"tier\""))
        });
        let line = || last().unwrap_or_default();
        wait_until(wanted, || line().contains(wanted));
        let two = "X-Tier: high\r\nX-Tier: high\r\n";
        get(&gateway, "/", two);
        let low = metrics(&gateway)("tier_admitted_total{tier=\"low\"");
        assert!(low >= 1.0, "of two lines none is believed");
    }
}

#[test]
fn a_tier_by_route_and_network_needs_both() {
    let origin = TestOrigin::answering(OK);
    let rule = |network: &str| {
        format!(
            "[protection]\npolicy = \"limit\"\n[[protection.tier]]\nname = \"pay\"\nshare = \"50%\"\n\
             match = [{{ route = \"/\", networks = [\"{network}\"] }}]\n\
             [[protection.tier]]\nname = \"rest\"\nshare = \"0%\"\n"
        )
    };
    let gateway = start(config(&[origin.address], &rule("127.0.0.0/8"))).unwrap();
    get(&gateway, "/", "");
    assert_eq!(metrics(&gateway)("tier_admitted_total{tier=\"pay\""), 1.0);
    gateway
        .reload(config(&[origin.address], &rule("10.0.0.0/8")))
        .unwrap();
    // Each thread takes the new rules over by itself.
    wait_until("the rules have changed", || {
        get(&gateway, "/", "");
        metrics(&gateway)("tier_admitted_total{tier=\"rest\"") >= 1.0
    });
    let pay = metrics(&gateway)("tier_admitted_total{tier=\"pay\"");
    assert!(pay >= 1.0, "it keeps its count");
    let page = String::from_utf8(fetch_admin(&gateway, "/status").body).unwrap();
    assert!(page.contains("<th>Tier</th>"), "{page}");
}

#[test]
fn a_reload_keeps_waiting_requests_or_tells_them() {
    let mut slot = OneSlot::new(TWO);
    slot.send_waiting("kept", "", "low");
    let same = TWO.replace("80%", "50%");
    slot.gateway
        .reload(config(&[slot.origin.address], &same))
        .unwrap();
    assert_eq!(metrics(&slot.gateway)("tier_waiting{tier=\"low\""), 1.0);
    let one = "[protection]\npolicy = \"limit\"\nleast = 1\nmost = 1\nwait = \"60s\"\n\
        [[protection.tier]]\nname = \"all\"\nshare = \"100%\"\n";
    slot.gateway
        .reload(config(&[slot.origin.address], one))
        .unwrap();
    wait_until("it is rejected", || slot.replies.lock().unwrap().len() == 1);
    assert_eq!(metrics(&slot.gateway)("in_service "), 1.0);
    slot.send_waiting("next", "", "all");
    // Without a limit all are admitted.
    slot.gateway
        .reload(config(&[slot.origin.address], ""))
        .unwrap();
    wait_until("it is admitted", || slot.origin.request_count() == 2);
    let (order, replies) = slot.finish();
    assert_eq!(order, ["first", "next"]);
    assert_eq!(replies[0], ("kept", 503));
}

#[test]
fn routes_and_clients_have_limits_with_every_policy() {
    let (origin, release) = TestOrigin::holding();
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[protection]\nclient = \"X-Client\"\nclient_limits = {{ rate = \"1/h\", burst = 2 }}\n\
         [trust]\nforwarded = [\"127.0.0.1\"]\n\
         [[route]]\npath = \"/\"\nupstream = [\"{0}\"]\n\
         [[route]]\npath = \"/slow\"\nupstream = [\"{0}\"]\nlimits = {{ concurrency = 1 }}\n\
         [[route]]\npath = \"/rare\"\nupstream = [\"{0}\"]\nlimits = {{ rate = \"1/h\", burst = 1 }}\n",
        origin.address
    );
    let gateway = start(posthaste_gateway::GatewayConfig::read(&text).unwrap()).unwrap();
    let ask = |path: &str, client: &str| get(&gateway, path, &format!("X-Client: {client}\r\n"));
    let statuses: Vec<u16> = (0..3).map(|_| ask("/", "ada").status).collect();
    assert_eq!(statuses, [200, 200, 429]);
    assert_eq!(ask("/", "grace").status, 200);
    assert_eq!(ask("/rare", "a").status, 200);
    let rare = ask("/rare", "b");
    assert_eq!(rare.status, 429);
    let seconds: u64 = field(&rare.head, "retry-after").unwrap().parse().unwrap();
    assert!(seconds >= 3000, "{seconds}");
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(ask("/slow", "c").status, 200));
        wait_until("it is in service", || {
            metrics(&gateway)("in_service ") == 1.0
        });
        assert_eq!(ask("/slow", "d").status, 503);
        assert_eq!(ask("/", "e").status, 200);
        release.tell();
    });
    wait_until("all have ended", || metrics(&gateway)("in_service ") == 0.0);
    assert_eq!(ask("/slow", "f").status, 200);
    let count = metrics(&gateway);
    assert_eq!(count("turned_away_total{reason=\"client-rate\"}"), 1.0);
    assert_eq!(count("turned_away_total{reason=\"route-rate\"}"), 1.0);
    assert_eq!(
        count("turned_away_total{reason=\"route-concurrency\"}"),
        1.0
    );
}
