//! How exact the emulator is on this machine: `cargo run --release --example measure -- delay`.
//!
//! Judged from outside: senders read the clock before they send, and receivers take the stamp
//! that their kernel put on the packet. Words: `delay [busy]`, `flows N`, `rate`, `capacity`,
//! `positions`, each with `fifo` to ask for precedence. Run it on an otherwise idle machine.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use posthaste_emulator::{CLIENT, Emulation, Outcome, Running, SERVER, namespace};
use posthaste_link::pattern::Pattern;
use posthaste_link::{Direction, Plan, Queue};
use posthaste_stats::Histogram;
use posthaste_units::{BitRate, Span};
use rustix::time::{ClockId, clock_gettime};

/// Headers of IPv4 and UDP.
const HEADERS: u64 = 28;
/// The largest payload of a packet.
const LARGEST: usize = 1472;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    namespace::enter()?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    let fifo = words.iter().any(|word| word == "fifo");
    let has = |word: &str| words.iter().any(|other| other == word);
    let _busy = has("busy").then(Busy::start);
    let number = words.iter().find_map(|word| word.parse().ok());
    let outcome = match words.first().map(String::as_str) {
        Some("delay") => delay(fifo)?,
        Some("flows") => flows(fifo, number.unwrap_or(256))?,
        Some("rate") => rate(fifo)?,
        Some("capacity") => capacity(fifo, number.unwrap_or(300_000))?,
        Some("positions") => positions(fifo)?,
        _ => return Err("which: delay, flows, rate, capacity or positions?".into()),
    };
    let late = |share| outcome.lateness.quantile(share);
    println!(
        "lateness p50 {} p99 {} max {}; real time: {}, pauses {}; {}",
        late(0.5),
        late(0.99),
        outcome.lateness.max(),
        outcome.real_time,
        outcome.pauses,
        outcome.verdict()
    );
    Ok(())
}

/// One direction's plan; nothing happens on the way back.
fn start(fifo: bool, up: Plan) -> Result<Running, Failure> {
    let emulation = Emulation::new(Arc::new(up), Arc::new(Plan::default()));
    Ok(emulation.real_time(fifo).start()?)
}

/// A packet each millisecond, ten milliseconds under way.
fn delay(fifo: bool) -> Result<Outcome, Failure> {
    let under_way = Span::from_millis(10);
    let plan = Plan {
        delay: under_way,
        ..Plan::default()
    };
    let running = start(fifo, plan)?;
    let sink = Sink::start(&running, 10_000);
    running.client.run(move || {
        let socket = client();
        let every = Duration::from_millis(1);
        paced(10_000, every, |_| send(&socket, 200));
    });
    print_errors("one-way delay", &sink.finish(), under_way);
    Ok(running.finish()?)
}

/// So many flows at 20 packets a second, each on a line of 1 Mbit/s that takes 8 ms for one.
fn flows(fifo: bool, count: usize) -> Result<Outcome, Failure> {
    const SECONDS: usize = 10;
    let plan = Plan {
        delay: Span::from_millis(10),
        bandwidth: BitRate::per_second(1_000_000),
        ..Plan::default()
    };
    let under_way = Span::from_millis(18);
    let running = start(fifo, plan)?;
    let packets = count * 20 * SECONDS;
    let sink = Sink::start(&running, packets);
    running.client.run(move || {
        let sockets: Vec<UdpSocket> = (0..count).map(|_| client()).collect();
        let every = Duration::from_secs(1) / (20 * count as u32);
        paced(packets, every, |number| {
            send(&sockets[number % count], 1000 - HEADERS as usize);
        });
    });
    print_errors(&format!("{count} flows"), &sink.finish(), under_way);
    Ok(running.finish()?)
}

/// So much at once that a line of 100 Mbit/s has work for three seconds.
fn rate(fifo: bool) -> Result<Outcome, Failure> {
    let bits = 100_000_000;
    let plan = Plan {
        bandwidth: BitRate::per_second(bits),
        queue: Queue {
            packets: 30_000,
            ..Queue::default()
        },
        ..Plan::default()
    };
    let running = start(fifo, plan)?;
    let sink = Sink::start(&running, usize::MAX);
    running.client.run(|| {
        let socket = client();
        paced(26_000, Duration::from_micros(15), |_| {
            send(&socket, LARGEST)
        });
    });
    let arrivals = sink.finish();
    // Whole seconds, from the end of one packet to the end of another.
    let first = arrivals[0].1;
    for second in 0..2 {
        let within = |(_, stamp): &&(u64, u64)| {
            let from = first + second * 1_000_000_000;
            (from..from + 1_000_000_000).contains(stamp)
        };
        let stamps: Vec<u64> = arrivals
            .iter()
            .filter(within)
            .map(|(_, stamp)| *stamp)
            .collect();
        let length = stamps[stamps.len() - 1] - stamps[0];
        let sent = (stamps.len() as u64 - 1) * (LARGEST as u64 + HEADERS) * 8;
        let found = sent as f64 / (length as f64 / 1e9);
        println!(
            "second {second}: {:+.4} % of 100 Mbit/s",
            (found / bits as f64 - 1.0) * 100.0
        );
    }
    Ok(running.finish()?)
}

/// Largest packets at so many a second, and how many come through.
fn capacity(fifo: bool, per_second: usize) -> Result<Outcome, Failure> {
    let running = start(fifo, Plan::default())?;
    let sink = Sink::start(&running, usize::MAX);
    let taken = running.client.run(move || {
        let socket = client();
        let start = Instant::now();
        let every = Duration::from_secs(1).div_f64(per_second as f64);
        paced(per_second * 3, every, |_| send(&socket, LARGEST));
        start.elapsed()
    });
    let read = sink.finish().len();
    let outcome = running.finish()?;
    let delivered = outcome.up.link.delivered.packets;
    let seconds = taken.as_secs_f64();
    println!(
        "offered {:.0}/s, through the emulator {:.0}/s, read by the receiver {:.0}/s; lost before it {}, behind it {}",
        per_second as f64 * 3.0 / seconds,
        delivered as f64 / seconds,
        read as f64 / seconds,
        outcome.up.bypassed.overrun,
        outcome.up.bypassed.unsent,
    );
    Ok(outcome)
}

/// A million packets of which a pattern drops each 997th.
fn positions(fifo: bool) -> Result<Outcome, Failure> {
    const PACKETS: u64 = 1_000_000;
    let doomed: Vec<u64> = (997..=PACKETS).step_by(997).collect();
    let lines: String = doomed
        .iter()
        .map(|place| format!("up drop {place}\n"))
        .collect();
    let pattern = Pattern::parse(&format!("posthaste pattern 1\n{lines}end\n"))?;
    let plan = Plan {
        script: Some(pattern.script(Direction::Up).clone()),
        ..Plan::default()
    };
    let running = start(fifo, plan)?;
    let sink = Sink::start(&running, PACKETS as usize - doomed.len());
    running.client.run(|| {
        let socket = client();
        let mut position = 0;
        let mut next = |_| {
            position += 1;
            let _ = socket.send(&u64::to_ne_bytes(position));
        };
        paced(PACKETS as usize, Duration::from_micros(20), &mut next);
    });
    let mut missing: BTreeMap<u64, ()> = (1..=PACKETS).map(|place| (place, ())).collect();
    for (place, _) in sink.finish() {
        missing.remove(&place);
    }
    let right = missing.into_keys().eq(doomed.iter().copied());
    println!(
        "{} of {PACKETS} dropped, exactly those: {right}",
        doomed.len()
    );
    Ok(running.finish()?)
}

/// A socket on the client's end, connected to the sink.
fn client() -> UdpSocket {
    let socket = UdpSocket::bind((CLIENT.v4, 0)).expect("a free port");
    socket.connect((SERVER.v4, 9)).expect("connected");
    socket
}

/// Sends so many bytes that begin with the time.
fn send(socket: &UdpSocket, length: usize) {
    let mut bytes = [0; LARGEST];
    bytes[..8].copy_from_slice(&wall_clock().to_ne_bytes());
    let _ = socket.send(&bytes[..length]);
}

/// Calls `act` so many times, at even distances, sleeping where there is time.
fn paced(times: usize, every: Duration, mut act: impl FnMut(usize)) {
    let start = Instant::now();
    for number in 0..times {
        let due = start + every.mul_f64(number as f64);
        let ahead = due.saturating_duration_since(Instant::now());
        if ahead > Duration::from_micros(200) {
            std::thread::sleep(ahead - Duration::from_micros(100));
        }
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        act(number);
    }
}

fn wall_clock() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn print_errors(what: &str, arrivals: &[(u64, u64)], expected: Span) {
    let mut errors = Histogram::new();
    let mut earliest = Span::ZERO;
    for (sent, stamp) in arrivals {
        let taken = Span::from_nanos(stamp.saturating_sub(*sent));
        earliest = earliest.max(expected.saturating_sub(taken));
        errors.record(taken.saturating_sub(expected));
    }
    let at = |share| errors.quantile(share);
    println!(
        "{what}: {} packets, error p50 {} p90 {} p99 {} p99.9 {} max {}; at most {earliest} early",
        arrivals.len(),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        errors.max()
    );
}

/// What arrives at the server's end: the first eight bytes of each packet, and the kernel's stamp.
struct Sink {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Vec<(u64, u64)>>,
}

impl Sink {
    fn start(running: &Running, expected: usize) -> Self {
        let socket = running.server.run(|| {
            let socket = UdpSocket::bind((SERVER.v4, 9)).expect("a free port");
            let pause = Some(Duration::from_millis(300));
            socket.set_read_timeout(pause).expect("a timeout");
            let large = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 64 << 20);
            if large.is_err() {
                // As an ordinary user: what the machine allows.
                let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 64 << 20);
            }
            let _ = stamp(&socket);
            socket
        });
        let ended = Arc::new(AtomicBool::new(false));
        let asked = ended.clone();
        let thread = running.server.spawn(move || {
            let mut arrivals = Vec::with_capacity(1 << 20);
            let mut bytes = [0; 2048];
            while arrivals.len() < expected {
                match socket.recv(&mut bytes) {
                    Ok(_) => {
                        let first = bytes[..8].try_into().expect("eight bytes");
                        arrivals.push((u64::from_ne_bytes(first), stamp(&socket)));
                    }
                    Err(_) if asked.load(Ordering::Relaxed) => break,
                    Err(_) => {}
                }
            }
            arrivals
        });
        Self { ended, thread }
    }

    fn finish(self) -> Vec<(u64, u64)> {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().expect("a sink")
    }
}

/// When the packet that was read last arrived, by the kernel; asking for the first time has it
/// stamp packets.
fn stamp(socket: &UdpSocket) -> u64 {
    const SIOCGSTAMPNS: u64 = 0x8907;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the descriptor is open, and the operation writes one timespec.
    unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSTAMPNS as _, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A thread on each core that has always something to do, until dropped.
struct Busy(Arc<AtomicBool>);

impl Busy {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            let stop = stop.clone();
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self(stop)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
