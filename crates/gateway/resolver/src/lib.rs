//! One lookup of the addresses of an upstream's name.
//!
//! Each lookup reads `/etc/resolv.conf` and `/etc/hosts` anew, so that their changes count, and caches nothing: the
//! callers look up a name no more often than its time to live demands. Parsing of replies, their limits and the
//! fallback to TCP are hickory's. A crate of its own because no request waits for it: hickory's code compiles here at a
//! low level.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::pin::Pin;
use std::str::FromStr as _;
use std::time::Duration;

use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
    ResolverOpts, ServerOrderingStrategy,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{Message, Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::{Resolver, TokioResolver};
use posthaste_gateway_config as config;
use posthaste_serve::environment;
use rustix::io::Errno;
use tokio::time::{Instant, timeout};

/// Maximum addresses of a name. Further ones are not used.
const MAX_ADDRESSES: usize = 64;

/// Maximum time of a lookup, with all repetitions and search domains.
const MAX_TIME: Duration = Duration::from_secs(15);

/// Time to wait for a configured name server, and attempts after the first.
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);
const SERVER_ATTEMPTS: usize = 2;

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// In their own order, each once. Never empty.
    pub list: Vec<IpAddr>,
    /// End of the time to live, within the configured bounds.
    pub until: Instant,
}

/// Reasons why a lookup gives no address.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The name does not exist or has no address.
    #[error("it has no address")]
    NoAddress,
    /// No answer, or one that says nothing about the name.
    #[error("{0}: check the name servers in resolver.servers, or without it in /etc/resolv.conf")]
    Failed(#[source] NetError),
    /// No answer within the time.
    #[error("no answer in time: check the name servers")]
    TimedOut,
}

impl LookupError {
    fn from_net_error(error: NetError) -> Self {
        match error {
            error if is_absence(&error) => Self::NoAddress,
            error => Self::Failed(error),
        }
    }
}

/// A lookup in progress.
pub type Lookup<'a> = Pin<Box<dyn Future<Output = Result<Addresses, LookupError>> + Send + 'a>>;

/// Looks up the addresses of `host`. `known` are the addresses of an earlier lookup.
///
/// If the lookup of one address family fails while that of the other succeeds, the known addresses of the family stay:
/// only an answer removes an address.
pub fn lookup<'a>(host: &'a str, rules: &'a config::Resolver, known: &'a [IpAddr]) -> Lookup<'a> {
    Box::pin(async move {
        let looked_up = timeout(MAX_TIME, look_up(host, rules, known)).await;
        looked_up.unwrap_or(Err(LookupError::TimedOut))
    })
}

async fn look_up(
    host: &str,
    rules: &config::Resolver,
    known: &[IpAddr],
) -> Result<Addresses, LookupError> {
    let start = Instant::now();
    let (list, valid) = match environment::current() {
        None => ask(host, rules, known).await?,
        Some(environment) => {
            let found = environment.look_up(host).await;
            found.map_err(|error| LookupError::Failed(error.into()))?
        }
    };
    let (min, max) = (rules.min_ttl.into(), rules.max_ttl.into());
    let list = reachable(list);
    if list.is_empty() {
        return Err(LookupError::NoAddress);
    }
    Ok(Addresses {
        list,
        until: start + valid.clamp(min, max),
    })
}

/// Asks the name servers for the addresses and their time to live.
async fn ask(
    host: &str,
    rules: &config::Resolver,
    known: &[IpAddr],
) -> Result<(Vec<IpAddr>, Duration), LookupError> {
    let start = std::time::Instant::now();
    let resolver = resolver(rules).map_err(LookupError::Failed)?;
    // Relaxed: names with underscores are common in private networks.
    let name = Name::from_str_relaxed(host).map_err(|error| LookupError::Failed(error.into()))?;
    let found = resolver
        .lookup_ip(name)
        .await
        .map_err(LookupError::from_net_error)?;
    let mut list = addresses(found.as_lookup().message())?;
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
    let valid = found.valid_until().saturating_duration_since(start);
    Ok((list, valid))
}

/// The usable addresses of an answer.
///
/// The resolver passes on all records of an answer once one of them fits, so code and owners are checked here.
fn addresses(answer: &Message) -> Result<Vec<IpAddr>, LookupError> {
    match answer.metadata.response_code {
        ResponseCode::NoError => {}
        ResponseCode::NXDomain => return Err(LookupError::NoAddress),
        code => return Err(LookupError::Failed(DnsError::ResponseCode(code).into())),
    }
    let owners = owners(answer);
    let records = answer.answers.iter();
    let owned = records.filter(|record| contains(&owners, &record.name));
    let addresses = owned.filter_map(|record| record.data.ip_addr());
    Ok(addresses.filter(is_destination).collect())
}

/// The name of the question and its aliases, by the answer's CNAME records.
fn owners(answer: &Message) -> Vec<&Name> {
    let mut owners: Vec<&Name> = answer.queries.iter().map(Query::name).collect();
    let mut next = 0;
    while let Some(owner) = owners.get(next).copied() {
        next += 1;
        for record in &answer.answers {
            if let RData::CNAME(target) = &record.data
                && record.name.eq_ignore_root(owner)
                && !contains(&owners, target)
            {
                owners.push(target);
            }
        }
    }
    owners
}

fn contains(names: &[&Name], name: &Name) -> bool {
    names.iter().any(|other| other.eq_ignore_root(name))
}

fn resolver(rules: &config::Resolver) -> Result<TokioResolver, NetError> {
    let (config, mut options) = match rules.servers.as_slice() {
        // Without a usable file the name server is the local one, as in resolv.conf(5).
        [] => from_system().unwrap_or_else(|| {
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

/// The settings of `/etc/resolv.conf`, if it is usable.
fn from_system() -> Option<(ResolverConfig, ResolverOpts)> {
    from_file(&std::fs::read("/etc/resolv.conf").ok()?)
}

/// The settings of a text as in `/etc/resolv.conf`. None if it names no server or has an invalid search domain.
fn from_file(text: &[u8]) -> Option<(ResolverConfig, ResolverOpts)> {
    // The lines that are valid count.
    let (file, _) = resolv_conf::Config::parse_with_errors(text);
    let domain = file.get_system_domain();
    let domain = domain.and_then(|domain| Name::from_str(&domain).ok());
    let servers = file.nameservers.iter();
    let servers: Vec<_> = servers
        .map(|server| NameServerConfig::udp_and_tcp(server.into()))
        .collect();
    let search = file
        .get_last_search_or_domain()
        // systemd-resolved writes two hyphens if there is no domain.
        .filter(|domain| *domain != "--")
        .map(Name::from_str_relaxed)
        .collect::<Result<Vec<_>, _>>()
        .ok()?;
    let mut options = ResolverOpts::default();
    options.ndots = file.ndots as usize;
    options.timeout = Duration::from_secs(file.timeout.into());
    options.attempts = file.attempts as usize;
    options.edns0 = file.edns0;
    let config = ResolverConfig::from_parts(domain, search, servers);
    (!config.name_servers().is_empty()).then_some((config, options))
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

/// False for addresses of no single host: groups of hosts, link-local IPv6 ones without an interface, and `0.0.0.0`,
/// as a connection to it would reach this host.
fn is_destination(address: &IpAddr) -> bool {
    let address = address.to_canonical();
    let is_unreachable = match address {
        IpAddr::V4(address) => address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !is_unreachable && !address.is_unspecified() && !address.is_multicast()
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
    if environment::is_simulated() {
        return true;
    }
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
    fn the_systems_servers_domains_and_times_are_taken() {
        let text = "nameserver 127.0.0.53\nnonsense\nnameserver ::1\n\
                    options edns0 ndots:2 timeout:3 attempts:4\ndomain old.example\nsearch -- lan a_b.example\n";
        let (config, options) = from_file(text.as_bytes()).unwrap();
        let servers: Vec<IpAddr> = config
            .name_servers()
            .iter()
            .map(|server| server.ip)
            .collect();
        assert_eq!(
            servers,
            [IpAddr::from([127, 0, 0, 53]), "::1".parse().unwrap()]
        );
        let domains: Vec<String> = config.search().iter().map(ToString::to_string).collect();
        assert_eq!(domains, ["lan", "a_b.example"]);
        assert_eq!(config.domain().unwrap().to_string(), "old.example");
        assert_eq!(
            (options.ndots, options.attempts, options.edns0),
            (2, 4, true)
        );
        assert_eq!(options.timeout, Duration::from_secs(3));
        assert!(from_file(b"search lan\n").is_none());
    }

    #[test]
    fn an_address_of_no_host_is_no_destination() {
        let of_no_host = [
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "::",
            "::ffff:0.0.0.0",
            "ff02::1",
            "fe80::1",
        ];
        for none in of_no_host {
            assert!(!is_destination(&none.parse().unwrap()), "{none}");
        }
        assert!(is_destination(&IpAddr::from([127, 0, 0, 1])));
    }
}
