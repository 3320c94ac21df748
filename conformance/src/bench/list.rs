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
                about: "load at 3 to 25 times the capacity of a server, one connection per request: every request is sent",
                run: past_limit::overload,
            },
            Benchmark {
                name: "frozen",
                about: "load on a server that stops for 1 s in every 10 s: the percentiles equal the computed ones",
                run: past_limit::frozen,
            },
            Benchmark {
                name: "arrivals",
                about: "evenness and lateness of 1,000 requests/s on an idle core, and the distribution of Poisson arrivals",
                run: schedule::arrivals,
            },
            Benchmark {
                name: "cpu",
                about: "the generator's CPU time per request, compared with wrk",
                run: cost::cpu,
            },
            Benchmark {
                name: "http2",
                about: "the generator's CPU time per request over HTTP/2, compared with h2load",
                run: streams::cpu,
            },
            Benchmark {
                name: "http3",
                about: "the generator's CPU time per request over HTTP/3, compared with oha",
                run: http3::cpu,
            },
            Benchmark {
                name: "events",
                about: "first event and gaps at 1,000 events/s, compared with the server's log of its sends",
                run: events::events,
            },
            Benchmark {
                name: "grpc-load",
                about: "the generator's CPU time per unary gRPC call, compared with ghz",
                run: grpc_load::grpc_load,
            },
            Benchmark {
                name: "memory",
                about: "the generator's memory after one and after five million requests",
                run: cost::memory,
            },
            Benchmark {
                name: "oracle",
                about: "reports of load on a server with a known law, compared with queueing theory (two hours)",
                run: oracle::coverage,
            },
            Benchmark {
                name: "limit",
                about: "the same near the limit, where small errors are visible (half an hour)",
                run: oracle::limit,
            },
            Benchmark {
                name: "find",
                about: "rates that --find reports for 8 services with known capacity, next to busy programs (6 minutes)",
                run: find::wire,
            },
            Benchmark {
                name: "find-virtual",
                about: "the same in virtual time, 1,000 searches of 28 kinds: wrong and missing ends, and width (half an hour)",
                run: find::in_virtual_time,
            },
            Benchmark {
                name: "compare",
                about: "verdicts of compare next to busy processes: false alarms and detected slowdowns (a quarter of an hour)",
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
                about: "difference of the starts of two agents on one machine, 50 times",
                run: agents::start,
            },
            Benchmark {
                name: "agents-deaths",
                about: "one of three agents killed at 50 random moments: the report accounts for its requests (3 minutes)",
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
                about: "a sweep of 10 million transactions on two agents, compared with one process",
                run: agents::sweep,
            },
            Benchmark {
                name: "agents-one-way",
                about: "the common start of two agents, one with a delay of 20 ms in one direction only",
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
                about: "the bookshop's CPU time per SOAP reply, compared with a gSOAP server",
                run: reply::gsoap,
            },
            Benchmark {
                name: "page",
                about: "the bookshop's capacity as a Web service, compared with its page",
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
                about: "timing errors of emulated packets: with every core busy, and without privilege (needs an idle machine)",
                run: emulator::delay,
            },
            Benchmark {
                name: "flows",
                about: "the same for 256 and 1,024 flows on lines of their own",
                run: emulator::flows,
            },
            Benchmark {
                name: "rate",
                about: "an emulated bandwidth in each second, compared with the kernel's token bucket filter",
                run: emulator::rate,
            },
            Benchmark {
                name: "capacity",
                about: "maximum rate of the largest packets through one emulator without a loss",
                run: emulator::capacity,
            },
            Benchmark {
                name: "positions",
                about: "a million packets: exactly the planned ones are missing, also in the trace",
                run: emulator::positions,
            },
            Benchmark {
                name: "toxiproxy",
                about: "delay and throughput of an emulated network, compared with toxiproxy",
                run: emulator::toxiproxy,
            },
        ],
        others: &["classes", "emulator-by-hand", "tcp-by-hand"],
    },
    Area {
        name: "Simulator",
        benchmarks: &[Benchmark {
            name: "simulate",
            about: "simulated transactions a second on one core, compared with ns-3",
            run: simulate::simulate,
        }],
        others: &["packet-loss-study", "simulator-by-hand"],
    },
    Area {
        name: "Gateway",
        benchmarks: &[
            Benchmark {
                name: "proxies",
                about: "the gateway's CPU time per request, plain and gzip, compared with HAProxy, nginx and Envoy",
                run: proxies::proxies,
            },
            Benchmark {
                name: "tails",
                about: "response times of the gateway at 70 % of its capacity, running and just started, compared with HAProxy and nginx",
                run: tails::tails,
            },
            Benchmark {
                name: "gate",
                about: "compressed share and p99 of the gateway under load, compared with HAProxy and nginx (half an hour)",
                run: gate::gate,
            },
            Benchmark {
                name: "admission",
                about: "important requests answered in time by an overloaded server behind the gateway, nginx, HAProxy and Envoy (40 min)",
                run: admission::admission,
            },
            Benchmark {
                name: "marking",
                about: "the gateway's CPU time for marking replies",
                run: marking::marking,
            },
            Benchmark {
                name: "grpc",
                about: "the gateway's CPU time per unary gRPC call, compared with Envoy; load from h2load and ghz",
                run: grpc::grpc,
            },
            Benchmark {
                name: "changes",
                about: "10,000 requests/s while names, upstreams, certificates and configuration change: no request is lost",
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
                about: "the broker's lookups among 27 to a million offers, compared with queries of SQLite and PostgreSQL",
                run: lookups::lookups,
            },
            Benchmark {
                name: "offers",
                about: "CPU time that routing by 1,000 offers adds to a request of the gateway",
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
                about: "time from publishing at one broker to the stream of changes of another, both on one PostgreSQL",
                run: visible::visible,
            },
        ],
        others: &["offers-by-hand", "prices-study", "slow-client-study"],
    },
    Area {
        name: "Building, testing and the demo",
        benchmarks: &[Benchmark {
            name: "newcomer",
            about: "time from a fresh clone to the report: build and run",
            run: cost::newcomer,
        }],
        others: &["build-by-hand", "demo-by-hand"],
    },
];

/// All benchmarks.
pub(super) fn all() -> impl Iterator<Item = &'static Benchmark> {
    AREAS.iter().flat_map(|area| area.benchmarks)
}
