//! Measurements of the emulator for `cargo xtask bench`: raw packets and times, evaluated there.
//!
//! Measured from outside: senders read the clock before they send, and receivers use the stamp of their kernel on the
//! packet, or its counters. Commands: `delay PACKETS`, `flows FLOWS`, `rate BITS SECONDS`, `capacity SECONDS`,
//! `positions PACKETS`. Options after them: `fifo` requests real-time priority, `busy` keeps every core busy, and
//! `loopback` measures loopback instead of the emulator. Prints lines of words and numbers, with times in ns of the
//! wall clock.

mod flood;
mod network;
mod sink;

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use posthaste_emulator::namespace;
use posthaste_link::pattern::Pattern;
use posthaste_link::{Direction, Fate, Plan, Queue};
use posthaste_units::{BitRate, Span};
use rustix::net::sockopt::set_socket_send_buffer_size_force;
use rustix::time::{ClockId, clock_gettime};

use network::TestedNetwork;
use sink::{Sink, StampedPacket};

/// Bytes of the IPv4 and UDP headers.
const HEADERS: usize = 28;
/// Largest payload of a packet.
const LARGEST: usize = 1472;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    namespace::enter()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|other| other == word);
    let number = |position: usize| -> Result<u64, Failure> {
        let word = arguments.get(position).ok_or("a number is missing")?;
        Ok(word.parse()?)
    };
    let network = TestedNetwork {
        fifo: has("fifo"),
        loopback: has("loopback"),
    };
    let _busy = has("busy").then(Busy::start);
    match arguments.first().map(String::as_str) {
        Some("delay") => delay(network, number(1)? as usize),
        Some("flows") => flows(network, number(1)? as usize),
        Some("rate") => rate(network, number(1)?, number(2)?),
        Some("capacity") => flood::capacity(network, number(1)?),
        Some("positions") => positions(network, number(1)?),
        _ => Err("which: delay, flows, rate, capacity or positions?".into()),
    }
}

/// One packet each millisecond, with a delay of ten milliseconds.
fn delay(network: TestedNetwork, packets: usize) -> Result<(), Failure> {
    let under_way = Span::from_millis(10);
    let running = network.start(Plan {
        delay: under_way,
        ..Plan::default()
    })?;
    let sink = Sink::start(&running, packets);
    let sender = running.at_client(move |connect| {
        let socket = connect();
        let every = Duration::from_millis(1);
        paced(packets, every, |_| send(&socket, 200));
    });
    print_arrivals(&sink.finish_after(sender));
    running.finish()
}

/// `flows` flows at 20 packets a second for ten seconds, each on a link of 1 Mbit/s that takes 8 ms for a packet and
/// delays it by 10 ms more.
fn flows(network: TestedNetwork, flows: usize) -> Result<(), Failure> {
    let running = network.start(Plan {
        delay: Span::from_millis(10),
        bandwidth: BitRate::per_second(1_000_000),
        ..Plan::default()
    })?;
    let packets = flows * 200;
    let sink = Sink::start(&running, packets);
    let sender = running.at_client(move |connect| {
        let sockets: Vec<UdpSocket> = (0..flows).map(|_| connect()).collect();
        let every = Duration::from_secs(1) / (20 * flows as u32);
        paced(packets, every, |number| {
            send(&sockets[number % flows], 1000 - HEADERS);
        });
    });
    print_arrivals(&sink.finish_after(sender));
    running.finish()
}

/// Traffic at the bandwidth of the link, a quarter of a second ahead of it so that it is always busy. For a link that
/// starts empty and holds half a second.
fn rate(network: TestedNetwork, bits: u64, seconds: u64) -> Result<(), Failure> {
    let each = Duration::from_secs_f64(((LARGEST + HEADERS) * 8) as f64 / bits as f64);
    let packets = move |time: f64| (time / each.as_secs_f64()) as usize;
    let ahead = packets(0.25);
    let running = network.start(Plan {
        bandwidth: BitRate::per_second(bits),
        queue: Queue {
            packets: 2 * ahead as u32,
            ..Queue::default()
        },
        ..Plan::default()
    })?;
    let sink = Sink::start(&running, usize::MAX);
    let sender = running.at_client(move |connect| {
        let socket = connect();
        // Loopback charges queued packets to the sender's buffer.
        let _ = set_socket_send_buffer_size_force(&socket, 64 << 20);
        (0..ahead).for_each(|_| send(&socket, LARGEST));
        paced(packets(seconds as f64), each, |_| send(&socket, LARGEST));
    });
    print_arrivals(&sink.finish_after(sender));
    running.finish()
}

/// Drops each 997th packet by a pattern. Prints if exactly those were missing at the other end, and if the trace
/// agrees.
fn positions(network: TestedNetwork, packets: u64) -> Result<(), Failure> {
    let doomed: BTreeSet<u64> = (997..=packets).step_by(997).collect();
    let lines: String = doomed
        .iter()
        .map(|position| format!("up drop {position}\n"))
        .collect();
    let pattern = Pattern::parse(&format!("posthaste pattern 1\n{lines}end\n"))?;
    let plan = Plan {
        script: Some(pattern.script(Direction::Up).clone()),
        ..Plan::default()
    };
    let (running, packet_records) = network.start_seen(plan)?;
    let sink = Sink::start(&running, packets as usize - doomed.len());
    let latest = sink.latest.clone();
    let sender = running.at_client(move |connect| {
        let socket = connect();
        for position in 1..=packets {
            // No more packets under way than fit into the receiver's buffer.
            while position > latest.load(Ordering::Relaxed) + 100 {
                std::thread::sleep(Duration::from_micros(50));
            }
            let _ = socket.send(&u64::to_ne_bytes(position));
        }
    });
    let (mut traced, mut dropped) = (0, BTreeSet::new());
    let mut read_trace = || {
        for packet_record in packet_records.drain() {
            traced += 1;
            if let Fate::Dropped(_) = packet_record.fate {
                dropped.insert(packet_record.position);
            }
        }
    };
    while !sender.is_finished() {
        read_trace();
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut missing: BTreeSet<u64> = (1..=packets).collect();
    for arrival in sink.finish_after(sender) {
        missing.remove(&arrival.first);
    }
    running.finish()?;
    read_trace();
    println!("dropped {}", doomed.len());
    println!("missing-as-planned {}", missing == doomed);
    println!("traced {traced}");
    println!("trace-as-planned {}", dropped == doomed);
    Ok(())
}

/// Sends `length` bytes that begin with the time.
fn send(socket: &UdpSocket, length: usize) {
    let mut bytes = [0; LARGEST];
    bytes[..8].copy_from_slice(&wall_clock().to_ne_bytes());
    let _ = socket.send(&bytes[..length]);
}

/// Calls `act` that many times at even intervals, and sleeps in between if there is time.
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

/// Prints the time of sending and of arrival of each packet.
fn print_arrivals(arrivals: &[StampedPacket]) {
    let lines: Vec<String> = arrivals
        .iter()
        .map(|arrival| format!("packet {} {}\n", arrival.first, arrival.stamp))
        .collect();
    print!("{}", lines.concat());
}

/// A busy thread on each core, until dropped.
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
