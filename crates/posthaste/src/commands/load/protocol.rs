//! The protocol of the connections.

use clap::ValueEnum;
use posthaste_load::{Multiplexing, Protocol, WhenFull, WhenRejected};

use crate::commands::Failure;

/// Options of the protocol. Those after `--http` are for HTTP/2.
#[derive(clap::Args)]
#[command(next_help_heading = "Protocol")]
pub(super) struct ProtocolArgs {
    /// HTTP/1.1, or HTTP/2: with prior knowledge on http://, by ALPN on https://. A server that chooses another
    /// protocol is an error (tls-failed) [default: 1.1; with --grpc: 2]
    #[arg(long, value_enum, value_name = "1.1|2")]
    http: Option<HttpArg>,
    /// HTTP/2: connections to each server, of all threads together. Request n uses connection n mod N [default: one for
    /// each thread]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    connections: Option<u16>,
    /// HTTP/2: concurrent requests on a connection at most. The server's limit holds too, and 100 until it is known
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..))]
    streams: Option<u32>,
    /// HTTP/2: a request whose connection is full waits, uses a further connection, or is dropped. A wait is part of
    /// the response time (phase queue)
    #[arg(long, value_enum, value_name = "wait|open|drop")]
    when_full: Option<WhenFullArg>,
    /// HTTP/2: a request that the server rejects without processing it ends as rejected, or is sent once more
    #[arg(long, value_enum, value_name = "count|resend")]
    rejected: Option<WhenRejectedArg>,
}

#[derive(Clone, Copy, ValueEnum)]
enum HttpArg {
    #[value(name = "1.1", alias = "1")]
    Http1,
    #[value(name = "2")]
    Http2,
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
        let default = match is_grpc {
            true => HttpArg::Http2,
            false => HttpArg::Http1,
        };
        match self.http.unwrap_or(default) {
            HttpArg::Http1 => match self.option_of_streams() {
                None => Ok(Protocol::Http1),
                Some(option) => Err(Failure::Usage(format!(
                    "{option} is for connections with several streams: add --http 2, or leave it out"
                ))),
            },
            HttpArg::Http2 => Ok(Protocol::Http2(Multiplexing {
                connections: self.connections.map_or(threads, usize::from),
                streams: self.streams.map(|streams| streams as usize),
                when_full: match self.when_full {
                    None | Some(WhenFullArg::Wait) => WhenFull::Wait,
                    Some(WhenFullArg::Open) => WhenFull::Open,
                    Some(WhenFullArg::Drop) => WhenFull::Drop,
                },
                rejected: match self.rejected {
                    None | Some(WhenRejectedArg::Count) => WhenRejected::Count,
                    Some(WhenRejectedArg::Resend) => WhenRejected::Resend,
                },
            })),
        }
    }

    /// The first given option that HTTP/1.1 does not have.
    fn option_of_streams(&self) -> Option<&'static str> {
        let given = [
            ("--connections", self.connections.is_some()),
            ("--streams", self.streams.is_some()),
            ("--when-full", self.when_full.is_some()),
            ("--rejected", self.rejected.is_some()),
        ];
        given
            .into_iter()
            .find(|(_, is_given)| *is_given)
            .map(|(name, _)| name)
    }
}
