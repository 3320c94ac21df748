//! The table of benchmarks: areas, names and functions.
//!
//! The list at the terminal, the page in docs/ and the check of kept runs derive from it.

use crate::bench::result::Figure;
use crate::bench::{
    Bench, admission, agents, changes, charges, compare, cost, durability, emulator, events, find,
    gate, grpc, grpc_load, http3, lookups, marking, offers, oracle, past_limit, proxies, reply,
    schedule, simulate, streams, tails, visible,
};
use crate::error::Outcome;

/// Benchmarks of one part of the system.
pub(super) struct Area {
    pub(super) name: &'static str,
    pub(super) benchmarks: &'static [Benchmark],
    /// Folders of figures that other commands produce. Each figure names its command.
    pub(super) others: &'static [&'static str],
}

/// One benchmark.
pub(super) struct Benchmark {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) run: fn(&Bench) -> Outcome<Vec<Figure>>,
}

pub(super) const AREAS: &[Area] = &[
    Area {
        name: "Load generator",
        benchmarks: &[
            Benchmark {
                name: "overload",
                about: "3 to 25 times a server's capacity, a connection per request: nothing left unsent",
                run: past_limit::overload,
            },
            Benchmark {
                name: "frozen",
                about: "a server asleep 1 s in every 10 s: the percentiles are the computed ones",
                run: past_limit::frozen,
            },
            Benchmark {
                name: "arrivals",
                about: "how even 1,000/s leaves on an idle core, and how late; whether Poisson arrivals are",
                run: schedule::arrivals,
            },
            Benchmark {
                name: "cpu",
                about: "the generator's CPU time per request against wrk's",
                run: cost::cpu,
            },
            Benchmark {
                name: "http2",
                about: "the generator's CPU time per request over HTTP/2 against h2load's",
                run: streams::cpu,
            },
            Benchmark {
                name: "http3",
                about: "the generator's CPU time per request over HTTP/3 against oha's",
                run: http3::cpu,
            },
            Benchmark {
                name: "events",
                about: "first event and gaps at 1,000 events/s against the server's log of its sends",
                run: events::events,
            },
            Benchmark {
                name: "grpc-load",
                about: "the generator's CPU time per unary gRPC call against ghz's",
                run: grpc_load::grpc_load,
            },
            Benchmark {
                name: "memory",
                about: "the generator's memory after one and after five million requests",
                run: cost::memory,
            },
            Benchmark {
                name: "oracle",
                about: "what load reports of a server with a known law, against queueing theory (two hours)",
                run: oracle::coverage,
            },
            Benchmark {
                name: "limit",
                about: "the same near the limit, where little errors show (half an hour)",
                run: oracle::limit,
            },
            Benchmark {
                name: "find",
                about: "the ends that --find reports of 8 services with a known truth, beside busy programs (6 minutes)",
                run: find::wire,
            },
            Benchmark {
                name: "find-virtual",
                about: "the same in virtual time, 1,000 searches of 28 kinds: wrong and missing ends, and width (half an hour)",
                run: find::in_virtual_time,
            },
            Benchmark {
                name: "compare",
                about: "verdicts of compare beside busy processes: false alarms and slowdowns found (a quarter of an hour)",
                run: compare::wire,
            },
            Benchmark {
                name: "compare-virtual",
                about: "the same in virtual time, a thousand pairs of each kind",
                run: compare::in_virtual_time,
            },
        ],
        others: &["load-by-hand"],
    },
    Area {
        name: "Agents",
        benchmarks: &[
            Benchmark {
                name: "agents-start",
                about: "how closely two agents on one machine start, 50 times",
                run: agents::start,
            },
            Benchmark {
                name: "agents-deaths",
                about: "one of three agents killed at 50 random moments: what the report says about its requests (3 minutes)",
                run: agents::deaths,
            },
            Benchmark {
                name: "agents-outages",
                about: "the NATS server killed for 3 s and for 20 s: send lateness and report (a quarter of an hour)",
                run: agents::outages,
            },
            Benchmark {
                name: "agents-conductor",
                about: "300 simulated agents through one conductor on one core",
                run: agents::conductor,
            },
            Benchmark {
                name: "agents-sweep",
                about: "a sweep of 10 million transactions on two agents beside one process",
                run: agents::sweep,
            },
            Benchmark {
                name: "agents-one-way",
                about: "the common start of two agents, one behind 20 ms in one direction only",
                run: agents::one_way,
            },
        ],
        others: &[],
    },
    Area {
        name: "Bookshop",
        benchmarks: &[
            Benchmark {
                name: "gsoap",
                about: "the bookshop's CPU time per SOAP reply against a gSOAP server's",
                run: reply::gsoap,
            },
            Benchmark {
                name: "page",
                about: "the bookshop's capacity as a Web service against as a page",
                run: reply::page,
            },
        ],
        others: &["bookshop-by-hand"],
    },
    Area {
        name: "Emulator",
        benchmarks: &[
            Benchmark {
                name: "delay",
                about: "how exactly emulated packets arrive: every core busy, and without privilege (wants an idle machine)",
                run: emulator::delay,
            },
            Benchmark {
                name: "flows",
                about: "the same for 256 and 1,024 flows on lines of their own",
                run: emulator::flows,
            },
            Benchmark {
                name: "rate",
                about: "an emulated bandwidth over each second, beside the kernel's token bucket filter",
                run: emulator::rate,
            },
            Benchmark {
                name: "capacity",
                about: "how many of the largest packets a second one emulator passes on, none lost",
                run: emulator::capacity,
            },
            Benchmark {
                name: "positions",
                about: "a million packets: exactly the planned ones are missing, and the trace says so",
                run: emulator::positions,
            },
            Benchmark {
                name: "toxiproxy",
                about: "delay and throughput through an emulated network and through toxiproxy",
                run: emulator::toxiproxy,
            },
        ],
        others: &["classes", "emulator-by-hand", "tcp-by-hand"],
    },
    Area {
        name: "Simulator",
        benchmarks: &[Benchmark {
            name: "simulate",
            about: "simulated transactions a second on one core, and beside ns-3",
            run: simulate::simulate,
        }],
        others: &["packet-loss-study", "simulator-by-hand"],
    },
    Area {
        name: "Gateway",
        benchmarks: &[
            Benchmark {
                name: "proxies",
                about: "the gateway's CPU time per request beside HAProxy's, nginx's and Envoy's, plain and gzip",
                run: proxies::proxies,
            },
            Benchmark {
                name: "tails",
                about: "how soon replies come through the gateway, HAProxy and nginx where it is 70 % busy, at work and just begun",
                run: tails::tails,
            },
            Benchmark {
                name: "gate",
                about: "the gateway under load beside HAProxy and nginx: who compresses how much, at which tail (half an hour)",
                run: gate::gate,
            },
            Benchmark {
                name: "admission",
                about: "an overload behind the gateway, nginx, HAProxy and Envoy: who answers the important half in time (40 min)",
                run: admission::admission,
            },
            Benchmark {
                name: "marking",
                about: "what it costs the gateway to mark replies",
                run: marking::marking,
            },
            Benchmark {
                name: "grpc",
                about: "the gateway's CPU time per unary gRPC call beside Envoy's, driven by h2load and ghz",
                run: grpc::grpc,
            },
            Benchmark {
                name: "changes",
                about: "10,000/s while names, upstreams, certificates and configuration change: none lost",
                run: changes::changes,
            },
        ],
        others: &["gateway-by-hand", "compression-by-hand", "gateway-study"],
    },
    Area {
        name: "Broker, offers and prices",
        benchmarks: &[
            Benchmark {
                name: "lookups",
                about: "the broker's lookups beside SQLite and PostgreSQL asked for each request, 27 to a million offers, in turns",
                run: lookups::lookups,
            },
            Benchmark {
                name: "offers",
                about: "the CPU time that routing by 1,000 offers adds to a request of the gateway",
                run: offers::offers,
            },
            Benchmark {
                name: "durability",
                about: "a broker killed at 1,000 random moments while it publishes, over SQLite and PostgreSQL (six minutes)",
                run: durability::durability,
            },
            Benchmark {
                name: "charges",
                about: "gateways, broker and PostgreSQL killed at 200 random moments while requests are charged (five minutes)",
                run: charges::charges,
            },
            Benchmark {
                name: "visible",
                about: "from publishing at one broker to the stream of changes of another, both on one PostgreSQL",
                run: visible::visible,
            },
        ],
        others: &["offers-by-hand", "prices-study", "slow-client-study"],
    },
    Area {
        name: "Building, testing and the demo",
        benchmarks: &[Benchmark {
            name: "newcomer",
            about: "from a fresh clone to the report: build and run",
            run: cost::newcomer,
        }],
        others: &["build-by-hand", "demo-by-hand"],
    },
];

/// All benchmarks.
pub(super) fn all() -> impl Iterator<Item = &'static Benchmark> {
    AREAS.iter().flat_map(|area| area.benchmarks)
}
