//! The protocol of the connections.

use std::path::PathBuf;

use clap::ValueEnum;
use posthaste_load::{Multiplexing, Protocol, QlogOptions, QuicOptions, WhenFull, WhenRejected};

use crate::commands::Failure;

/// Options of the protocol. Those after `--http` are for HTTP/2 and HTTP/3.
#[derive(clap::Args)]
#[command(next_help_heading = "Protocol")]
pub(super) struct ProtocolArgs {
    /// HTTP/1.1; HTTP/2: with prior knowledge on http://, by ALPN on https://; or HTTP/3 over QUIC, on https:// only. A
    /// server that chooses another protocol is an error (tls-failed) [default: 1.1; with --grpc: 2]
    #[arg(long, value_enum, value_name = "1.1|2|3")]
    http: Option<HttpArg>,
    /// HTTP/2 and HTTP/3: connections to each server, of all threads together. Request n uses connection n mod N [default: one for
    /// each thread]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    connections: Option<u16>,
    /// HTTP/2 and HTTP/3: concurrent requests on a connection at most. The server's limit holds too, and 100 until it is known
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..))]
    streams: Option<u32>,
    /// HTTP/2 and HTTP/3: on a full connection, a request waits, uses a further connection, or is dropped. A wait is part of
    /// the response time (phase queue)
    #[arg(long, value_enum, value_name = "wait|open|drop")]
    when_full: Option<WhenFullArg>,
    /// HTTP/2 and HTTP/3: a request that the server rejects without processing it (GOAWAY, REFUSED_STREAM) is sent
    /// again once, as another attempt, or ends as rejected [default: resend]
    #[arg(long, value_enum, value_name = "count|resend")]
    rejected: Option<WhenRejectedArg>,
    /// HTTP/3: send each datagram with a system call of its own, not several with one (GSO). A burst of segments is one
    /// event for an emulated link
    #[arg(long)]
    no_gso: bool,
    /// HTTP/3: resume earlier connections and send the first requests as early data (0-RTT). This saves a round trip, and
    /// an attacker can repeat the requests. For GET and other safe methods, with --connection new
    #[arg(long)]
    early_data: bool,
    /// HTTP/3: write the events of connections to this folder, a qlog file each (JSON-SEQ): datagrams with their lengths,
    /// congestion window, round-trip time, lost packets. Not to one with files of an earlier run
    #[arg(long, value_name = "DIR", conflicts_with = "find")]
    qlog: Option<PathBuf>,
    /// With --qlog: number of connections that get a file, from the first on
    #[arg(long, value_name = "N", default_value_t = 100, requires = "qlog",
        value_parser = clap::value_parser!(u64).range(1..))]
    qlog_connections: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum HttpArg {
    #[value(name = "1.1", alias = "1")]
    Http1,
    #[value(name = "2")]
    Http2,
    #[value(name = "3")]
    Http3,
}

#[derive(Clone, Copy, ValueEnum)]
enum WhenFullArg {
    Wait,
    Open,
    Drop,
}

#[derive(Clone, Copy, ValueEnum)]
enum WhenRejectedArg {
    Count,
    Resend,
}

impl ProtocolArgs {
    /// True if HTTP/1.1 is given.
    pub(super) const fn is_http1(&self) -> bool {
        matches!(self.http, Some(HttpArg::Http1))
    }

    /// The protocol. `is_grpc` states that requests are calls of gRPC, and so of HTTP/2.
    pub(super) fn protocol(&self, threads: usize, is_grpc: bool) -> Result<Protocol, Failure> {
        let default = if is_grpc {
            HttpArg::Http2
        } else {
            HttpArg::Http1
        };
        let http = self.http.unwrap_or(default);
        if let Some((option, protocols)) = self.unusable(http) {
            return Err(Failure::Usage(format!(
                "{option} is for {protocols}, or leave it out"
            )));
        }
        Ok(match http {
            HttpArg::Http1 => Protocol::Http1,
            HttpArg::Http2 => Protocol::Http2(self.multiplexing(threads)),
            HttpArg::Http3 => Protocol::Http3 {
                multiplexing: self.multiplexing(threads),
                quic: QuicOptions {
                    segmentation_offload: !self.no_gso,
                    early_data: self.early_data,
                },
            },
        })
    }

    /// The qlog files.
    pub(super) fn qlog(&self) -> Option<QlogOptions> {
        self.qlog.clone().map(|directory| QlogOptions {
            directory,
            connections: self.qlog_connections,
        })
    }

    fn multiplexing(&self, threads: usize) -> Multiplexing {
        Multiplexing {
            connections: self.connections.map_or(threads, usize::from),
            streams: self.streams.map(|streams| streams as usize),
            when_full: match self.when_full {
                None | Some(WhenFullArg::Wait) => WhenFull::Wait,
                Some(WhenFullArg::Open) => WhenFull::Open,
                Some(WhenFullArg::Drop) => WhenFull::Drop,
            },
            rejected: match self.rejected {
                Some(WhenRejectedArg::Count) => WhenRejected::Count,
                None | Some(WhenRejectedArg::Resend) => WhenRejected::Resend,
            },
        }
    }

    /// The first given option that the protocol does not have, and the protocols that have it.
    fn unusable(&self, http: HttpArg) -> Option<(&'static str, &'static str)> {
        let has_streams = matches!(http, HttpArg::Http2 | HttpArg::Http3);
        let is_quic = matches!(http, HttpArg::Http3);
        let streams = "connections with several streams: add --http 2 or 3";
        let quic = "QUIC: add --http 3";
        let given = [
            (
                "--connections",
                self.connections.is_some(),
                has_streams,
                streams,
            ),
            ("--streams", self.streams.is_some(), has_streams, streams),
            (
                "--when-full",
                self.when_full.is_some(),
                has_streams,
                streams,
            ),
            ("--rejected", self.rejected.is_some(), has_streams, streams),
            ("--no-gso", self.no_gso, is_quic, quic),
            ("--early-data", self.early_data, is_quic, quic),
            ("--qlog", self.qlog.is_some(), is_quic, quic),
        ];
        let unusable = |(_, is_given, is_usable, _): &(_, bool, bool, _)| *is_given && !is_usable;
        let first = given.into_iter().find(unusable);
        first.map(|(option, _, _, protocols)| (option, protocols))
    }
}
