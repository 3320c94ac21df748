//! Requests to the kernel about devices, addresses and routes: rtnetlink, one at a time.
//!
//! The messages come from netlink-packet-route. Transport takes a socket and thirty lines, while the crate for that
//! would add an async runtime. Each request is answered before the call returns, so the order of the calls is the order
//! of the effects.

use std::net::IpAddr;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage as Message};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily as Family, RecvFlags, SendFlags, SocketFlags, SocketType};
use thiserror::Error;

/// A request that the kernel did not grant.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetlinkError {
    /// Refused by the kernel.
    #[error("{what}: {errno}")]
    Refused {
        /// The request.
        what: String,
        /// The kernel's reason.
        #[source]
        errno: Errno,
    },
    /// An answer that could not be interpreted.
    #[error("{what}: the kernel's answer was not understood")]
    Answer {
        /// The request.
        what: String,
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
        let what = || "rtnetlink socket".to_owned();
        let refused = |errno| NetlinkError::Refused {
            what: what(),
            errno,
        };
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
        let [mut here, there] = ends.map(|end| {
            let mut message = LinkMessage::default();
            message.attributes = vec![
                LinkAttribute::IfName(end.name.to_owned()),
                LinkAttribute::Address(end.mac.to_vec()),
                LinkAttribute::Mtu(end.mtu),
            ];
            if let Some(network) = end.network {
                let network = LinkAttribute::NetNsFd(network.as_raw_fd());
                message.attributes.push(network);
            }
            message
        });
        here.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(there))),
        ]));
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.ask("pair of devices", Message::NewLink(here), flags)
    }

    /// Brings a device up with ARP, neighbour discovery and group membership off, so that it needs no address
    /// resolution and sends nothing itself.
    pub(crate) fn raise(&mut self, index: u32) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up | LinkFlags::Noarp;
        message.header.change_mask = LinkFlags::Up | LinkFlags::Noarp | LinkFlags::Multicast;
        self.ask("device up", Message::SetLink(message), 0)
    }

    /// Brings the loopback device up, the first device of every network namespace.
    pub(crate) fn raise_loopback(&mut self) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.header.index = 1;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.ask("loopback up", Message::SetLink(message), 0)
    }

    /// Adds an address to a device, without the usual route to its network and without duplicate address detection.
    pub(crate) fn add_address(&mut self, index: u32, address: IpAddr) -> Result<(), NetlinkError> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = width(address);
        message.header.index = index;
        message.header.scope = AddressScope::Universe;
        if address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        message.attributes = vec![
            AddressAttribute::Local(address),
            AddressAttribute::Address(address),
        ];
        let what = format!("address {address}");
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.ask(&what, Message::NewAddress(message), flags)
    }

    /// Adds a permanent neighbour entry: the hardware address of `address`.
    pub(crate) fn add_neighbour(
        &mut self,
        index: u32,
        address: IpAddr,
        mac: Mac,
    ) -> Result<(), NetlinkError> {
        let mut message = NeighbourMessage::default();
        message.header.family = family(address);
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        let destination = match address {
            IpAddr::V4(address) => NeighbourAddress::Inet(address),
            IpAddr::V6(address) => NeighbourAddress::Inet6(address),
        };
        message.attributes = vec![
            NeighbourAttribute::Destination(destination),
            NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
        ];
        let what = format!("neighbour {address}");
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.ask(&what, Message::NewNeighbour(message), flags)
    }

    /// Sets a route to `destination/prefix` over a device, `via` a neighbour if given. Replaces an earlier route to the
    /// same prefix.
    pub(crate) fn set_route(
        &mut self,
        index: u32,
        (destination, prefix): (IpAddr, u8),
        via: Option<IpAddr>,
        metrics: Vec<RouteMetric>,
    ) -> Result<(), NetlinkError> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(destination);
        message.header.destination_prefix_length = prefix;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.kind = RouteType::Unicast;
        message.header.scope = match via {
            Some(_) => RouteScope::Universe,
            None => RouteScope::Link,
        };
        message.attributes = vec![RouteAttribute::Oif(index)];
        if prefix > 0 {
            let destination = RouteAttribute::Destination(route_address(destination));
            message.attributes.push(destination);
        }
        if let Some(via) = via {
            let gateway = RouteAttribute::Gateway(route_address(via));
            message.attributes.push(gateway);
        }
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        let what = format!("route to {destination}/{prefix}");
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.ask(&what, Message::NewRoute(message), flags)
    }

    /// Packets sent on a device and dropped because its other end was full.
    pub(crate) fn lost_in_sending(&mut self, index: u32) -> Result<u64, NetlinkError> {
        let what = "counters of a device";
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.send(what, Message::GetLink(message), 0)?;
        match self.answer(what)?.payload {
            NetlinkPayload::InnerMessage(Message::NewLink(link)) => link
                .attributes
                .into_iter()
                .find_map(|attribute| match attribute {
                    LinkAttribute::Stats64(statistics) => Some(statistics.tx_dropped),
                    _ => None,
                })
                .ok_or_else(|| not_understood(what)),
            payload => Err(refusal(what, &payload).unwrap_or_else(|| not_understood(what))),
        }
    }

    /// Makes every address of this IP version without a more specific route local to this host, at the loopback device.
    pub(crate) fn claim_all(&mut self, any: IpAddr) -> Result<(), NetlinkError> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(any);
        // Not in the table of local addresses: the kernel reads it first, and it would claim the peer's address, too.
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.kind = RouteType::Local;
        message.header.scope = RouteScope::Host;
        message.attributes = vec![RouteAttribute::Oif(1)];
        let what = format!("route that claims {any}/0");
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.ask(&what, Message::NewRoute(message), flags)
    }

    /// Sends a request and waits for the kernel's acknowledgement.
    fn ask(&mut self, what: &str, message: Message, flags: u16) -> Result<(), NetlinkError> {
        self.send(what, message, flags | NLM_F_ACK)?;
        let payload = self.answer(what)?.payload;
        match &payload {
            NetlinkPayload::Error(answer) if answer.code.is_none() => Ok(()),
            payload => Err(refusal(what, payload).unwrap_or_else(|| not_understood(what))),
        }
    }

    fn send(&mut self, what: &str, message: Message, flags: u16) -> Result<(), NetlinkError> {
        self.sequence += 1;
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        rustix::net::send(&self.socket, &bytes, SendFlags::empty()).map_err(|errno| {
            NetlinkError::Refused {
                what: what.to_owned(),
                errno,
            }
        })?;
        Ok(())
    }

    fn answer(&mut self, what: &str) -> Result<NetlinkMessage<Message>, NetlinkError> {
        let mut bytes = vec![0; 32 << 10];
        let (_, length) = rustix::net::recv(&self.socket, &mut bytes[..], RecvFlags::empty())
            .map_err(|errno| NetlinkError::Refused {
                what: what.to_owned(),
                errno,
            })?;
        NetlinkMessage::deserialize(&bytes[..length.min(32 << 10)])
            .ok()
            .filter(|answer| answer.header.sequence_number == self.sequence)
            .ok_or_else(|| not_understood(what))
    }
}

fn refusal(what: &str, payload: &NetlinkPayload<Message>) -> Option<NetlinkError> {
    let NetlinkPayload::Error(answer) = payload else {
        return None;
    };
    let errno = Errno::from_raw_os_error(answer.code?.get().abs());
    Some(NetlinkError::Refused {
        what: what.to_owned(),
        errno,
    })
}

fn not_understood(what: &str) -> NetlinkError {
    NetlinkError::Answer {
        what: what.to_owned(),
    }
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// Bits of an address of this family.
fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn route_address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    }
}
