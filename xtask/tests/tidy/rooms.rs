//! The crates of the workspace, lowest first, with their permitted dependencies. The only table of their order.

/// Permitted access of a crate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No clock, no socket, no file, no thread, no async: time and randomness are arguments.
    Pure,
    /// Real time and sockets, as thin as possible.
    Shell,
    /// Combines products: knows every crate below, names no network crate itself.
    Top,
}

/// A crate under `crates/`.
pub(crate) struct Room {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
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
    "sim",
    "http-fields",
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
    "sim",
    "http-fields",
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
    "sim",
    "http-fields",
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
    "sim",
    "http-fields",
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
    "papers",
    "demo",
];

/// All permitted crates. A new one starts with a line here.
pub(crate) const ROOMS: &[Room] = &[
    pure("units", &[]),
    pure("stats", &["units"]),
    pure("soap", &["units"]),
    pure("draw", &["units"]),
    pure("link", &["units"]),
    pure("tcp", &["units"]),
    // Charts and ladders are forms of a simulation's results, as JSON and tables are. `draw` returns text.
    pure("sim", &["units", "tcp", "link", "stats", "draw"]),
    pure("http-fields", &[]),
    pure("qos", &["units", "soap", "http-fields"]),
    pure("admission", &["units", "soap", "qos"]),
    pure("compression", &["units", "soap", "http-fields", "qos"]),
    shell("serve", &["units"]),
    shell("broker-client", &["units", "serve", "qos"]),
    shell("load", UNDER_A_PRODUCT),
    shell("emulator", UNDER_A_PRODUCT),
    shell("gateway", UNDER_A_PRODUCT),
    shell("broker", UNDER_A_PRODUCT),
    shell("bookshop", UNDER_A_PRODUCT),
    shell("study", &["units", "draw", "serve", "emulator"]),
    Room {
        name: "papers",
        kind: Kind::Top,
        below: UNDER_THE_TOP,
    },
    Room {
        name: "demo",
        kind: Kind::Top,
        below: UNDER_THE_TOP,
    },
    Room {
        name: "posthaste",
        kind: Kind::Top,
        below: ALL_BUT_THE_BINARY,
    },
];

/// Network crates, with the crates that may name them and the reason.
///
/// `serve` wraps them for all others. The other entries exist because an HTTP service uses hyper's types, or because
/// the wrapped form would add cost to the measured value.
pub(crate) const NETWORK: &[(&str, &[&str])] = &[
    // The experiments compare the broker's index with a PostgreSQL for each request; tokio-postgres needs a runtime.
    (
        "tokio",
        &[
            "serve",
            "broker-client",
            "emulator",
            "gateway",
            "broker",
            "bookshop",
            "experiments",
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
    ("tokio-rustls", &["serve"]),
    // load has an event loop of its own and drives the TLS state machine in it. A test of the papers is a client
    // that counts the bytes below TLS.
    ("rustls", &["serve", "load", "papers"]),
    ("rustls-native-certs", &["serve", "load"]),
    ("socket2", &["serve", "load", "emulator"]),
];

/// The crate of this name.
pub(crate) fn room(name: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.name == name)
}

const fn pure(name: &'static str, below: &'static [&'static str]) -> Room {
    Room {
        name,
        kind: Kind::Pure,
        below,
    }
}

const fn shell(name: &'static str, below: &'static [&'static str]) -> Room {
    Room {
        name,
        kind: Kind::Shell,
        below,
    }
}

#[test]
fn the_table_points_down() {
    for (position, room) in ROOMS.iter().enumerate() {
        let lower: Vec<&str> = ROOMS[..position].iter().map(|room| room.name).collect();
        for below in room.below {
            assert!(
                lower.contains(below),
                "{} may use {below}, which stands above it",
                room.name
            );
        }
        if room.kind == Kind::Pure {
            assert!(PURE.contains(&room.name));
            assert!(
                room.below.iter().all(|below| PURE.contains(below)),
                "{}",
                room.name
            );
        }
    }
}
