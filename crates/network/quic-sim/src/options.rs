//! Options of QUIC: transport parameters of both ends, and the length of the server's certificate.

use std::sync::Arc;
use std::time::Duration;

use posthaste_units::Span;
use quinn_proto::congestion::CubicConfig;
use quinn_proto::{AckFrequencyConfig, TransportConfig, VarInt};
use thiserror::Error;

use crate::certificate::SMALLEST_CERTIFICATE;

/// Minimum payload of datagrams (RFC 9000, section 14).
const SMALLEST_DATAGRAM: u16 = 1200;
/// Maximum payload of a UDP datagram over IPv4.
const LARGEST_DATAGRAM: u16 = 65_507;
/// Maximum length of a certificate: its TLS message has to fit in 64 KiB.
const LARGEST_CERTIFICATE: u32 = 60_000;
/// Maximum initial window. Any larger one sends everything at once, too.
const LARGEST_WINDOW: u64 = 1 << 30;
/// Maximum initial RTT. The first timeout is three times as long.
const LONGEST_RTT: Span = Span::from_secs(60);
/// Granularity of timers (RFC 9002, section 6.1.2), and maximum delay of an acknowledgement (RFC 9000, section 18.2).
const ACK_DELAYS: [Span; 2] = [Span::from_millis(1), Span::from_millis((1 << 14) - 1)];
/// Maximum number of packets for an acknowledgement.
const MOST_PACKETS: u32 = 1000;
/// Silence after which an end gives up, in addition to the longest time of a program. It is quinn's default.
const IDLE: Span = Span::from_secs(30);

/// Options of both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuicOptions {
    /// RTT before the first sample. The first probe timeout is three times as long (RFC 9002, section 6.2.2).
    pub initial_rtt: Span,
    /// Maximum payload of a UDP datagram in bytes. Datagrams are never probed for a larger one.
    pub datagram: u16,
    /// Initial congestion window in bytes.
    pub initial_window: u64,
    /// Bytes of the server's certificate.
    pub certificate: u32,
    /// Delay of acknowledgements that each end requests from the other. `None` for the standard 25 ms, without a request.
    pub ack_delay: Option<Span>,
    /// Packets for each acknowledgement that each end requests from the other. `None` for the standard 2, without a
    /// request.
    pub ack_frequency: Option<u32>,
}

/// An invalid option of QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum QuicOptionError {
    /// An initial RTT that is zero or too long.
    #[error("--initial-rtt {0}: give a time above zero, of at most {LONGEST_RTT}")]
    InitialRtt(Span),
    /// A datagram that QUIC or UDP cannot carry.
    #[error("--datagram {0}: give {SMALLEST_DATAGRAM} to {LARGEST_DATAGRAM} bytes of UDP payload")]
    Datagram(u64),
    /// A window below two datagrams, or a meaningless one.
    #[error("--initial-window {0}: give at least two datagrams ({1} bytes) and at most 1 GiB")]
    InitialWindow(u64, u64),
    /// A certificate that cannot be made or sent.
    #[error("--certificate {0}: give {SMALLEST_CERTIFICATE} to {LARGEST_CERTIFICATE} bytes")]
    Certificate(u64),
    /// A delay of acknowledgements out of range.
    #[error("--ack-delay {0}: give {min} to {max}", min = ACK_DELAYS[0], max = ACK_DELAYS[1])]
    AckDelay(Span),
    /// A number of packets for each acknowledgement out of range.
    #[error("--ack-frequency {0}: give 1 to {MOST_PACKETS} packets for each acknowledgement")]
    AckFrequency(u32),
}

impl Default for QuicOptions {
    /// The initial RTT of RFC 9002, datagrams of 1,452 bytes, which fit into Ethernet with IPv6, the window of
    /// 14,720 bytes of RFC 9002, section 7.2, and a small certificate.
    fn default() -> Self {
        Self {
            initial_rtt: Span::from_millis(333),
            datagram: 1452,
            initial_window: 14_720,
            certificate: 289,
            ack_delay: None,
            ack_frequency: None,
        }
    }
}

impl QuicOptions {
    /// Returns an error if an option is invalid.
    pub fn check(&self) -> Result<(), QuicOptionError> {
        if self.initial_rtt.is_zero() || self.initial_rtt > LONGEST_RTT {
            return Err(QuicOptionError::InitialRtt(self.initial_rtt));
        }
        if !(SMALLEST_DATAGRAM..=LARGEST_DATAGRAM).contains(&self.datagram) {
            return Err(QuicOptionError::Datagram(self.datagram.into()));
        }
        let least = 2 * u64::from(self.datagram);
        if !(least..=LARGEST_WINDOW).contains(&self.initial_window) {
            return Err(QuicOptionError::InitialWindow(self.initial_window, least));
        }
        if !(SMALLEST_CERTIFICATE..=LARGEST_CERTIFICATE).contains(&self.certificate) {
            return Err(QuicOptionError::Certificate(self.certificate.into()));
        }
        let [shortest, longest] = ACK_DELAYS;
        if let Some(delay) = self.ack_delay
            && !(shortest..=longest).contains(&delay)
        {
            return Err(QuicOptionError::AckDelay(delay));
        }
        match self.ack_frequency {
            Some(packets) if !(1..=MOST_PACKETS).contains(&packets) => {
                Err(QuicOptionError::AckFrequency(packets))
            }
            _ => Ok(()),
        }
    }

    /// The configuration of a transport whose programs are silent for at most `silence`.
    pub(crate) fn transport(&self, silence: Span) -> TransportConfig {
        let mut congestion = CubicConfig::default();
        congestion.initial_window(self.initial_window);
        let idle = duration(IDLE + silence);
        let mut transport = TransportConfig::default();
        transport
            .initial_rtt(duration(self.initial_rtt))
            .initial_mtu(self.datagram)
            .mtu_discovery_config(None)
            .enable_segmentation_offload(false)
            .congestion_controller_factory(Arc::new(congestion))
            // `None` waits for ever, as anything longer than an idle timeout can state does.
            .max_idle_timeout(idle.try_into().ok())
            .ack_frequency_config(self.requested_acks());
        transport
    }

    /// The request to the other end for its acknowledgements, if one of the options is given.
    fn requested_acks(&self) -> Option<AckFrequencyConfig> {
        if self.ack_delay.is_none() && self.ack_frequency.is_none() {
            return None;
        }
        let mut request = AckFrequencyConfig::default();
        request.max_ack_delay(self.ack_delay.map(duration));
        if let Some(packets) = self.ack_frequency {
            // The threshold is the number of packets without an acknowledgement.
            request.ack_eliciting_threshold(VarInt::from_u32(packets.saturating_sub(1)));
        }
        Some(request)
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_options_state_their_range() {
        let usual = QuicOptions::default();
        usual.check().unwrap();
        let cases = [
            (
                QuicOptions {
                    initial_rtt: Span::ZERO,
                    ..usual.clone()
                },
                "above zero",
            ),
            (
                QuicOptions {
                    initial_rtt: Span::from_secs(61),
                    ..usual.clone()
                },
                "at most 60s",
            ),
            (
                QuicOptions {
                    datagram: 1199,
                    ..usual.clone()
                },
                "1200 to 65507",
            ),
            (
                QuicOptions {
                    datagram: 65_508,
                    ..usual.clone()
                },
                "1200 to 65507",
            ),
            (
                QuicOptions {
                    initial_window: 2903,
                    ..usual.clone()
                },
                "2904 bytes",
            ),
            (
                QuicOptions {
                    certificate: 259,
                    ..usual.clone()
                },
                "260 to 60000",
            ),
            (
                QuicOptions {
                    ack_delay: Some(Span::ZERO),
                    ..usual.clone()
                },
                "1ms to 16.383s",
            ),
            (
                QuicOptions {
                    ack_frequency: Some(0),
                    ..usual
                },
                "1 to 1000 packets",
            ),
        ];
        for (options, reason) in cases {
            let error = options.check().unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
