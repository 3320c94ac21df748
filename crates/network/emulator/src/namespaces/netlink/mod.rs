//! Requests to the kernel about devices, addresses and routes: rtnetlink, one at a time.
//!
//! Each request is answered before the call returns, so the order of the calls is the order of the effects. The bytes
//! are ours (`message`): a crate for all of rtnetlink takes longer to compile than the rest of this one
//! (docs/decisions/0025-fewer-packages.md).

mod message;

use std::mem::{offset_of, size_of};
use std::net::IpAddr;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use linux_raw_sys::net::net_device_flags::{IFF_MULTICAST, IFF_NOARP, IFF_UP};
use linux_raw_sys::netlink::rt_class_t::RT_TABLE_MAIN;
use linux_raw_sys::netlink::rt_scope_t::{RT_SCOPE_HOST, RT_SCOPE_LINK, RT_SCOPE_UNIVERSE};
use linux_raw_sys::netlink::rtattr_type_t::{RTA_DST, RTA_GATEWAY, RTA_METRICS, RTA_OIF};
use linux_raw_sys::netlink::{
    IFA_ADDRESS, IFA_F_NODAD, IFA_LOCAL, IFLA_ADDRESS, IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND,
    IFLA_LINKINFO, IFLA_MTU, IFLA_NET_NS_FD, IFLA_STATS64, NDA_DST, NDA_LLADDR, NLM_F_ACK,
    NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NLMSG_ERROR, NUD_PERMANENT,
    RTM_GETLINK, RTM_NEWADDR, RTM_NEWLINK, RTM_NEWNEIGH, RTM_NEWROUTE, RTM_SETLINK, RTN_LOCAL,
    RTN_UNICAST, RTPROT_STATIC, ifinfomsg, rtnl_link_stats64,
};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily as Family, RecvFlags, SendFlags, SocketFlags, SocketType};
use thiserror::Error;

use crate::namespaces::route::RouteMetric;
use message::{NetlinkAnswer, NetlinkMessage};

/// Attribute of a new veth device: the other end (linux/veth.h).
const VETH_INFO_PEER: u32 = 1;

/// Size of the buffer for an answer, in bytes. The kernel's answers about one device take a few kilobytes.
const ANSWER: usize = 32 << 10;

/// A request that the kernel did not grant.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetlinkError {
    /// Refused by the kernel.
    #[error("{operation}: {errno}")]
    Refused {
        /// The request.
        operation: String,
        /// The kernel's reason.
        #[source]
        errno: Errno,
    },
    /// An answer that could not be interpreted.
    #[error("{operation}: the kernel's answer was not understood")]
    Answer {
        /// The request.
        operation: String,
    },
}

/// A hardware address.
pub type Mac = [u8; 6];

/// One end of a pair of devices to create.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VethEnd<'a> {
    pub(crate) name: &'a str,
    pub(crate) mac: Mac,
    /// Largest IP packet that it sends and accepts.
    pub(crate) mtu: u32,
    /// Network namespace of this end; by default that of the caller.
    pub(crate) network: Option<BorrowedFd<'a>>,
}

/// Largest IP packet that a host sends and a link accepts, in bytes: that of Ethernet.
pub const MTU: u32 = 1500;

/// A netlink socket for the network namespace of the thread that opened it.
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket for the calling thread's network namespace. It keeps that namespace.
    pub(crate) fn open() -> Result<Self, NetlinkError> {
        let refused = |errno| refused("rtnetlink socket", errno);
        // Protocol 0 is NETLINK_ROUTE.
        let flags = SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(Family::NETLINK, SocketType::RAW, flags, None)
            .map_err(refused)?;
        rustix::net::connect(&socket, &SocketAddrNetlink::new(0, 0)).map_err(refused)?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Creates a pair of connected devices with fixed names, MAC addresses and MTUs.
    pub(crate) fn make_pair(&mut self, ends: [VethEnd<'_>; 2]) -> Result<(), NetlinkError> {
        let [here, there] = ends;
        let mut message = NetlinkMessage::new(RTM_NEWLINK as u32, &link(0, 0, 0));
        here.put(&mut message);
        message.nest(IFLA_LINKINFO as u32, |info| {
            info.put_text(IFLA_INFO_KIND as u32, "veth");
            info.nest(IFLA_INFO_DATA as u32, |data| {
                data.nest(VETH_INFO_PEER, |peer| {
                    peer.extend(&link(0, 0, 0));
                    there.put(peer);
                });
            });
        });
        self.ask("pair of devices", message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Brings a device up with ARP, neighbour discovery and group membership off, so that it needs no address
    /// resolution and sends nothing itself.
    pub(crate) fn raise(&mut self, index: u32) -> Result<(), NetlinkError> {
        let (flags, others) = (IFF_UP as u32 | IFF_NOARP as u32, IFF_MULTICAST as u32);
        let part = link(index, flags, flags | others);
        self.ask(
            "device up",
            NetlinkMessage::new(RTM_SETLINK as u32, &part),
            0,
        )
    }

    /// Brings the loopback device up, the first device of every network namespace.
    pub(crate) fn raise_loopback(&mut self) -> Result<(), NetlinkError> {
        let part = link(1, IFF_UP as u32, IFF_UP as u32);
        self.ask(
            "loopback up",
            NetlinkMessage::new(RTM_SETLINK as u32, &part),
            0,
        )
    }

    /// Adds an address to a device, without the usual route to its network and without duplicate address detection.
    pub(crate) fn add_address(&mut self, index: u32, address: IpAddr) -> Result<(), NetlinkError> {
        let bytes = octets(address);
        let width = u8::try_from(bytes.len() * 8).expect("at most 128");
        let flags = match address {
            IpAddr::V4(_) => 0,
            IpAddr::V6(_) => byte(IFA_F_NODAD),
        };
        // ifaddrmsg: family, prefix length, flags, scope, device.
        let head = [
            family(address),
            width,
            flags,
            byte(RT_SCOPE_UNIVERSE as u32),
        ];
        let part = [head, index.to_ne_bytes()].concat();
        let mut message = NetlinkMessage::new(RTM_NEWADDR as u32, &part);
        message.put(IFA_LOCAL as u32, &bytes);
        message.put(IFA_ADDRESS as u32, &bytes);
        let operation = format!("address {address}");
        self.ask(&operation, message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Adds a permanent neighbour entry: the hardware address of `address`.
    pub(crate) fn add_neighbour(
        &mut self,
        index: u32,
        address: IpAddr,
        mac: Mac,
    ) -> Result<(), NetlinkError> {
        // ndmsg: family, padding, device, state (16 bits), flags, type.
        let state = u16::from(byte(NUD_PERMANENT)).to_ne_bytes();
        let (head, tail) = ([family(address), 0, 0, 0], [state[0], state[1], 0, 0]);
        let part = [head, index.to_ne_bytes(), tail].concat();
        let mut message = NetlinkMessage::new(RTM_NEWNEIGH as u32, &part);
        message.put(NDA_DST as u32, &octets(address));
        message.put(NDA_LLADDR as u32, &mac);
        let operation = format!("neighbour {address}");
        self.ask(&operation, message, NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Sets a route to `destination/prefix` over a device, `via` a neighbour if given. Replaces an earlier route to the
    /// same prefix.
    pub(crate) fn set_route(
        &mut self,
        index: u32,
        destination: IpAddr,
        prefix: u8,
        via: Option<IpAddr>,
        metrics: &[RouteMetric],
    ) -> Result<(), NetlinkError> {
        let scope = match via {
            Some(_) => RT_SCOPE_UNIVERSE,
            None => RT_SCOPE_LINK,
        };
        let kind = RTN_UNICAST as u32;
        let part = route(family(destination), prefix, scope as u32, kind);
        let mut message = NetlinkMessage::new(RTM_NEWROUTE as u32, &part);
        message.put_number(RTA_OIF as u32, index);
        if prefix > 0 {
            message.put(RTA_DST as u32, &octets(destination));
        }
        if let Some(via) = via {
            message.put(RTA_GATEWAY as u32, &octets(via));
        }
        if !metrics.is_empty() {
            message.nest(RTA_METRICS as u32, |all| {
                for metric in metrics {
                    all.put(metric.kind, &metric.value);
                }
            });
        }
        let operation = format!("route to {destination}/{prefix}");
        self.ask(&operation, message, NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Packets sent on a device and dropped because its other end was full.
    pub(crate) fn lost_in_sending(&mut self, index: u32) -> Result<u64, NetlinkError> {
        let operation = "counters of a device";
        self.send(
            operation,
            NetlinkMessage::new(RTM_GETLINK as u32, &link(index, 0, 0)),
            0,
        )?;
        let mut bytes = [0; ANSWER];
        let answer = self.answer(operation, &mut bytes)?;
        if answer.kind != RTM_NEWLINK as u32 {
            return Err(refusal(operation, &answer));
        }
        let at = offset_of!(rtnl_link_stats64, tx_dropped);
        answer
            .attribute(size_of::<ifinfomsg>(), IFLA_STATS64 as u32)
            .and_then(|counters| counters.get(at..)?.first_chunk())
            .map(|dropped| u64::from_ne_bytes(*dropped))
            .ok_or_else(|| not_understood(operation))
    }

    /// Makes every address of this IP version without a more specific route local to this host, at the loopback device.
    pub(crate) fn claim_all(&mut self, any: IpAddr) -> Result<(), NetlinkError> {
        let part = route(family(any), 0, RT_SCOPE_HOST as u32, RTN_LOCAL as u32);
        let mut message = NetlinkMessage::new(RTM_NEWROUTE as u32, &part);
        message.put_number(RTA_OIF as u32, 1);
        let operation = format!("route that claims {any}/0");
        self.ask(&operation, message, NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Sends a request and waits for the kernel's acknowledgement.
    fn ask(
        &mut self,
        operation: &str,
        message: NetlinkMessage,
        flags: u32,
    ) -> Result<(), NetlinkError> {
        self.send(operation, message, flags | NLM_F_ACK)?;
        let mut bytes = [0; ANSWER];
        let answer = self.answer(operation, &mut bytes)?;
        match error_code(&answer) {
            Some(0) => Ok(()),
            _ => Err(refusal(operation, &answer)),
        }
    }

    fn send(
        &mut self,
        operation: &str,
        message: NetlinkMessage,
        flags: u32,
    ) -> Result<(), NetlinkError> {
        self.sequence += 1;
        let bytes = message.finish(NLM_F_REQUEST | flags, self.sequence);
        let sent = rustix::net::send(&self.socket, &bytes, SendFlags::empty());
        sent.map(drop).map_err(|errno| refused(operation, errno))
    }

    fn answer<'b>(
        &self,
        operation: &str,
        bytes: &'b mut [u8],
    ) -> Result<NetlinkAnswer<'b>, NetlinkError> {
        let (length, _) = rustix::net::recv(&self.socket, &mut *bytes, RecvFlags::empty())
            .map_err(|errno| refused(operation, errno))?;
        NetlinkAnswer::read(&bytes[..length])
            .filter(|answer| answer.sequence == self.sequence)
            .ok_or_else(|| not_understood(operation))
    }
}

impl VethEnd<'_> {
    fn put(&self, message: &mut NetlinkMessage) {
        message.put_text(IFLA_IFNAME as u32, self.name);
        message.put(IFLA_ADDRESS as u32, &self.mac);
        message.put_number(IFLA_MTU as u32, self.mtu);
        if let Some(network) = self.network {
            message.put(IFLA_NET_NS_FD as u32, &network.as_raw_fd().to_ne_bytes());
        }
    }
}

/// The code of an error or acknowledgement: 0 or a negative error number.
fn error_code(answer: &NetlinkAnswer<'_>) -> Option<i32> {
    let code = answer.payload.first_chunk();
    code.filter(|_| answer.kind == NLMSG_ERROR)
        .map(|code| i32::from_ne_bytes(*code))
}

fn refusal(operation: &str, answer: &NetlinkAnswer<'_>) -> NetlinkError {
    match error_code(answer) {
        Some(code) if code != 0 => {
            refused(operation, Errno::from_raw_os_error(code.saturating_abs()))
        }
        _ => not_understood(operation),
    }
}

fn refused(operation: &str, errno: Errno) -> NetlinkError {
    NetlinkError::Refused {
        operation: operation.to_owned(),
        errno,
    }
}

fn not_understood(operation: &str) -> NetlinkError {
    NetlinkError::Answer {
        operation: operation.to_owned(),
    }
}

/// ifinfomsg: family, padding, type, device, flags, flags to change.
fn link(index: u32, flags: u32, change: u32) -> [u8; size_of::<ifinfomsg>()] {
    let mut part = [0; size_of::<ifinfomsg>()];
    for (offset, number) in [(4, index), (8, flags), (12, change)] {
        part[offset..offset + 4].copy_from_slice(&number.to_ne_bytes());
    }
    part
}

/// rtmsg: family, lengths of destination and source, type of service, table, protocol, scope, type, flags.
///
/// Not the table of local addresses: the kernel reads it first, and a route that claims all addresses would claim the
/// peer's address, too.
fn route(family: u8, prefix: u8, scope: u32, kind: u32) -> [u8; 12] {
    let [table, protocol] = [RT_TABLE_MAIN as u32, RTPROT_STATIC].map(byte);
    let (scope, kind) = (byte(scope), byte(kind));
    [
        family, prefix, 0, 0, table, protocol, scope, kind, 0, 0, 0, 0,
    ]
}

/// Values of one byte are wider in the kernel's headers.
fn byte(constant: u32) -> u8 {
    u8::try_from(constant).expect("a value of one byte")
}

fn family(address: IpAddr) -> u8 {
    let family = match address {
        IpAddr::V4(_) => Family::INET,
        IpAddr::V6(_) => Family::INET6,
    };
    byte(family.as_raw().into())
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests;
