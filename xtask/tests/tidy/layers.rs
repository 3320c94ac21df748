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
    pub(crate) name: &'static str,
    pub(crate) kind: CrateKind,
    /// The crates on which it may depend.
    pub(crate) below: &'static [&'static str],
}

const PURE: &[&str] = &[
    "units",
    "stats",
    "soap",
    "draw",
    "link",
    "tcp",
    "quic-packets",
    "sim",
    "quic-sim",
    "http-fields",
    "http-streams",
    "grpc",
    "qos",
    "admission",
    "compression",
];

/// Crates that a product may use. Never another product.
const UNDER_A_PRODUCT: &[&str] = &[
    "units",
    "stats",
    "soap",
    "draw",
    "link",
    "tcp",
    "quic-packets",
    "sim",
    "quic-sim",
    "http-fields",
    "http-streams",
    "grpc",
    "qos",
    "admission",
    "compression",
    "serve",
    "broker-client",
];

const UNDER_THE_TOP: &[&str] = &[
    "units",
    "stats",
    "soap",
    "draw",
    "link",
    "tcp",
    "quic-packets",
    "sim",
    "quic-sim",
    "http-fields",
    "http-streams",
    "grpc",
    "qos",
    "admission",
    "compression",
    "serve",
    "broker-client",
    "load",
    "emulator",
    "gateway",
    "broker",
    "bookshop",
    "study",
];

const ALL_BUT_THE_BINARY: &[&str] = &[
    "units",
    "stats",
    "soap",
    "draw",
    "link",
    "tcp",
    "quic-packets",
    "sim",
    "quic-sim",
    "http-fields",
    "http-streams",
    "grpc",
    "qos",
    "admission",
    "compression",
    "serve",
    "broker-client",
    "load",
    "emulator",
    "gateway",
    "broker",
    "bookshop",
    "fleet",
    "study",
    "papers",
    "demo",
];

/// All permitted crates. A new one starts with a line here.
pub(crate) const CRATES: &[CrateRule] = &[
    pure("units", &[]),
    pure("stats", &["units"]),
    pure("soap", &["units"]),
    pure("draw", &["units"]),
    pure("link", &["units"]),
    pure("tcp", &["units"]),
    // Charts and ladders are forms of a simulation's results, as JSON and tables are. `draw` returns text.
    pure("sim", &["units", "tcp", "link", "stats", "draw"]),
    pure("quic-packets", &[]),
    pure(
        "quic-sim",
        &["units", "tcp", "link", "draw", "sim", "quic-packets"],
    ),
    pure("http-fields", &[]),
    pure("http-streams", &[]),
    pure("grpc", &[]),
    pure("qos", &["units", "soap", "http-fields"]),
    pure("admission", &["units", "soap", "qos"]),
    pure("compression", &["units", "soap", "http-fields", "qos"]),
    shell("serve", &["units", "http-streams"]),
    shell("broker-client", &["units", "serve", "qos"]),
    shell("load", UNDER_A_PRODUCT),
    shell("emulator", UNDER_A_PRODUCT),
    shell("gateway", UNDER_A_PRODUCT),
    shell("broker", UNDER_A_PRODUCT),
    shell("bookshop", UNDER_A_PRODUCT),
    // Carries out runs of the load generator and of the simulator on several machines.
    shell("fleet", &["units", "stats", "sim", "serve", "load"]),
    shell("study", &["units", "draw", "serve", "emulator"]),
    CrateRule {
        name: "papers",
        kind: CrateKind::Top,
        below: UNDER_THE_TOP,
    },
    CrateRule {
        name: "demo",
        kind: CrateKind::Top,
        below: UNDER_THE_TOP,
    },
    CrateRule {
        name: "posthaste",
        kind: CrateKind::Top,
        below: ALL_BUT_THE_BINARY,
    },
];

/// Network crates, with the crates that may name them and the reason.
///
/// `serve` wraps them for all others. The other entries exist because an HTTP service uses hyper's types, or because
/// the wrapped form would add cost to the measured value.
pub(crate) const NETWORK: &[(&str, &[&str])] = &[
    // The papers compare the broker's index with a PostgreSQL for each request; tokio-postgres needs a runtime. Tests of
    // http-streams run the h2 crate as a server in memory, and its transport is a trait of tokio.
    (
        "tokio",
        &[
            "http-streams",
            "serve",
            "broker-client",
            "emulator",
            "gateway",
            "broker",
            "bookshop",
            "fleet",
            "papers",
            "demo",
        ],
    ),
    (
        "hyper",
        &[
            "serve",
            "broker-client",
            "gateway",
            "broker",
            "bookshop",
            "demo",
        ],
    ),
    (
        "hyper-util",
        &[
            "serve",
            "broker-client",
            "gateway",
            "broker",
            "bookshop",
            "demo",
        ],
    ),
    ("tokio-rustls", &["serve", "gateway", "bookshop"]),
    // Tests of the bookshop are clients with HTTPS, HTTP/2 and HTTP/3.
    ("quinn", &["serve", "bookshop"]),
    // load has an event loop of its own and drives the TLS state machine in it. A test of the papers is a client
    // that counts the bytes below TLS. Tests of the gateway are clients with certificates. async-nats uses the provider
    // that the process has installed. quic-sim plays the TLS of a simulated handshake in memory.
    (
        "rustls",
        &[
            "quic-sim", "serve", "load", "papers", "gateway", "bookshop", "fleet",
        ],
    ),
    // A state machine without sockets and clocks: time is an argument.
    ("quinn-proto", &["quic-sim", "load"]),
    ("rustls-native-certs", &["serve", "load"]),
    ("socket2", &["serve", "load", "emulator"]),
    ("async-nats", &["fleet"]),
];

/// The crate of this name.
pub(crate) fn crate_rule(name: &str) -> Option<&'static CrateRule> {
    CRATES.iter().find(|rule| rule.name == name)
}

const fn pure(name: &'static str, below: &'static [&'static str]) -> CrateRule {
    CrateRule {
        name,
        kind: CrateKind::Pure,
        below,
    }
}

const fn shell(name: &'static str, below: &'static [&'static str]) -> CrateRule {
    CrateRule {
        name,
        kind: CrateKind::Shell,
        below,
    }
}

#[test]
fn the_table_points_down() {
    for (position, rule) in CRATES.iter().enumerate() {
        let lower: Vec<&str> = CRATES[..position].iter().map(|rule| rule.name).collect();
        for below in rule.below {
            assert!(
                lower.contains(below),
                "{} may use {below}, which stands above it",
                rule.name
            );
        }
        if rule.kind == CrateKind::Pure {
            assert!(PURE.contains(&rule.name));
            assert!(
                rule.below.iter().all(|below| PURE.contains(below)),
                "{}",
                rule.name
            );
        }
    }
}
