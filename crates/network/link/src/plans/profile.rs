//! Named access networks and paths, as data with sources.
//!
//! Figures are for the whole path in one direction, without loss unless the source gives one. Values derived from a
//! source instead of read in it are marked (calc).
//!
//! # Queue
//!
//! A direction has the queue that its source states. Without one, the queue holds one bandwidth-delay product of full
//! packets over the profile's round trip, and at least 50 packets, dummynet's default (calc). One flow then fills the
//! line: the rule of Villamizar and Song, High Performance TCP in ANSNET (ACM SIGCOMM CCR 24(5), 1994).

use std::fmt;

use posthaste_units::{BitRate, Span};
use thiserror::Error;

use crate::{Direction, Plan, Queue};

/// A named network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Name on command lines.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Source of the numbers: title and publisher.
    pub source: &'static str,
    /// Direction from the client.
    pub up: ProfileDirection,
    /// Direction to the client.
    pub down: ProfileDirection,
}

/// One direction of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileDirection {
    /// Bandwidth in bit/s; zero if the path sets no limit.
    bits: u64,
    /// One-way delay.
    pub delay: Span,
    /// Bytes on the line in addition to each packet.
    pub overhead: u32,
    /// Packets in the queue, if the source states them.
    buffer: Option<u32>,
}

const WEBPAGETEST: &str = "WebPageTest, connectivity.ini.sample (WPO Foundation, Catchpoint): rates, and half of its round-trip time each way";

const WSQOS: &str = "M. Tian, QoS integration in Web services with the WS-QoS framework (FU Berlin, 2005), chapter 7: 800 ms down and 500 ms up";

/// Length of a full packet, in bytes.
const FULL: u64 = 1500;

/// All profiles.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "lan",
        about: "Ethernet at 100 Mbit/s through a switch or two",
        source: "IEEE 802.3, 100BASE-TX: preamble, header, check sequence and gap are 38 bytes a packet; J. Dean, Designs, Lessons and Advice from Building Large Distributed Systems (LADIS 2009): 0.5 ms round trip within a data centre",
        up: way(100_000_000, 250, 38),
        down: way(100_000_000, 250, 38),
    },
    Profile {
        name: "wlan-802.11b",
        about: "802.11b at 11 Mbit/s, alone on the air: 6.06 Mbit/s at 1,500 bytes",
        source: "J. Jun, P. Peddabachagari, M. Sichitiu, Theoretical Maximum Throughput of IEEE 802.11 and its Applications (IEEE NCA 2003): 890.7 us a packet for spacing, back-off, headers and acknowledgement, here as 1,225 bytes at 11 Mbit/s (calc); 1 ms for an access point and the wire behind it (calc)",
        up: way(11_000_000, 1_000, 1_225),
        down: way(11_000_000, 1_000, 1_225),
    },
    Profile {
        name: "bluetooth",
        about: "Bluetooth 1.1, asymmetric DH5 packets, the client as slave",
        source: "Specification of the Bluetooth System 1.1, baseband (Bluetooth SIG, 2001): 723.2 and 57.6 kbit/s; a packet waits for one turn of six slots of 625 us (calc)",
        up: way(57_600, 3_750, 0),
        down: way(723_200, 3_750, 0),
    },
    Profile {
        name: "gprs",
        about: "GPRS, good reception, as the WS-QoS study emulated it",
        source: WSQOS,
        up: way(13_400, 500_000, 0),
        down: way(40_200, 800_000, 0),
    },
    Profile {
        name: "gprs-poor",
        about: "GPRS, poor reception, as the WS-QoS study emulated it",
        source: WSQOS,
        up: way(4_000, 500_000, 0),
        down: way(12_800, 800_000, 0),
    },
    Profile {
        name: "3g",
        about: "UMTS, 1.6 Mbit/s and 768 kbit/s, 300 ms round trip",
        source: WEBPAGETEST,
        up: way(768_000, 150_000, 0),
        down: way(1_600_000, 150_000, 0),
    },
    Profile {
        name: "lte",
        about: "LTE, 12 Mbit/s, 70 ms round trip",
        source: WEBPAGETEST,
        up: way(12_000_000, 35_000, 0),
        down: way(12_000_000, 35_000, 0),
    },
    Profile {
        name: "5g",
        about: "5G, the median of the world: 203 and 19 Mbit/s, 44 ms round trip",
        source: "Ookla, The State of Worldwide Connectivity in 2023 (Speedtest, third quarter of 2023): 203.04 and 18.93 Mbit/s, 44 ms multi-server latency, half of it each way",
        up: way(18_930_000, 22_000, 0),
        down: way(203_040_000, 22_000, 0),
    },
    Profile {
        name: "dsl",
        about: "DSL, 1.5 Mbit/s and 384 kbit/s, 50 ms round trip",
        source: WEBPAGETEST,
        up: way(384_000, 25_000, 0),
        down: way(1_500_000, 25_000, 0),
    },
    Profile {
        name: "cable",
        about: "cable, 5 and 1 Mbit/s, 28 ms round trip",
        source: WEBPAGETEST,
        up: way(1_000_000, 14_000, 0),
        down: way(5_000_000, 14_000, 0),
    },
    Profile {
        name: "cable-bufferbloat",
        about: "cable, 236 and 22 Mbit/s, and a modem without AQM that queues 250 ms of uploads",
        source: "Ookla, Speedtest Global Index, medians of Xfinity in the United States (third quarter of 2023): 236.07 and 22.30 Mbit/s, 25 ms multi-server latency, half of it each way; A. Flickinger et al., Improving Latency with Active Queue Management (AQM) During COVID-19 (Comcast, 2021, arXiv:2107.13968): some 250 ms under load without AQM, here as 465 packets at 22.30 Mbit/s (calc)",
        up: way(22_300_000, 12_500, 0).with_buffer(465),
        down: way(236_070_000, 12_500, 0),
    },
    Profile {
        name: "leo-satellite",
        about: "Starlink in the United States: 105 and 15 Mbit/s, 45 ms round trip",
        source: "Ookla, Starlink's U.S. Performance is on the Rise (Speedtest, first quarter of 2025): medians of 104.71 and 14.84 Mbit/s, 45 ms multi-server latency, half of it each way",
        up: way(14_840_000, 22_500, 0),
        down: way(104_710_000, 22_500, 0),
    },
    Profile {
        name: "geo-satellite",
        about: "a household behind a geostationary satellite",
        source: "Ookla, Speedtest Intelligence, medians of Viasat in the United States: 18.13 and 3.38 Mbit/s (second quarter of 2021), 676 ms round trip (first quarter of 2022), half of it each way",
        up: way(3_380_000, 338_000, 0),
        down: way(18_130_000, 338_000, 0),
    },
    Profile {
        name: "transatlantic",
        about: "New York to London on a backbone without a bottleneck",
        source: "Verizon, service level agreement for its IP network: at most 90 ms mean round trip between its hubs in New York and London, half of it each way",
        up: way(0, 45_000, 0),
        down: way(0, 45_000, 0),
    },
];

const fn way(bits: u64, delay_us: u64, overhead: u32) -> ProfileDirection {
    ProfileDirection {
        bits,
        delay: Span::from_micros(delay_us),
        overhead,
        buffer: None,
    }
}

impl ProfileDirection {
    const fn with_buffer(self, packets: u32) -> Self {
        Self {
            buffer: Some(packets),
            ..self
        }
    }

    /// Bandwidth; `None` if the path sets no limit.
    pub const fn bandwidth(&self) -> Option<BitRate> {
        BitRate::per_second(self.bits)
    }
}

/// The name is not that of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no profile {name:?}: {}", names())]
pub struct UnknownProfile {
    name: String,
}

fn names() -> String {
    let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
    format!("write one of {}", names.join(", "))
}

/// Returns the profile of that name.
pub fn named(name: &str) -> Result<&'static Profile, UnknownProfile> {
    PROFILES
        .iter()
        .find(|profile| profile.name == name)
        .ok_or_else(|| UnknownProfile {
            name: name.to_owned(),
        })
}

impl Profile {
    const fn direction(&self, direction: Direction) -> &ProfileDirection {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// Queue of one direction, by its source or by the rule of this module.
    pub fn queue(&self, direction: Direction) -> Queue {
        let way = self.direction(direction);
        let round_trip = self.up.delay + self.down.delay;
        let line = u128::from(8 * (FULL + u64::from(way.overhead))) * 1_000_000_000;
        let product = u128::from(way.bits) * u128::from(round_trip.as_nanos());
        let product = u32::try_from(product.div_ceil(line)).unwrap_or(u32::MAX);
        let least = Queue::default();
        Queue {
            packets: way.buffer.unwrap_or(product.max(least.packets)),
            ..least
        }
    }

    /// Plan of one direction, to which more can be added.
    pub fn plan(&self, direction: Direction) -> Plan {
        let way = self.direction(direction);
        Plan {
            bandwidth: way.bandwidth(),
            delay: way.delay,
            queue: self.queue(direction),
            overhead: way.overhead,
            ..Plan::default()
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_holds_a_round_trip_or_what_the_source_says() {
        let packets = |name: &str| {
            let profile = named(name).unwrap();
            Direction::BOTH.map(|direction| profile.plan(direction).queue.packets)
        };
        // 18.13 Mbit/s x 676 ms = 1,021.3 packets of 1,500 bytes.
        assert_eq!(packets("geo-satellite"), [191, 1022]);
        assert_eq!(packets("lte"), [70, 70]);
        assert_eq!(packets("cable-bufferbloat")[0], 465);
        // The WS-QoS study measured with queues of 50.
        for name in [
            "gprs",
            "gprs-poor",
            "bluetooth",
            "wlan-802.11b",
            "3g",
            "lan",
        ] {
            assert_eq!(packets(name), [50, 50], "{name}");
        }
        assert_eq!(
            packets("transatlantic"),
            [50, 50],
            "nothing queues without a limit"
        );
    }
}
