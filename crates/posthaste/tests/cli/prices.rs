//! A shop, a gateway with prices in front of it, and a broker with its offers.

use serde_json::Value;

use crate::command::{RunningShop, execute, posthaste, until};

struct System {
    broker: RunningShop,
    gateway: RunningShop,
    shop: RunningShop,
    folder: tempfile::TempDir,
}

impl System {
    /// Starts all three. The shop takes 20 ms per request, one at a time.
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let store = format!("sqlite:{}", path("offers.db"));
        let made = execute(&mut posthaste(&[
            "broker", "token", "new", "ada", "--store", &store,
        ]));
        std::fs::write(path("ada.token"), made.out).unwrap();
        let broker = RunningShop::serve("broker", &["--listen", "127.0.0.1:0", "--store", &store]);
        let shop = RunningShop::open(&["--service", "md1:20ms"]);
        let config = format!(
            "listen = \"127.0.0.1:0\"
[demand]
watch = {{ upstream = \"X-Busy\" }}
[protection]
policy = \"prices\"
[prices]
controller = {{ policy = \"proportional-integral\", integral = 2.0 }}
[prices.broker]
url = {:?}
type = \"books\"
provider = \"ada\"
token = {:?}
[[route]]
path = \"/\"
upstream = [{:?}]
",
            broker.url,
            path("ada.token"),
            shop.url
        );
        std::fs::write(path("gateway.toml"), config).unwrap();
        let gateway = RunningShop::serve("gateway", &["--config", &path("gateway.toml")]);
        Self {
            broker,
            gateway,
            shop,
            folder,
        }
    }

    /// The broker's offers for the type.
    fn offers(&self) -> Vec<Value> {
        let list = execute(&mut posthaste(&[
            "offers",
            "list",
            "books",
            "--json",
            "--broker",
            &self.broker.url,
        ]));
        let lines = list
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }

    /// Loads the shop through the gateway for a second.
    fn load(&self, rate: &str) -> Value {
        let isbn = self.shop.page().rsplit('/').next().unwrap().to_owned();
        let url = format!("{}/page/{isbn}", self.gateway.url);
        let arguments = [
            "load",
            "--allow-late",
            &url,
            "--rate",
            rate,
            "--duration",
            "1s",
            "-H",
            "Max-Price: 9 EUR",
            "--json",
        ];
        serde_json::from_str(&execute(&mut posthaste(&arguments)).out).unwrap()
    }
}

#[test]
fn offers_follow_the_load_and_service_outlives_the_broker() {
    let mut system = System::start();
    let price = |system: &System| {
        let offers = system.offers();
        let amount = offers.first()?["qos"]["price"]["amount"]
            .as_str()?
            .parse::<f64>();
        assert!(offers.len() == 1, "one offer holds at a time: {offers:?}");
        amount.ok()
    };
    until("a free offer", || price(&system) == Some(0.0));
    until("a price", || {
        system.load("60/s");
        price(&system) > Some(0.0)
    });
    until("a free offer again", || price(&system) == Some(0.0));
    system.broker.end();
    let report = system.load("10/s");
    assert_eq!(report["outcomes"]["ok"], 10, "{report}");
    assert!(system.folder.path().exists());
}
