//! The crates of the workspace, lowest first, with their permitted dependencies. The only table of their order.

/// Permitted access of a crate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CrateKind {
    /// No clock, no socket, no file, no thread, no async: time and randomness are arguments.
    Pure,
    /// Real time and sockets, as thin as possible.
    Shell,
    /// Combines products: knows every crate below, names no network crate itself.
    Top,
}

/// A crate under `crates/`.
pub(crate) struct CrateRule {
    /// `group/name`, as below `crates/`. The command has no group.
    pub(crate) folder: &'static str,
    pub(crate) kind: CrateKind,
    pub(crate) below: Below,
}

/// The crates on which a crate may depend. All of them stand higher up in [`CRATES`].
#[derive(Clone, Copy)]
pub(crate) enum Below {
    /// These.
    Only(&'static [&'static str]),
    /// For products: pure crates and services, never another product.
    NoProduct,
    /// For the top: all but these.
    AllBut(&'static [&'static str]),
}

/// Crates with sockets that are no products, and cold parts of one.
const SERVICES: &[&str] = &["serve", "broker-client", "gateway-config", "resolver"];

/// All permitted crates. A new one starts with a line here.
pub(crate) const CRATES: &[CrateRule] = &[
    pure("base/units", Below::Only(&[])),
    pure("base/stats", Below::Only(&["units"])),
    pure("base/services", Below::Only(&["units", "stats"])),
    pure("http/soap", Below::Only(&["units"])),
    pure("base/draw", Below::Only(&["units"])),
    pure("network/link", Below::Only(&["units"])),
    pure("network/tcp", Below::Only(&["units"])),
    // Charts and ladders are forms of a simulation's results, as JSON and tables are. `draw` returns text.
    pure(
        "network/sim",
        Below::Only(&["units", "tcp", "link", "stats", "draw"]),
    ),
    pure(
        "network/quic-sim",
        Below::Only(&["units", "tcp", "link", "draw", "sim"]),
    ),
    pure("http/http", Below::Only(&[])),
    pure("http/grpc-schema", Below::Only(&["http"])),
    pure("market/qos", Below::Only(&["units", "soap", "http"])),
    // The tests of its price controllers use services as plants.
    pure(
        "gateway/admission",
        Below::Only(&["units", "soap", "qos", "services"]),
    ),
    pure(
        "gateway/compression",
        Below::Only(&["units", "soap", "http", "qos"]),
    ),
    shell("http/serve", Below::Only(&["units", "http"])),
    shell(
        "market/broker-client",
        Below::Only(&["units", "serve", "qos"]),
    ),
    shell("load/load", Below::NoProduct),
    shell("network/emulator", Below::NoProduct),
    shell("gateway/gateway-config", Below::NoProduct),
    shell("gateway/resolver", Below::NoProduct),
    shell("gateway/gateway", Below::NoProduct),
    shell("market/broker", Below::NoProduct),
    shell("lab/bookshop", Below::NoProduct),
    // The tests of its search use services with a known truth.
    shell(
        "load/evaluation",
        Below::Only(&["units", "services", "http", "qos", "stats", "draw", "load"]),
    ),
    // Carries out runs of the load generator and of the simulator on several machines.
    shell(
        "load/fleet",
        Below::Only(&["units", "stats", "sim", "serve", "load", "evaluation"]),
    ),
    shell(
        "lab/study",
        Below::Only(&["units", "draw", "serve", "emulator"]),
    ),
    shell("base/allocator", Below::Only(&[])),
    top("lab/papers", Below::AllBut(&["fleet"])),
    top("lab/demo", Below::AllBut(&["fleet", "papers"])),
    top("posthaste", Below::AllBut(&[])),
];

/// The crates that serve or send with hyper.
const HYPER: &[&str] = &[
    "serve",
    "broker-client",
    "gateway",
    "broker",
    "bookshop",
    "demo",
];

/// Network crates, with the crates that may name them and the reason.
///
/// `serve` wraps them for all others. The other entries exist because an HTTP service uses hyper's types, or because
/// the wrapped form would add cost to the measured value.
pub(crate) const NETWORK: &[(&str, &[&str])] = &[
    // The papers compare the broker's index with a PostgreSQL for each request; tokio-postgres needs a runtime. Tests of
    // http run the h2 crate as a server in memory, and its transport is a trait of tokio.
    (
        "tokio",
        &[
            "http",
            "serve",
            "broker-client",
            "emulator",
            "resolver",
            "gateway",
            "broker",
            "bookshop",
            "fleet",
            "papers",
            "demo",
        ],
    ),
    ("hyper", HYPER),
    ("hyper-util", HYPER),
    ("tokio-rustls", &["serve", "gateway", "bookshop"]),
    // Tests of the bookshop are clients with HTTPS, HTTP/2 and HTTP/3.
    ("quinn", &["serve", "bookshop"]),
    // load has an event loop of its own and drives the TLS state machine in it. A test of the papers is a client
    // that counts the bytes below TLS. Tests of the gateway are clients with certificates. async-nats uses the provider
    // that the process has installed. quic-sim plays the TLS of a simulated handshake in memory.
    (
        "rustls",
        &[
            "quic-sim",
            "serve",
            "load",
            "evaluation",
            "papers",
            "gateway",
            "bookshop",
            "fleet",
        ],
    ),
    // A state machine without sockets and clocks: time is an argument.
    ("quinn-proto", &["quic-sim", "load", "evaluation"]),
    ("rustls-native-certs", &["serve"]),
    ("socket2", &["serve", "load", "emulator"]),
    ("async-nats", &["fleet"]),
];

/// The crate of this name.
pub(crate) fn crate_rule(name: &str) -> Option<&'static CrateRule> {
    CRATES.iter().find(|rule| rule.name() == name)
}

impl CrateRule {
    /// True if it may depend on the crate of this name.
    pub(crate) fn permits(&self, name: &str) -> bool {
        let mut lower = CRATES.iter().take_while(|rule| rule.folder != self.folder);
        let Some(other) = lower.find(|rule| rule.name() == name) else {
            return false;
        };
        match self.below {
            Below::Only(names) => names.contains(&name),
            Below::NoProduct => other.kind == CrateKind::Pure || SERVICES.contains(&name),
            Below::AllBut(names) => !names.contains(&name),
        }
    }

    /// The folder without its group.
    pub(crate) fn name(&self) -> &'static str {
        self.folder.rsplit('/').next().expect("a split has a part")
    }
}

const fn pure(folder: &'static str, below: Below) -> CrateRule {
    rule(folder, CrateKind::Pure, below)
}

const fn shell(folder: &'static str, below: Below) -> CrateRule {
    rule(folder, CrateKind::Shell, below)
}

const fn top(folder: &'static str, below: Below) -> CrateRule {
    rule(folder, CrateKind::Top, below)
}

const fn rule(folder: &'static str, kind: CrateKind, below: Below) -> CrateRule {
    CrateRule {
        folder,
        kind,
        below,
    }
}

#[test]
fn the_table_points_down() {
    for (position, rule) in CRATES.iter().enumerate() {
        let (Below::Only(named) | Below::AllBut(named)) = rule.below else {
            continue;
        };
        for name in named {
            let lower = CRATES[..position].iter().find(|rule| rule.name() == *name);
            let lower = lower.unwrap_or_else(|| panic!("{}: {name} is not below", rule.folder));
            let is_pure = rule.kind == CrateKind::Pure;
            assert!(
                !is_pure || lower.kind == CrateKind::Pure,
                "{}: {name} is not pure",
                rule.folder
            );
        }
    }
}
