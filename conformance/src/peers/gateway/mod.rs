//! The gateway between real clients and real servers, and compared with other proxies.
//!
//! Each module states its subject.

mod burst;
pub(crate) mod changes;
mod clients;
mod connections;
mod differ;
#[path = "../../../../fuzz/src/doubtful.rs"]
#[allow(unreachable_pub)] // the fuzz targets share it, and there it is public
mod doubtful;
mod forwarding;
mod grpc;
mod strict;
mod traces;
mod websocket;

use std::process::Command;

use crate::error::Outcome;
use crate::site::{Server, Site, free_address};
use crate::tools;

pub(crate) use burst::crowd;
pub(crate) use changes::changes;
pub(crate) use clients::{curl, load, php};
pub(crate) use connections::connections;
pub(crate) use differ::{differ, parsers};
pub(crate) use forwarding::forwarding;
pub(crate) use grpc::grpc;
pub(crate) use strict::strict;
pub(crate) use traces::traces;
pub(crate) use websocket::websocket;

/// Starts a gateway in front of `upstream`, with `before` the route in its configuration and `after` in it.
fn start(site: &Site, upstream: &str, before: &str, after: &str) -> Outcome<Server> {
    let address = free_address()?;
    let folder = site.checkout.peer_folder("gateway")?;
    let file = folder.join(format!("{}.toml", address.port()));
    let text = format!(
        "listen = \"{address}\"\n{before}\n[[route]]\npath = \"/\"\nupstream = [\"{upstream}\"]\n{after}\n"
    );
    tools::write(&file, text)?;
    let mut command = Command::new(&site.binary);
    command.args(["gateway", "--config"]).arg(&file);
    site.serve("gateway", &mut command, address)
}
