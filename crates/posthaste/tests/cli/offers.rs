//! Offers, from one command line to another.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::command::{CommandOutput, RunningShop, execute, posthaste};

const OFFERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/offers.wsqos");

/// A broker with a store of its own, and the token of ada.
struct RunningBroker {
    service: RunningShop,
    token: String,
    _folder: tempfile::TempDir,
}

impl RunningBroker {
    fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("offers.db").display());
        let made = execute(&mut posthaste(&[
            "broker", "token", "new", "ada", "--store", &store,
        ]));
        assert_eq!(made.code, Some(0), "{}", made.err);
        Self {
            service: RunningShop::serve("broker", &["--listen", "127.0.0.1:0", "--store", &store]),
            token: made.out.trim().to_owned(),
            _folder: folder,
        }
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = posthaste(&["offers"]);
        command
            .args(arguments)
            .args(["--broker", &self.service.url])
            .env("POSTHASTE_BROKER_TOKEN", &self.token);
        command
    }

    fn execute(&self, arguments: &[&str]) -> CommandOutput {
        let output = execute(&mut self.command(arguments));
        assert_eq!(output.code, Some(0), "{arguments:?}: {}", output.err);
        output
    }
}

#[test]
fn offers_exported_by_one_broker_are_imported_by_another() {
    let (one, other) = (RunningBroker::open(), RunningBroker::open());
    for kind in ["books", "maps"] {
        one.execute(&["put", kind, "ada", OFFERS]);
    }
    let exported = one.execute(&["export"]).out;
    assert_eq!(exported.lines().count(), 4);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &exported).unwrap();
    other.execute(&["import", &file.path().display().to_string()]);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&other.execute(&["export"]).out), sorted(&exported));
    assert_eq!(other.execute(&["list"]).out, "books\nmaps\n");
}

#[test]
fn watching_ends_when_nobody_reads_any_more() {
    let broker = RunningBroker::open();
    let mut watching = broker
        .command(&["watch"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(watching.stdout.take().unwrap());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                broker.execute(&["put", "books", "ada", OFFERS]);
                broker.execute(&["withdraw", "books", "ada", "Gold"]);
            }
        });
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        drop(out);
        let ended = watching.wait().unwrap();
        over.store(true, Relaxed);
        // The first change that it sees may be either.
        assert!(
            line.contains("books: ") && line.contains("Gold by ada"),
            "{line}"
        );
        assert_eq!(ended.code(), Some(0));
    });
}

#[test]
fn a_follower_with_its_own_sources_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broker.toml");
    let source =
        "[[source]]\nurl = \"http://127.0.0.1:9/x.wsqos\"\ntype = \"books\"\nprovider = \"ada\"\n";
    std::fs::write(&file, source).unwrap();
    let file = file.display().to_string();
    for more in [&["--check"][..], &[]] {
        let arguments = [
            "broker",
            "--config",
            &file,
            "--follow",
            "http://127.0.0.1:9",
        ];
        let output = execute(posthaste(&arguments).args(more));
        assert_eq!(output.code, Some(2), "{}", output.err);
        assert!(output.err.contains("leave out follow"), "{}", output.err);
    }
}

#[test]
fn clients_buy_what_they_can_afford_and_decline_the_rest() {
    let (broker, shop) = (RunningBroker::open(), RunningShop::open(&[]));
    broker.execute(&["put", "books", "ada", OFFERS]);
    let load = |options: &[&str]| {
        let fixed = [
            "load",
            &shop.url,
            "--rate",
            "100/s",
            "--duration",
            "200ms",
            "--allow-late",
        ];
        let target = ["--json", "--broker", &broker.service.url];
        execute(&mut posthaste(&[&fixed[..], &target, options].concat()))
    };
    let ended = |options: &[&str]| {
        let output = load(options);
        assert_eq!(output.code, Some(0), "{}", output.err);
        let report: serde_json::Value = serde_json::from_str(&output.out).unwrap();
        assert_eq!(report["intended"], 20);
        assert_eq!(report["quotes"]["used"], 0);
        let count = |name: &str| report["outcomes"][name].as_u64().unwrap();
        let reason = report["reasons"]["declined"].as_str().unwrap_or_default();
        (count("ok"), count("declined"), reason.to_owned())
    };
    assert_eq!(ended(&["--max-price", "0.10EUR"]), (20, 0, String::new()));
    let (ok, declined, reason) = ended(&["--max-price", "0.09EUR"]);
    assert_eq!((ok, declined), (0, 20));
    let silver = "the cheapest, Silver: price: 0.10 EUR offered, at most 0.09 EUR wanted";
    assert!(reason.ends_with(silver), "{reason}");
    let folder = tempfile::tempdir().unwrap();
    let need = folder.path().join("need.json").display().to_string();
    let fast = r#"{"qos": {"defaultQoSInfo": {"serverQoSMetrics": {"processingTime": 200}}}}"#;
    std::fs::write(&need, fast).unwrap();
    let (ok, _, _) = ended(&["--max-price", "0.40EUR", "--requirements", &need]);
    assert_eq!(ok, 20);
    let (ok, declined, reason) = ended(&["--max-price", "0.39EUR", "--requirements", &need]);
    assert_eq!((ok, declined), (0, 20));
    assert!(reason.contains("processing"), "{reason}");
    broker.execute(&["put", "maps", "ada", OFFERS]);
    let unsaid = load(&["--max-price", "1EUR"]);
    assert_eq!(unsaid.code, Some(2), "{}", unsaid.err);
    assert!(
        unsaid.err.contains("books, maps: say with --type"),
        "{}",
        unsaid.err
    );
    assert_eq!(ended(&["--type", "maps"]), (20, 0, String::new()));
}

#[test]
fn without_a_broker_no_client_begins() {
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let broker = format!("http://{gone}");
    let url = "http://127.0.0.1:9/";
    let arguments = ["load", url, "--rate", "100/s", "--broker", &broker];
    let output = execute(&mut posthaste(&arguments));
    assert_eq!(output.code, Some(3), "{}", output.err);
    assert!(
        output.err.contains(&broker) && output.out.is_empty(),
        "{}",
        output.err
    );
}

#[test]
fn publishing_without_a_token_names_the_remedies() {
    // No server listens there, and no request is sent.
    let nowhere = ["--broker", "http://127.0.0.1:9"];
    for command_line in [
        &["put", "books", "ada", OFFERS][..],
        &["withdraw", "books", "ada", "Gold"],
        &["import", OFFERS],
    ] {
        for token in [None, Some(""), Some(" \n")] {
            let mut command = posthaste(&["offers"]);
            command
                .args(command_line)
                .args(nowhere)
                .env_remove("POSTHASTE_TOKEN");
            match token {
                None => command.env_remove("POSTHASTE_BROKER_TOKEN"),
                Some(token) => command.env("POSTHASTE_BROKER_TOKEN", token),
            };
            let output = execute(&mut command);
            assert_eq!(output.code, Some(2), "{command_line:?}: {}", output.err);
            for remedy in ["--token-file", "POSTHASTE_BROKER_TOKEN", "broker token new"] {
                assert!(
                    output.err.contains(remedy),
                    "{command_line:?}: {}",
                    output.err
                );
            }
        }
    }
}

#[test]
fn the_former_variable_of_the_token_is_never_read() {
    let broker = RunningBroker::open();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, &broker.token).unwrap();
    let withdraw = |token: Option<&str>, options: &[&str]| {
        let mut command = broker.command(&["withdraw", "books", "ada", "Gold"]);
        command
            .args(options)
            .env_remove("POSTHASTE_BROKER_TOKEN")
            .env("POSTHASTE_TOKEN", &broker.token)
            .envs(token.map(|token| ("POSTHASTE_BROKER_TOKEN", token)));
        execute(&mut command)
    };
    broker.execute(&["put", "books", "ada", OFFERS]);
    for token in [None, Some("")] {
        let refused = withdraw(token, &[]);
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        let remedies = [
            "POSTHASTE_TOKEN is set but not read",
            "POSTHASTE_BROKER_TOKEN",
            "--token-file",
        ];
        for remedy in remedies {
            assert!(refused.err.contains(remedy), "{}", refused.err);
        }
        assert!(!refused.err.contains(&broker.token), "{}", refused.err);
    }
    // A wrong token fails although the former variable has the right one.
    assert_eq!(withdraw(Some("pht_wrong"), &[]).code, Some(3));
    let by_file = withdraw(None, &["--token-file", &file.display().to_string()]);
    assert_eq!(by_file.code, Some(0), "{}", by_file.err);
    broker.execute(&["put", "books", "ada", OFFERS]);
    let by_variable = withdraw(Some(&broker.token), &[]);
    assert_eq!(by_variable.code, Some(0), "{}", by_variable.err);
}

/// Creates a self-signed certificate for 127.0.0.1 that is an authority, like those of `openssl req -x509`, and its
/// key.
fn certificate(folder: &std::path::Path) -> [String; 2] {
    let mut wanted = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    wanted.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let made = wanted.self_signed(&key).unwrap();
    let write = |name: &str, text: String| {
        let file = folder.join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    [
        write("cert.pem", made.pem()),
        write("key.pem", key.serialize_pem()),
    ]
}

/// Any server with a certificate is sufficient. It turns out to be no broker only after the handshake.
#[test]
fn a_brokers_certificate_is_trusted_by_ca_or_not_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path());
    let shop = RunningShop::open(&["--cert", &cert, "--key", &key]);
    let list = |more: &[&str]| {
        let arguments = ["offers", "list", "--broker", &shop.url];
        let output = execute(&mut posthaste(&[&arguments, more].concat()));
        assert_eq!(output.code, Some(3), "{more:?}: {}", output.err);
        output.err
    };
    let refused = list(&[]);
    assert!(
        refused.contains("--ca FILE") && refused.contains("--insecure"),
        "{refused}"
    );
    for trusted in [&["--ca", &cert][..], &["--insecure"]] {
        let message = list(trusted);
        assert!(message.contains("404"), "{trusted:?}: {message}");
    }
}
