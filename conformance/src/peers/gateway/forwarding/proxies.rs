//! The gateway and HAProxy in front of one raw origin.

use std::net::SocketAddr;
use std::process::Command;

use super::super::start;
use super::message::Protocol;
use super::origin::RawOrigin;
use super::tables::{PLAIN_HOST, RENAMED, RENAMED_HOST};
use crate::error::Outcome;
use crate::site::{Server, Site, free_address};
use crate::tools;

/// A running proxy, and its addresses by the protocol of clients.
pub(super) struct Proxy {
    _server: Server,
    http1: SocketAddr,
    http2: SocketAddr,
}

impl Proxy {
    pub(super) fn address(&self, client: Protocol) -> SocketAddr {
        match client {
            Protocol::Http1 => self.http1,
            Protocol::Http2 => self.http2,
        }
    }
}

/// Starts the gateway, with a route for each host of the forms.
pub(super) fn gateway(site: &Site, origin: &RawOrigin, upstream: Protocol) -> Outcome<Proxy> {
    let protocol = match upstream {
        Protocol::Http1 => "protocol = \"http1\"",
        Protocol::Http2 => "protocol = \"http2\"",
    };
    let address = origin.address.to_string();
    let (from, to) = RENAMED;
    let others = format!(
        "[[route]]\nhost = \"{PLAIN_HOST}\"\npath = \"/\"\nupstream = [\"{address}\"]\n{protocol}\n\
         compression = false\n\
         [[route]]\nhost = \"{RENAMED_HOST}\"\npath = \"{from}\"\nupstream = [\"{address}\"]\n{protocol}\n\
         rewrite = \"{to}\"\n"
    );
    let server = start(site, &address, &others, protocol)?;
    Ok(Proxy {
        http1: server.address,
        http2: server.address,
        _server: server,
    })
}

/// Starts HAProxy with its defaults.
pub(super) fn haproxy(site: &Site, origin: &RawOrigin, upstream: Protocol) -> Outcome<Proxy> {
    let program = tools::debian(&site.checkout, "haproxy", "haproxy")?;
    let folder = site.checkout.peer_folder("gateway-forwarding")?;
    let (http1, http2) = (free_address()?, free_address()?);
    let protocol = match upstream {
        Protocol::Http1 => "",
        Protocol::Http2 => "proto h2",
    };
    let address = origin.address;
    let configuration = format!(
        "global\n  nbthread 1\ndefaults\n  mode http\n  timeout connect 1s\n  timeout client 10s\n  \
         timeout server 10s\nfrontend front\n  bind {http1}\n  bind {http2} proto h2\n  \
         default_backend back\nbackend back\n  server origin {address} {protocol}\n"
    );
    let file = folder.join(format!("haproxy-{}.cfg", http1.port()));
    tools::write(&file, configuration)?;
    let mut command = Command::new(program);
    let server = site.serve("haproxy", command.args(["-db", "-f"]).arg(&file), http1)?;
    Ok(Proxy {
        _server: server,
        http1,
        http2,
    })
}
