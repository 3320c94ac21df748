//! One lookup of the addresses of a name.
//!
//! Each lookup reads `/etc/resolv.conf` and `/etc/hosts` anew, so that their changes count, and caches nothing: the
//! callers look up a name no more often than its time to live demands. Parsing of replies, their limits and the
//! fallback to TCP are hickory's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};

use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
    ResolverOpts, ServerOrderingStrategy,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Resolver, TokioResolver, system_conf};
use rustix::io::Errno;
use tokio::time::timeout;

use crate::config;

/// Maximum addresses of a name. Further ones are not used.
const MAX_ADDRESSES: usize = 64;

/// Maximum time of a lookup, with all repetitions and search domains.
const MAX_TIME: Duration = Duration::from_secs(15);

/// Time to wait for a configured name server, and attempts after the first.
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);
const SERVER_ATTEMPTS: usize = 2;

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Addresses {
    /// In their own order, each once. Never empty.
    pub(super) list: Vec<IpAddr>,
    /// End of the time to live, within the configured bounds.
    pub(super) until: Instant,
}

/// Reasons why a lookup gives no address.
#[derive(Debug, thiserror::Error)]
pub(super) enum LookupError {
    /// The name does not exist or has no address.
    #[error("it has no address")]
    NoAddress,
    /// No answer, or one that says nothing about the name.
    #[error("{0}: check the name servers in resolver.servers, or without it in /etc/resolv.conf")]
    Failed(#[source] NetError),
    /// No answer within the time.
    #[error("no answer within {} s: check the name servers", MAX_TIME.as_secs())]
    TimedOut,
}

impl LookupError {
    fn of(error: NetError) -> Self {
        match error {
            error if is_absence(&error) => Self::NoAddress,
            error => Self::Failed(error),
        }
    }
}

/// Looks up the addresses of `host`. `known` are the addresses of an earlier lookup.
///
/// If the lookup of one address family fails while that of the other succeeds, the known addresses of the family stay:
/// only an answer removes an address.
pub(super) async fn lookup(
    host: &str,
    rules: &config::Resolver,
    known: &[IpAddr],
) -> Result<Addresses, LookupError> {
    let looked_up = timeout(MAX_TIME, look_up(host, rules, known)).await;
    looked_up.unwrap_or(Err(LookupError::TimedOut))
}

async fn look_up(
    host: &str,
    rules: &config::Resolver,
    known: &[IpAddr],
) -> Result<Addresses, LookupError> {
    let start = Instant::now();
    let resolver = resolver(rules).map_err(LookupError::Failed)?;
    // Relaxed: names with underscores are common in private networks.
    let name = Name::from_str_relaxed(host).map_err(|error| LookupError::Failed(error.into()))?;
    let found = resolver.lookup_ip(name).await.map_err(LookupError::of)?;
    let mut list: Vec<IpAddr> = found.iter().filter(is_destination).collect();
    for family in [RecordType::A, RecordType::AAAA] {
        let is_of_family = |address: &&IpAddr| address.is_ipv4() == (family == RecordType::A);
        let kept: Vec<_> = known.iter().filter(is_of_family).collect();
        if !kept.is_empty() && !list.iter().any(|address| is_of_family(&address)) {
            let again = resolver.lookup(found.query().name().clone(), family).await;
            if again.is_err_and(|error| !is_absence(&error)) {
                list.extend(kept);
            }
        }
    }
    let (min, max) = (rules.min_ttl.into(), rules.max_ttl.into());
    let valid = found.valid_until().saturating_duration_since(start);
    let list = reachable(list);
    if list.is_empty() {
        return Err(LookupError::NoAddress);
    }
    Ok(Addresses {
        list,
        until: start + valid.clamp(min, max),
    })
}

fn resolver(rules: &config::Resolver) -> Result<TokioResolver, NetError> {
    let (config, mut options) = match rules.servers.as_slice() {
        // Without a usable file the name server is the local one, as in resolv.conf(5).
        [] => system_conf::read_system_conf().unwrap_or_else(|_| {
            let local = NameServerConfig::udp_and_tcp(Ipv4Addr::LOCALHOST.into());
            let config = ResolverConfig::from_name_servers(vec![local]);
            (config, ResolverOpts::default())
        }),
        servers => {
            let servers = servers.iter().map(|server| {
                let [mut udp, mut tcp] = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
                udp.port = server.port();
                tcp.port = server.port();
                let mut config = NameServerConfig::udp_and_tcp(server.ip());
                config.connections = vec![udp, tcp];
                config
            });
            let mut options = ResolverOpts::default();
            options.timeout = SERVER_TIMEOUT;
            options.attempts = SERVER_ATTEMPTS;
            (
                ResolverConfig::from_name_servers(servers.collect()),
                options,
            )
        }
    };
    options.use_hosts_file = ResolveHosts::Always;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.server_ordering_strategy = ServerOrderingStrategy::UserProvidedOrder;
    options.cache_size = 0;
    let mut builder = Resolver::builder_with_config(config, TokioRuntimeProvider::default());
    *builder.options_mut() = options;
    builder.build()
}

/// True if an answer says that there is no record, and no error does.
fn is_absence(error: &NetError) -> bool {
    let NetError::Dns(DnsError::NoRecordsFound(none)) = error else {
        return false;
    };
    matches!(
        none.response_code,
        ResponseCode::NoError | ResponseCode::NXDomain
    )
}

/// False for addresses that stand for no other host: a connection to `0.0.0.0` would reach this one.
fn is_destination(address: &IpAddr) -> bool {
    !address.is_unspecified() && !address.is_multicast()
}

/// Sorts the addresses and drops those to which the machine has no route, unless it has one to none.
fn reachable(mut list: Vec<IpAddr>) -> Vec<IpAddr> {
    list.sort_unstable();
    list.dedup();
    list.truncate(MAX_ADDRESSES);
    let routed: Vec<_> = list.iter().copied().filter(has_route).collect();
    if routed.is_empty() { list } else { routed }
}

/// Asks the kernel for a route, as `getaddrinfo(3)` does. Nothing is sent.
fn has_route(address: &IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let connected = UdpSocket::bind((any, 0)).and_then(|socket| socket.connect((*address, 9)));
    let unreachable = [
        Errno::NETUNREACH,
        Errno::HOSTUNREACH,
        Errno::ADDRNOTAVAIL,
        Errno::AFNOSUPPORT,
    ];
    let errno = connected
        .err()
        .and_then(|error| Errno::from_io_error(&error));
    errno.is_none_or(|errno| !unreachable.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_in_order_without_repetitions_and_bounded() {
        let address = |last: u8| IpAddr::from([127, 0, 0, last]);
        let list = reachable(vec![address(3), address(2), address(3)]);
        assert_eq!(list, [address(2), address(3)]);
        let many = (0..200).map(|last| address(last + 1)).collect();
        assert_eq!(reachable(many).len(), MAX_ADDRESSES);
    }

    #[test]
    fn an_address_of_no_host_is_no_destination() {
        for none in ["0.0.0.0", "::", "224.0.0.1", "ff02::1"] {
            assert!(!is_destination(&none.parse().unwrap()), "{none}");
        }
        assert!(is_destination(&IpAddr::from([127, 0, 0, 1])));
    }
}
