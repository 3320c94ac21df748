//! A client's network path as the kernel sees it, and the transfer time of a reply over it.
//!
//! The model includes slow start: a short reply over a long path costs round trips and not bandwidth, and a smaller
//! reply within the same window saves none. Losses, cross traffic and the client's decompression time are not modelled.

use posthaste_units::{BitRate, Size, Span};

/// Payload bytes of a segment in the usual packet of 1,500.
const SEGMENT: u64 = 1448;

/// Values of TCP_INFO for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientPath {
    /// Delivery rate to the client.
    pub rate: BitRate,
    /// Smoothed round-trip time.
    pub rtt: Span,
    /// Congestion window in bytes: [`ClientPath::FIRST_WINDOW`] on a new connection.
    pub window: Size,
}

impl ClientPath {
    /// Initial window: ten segments (RFC 6928).
    pub const FIRST_WINDOW: Size = Size::from_bytes(10 * SEGMENT);

    /// Time between the departures of the first and the last byte. The window doubles in each round trip until it
    /// covers the path.
    pub fn time(&self, bytes: Size) -> Span {
        let (rate, rtt) = (self.rate.as_bytes_f64(), self.rtt.as_secs_f64());
        let mut left = bytes.as_bytes() as f64;
        let mut window = self.window.as_bytes().max(SEGMENT) as f64;
        let mut time = 0.0;
        while left > window && window < rate * rtt {
            left -= window;
            time += rtt;
            window *= 2.0;
        }
        Span::from_secs_f64(time + left / rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(bits: u64, rtt: u64) -> ClientPath {
        ClientPath {
            rate: BitRate::per_second(bits).unwrap(),
            rtt: Span::from_millis(rtt),
            window: ClientPath::FIRST_WINDOW,
        }
    }

    #[test]
    fn a_slow_line_takes_its_bandwidth_and_a_long_one_its_rounds() {
        let gprs = line(40_200, 1300);
        let seconds = gprs.time(Size::from_bytes(16_055)).as_secs_f64();
        assert!(
            (seconds - 16_055.0 * 8.0 / 40_200.0).abs() < 1e-6,
            "{seconds}"
        );
        let long = line(1_000_000_000, 100);
        let one = long.time(Size::from_bytes(14_000)).as_millis_f64();
        let two = long.time(Size::from_bytes(40_000)).as_millis_f64();
        let three = long.time(Size::from_bytes(100_000)).as_millis_f64();
        assert!(one < 1.0 && (100.0..101.0).contains(&two) && (200.0..201.0).contains(&three));
    }

    #[test]
    fn more_never_takes_less() {
        for line in [
            line(12_800, 1300),
            line(1_000_000, 40),
            line(10_000_000_000, 1),
        ] {
            let times: Vec<Span> = (0..200)
                .map(|n| line.time(Size::from_bytes(n * 5000)))
                .collect();
            assert!(times.is_sorted(), "{line:?}");
        }
    }
}
