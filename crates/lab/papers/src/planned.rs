//! The papers and the ids of all their figures.
//!
//! The table lists each figure and table of the four papers, built or not, so that the report names the missing ones.
//! [`FIGURES`](crate::FIGURES) describes the built ones.

use posthaste_study::Planned;

/// The papers: prefix of their ids, and citation.
pub(crate) const PAPERS: &[(&str, &str)] = &[
    (
        "overload",
        "Tian, Voigt, Naumowicz, Ritter, Schiller: Performance Impact of Web Services on Internet Servers, PDCS 2003",
    ),
    (
        "packet-loss",
        "Garcia, Hurtig, Brunstrom: The Effect of Packet Loss on the Response Times of Web Services, WEBIST 2007",
    ),
    (
        "wsqos",
        "Tian: QoS integration in Web services with the WS-QoS framework, FU Berlin 2005, chapter 7",
    ),
    (
        "mobile",
        "Tian, Voigt, Naumowicz, Ritter, Schiller: Performance Considerations for Mobile Web Services, Computer Communications 2004",
    ),
];

/// Short citation of the thesis and its paper on mobile clients, in figures.
pub(crate) const THESIS: &str = "Tian: QoS integration in Web services with the WS-QoS framework, FU Berlin 2005, chapter 7; also Tian, Voigt, Naumowicz, Ritter, Schiller: Performance Considerations for Mobile Web Services, Computer Communications 2004";

/// Figures that two papers share: the alias, and the id.
pub(crate) const ALIASES: &[(&str, &str)] = &[
    ("mobile/fig-04", "wsqos/fig-47"),
    ("mobile/fig-05", "wsqos/fig-48"),
    ("mobile/fig-06", "wsqos/fig-49"),
    ("mobile/fig-07", "wsqos/fig-50"),
    ("mobile/fig-08", "wsqos/fig-51"),
    ("mobile/fig-09", "wsqos/fig-52"),
    ("mobile/fig-10", "wsqos/fig-53"),
    ("mobile/fig-11", "wsqos/fig-54"),
    ("mobile/table-1", "wsqos/table-4"),
    ("mobile/table-2", "wsqos/table-5"),
];

const fn to_come(id: &'static str, title: &'static str, comes: &'static str) -> Planned {
    Planned { id, title, comes }
}

const LOAD: &str = "with the load generator";
const SIMULATOR: &str = "with the emulator and the simulator";
const GATEWAY: &str = "with the gateway";
const HANDHELD: &str = "with the gateway and the emulator";
const BROKER: &str = "with the broker";
const OFFERS: &str = "with adaptive offers";

/// Every figure and table of the papers, in the order of the report.
pub(crate) const PLANNED: &[Planned] = &[
    to_come(
        "overload/fig-05",
        "bytes on the wire, content against overhead",
        LOAD,
    ),
    to_come(
        "overload/fig-06",
        "closed loop: response time against clients",
        LOAD,
    ),
    to_come(
        "overload/fig-07",
        "closed loop: throughput against clients",
        LOAD,
    ),
    to_come(
        "overload/fig-08",
        "open loop: response time against request rate",
        LOAD,
    ),
    to_come(
        "overload/fig-09",
        "open loop: throughput against request rate",
        LOAD,
    ),
    to_come(
        "overload/fig-10",
        "open loop: rejected connections against request rate",
        LOAD,
    ),
    to_come("overload/fig-11", "open loop: the reply compressed", LOAD),
    to_come(
        "packet-loss/fig-02",
        "FreeBSD, Author, 10 ms: response time by position of the loss",
        SIMULATOR,
    ),
    to_come(
        "packet-loss/fig-03",
        "FreeBSD, Author, 60 ms: response time by position of the loss",
        SIMULATOR,
    ),
    to_come(
        "packet-loss/fig-04",
        "FreeBSD, Author, 1000 kbit/s: all delays",
        SIMULATOR,
    ),
    to_come(
        "packet-loss/fig-05",
        "FreeBSD, Author: relative increase, 56 combinations",
        SIMULATOR,
    ),
    to_come(
        "packet-loss/fig-06",
        "Linux, Author, 10 ms: response time by position of the loss",
        SIMULATOR,
    ),
    to_come(
        "packet-loss/fig-07",
        "Linux, Author, 60 ms: response time by position of the loss",
        SIMULATOR,
    ),
    to_come(
        "packet-loss/fig-08",
        "Linux, Author, 1000 kbit/s: all delays",
        SIMULATOR,
    ),
    to_come(
        "packet-loss/fig-09",
        "Linux, Author: relative increase, 56 combinations",
        SIMULATOR,
    ),
    to_come(
        "packet-loss/fig-10",
        "FreeBSD, Sellerprofile, 1000 kbit/s: all delays",
        SIMULATOR,
    ),
    to_come(
        "packet-loss/fig-11",
        "FreeBSD, Sellerprofile: relative increase, 56 combinations",
        SIMULATOR,
    ),
    to_come(
        "packet-loss/fig-12",
        "Linux, Sellerprofile, 1000 kbit/s: all delays",
        SIMULATOR,
    ),
    to_come(
        "packet-loss/fig-13",
        "Linux, Sellerprofile: relative increase, 56 combinations",
        SIMULATOR,
    ),
    to_come(
        "packet-loss/loss-2-percent",
        "independent loss of 2 %: which transactions see it, and where",
        SIMULATOR,
    ),
    to_come(
        "wsqos/table-4",
        "replies: sizes, and the cost of compression",
        GATEWAY,
    ),
    to_come(
        "wsqos/fig-47",
        "802.11b: service time against reply size",
        HANDHELD,
    ),
    to_come(
        "wsqos/fig-48",
        "Bluetooth: service time against reply size",
        HANDHELD,
    ),
    to_come(
        "wsqos/fig-49",
        "GPRS, good: service time against reply size",
        HANDHELD,
    ),
    to_come(
        "wsqos/fig-50",
        "GPRS, poor: service time against reply size",
        HANDHELD,
    ),
    to_come(
        "wsqos/fig-51",
        "all compressed against none: throughput",
        GATEWAY,
    ),
    to_come(
        "wsqos/fig-52",
        "all compressed against none: response time",
        GATEWAY,
    ),
    to_come("wsqos/fig-53", "all, none and dynamic: throughput", GATEWAY),
    to_come(
        "wsqos/fig-54",
        "all, none and dynamic: response time",
        GATEWAY,
    ),
    to_come(
        "wsqos/table-5",
        "the handheld on GPRS next to a loaded server",
        HANDHELD,
    ),
    to_come("wsqos/fig-56", "offers in memory: response time", BROKER),
    to_come("wsqos/fig-57", "offers in memory: throughput", BROKER),
    to_come(
        "wsqos/fig-58",
        "offers in a database: response time",
        BROKER,
    ),
    to_come("wsqos/fig-59", "offers in a database: throughput", BROKER),
    to_come(
        "wsqos/fig-60",
        "offers in a database: CPU of the server",
        BROKER,
    ),
    to_come("wsqos/fig-62", "cost of the proxy", HANDHELD),
    to_come(
        "wsqos/fig-63",
        "gain of the proxy, background 800 kbyte/s",
        HANDHELD,
    ),
    to_come(
        "wsqos/fig-64",
        "gain of the proxy, background 1,024 kbyte/s",
        HANDHELD,
    ),
    to_come(
        "wsqos/fig-65",
        "an ideal proxy, background 800 kbyte/s",
        HANDHELD,
    ),
    to_come(
        "wsqos/fig-66",
        "an ideal proxy, background 1,024 kbyte/s",
        HANDHELD,
    ),
    to_come("wsqos/fig-68", "price and load while demand grows", OFFERS),
    to_come("wsqos/fig-69", "price and load in the stable state", OFFERS),
    to_come("wsqos/fig-70", "price and load while demand falls", OFFERS),
];
