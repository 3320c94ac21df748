//! The network under test: an emulation, or anything set up on loopback.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use posthaste_emulator::{Emulation, Notes, PacketRecord, RunningEmulation, SERVER};
use posthaste_link::Plan;

use crate::Failure;

/// Port of the receiver.
pub(crate) const PORT: u16 = 9;

/// Selection of the network under test.
#[derive(Clone, Copy)]
pub(crate) struct TestedNetwork {
    pub(crate) fifo: bool,
    pub(crate) loopback: bool,
}

/// A network in operation.
pub(crate) enum Started {
    Emulator(Box<RunningEmulation>),
    Loopback,
}

/// Creates a client's socket, connected to the receiver.
pub(crate) type Connect = fn() -> UdpSocket;

impl TestedNetwork {
    /// Starts with the plan `up`, without effects on the way back.
    pub(crate) fn start(self, up: Plan) -> Result<Started, Failure> {
        Ok(if self.loopback {
            Started::Loopback
        } else {
            Started::Emulator(Box::new(self.emulation(up).start()?))
        })
    }

    /// Starts the emulator, with packet records.
    pub(crate) fn start_seen(self, up: Plan) -> Result<(Started, Notes<PacketRecord>), Failure> {
        let mut running = self.emulation(up).packet_records(1 << 14).start()?;
        let packet_records = running.packet_records.take().ok_or("no packet records")?;
        Ok((Started::Emulator(Box::new(running)), packet_records))
    }

    fn emulation(self, up: Plan) -> Emulation {
        Emulation::new(Arc::new(up), Arc::new(Plan::default())).real_time(self.fifo)
    }
}

impl Started {
    /// Runs `work` at the client's end, in a thread of its own.
    pub(crate) fn at_client<T: Send + 'static>(
        &self,
        work: impl FnOnce(Connect) -> T + Send + 'static,
    ) -> JoinHandle<T> {
        match self {
            Self::Emulator(running) => running.client.spawn(|| work(|| connected(SERVER.v4))),
            Self::Loopback => thread::spawn(|| work(|| connected(Ipv4Addr::LOCALHOST))),
        }
    }

    /// Runs `work` at the server's end, in a thread of its own.
    pub(crate) fn at_server<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        match self {
            Self::Emulator(running) => running.server.spawn(work),
            Self::Loopback => thread::spawn(work),
        }
    }

    /// Prints the emulator's outcome.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Self::Emulator(running) = self else {
            return Ok(());
        };
        let outcome = running.finish()?;
        println!("real-time {}", outcome.real_time);
        println!("lost-before {}", outcome.up.bypassed.overrun);
        println!("lost-behind {}", outcome.up.bypassed.unsent);
        println!("unseen {}", outcome.unseen);
        println!("verdict {}", outcome.verdict());
        Ok(())
    }
}

fn connected(to: impl Into<IpAddr>) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
    socket.connect((to.into(), PORT)).expect("connected");
    socket
}
