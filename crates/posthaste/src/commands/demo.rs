//! `posthaste demo`: the whole system with its page in the foreground, until a signal.

use std::net::SocketAddr;

use posthaste_demo::{DemoConfig, start};
use posthaste_serve::{Signals, listen_address};
use posthaste_units::Seed;

use super::{Failure, log_to_stderr, print};

/// Run the whole system on this machine, on one live page.
///
/// A shop, a gateway with prices, a broker and four kinds of clients on their networks; demand, budgets, networks and
/// policies can be changed on the page. Everything is on loopback and ends with SIGTERM or Ctrl-C, which leaves nothing
/// behind.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  Start it, and open the address that it prints:
    posthaste demo
  On any free port:
    posthaste demo --listen 127.0.0.1:0
  For the phone in your hand, and everybody else in its network:
    posthaste demo --listen 0.0.0.0:8070")]
pub(crate) struct Args {
    /// Address of the page; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8070", value_parser = listen_address)]
    listen: SocketAddr,
    /// Seed of the shop's books and of the clients' arrivals
    #[arg(long, value_name = "N", default_value_t = Seed::default())]
    seed: Seed,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        log_to_stderr();
        let mut signals = Signals::take().map_err(Failure::run)?;
        let running = start(DemoConfig {
            listen: self.listen,
            seed: self.seed,
        });
        let running = running.map_err(Failure::run)?;
        print(&format!(
            "listening on http://{}/, open it in a browser\n",
            running.addr
        ))?;
        signals.wait();
        drop(running);
        Ok(())
    }
}
