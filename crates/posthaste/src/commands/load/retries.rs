//! Clients that retry.

use posthaste_load::{Backoff, RetryPolicy};

/// Retries of failed requests.
#[derive(clap::Args)]
#[command(next_help_heading = "Retries")]
pub(super) struct RetryArgs {
    /// Send a request up to N times more if it fails: by a connection that is refused, reset or not established, a
    /// timeout, a broken reply, or a status of 408, 429, 500, 502, 503 or 504; with every method. Response time counts
    /// from the first due time, and attempts are counted apart. Not with --find
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    retries: Option<u32>,
    /// Wait before a retry: none, or exp:T, a random wait of up to T that doubles with each retry up to 30s.
    /// Retry-After is not read
    #[arg(
        long,
        value_name = "none|exp:T",
        default_value = "none",
        requires = "retries"
    )]
    backoff: Backoff,
}

impl RetryArgs {
    pub(super) fn policy(&self) -> Option<RetryPolicy> {
        Some(RetryPolicy {
            limit: self.retries?,
            backoff: self.backoff,
        })
    }
}
