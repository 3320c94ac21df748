//! The options of the two hosts' kernels: for both, or for the one named before a colon.

use std::str::FromStr;
use std::sync::Arc;

use posthaste_emulator::preset::{self, Preset};
use posthaste_emulator::{RouteOptions, Setup};
use posthaste_tcp::Profile;
use posthaste_tcp::profile::{self, UnknownProfile};

/// Settings of the kernels of both hosts.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "The kernels")]
pub(super) struct HostArgs {
    /// A kernel by name: default (cubic, whatever the machine has) or linux-2005; repeatable
    #[arg(long, value_name = "[client:|server:]PRESET")]
    kernel: Vec<Sided<KernelName>>,
    /// A setting of the network, for example server:net.ipv4.tcp_sack=0; repeatable
    #[arg(long, value_name = "[client:|server:]KEY=VALUE")]
    sysctl: Vec<Sided<Sysctl>>,
    /// Options of the route to the other end, as `ip route` takes them, for example
    /// 'server:initcwnd 3 rto_min 200ms congctl reno'; repeatable
    #[arg(long, value_name = "[client:|server:]OPTIONS")]
    route: Vec<Sided<RouteOptions>>,
    /// Put another TCP in place of the client's kernel's in the link: rfc, freebsd-6.0,
    /// linux-2.6.15, linux-6 or freebsd-14
    #[arg(long, value_name = "PROFILE")]
    client_tcp: Option<TcpName>,
    /// The same for the server
    #[arg(long, value_name = "PROFILE")]
    server_tcp: Option<TcpName>,
}

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostSide {
    Client,
    Server,
}

/// A value for one host, or for both.
#[derive(Clone, Debug)]
struct Sided<T> {
    side: Option<HostSide>,
    value: T,
}

#[derive(Clone, Debug)]
struct KernelName(&'static Preset);

#[derive(Clone, Debug)]
struct TcpName(Arc<Profile>);

#[derive(Clone, Debug)]
struct Sysctl {
    key: String,
    value: String,
}

impl HostArgs {
    /// Returns all settings of one host. Later ones override earlier ones.
    pub(super) fn setup(&self, side: HostSide) -> Setup {
        let kernel = values_for(&self.kernel, side).last();
        let mut setup = kernel.map_or_else(Setup::default, |kernel| kernel.0.setup());
        for Sysctl { key, value } in values_for(&self.sysctl, side) {
            setup.sysctls.push((key.clone(), value.clone()));
        }
        for options in values_for(&self.route, side) {
            setup.route = setup.route.with(options);
        }
        setup
    }

    /// The settings of one host in words: its TCP, its kernel and the changes to it.
    pub(super) fn description(&self, side: HostSide) -> String {
        let kernel = values_for(&self.kernel, side).last();
        let mut parts = vec![match self.tcp(side) {
            Some(profile) => format!("TCP {}", profile.name),
            None => format!(
                "kernel {}",
                kernel.map_or("default", |KernelName(preset)| preset.name)
            ),
        }];
        let sysctls = values_for(&self.sysctl, side);
        parts.extend(sysctls.map(|Sysctl { key, value }| format!("{key}={value}")));
        parts.extend(values_for(&self.route, side).map(ToString::to_string));
        parts.join(", ")
    }

    /// The stack that replaces a host's TCP, if any.
    pub(super) fn tcp(&self, side: HostSide) -> Option<Arc<Profile>> {
        let tcp = match side {
            HostSide::Client => &self.client_tcp,
            HostSide::Server => &self.server_tcp,
        };
        tcp.as_ref().map(|TcpName(profile)| profile.clone())
    }
}

/// The values for a host.
fn values_for<T>(values: &[Sided<T>], side: HostSide) -> impl Iterator<Item = &T> {
    let concerned = move |sided: &&Sided<T>| sided.side.is_none_or(|named| named == side);
    values.iter().filter(concerned).map(|sided| &sided.value)
}

impl<T: FromStr> FromStr for Sided<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        let (side, text) = match text.split_once(':') {
            Some(("client", rest)) => (Some(HostSide::Client), rest),
            Some(("server", rest)) => (Some(HostSide::Server), rest),
            _ => (None, text),
        };
        let value = text.parse()?;
        Ok(Self { side, value })
    }
}

impl FromStr for KernelName {
    type Err = preset::UnknownPreset;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        preset::named(name).map(Self)
    }
}

impl FromStr for TcpName {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        profile::named(name).map(|profile| Self(Arc::new(profile)))
    }
}

impl FromStr for Sysctl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| format!("{text:?} has no value: write {text}=0"))?;
        Ok(Self {
            key: key.trim().to_owned(),
            value: value.trim().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct HostLine {
        #[command(flatten)]
        hosts: HostArgs,
    }

    #[test]
    fn later_options_override_earlier_ones() {
        let parsed = HostLine::parse_from([
            "net",
            "--kernel",
            "server:linux-2005",
            "--route",
            "initcwnd 10",
            "--sysctl",
            "client:net.ipv4.tcp_ecn=1",
        ]);
        let [client, server] =
            [HostSide::Client, HostSide::Server].map(|side| parsed.hosts.setup(side));
        assert_eq!(client.route.to_string(), "congctl cubic initcwnd 10");
        assert_eq!(server.route.to_string(), "congctl reno initcwnd 10");
        assert_eq!(
            client.sysctls,
            [("net.ipv4.tcp_ecn".to_owned(), "1".to_owned())]
        );
        assert!(
            server
                .sysctls
                .contains(&("net.ipv4.tcp_sack".to_owned(), "0".to_owned()))
        );
    }
}
