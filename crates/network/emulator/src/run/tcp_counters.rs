//! TCP and IP counters of a kernel in one network namespace: evidence that does not come from this project.

use std::fs;
use std::io;
use std::ops::Sub;

/// TCP counters of the kernel in the network namespace of the calling thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounters {
    /// TcpExtListenDrops: connections that a listening socket dropped, for any reason.
    pub listen_drops: u64,
    /// TcpExtListenOverflows: connections dropped because the accept queue was full.
    pub listen_overflows: u64,
    /// TcpExtTCPSynRetrans: retransmitted SYNs.
    pub syn_retransmits: u64,
    /// TcpRetransSegs: retransmitted segments.
    pub retransmitted_segments: u64,
    /// TcpExtTCPTimeouts: expired retransmission timers.
    pub timeouts: u64,
    /// TcpExtTCPFastRetrans: segments retransmitted in fast recovery.
    pub fast_retransmits: u64,
    /// TcpExtTCPLossProbes: tail loss probes sent.
    pub loss_probes: u64,
    /// TcpExtTCPRenoReorder: times that a sender without SACK took duplicate ACKs for reordering.
    pub taken_for_reordering: u64,
}

impl TcpCounters {
    /// Reads the counters.
    pub fn read() -> io::Result<Self> {
        let netstat = fs::read_to_string("/proc/thread-self/net/netstat")?;
        let snmp = fs::read_to_string("/proc/thread-self/net/snmp")?;
        Self::parse(&netstat, &snmp).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "this kernel's /proc/net/netstat and snmp do not have the TCP counters",
            )
        })
    }

    fn parse(netstat: &str, snmp: &str) -> Option<Self> {
        Some(Self {
            listen_drops: counter(netstat, "TcpExt:", "ListenDrops")?,
            listen_overflows: counter(netstat, "TcpExt:", "ListenOverflows")?,
            syn_retransmits: counter(netstat, "TcpExt:", "TCPSynRetrans")?,
            retransmitted_segments: counter(snmp, "Tcp:", "RetransSegs")?,
            timeouts: counter(netstat, "TcpExt:", "TCPTimeouts")?,
            fast_retransmits: counter(netstat, "TcpExt:", "TCPFastRetrans")?,
            loss_probes: counter(netstat, "TcpExt:", "TCPLossProbes")?,
            taken_for_reordering: counter(netstat, "TcpExt:", "TCPRenoReorder")?,
        })
    }
}

impl Sub for TcpCounters {
    type Output = Self;

    /// Increase since `earlier`.
    fn sub(self, earlier: Self) -> Self {
        let since = |count: fn(&Self) -> u64| count(&self).saturating_sub(count(&earlier));
        Self {
            listen_drops: since(|counters| counters.listen_drops),
            listen_overflows: since(|counters| counters.listen_overflows),
            syn_retransmits: since(|counters| counters.syn_retransmits),
            retransmitted_segments: since(|counters| counters.retransmitted_segments),
            timeouts: since(|counters| counters.timeouts),
            fast_retransmits: since(|counters| counters.fast_retransmits),
            loss_probes: since(|counters| counters.loss_probes),
            taken_for_reordering: since(|counters| counters.taken_for_reordering),
        }
    }
}

/// Connections and datagrams without a route, of both IP versions, in the network namespace of the calling thread
/// (IpOutNoRoutes, Ip6OutNoRoutes). Zero if the kernel has no such counters.
pub(crate) fn unrouted() -> u64 {
    let read = |file| fs::read_to_string(format!("/proc/thread-self/net/{file}"));
    let v4 = read("snmp").unwrap_or_default();
    let v6 = read("snmp6").unwrap_or_default();
    let v4 = counter(&v4, "Ip:", "OutNoRoutes");
    v4.unwrap_or(0) + counter_of_ipv6(&v6, "Ip6OutNoRoutes").unwrap_or(0)
}

/// The value next to `name`, in a file with a line for each counter.
fn counter_of_ipv6(file: &str, name: &str) -> Option<u64> {
    let mut lines = file.lines().map(str::split_whitespace);
    let mut line = lines.find(|line| line.clone().next() == Some(name))?;
    line.nth(1)?.parse().ok()
}

/// The value under `name` in the pair of lines (names, values) that begin with `group`.
fn counter(file: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = file
        .lines()
        .filter(|line| line.split_whitespace().next() == Some(group));
    let (names, values) = (lines.next()?, lines.next()?);
    let column = names.split_whitespace().position(|word| word == name)?;
    values.split_whitespace().nth(column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETSTAT: &str = "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPSynRetrans \
        TCPTimeouts TCPFastRetrans TCPLossProbes TCPRenoReorder\n\
        TcpExt: 0 7 9 3 11 12 13 14\nIpExt: ListenDrops\nIpExt: 1\n";
    const SNMP: &str = "Ip: RetransSegs\nIp: 5\nTcp: RtoMin MaxConn RetransSegs\nTcp: 200 -1 4\n";

    #[test]
    fn counters_are_found_by_name() {
        let counters = TcpCounters::parse(NETSTAT, SNMP).unwrap();
        assert_eq!(counters.listen_drops, 9);
        assert_eq!(counters.listen_overflows, 7);
        assert_eq!(counters.syn_retransmits, 3);
        assert_eq!(counters.retransmitted_segments, 4);
        assert_eq!((counters.timeouts, counters.fast_retransmits), (11, 12));
        assert_eq!(
            (counters.loss_probes, counters.taken_for_reordering),
            (13, 14)
        );
        assert_eq!((counters - counters), TcpCounters::default());
        assert_eq!(TcpCounters::parse("TcpExt: A\n", SNMP), None);
    }

    #[test]
    fn counters_of_ipv6_have_a_line_each() {
        let file = "Ip6InReceives \t7\nIp6OutNoRoutes          \t3\nIp6Out\n";
        assert_eq!(counter_of_ipv6(file, "Ip6OutNoRoutes"), Some(3));
        assert_eq!(counter_of_ipv6(file, "Ip6Out"), None);
        assert_eq!(counter_of_ipv6(file, "Ip6OutNo"), None);
    }

    #[test]
    fn this_kernel_has_them() {
        TcpCounters::read().unwrap();
    }
}
