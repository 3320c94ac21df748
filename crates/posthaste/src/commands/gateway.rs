//! `posthaste gateway`: the reverse proxy in the foreground, until a signal.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use posthaste_gateway::{GatewayConfig, GatewayError, RunningGateway, start};
use posthaste_serve::{ReloadSignal, Signal};

use super::{Failure, log_to_stderr, print};

/// Reverse proxy that protects a web service from overload, and compresses replies while CPU time is left.
///
/// Prints the address once it listens. SIGHUP reads the configuration again without losing a
/// request; SIGTERM and Ctrl-C end it: it serves for drain.delay, and then finishes replies under way.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  The smallest gateway.toml:
    listen = \"127.0.0.1:8080\"
    [[route]]
    path = \"/\"
    upstream = [\"127.0.0.1:9000\"]
  Is it right?
    posthaste gateway --config gateway.toml --check
  A schema, so that an editor checks it:
    posthaste gateway --schema > gateway.schema.json
  In front of the bookshop:
    posthaste bookshop --listen 127.0.0.1:9000 &
    posthaste gateway --config gateway.toml
  Read a changed file:
    pkill -HUP -f 'posthaste gateway'")]
pub(crate) struct Args {
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE", required_unless_present = "schema")]
    config: Option<PathBuf>,
    /// Read the configuration, say whether it can be used, and end
    #[arg(long)]
    check: bool,
    /// Print the JSON Schema of the configuration, for editors
    #[arg(long, conflicts_with_all = ["config", "check"])]
    schema: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Some(file) = &self.config else {
            return print(&format!("{:#}\n", posthaste_gateway::config::schema()));
        };
        let config = read(file).map_err(Failure::Usage)?;
        log_to_stderr();
        if self.check {
            posthaste_gateway::check(config).map_err(|error| unusable(file, error))?;
            return print(&format!("{} can be used\n", file.display()));
        }
        // Before the names of upstreams are looked up, which takes time.
        let reload = ReloadSignal::take().map_err(Failure::run)?;
        let scheme = if config.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let running = start(config).map_err(|error| match error {
            GatewayError::Listen(_) | GatewayError::Start(_) => Failure::run(error),
            _ => unusable(file, error),
        })?;
        let mut signals = reload.with_end().map_err(Failure::run)?;
        let plain = running.http_addr;
        let plain = plain.map_or_else(String::new, |plain| format!(" and http://{plain}"));
        print(&format!(
            "listening on {scheme}://{}{plain}, status at http://{}/status\n",
            running.addr, running.admin
        ))?;
        while signals.wait() == Signal::Reload {
            reload_from(file, &running);
        }
        let delay = running.announce_stop();
        let end = Instant::now() + Duration::from(delay);
        let mut signal = Some(Signal::Reload);
        while signal == Some(Signal::Reload) {
            let rest = end.saturating_duration_since(Instant::now());
            signal = signals.wait_at_most(rest);
        }
        running.stop();
        running.join();
        Ok(())
    }
}

/// Applies the changed file. Logs the result.
fn reload_from(file: &Path, running: &RunningGateway) {
    let outcome =
        read(file).and_then(|config| running.reload(config).map_err(|error| error.to_string()));
    match outcome {
        Ok(()) => tracing::info!("the configuration was read again"),
        Err(error) => tracing::error!("the configuration stays as it was: {error}"),
    }
}

/// A configuration that can be read but not used.
fn unusable(file: &Path, error: GatewayError) -> Failure {
    Failure::usage(format!("{}: {error}", file.display()))
}

fn read(file: &Path) -> Result<GatewayConfig, String> {
    let path = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| format!("{path}: {error}"))?;
    GatewayConfig::read(&text).map_err(|error| format!("{path}: {error}"))
}
