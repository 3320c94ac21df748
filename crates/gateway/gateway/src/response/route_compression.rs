//! The settings of a route for the compression of its replies.

use posthaste_compression::{Menu, Policy, Rules};
use posthaste_gateway_config::Compression;

use crate::request::varying::VaryingFields;

/// The compression of a route's replies.
pub(crate) struct RouteCompression {
    pub(crate) policy: Policy,
    pub(crate) menu: Menu,
    pub(crate) rules: Rules,
    /// Replies are not compressed, only the decision is counted.
    pub(crate) dry_run: bool,
    /// Request fields that Vary names in any case.
    pub(crate) varies: VaryingFields,
}

impl RouteCompression {
    /// Combines the settings of the gateway with that of the route.
    pub(crate) fn new(config: &Compression, opted_out: bool) -> Self {
        Self {
            policy: config.policy,
            menu: config.steps,
            rules: Rules {
                least: config.least,
                events: config.events,
                opted_out,
            },
            dry_run: config.dry_run,
            varies: VaryingFields {
                prefer: config.vary_always,
                save_data: config.vary_always,
            },
        }
    }

    /// True if replies may be compressed, so that their form and their validators depend on the request.
    pub(crate) fn is_possible(&self) -> bool {
        self.policy != Policy::Never && !self.dry_run && !self.rules.opted_out
    }
}
