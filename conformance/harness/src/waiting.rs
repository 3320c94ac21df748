//! The tests that wait on a clock: those that sleep, set time limits, read a clock, or wait for a socket or a process.
//!
//! A test that only calculates, or that runs in virtual time, cannot be disturbed by a busy machine and is not listed.
//! `xtask/tests/tidy/waiting.rs` checks that every name exists and that no file with such a test is missing.

/// Unit tests of a library or a program, as opposed to a file under `tests/`.
pub const UNIT: &str = "unit";

/// Tests of one test binary.
pub struct WaitingTests {
    /// The package's name.
    pub package: &'static str,
    /// The name under `tests/`, or [`UNIT`].
    pub target: &'static str,
    /// Paths of modules in it. Empty for the whole binary.
    pub modules: &'static [&'static str],
}

impl WaitingTests {
    /// Paths of its modules, as part of the names of its tests. Empty for the whole binary.
    pub fn prefixes(&self) -> Vec<String> {
        let names = self.modules.iter();
        names.map(|module| format!("{module}::")).collect()
    }
}

/// All of a binary.
const fn all(package: &'static str, target: &'static str) -> WaitingTests {
    some(package, target, &[])
}

/// These modules of a binary.
const fn some(
    package: &'static str,
    target: &'static str,
    modules: &'static [&'static str],
) -> WaitingTests {
    WaitingTests {
        package,
        target,
        modules,
    }
}

/// Every test that waits on a clock.
pub const WAITING: &[WaitingTests] = &[
    all("posthaste-bookshop", "bookshop"),
    all("posthaste-broker", "broker"),
    some(
        "posthaste-broker",
        UNIT,
        &["measurements", "writer::tests", "quota", "store::tests"],
    ),
    all("posthaste-demo", "demo"),
    some("posthaste-demo", UNIT, &["networks"]),
    all("posthaste-emulator", "emulator"),
    all("posthaste-emulator", "pairs"),
    some(
        "posthaste-emulator",
        UNIT,
        &["clock", "path::relay", "processes::listening"],
    ),
    all("posthaste-papers", "papers"),
    all("posthaste-papers", "marks"),
    all("posthaste-study", "study"),
    some(
        "posthaste-papers",
        UNIT,
        &[
            "admission::study",
            "broker::brokers",
            "broker::changes",
            "broker::lookups",
            "broker::prototype",
            "compression::codecs",
            "compression::handheld",
            "compression::policies",
            "compression::promises",
            "compression::sclient",
            "diffserv::marking_cost",
            "diffserv::qos_proxy",
            "diffserv::selection",
            "overload::closed",
            "overload::forms",
            "overload::open",
            "packet_loss",
            "pricing::adaptive",
            "pricing::prices",
            "testbed",
        ],
    ),
    some("posthaste-fleet", "fleet", &["clock", "nats"]),
    all("posthaste-gateway", "gateway"),
    some(
        "posthaste-gateway",
        UNIT,
        &[
            "admission::price_loop",
            "load::resource",
            "offers::class",
            "upstream::connection",
        ],
    ),
    all("posthaste-evaluation", "wire"),
    some(
        "posthaste-load",
        UNIT,
        &["transport::quic::qlog::connection_log", "target"],
    ),
    some("posthaste-broker-client", UNIT, &["client", "follower"]),
    all("posthaste", "cli"),
    some("posthaste-soap", "soap", &["attacks"]),
    all("posthaste-serve", "serve"),
    some(
        "posthaste-serve",
        UNIT,
        &[
            "background",
            "handler::slow",
            "socket::mark",
            "socket::queues",
            "socket::stream",
            "socket::tcp_info",
        ],
    ),
    some("posthaste-harness", UNIT, &["process"]),
    some("posthaste-conformance", UNIT, &["busy"]),
];
