//! The duplicate-ACK agent against this kernel's sender, judged by the sender's own counters.
//!
//! A sender without SACK accepts at most one duplicate less than it has packets outstanding. After a single loss among
//! a reply's last three packets that is never three, so it takes the agent's duplicates for reordering and nothing is
//! gained. With two losses and four packets outstanding, they make it retransmit at once. A sender with SACK does not
//! count duplicates at all.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use posthaste_emulator::agent::{AgentCounters, Settings};
use posthaste_emulator::{Emulation, RunningEmulation, Setup};
use posthaste_link::Plan;
use posthaste_units::BitRate;

use crate::inside::{delay, patterned, servers};

const REQUEST: usize = 1438;
const REPLY: usize = 12_974;
const PROCESSING: Duration = Duration::from_millis(200);
/// Concurrent connections, each on a link of its own.
const CONNECTIONS: usize = 5;

/// Settings of the kernels, and the packet of the server's FIN.
#[derive(Clone, Copy)]
struct KernelSetup {
    sack: bool,
    route: &'static str,
    /// Sends the FIN on the last data packet, regardless of the window.
    fin_on_data: bool,
}

/// Reno without SACK and with an initial window of three, as at the time of the paper.
const OLD: KernelSetup = KernelSetup {
    sack: false,
    route: "congctl reno initcwnd 3",
    fin_on_data: false,
};

/// The kernel's defaults.
const TODAY: KernelSetup = KernelSetup {
    sack: true,
    route: "congctl cubic",
    fin_on_data: true,
};

/// Results of the transactions of one kind.
#[derive(Debug)]
struct Figures {
    /// Times to the last byte, sorted.
    times: Vec<Duration>,
    agent: Option<AgentCounters>,
    /// TcpExt counters of the server's kernel.
    fast_retransmits: u64,
    timeouts: u64,
    taken_for_reordering: u64,
}

impl Figures {
    fn median(&self) -> Duration {
        self.times[self.times.len() / 2]
    }
}

/// Runs transactions that lose these packets of the server's, with an agent or without.
fn transactions(kernel: KernelSetup, lost: &str, agent: Option<Settings>) -> Figures {
    let plan = Plan {
        bandwidth: BitRate::per_second(300_000),
        ..delay(10)
    };
    let [up, down] = patterned(
        &plan,
        &format!("posthaste pattern 1\ndown drop {lost}\nend\n"),
    );
    let setup = Setup {
        sysctls: vec![(
            "net.ipv4.tcp_sack".to_owned(),
            u8::from(kernel.sack).to_string(),
        )],
        route: kernel.route.parse().expect("a route"),
    };
    let running = Emulation::new(up, down)
        .client(setup.clone())
        .server(setup)
        .real_time(true)
        .duplicate_acks(agent)
        .start()
        .expect("an emulation");
    let times = run(&running, kernel.fin_on_data);
    let counters = running.server.run(|| {
        let netstat = fs::read_to_string("/proc/thread-self/net/netstat").expect("counters");
        ["TCPFastRetrans", "TCPTimeouts", "TCPRenoReorder"].map(|name| counter(&netstat, name))
    });
    let outcome = running.finish().expect("an outcome");
    Figures {
        times,
        agent: outcome.duplicate_acks,
        fast_retransmits: counters[0],
        timeouts: counters[1],
        taken_for_reordering: counters[2],
    }
}

fn run(running: &RunningEmulation, fin_on_data: bool) -> Vec<Duration> {
    let address = servers()[0];
    let bind = move || TcpListener::bind((address, 0)).expect("a free port");
    let listener = running.server.run(bind);
    let at = listener.local_addr().expect("bound");
    let served = running.server.spawn(move || {
        let answers: Vec<_> = (0..CONNECTIONS)
            .map(|_| listener.accept().expect("a connection").0)
            .map(|stream| std::thread::spawn(move || answer(stream, fin_on_data)))
            .collect();
        answers
            .into_iter()
            .for_each(|answer| answer.join().expect("answered"));
    });
    let clients: Vec<JoinHandle<Duration>> = (0..CONNECTIONS)
        .map(|_| {
            running.client.spawn(move || {
                let start = Instant::now();
                let mut stream = TcpStream::connect(at).expect("connected");
                stream.write_all(&[b'q'; REQUEST]).expect("sent");
                stream.read_exact(&mut [0; REPLY]).expect("a reply");
                let taken = start.elapsed();
                assert_eq!(stream.read(&mut [0]).expect("the end"), 0);
                taken
            })
        })
        .collect();
    let mut times: Vec<Duration> = clients
        .into_iter()
        .map(|one| one.join().expect("done"))
        .collect();
    served.join().expect("served");
    times.sort();
    times
}

fn answer(mut stream: TcpStream, fin_on_data: bool) {
    stream.read_exact(&mut [0; REQUEST]).expect("a request");
    std::thread::sleep(PROCESSING);
    socket2::SockRef::from(&stream)
        .set_tcp_cork(fin_on_data)
        .expect("corked");
    stream.write_all(&[b'r'; REPLY]).expect("replied");
    stream.shutdown(Shutdown::Write).expect("closed");
    // Waits until the client has closed as well, so that its counters are complete.
    let _ = stream.read(&mut [0]);
}

/// The value under `name` in the kernel's pair of lines, names and values.
fn counter(netstat: &str, name: &str) -> u64 {
    let mut lines = netstat.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let column = names.split_whitespace().position(|word| word == name);
    let value = values.split_whitespace().nth(column.expect("the counter"));
    value.expect("a value").parse().expect("a number")
}

/// Both variants of one case, at the same time.
fn without_and_with(kernel: KernelSetup, lost: &'static str) -> [Figures; 2] {
    let without = std::thread::spawn(move || transactions(kernel, lost, None));
    let with = transactions(kernel, lost, Some(Settings::default()));
    [without.join().expect("transactions"), with]
}

/// One loss before the last packet: two duplicates are added. The sender accepts half of them, without effect.
pub(crate) fn one_loss() {
    let [without, with] = without_and_with(OLD, "10");
    let agent = with.agent.expect("there was one");
    assert_eq!(agent.injected, 2 * CONNECTIONS as u64, "{with:?}");
    assert_eq!(agent.served, CONNECTIONS as u64, "{with:?}");
    assert_eq!((with.fast_retransmits, without.fast_retransmits), (0, 0));
    assert!(with.timeouts >= CONNECTIONS as u64, "{with:?}");
    assert!(
        with.taken_for_reordering > without.taken_for_reordering,
        "{with:?}"
    );
}

/// Two losses among the last four: the agent sends the third duplicate.
pub(crate) fn two_losses() {
    let [without, with] = without_and_with(OLD, "8, 9");
    let agent = with.agent.expect("there was one");
    assert_eq!(agent.injected, CONNECTIONS as u64, "{with:?}");
    assert!(without.fast_retransmits == 0 && without.timeouts >= CONNECTIONS as u64);
    assert!(with.fast_retransmits >= CONNECTIONS as u64, "{with:?}");
    assert!(with.median() < without.median(), "{with:?} {without:?}");
}

/// With SACK, the sender learns of losses from SACK blocks and not from their number.
pub(crate) fn sack() {
    let [without, with] = without_and_with(TODAY, "8, 9");
    let agent = with.agent.expect("there was one");
    assert_eq!(
        agent.started,
        agent.ends().iter().map(|end| end.1).sum::<u64>()
    );
    assert_eq!(without.timeouts, with.timeouts, "{without:?} {with:?}");
}
