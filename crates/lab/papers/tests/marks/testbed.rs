//! An emulated line with loss, gateways at the server's end, and all packets that they send.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use posthaste_emulator::{
    CLIENT, EdgeRule, Emulation, Host, Notes, PacketRecord, RunningEmulation,
};
use posthaste_gateway::GatewayConfig;
use posthaste_link::loss::Independent;
use posthaste_link::{Direction, Loss, Plan};
use posthaste_units::{Ratio, Span};

use crate::wire::{MarkedSegment, SegmentLog};

/// Maximum number of unread packet records.
const UNREAD: usize = 1 << 17;

/// Loss rate in each direction.
const LOSS: f64 = 0.03;

/// The line and the hosts at its ends.
pub(crate) struct MarkingTestbed {
    pub(crate) running: RunningEmulation,
    /// Address of the upstream.
    pub(crate) origin: SocketAddr,
    /// Ends on request after the last packet.
    capture: (std::sync::mpsc::Sender<()>, JoinHandle<SegmentLog>),
}

impl MarkingTestbed {
    /// Starts with the upstream at the server's end, or at the client's. `edge` marks packets again at the line's edge.
    pub(crate) fn open(upstream_is_far: bool, edge: Vec<EdgeRule>) -> Self {
        let plan = Arc::new(Plan {
            delay: Span::from_millis(2),
            loss: Some(Loss::Independent(Independent {
                loss: Ratio::new(LOSS).unwrap(),
            })),
            ..Plan::default()
        });
        let emulation = Emulation::new(plan.clone(), plan)
            .packet_records(UNREAD)
            .edge(edge);
        let mut running = emulation.start().expect("an emulation");
        let (host, address) = if upstream_is_far {
            (&running.client, IpAddr::from(CLIENT.v4))
        } else {
            (&running.server, [127, 0, 0, 1].into())
        };
        let origin = origin(host, address);
        let packet_records = running.packet_records.take().expect("they were asked for");
        let (over, is_over) = std::sync::mpsc::channel();
        let capture = thread::spawn(move || capture(&packet_records, &is_over));
        Self {
            running,
            origin,
            capture: (over, capture),
        }
    }

    /// Starts a gateway that marks at the server's end, with `more` in its configuration.
    pub(crate) fn gateway(&self, listen: &str, more: &str) -> posthaste_gateway::RunningGateway {
        let text = format!(
            "listen = \"{listen}\"\n\
             [timeouts]\nconnect = \"20s\"\n\
             [compression]\npolicy = \"never\"\n\
             [marking]\npolicy = \"asked\"\nallow = [\"af11\", \"af21\", \"ef\", \"le\"]\n\
             {more}\n\
             [[route]]\npath = \"/\"\nupstream = [\"{}\"]\n",
            self.origin
        );
        let config = GatewayConfig::read(&text).expect("a configuration");
        let start = move || posthaste_gateway::start(config);
        self.running.server.run(start).expect("a gateway")
    }

    /// The gateway's metrics.
    pub(crate) fn metrics(&self, gateway: &posthaste_gateway::RunningGateway) -> String {
        let admin = gateway.admin;
        self.running.server.run(move || {
            let mut stream = TcpStream::connect(admin).expect("connected");
            let request = b"GET /metrics HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n";
            stream.write_all(request).expect("asked");
            let mut text = String::new();
            stream.read_to_string(&mut text).expect("told");
            text
        })
    }

    /// Number of mark events of this kind.
    pub(crate) fn events(&self, gateway: &posthaste_gateway::RunningGateway, event: &str) -> f64 {
        let text = self.metrics(gateway);
        let name = format!("posthaste_gateway_mark_events_total{{event=\"{event}\"}} ");
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(&name));
        value.expect("a metric").parse().expect("a number")
    }

    /// Ends the emulation after the last packet. Returns all segments.
    pub(crate) fn segments(self) -> Vec<MarkedSegment> {
        let (over, capture) = self.capture;
        drop(over);
        let wire = capture.join().expect("it takes what it is given");
        let outcome = self.running.finish().expect("an outcome");
        assert_eq!(outcome.unseen, 0, "packets that nobody saw");
        wire.segments
    }
}

/// Collects packet records until `over` is closed and no more arrive for a while.
fn capture(
    packet_records: &Notes<PacketRecord>,
    over: &std::sync::mpsc::Receiver<()>,
) -> SegmentLog {
    let mut wire = SegmentLog::default();
    loop {
        let is_over = over.try_recv() == Err(std::sync::mpsc::TryRecvError::Disconnected);
        if is_over {
            // The last packets of a connection follow its last byte.
            thread::sleep(Duration::from_millis(300));
        }
        for packet_record in packet_records.drain() {
            if packet_record.direction == Direction::Down {
                wire.take(&packet_record);
            }
        }
        if is_over {
            return wire;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Answers `/LENGTH` with that many bytes, without end.
fn origin(host: &Host, address: IpAddr) -> SocketAddr {
    let listen = move || TcpListener::bind((address, 0));
    let listener = host.run(listen).expect("a free port");
    let at = listener.local_addr().expect("bound");
    drop(host.spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(&stream));
        }
    }));
    at
}

fn answer(mut stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut lines = BufReader::new(stream).lines();
    loop {
        let request: Vec<String> = lines
            .by_ref()
            .map_while(Result::ok)
            .take_while(|line| !line.is_empty())
            .collect();
        let path = request
            .first()
            .and_then(|line| line.split(['/', '-']).nth(1));
        let Some(length) = path.and_then(|length| length.parse::<usize>().ok()) else {
            return;
        };
        let mut reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
        reply.resize(reply.len() + length, b'r');
        if stream.write_all(&reply).is_err() {
            return;
        }
    }
}
