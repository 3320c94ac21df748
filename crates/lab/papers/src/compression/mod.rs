//! The mobile paper, chapter 7.1 of the thesis: compression on request of the client and within the server's CPU time.
//!
//! [`replies`] measures each reply and its compression cost. [`handheld`] fetches them with a slow client over slow
//! lines. [`sclient`] loads the gateway. Beyond the paper, [`policies`] compares the gateway with other proxies under
//! load, [`codecs`] measures the cost of each coding, and [`promises`] checks the requirements of the gateway.
//!
//! The [`handheld`] is a generator at one end of an emulated line, with gateway and shop at the other, all in this
//! process. A thread started by a host's thread is in that host's network, so that the same crates serve on loopback and
//! behind GPRS. Service times are compared with computed ones ([`line_time`]), together with the time that a witness
//! waited for processors.
//!
//! The pictures of a slow client share [`service_time`]. The paper's own numbers are defined here only.

mod claims;
mod codecs;
pub(crate) mod codecs_2026;
pub(crate) mod fig_51;
pub(crate) mod fig_52;
pub(crate) mod fig_53;
pub(crate) mod fig_54;
mod handheld;
mod line_time;
mod loaded;
pub(crate) mod networks;
mod peers;
mod policies;
pub(crate) mod policies_2026;
mod processing;
mod promises;
pub(crate) mod promises_2026;
mod replies;
mod sclient;
mod sclient_plots;
mod service_time;
mod sizes;
pub(crate) mod table_4;
pub(crate) mod table_5;

/// Numbers that the paper states.
mod paper {
    use posthaste_bookshop::Size;

    /// Capacity of the server without compression, requests per second.
    pub(super) const NONE_CAPACITY: f64 = 135.0;
    /// Capacity of the server with all replies compressed, requests per second.
    pub(super) const ALL_CAPACITY: f64 = 90.0;
    /// Request rates with the compressed share of the replies that may be compressed: all up to the first rate, none
    /// above the last.
    pub(super) const DYNAMIC: [(f64, f64); 3] = [(60.0, 1.0), (120.0, 0.2), (140.0, 0.0)];

    /// Table 5: request rates, and the handheld's service times in ms if all other clients ask for compression and if
    /// half of them do.
    pub(super) const RATES: [f64; 5] = [80.0, 100.0, 120.0, 140.0, 160.0];
    pub(super) const TABLE_5_ALL: [f64; 5] = [9_985.0, 10_495.0, 16_492.0, 17_104.0, 17_176.0];
    pub(super) const TABLE_5_DYNAMIC: [f64; 5] = [9_370.0, 9_850.0, 10_468.0, 10_538.0, 17_131.0];

    /// A row of Table 4. Bytes are of the SOAP Body alone.
    pub(super) struct PaperReply {
        pub(super) bytes: f64,
        pub(super) compressed: f64,
        /// Time on the server, in ms.
        pub(super) compression: f64,
        /// Time on the handheld, a 400 MHz XScale, in ms.
        pub(super) decompression: f64,
    }

    /// Table 4's row of a reply.
    pub(super) const fn reply(size: Size) -> PaperReply {
        let [bytes, compressed, compression, decompression] = match size {
            Size::Hello => [209.0, 256.0, 1.0, 41.0],
            Size::Lite => [3_366.0, 1_390.0, 12.0, 200.0],
            Size::Heavy1 => [16_055.0, 6_038.0, 24.0, 497.0],
            Size::Heavy2 => [28_153.0, 10_222.0, 36.0, 747.0],
            Size::Heavy3 => [36_049.0, 12_350.0, 79.0, 877.0],
            Size::Heavy5 => [50_205.0, 15_470.0, 89.0, 1_122.0],
        };
        PaperReply {
            bytes,
            compressed,
            compression,
            decompression,
        }
    }

    /// Maximum relative difference between compressed and plain replies over 802.11b and Bluetooth.
    pub(super) const APART: f64 = 0.04;
    /// Difference of the service times over Bluetooth and 802.11b, in seconds.
    pub(super) const WLAN_BELOW_BLUETOOTH: f64 = 2.0;
    /// Relative time of the largest reply over poor GPRS, compressed to plain.
    pub(super) const LARGEST_AT_POOR_GPRS: f64 = 0.5;
}
