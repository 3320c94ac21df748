//! The emulator's ends of the two pairs of devices, one pair for each host.

use std::io;
use std::os::fd::AsFd as _;

use posthaste_link::Direction;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use crate::namespaces::address::{Addresses, CLIENT, SERVER};
use crate::namespaces::host::{DEVICE, HostError, has_ipv6, index_of};
use crate::namespaces::namespace::own_network;
use crate::namespaces::netlink::{MTU, Mac, Netlink, VethEnd};
use crate::namespaces::offload;
use crate::namespaces::sysctl;
use crate::path::device::Device;
use crate::path::flow::{ETHERNET, Flow};

/// Names and MAC addresses of the middle ends, by the host that they connect.
const MIDDLE: [(&str, Mac); 2] = [
    ("client", [2, 0, 0, 0, 1, 1]),
    ("server", [2, 0, 0, 0, 1, 2]),
];

/// Largest packet that a device can be set to accept. A device drops longer packets without a reason. With this MTU the
/// emulator sees them and counts the reason.
const ANY_LENGTH: u32 = 65_535;

/// The two devices, by the host that they connect.
pub(crate) struct Ports {
    /// The client's, then the server's. Packets that go up enter at the first.
    devices: [Device; 2],
    /// Frame headers for IPv4 and for IPv6, for each direction.
    heads: [[[u8; ETHERNET]; 2]; 2],
}

impl Ports {
    /// Creates the devices, one end in each host's network namespace and the other in a new one of the calling thread, and
    /// opens the ends here.
    pub(crate) fn open(networks: [OwnedFd; 2]) -> Result<Self, HostError> {
        own_network()?;
        if has_ipv6() {
            sysctl::set("net.ipv6.conf.default.disable_ipv6", "1")?;
        }
        let mut netlink = Netlink::open()?;
        let mut open = |(name, mac): (&str, Mac), mac_there: Mac, network: &OwnedFd| {
            let here = VethEnd {
                name,
                mac,
                mtu: ANY_LENGTH,
                network: None,
            };
            let there = VethEnd {
                name: DEVICE,
                mac: mac_there,
                mtu: MTU,
                network: Some(network.as_fd()),
            };
            netlink.make_pair([here, there])?;
            let machine = |operation| move |error| HostError::Machine { operation, error };
            offload::disable(name).map_err(machine("offloads of the emulator's device"))?;
            let index = index_of(name)?;
            // Before opening: a socket on a device that is down rejects the first packet.
            netlink.raise(index)?;
            let opened = Device::open(index).map_err(io::Error::from);
            opened.map_err(machine("a packet socket and its ring"))
        };
        let client = open(MIDDLE[0], CLIENT.mac, &networks[0])?;
        let server = open(MIDDLE[1], SERVER.mac, &networks[1])?;
        Ok(Self::new([client, server], CLIENT, SERVER))
    }

    fn new(devices: [Device; 2], client: Addresses, server: Addresses) -> Self {
        let head = |to: Addresses, from: Addresses, kind: [u8; 2]| {
            let mut head = [0; ETHERNET];
            head[..6].copy_from_slice(&to.mac);
            head[6..12].copy_from_slice(&from.mac);
            head[12..].copy_from_slice(&kind);
            head
        };
        let heads = [(server, client), (client, server)]
            .map(|(to, from)| [[0x08, 0x00], [0x86, 0xdd]].map(|kind| head(to, from, kind)));
        Self { devices, heads }
    }

    /// Both devices, the client's first.
    pub(crate) fn devices(&self) -> &[Device; 2] {
        &self.devices
    }

    /// The device at which packets of this direction arrive.
    pub(crate) fn entrance(&mut self, direction: Direction) -> &mut Device {
        &mut self.devices[direction as usize]
    }

    /// The device through which packets of this direction leave.
    pub(crate) fn exit(&self, direction: Direction) -> &Device {
        &self.devices[direction.reverse() as usize]
    }

    /// Sends a packet to the host at the end of this direction.
    pub(crate) fn send(
        &self,
        direction: Direction,
        flow: &Flow,
        packet: &[u8],
    ) -> Result<(), Errno> {
        let head = &self.heads[direction as usize][usize::from(flow.client.is_ipv6())];
        self.exit(direction).send(head, packet)
    }
}
