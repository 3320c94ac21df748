//! What `cargo xtask bench` knows of the emulator: packets and times as they were, to be judged there.
//!
//! Seen from outside: senders read the clock before they send, and receivers take the stamp that
//! their kernel put on the packet, or its counters. `delay PACKETS`, `flows FLOWS`,
//! `rate BITS SECONDS`, `capacity SECONDS`, `positions PACKETS`; behind them `fifo` asks for
//! precedence, `busy` keeps every core busy, and `loopback` measures whatever stands on loopback
//! instead of the emulator. Lines of words and numbers; times in ns of the wall clock.

mod flood;
mod line;
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

use line::Line;
use sink::{Arrival, Sink};

/// Headers of IPv4 and UDP.
const HEADERS: usize = 28;
/// The largest payload of a packet.
const LARGEST: usize = 1472;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    namespace::enter()?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|other| other == word);
    let number = |place: usize| -> Result<u64, Failure> {
        let word = words.get(place).ok_or("a number is missing")?;
        Ok(word.parse()?)
    };
    let line = Line {
        fifo: has("fifo"),
        loopback: has("loopback"),
    };
    let _busy = has("busy").then(Busy::start);
    match words.first().map(String::as_str) {
        Some("delay") => delay(line, number(1)? as usize),
        Some("flows") => flows(line, number(1)? as usize),
        Some("rate") => rate(line, number(1)?, number(2)?),
        Some("capacity") => flood::capacity(line, number(1)?),
        Some("positions") => positions(line, number(1)?),
        _ => Err("which: delay, flows, rate, capacity or positions?".into()),
    }
}

/// A packet each millisecond, ten milliseconds under way.
fn delay(line: Line, packets: usize) -> Result<(), Failure> {
    let under_way = Span::from_millis(10);
    let running = line.start(Plan {
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

/// So many flows at 20 packets a second for ten, each on a line of 1 Mbit/s that takes 8 ms for one
/// and holds it for 10 ms more.
fn flows(line: Line, flows: usize) -> Result<(), Failure> {
    let running = line.start(Plan {
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

/// As much as a line of so many bits a second carries, a quarter of a second ahead of it, so that
/// it always has work. For a line that starts empty and holds half a second.
fn rate(line: Line, bits: u64, seconds: u64) -> Result<(), Failure> {
    let each = Duration::from_secs_f64(((LARGEST + HEADERS) * 8) as f64 / bits as f64);
    let packets = move |time: f64| (time / each.as_secs_f64()) as usize;
    let ahead = packets(0.25);
    let running = line.start(Plan {
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
        // Loopback keeps what waits on the sender's account.
        let _ = set_socket_send_buffer_size_force(&socket, 64 << 20);
        (0..ahead).for_each(|_| send(&socket, LARGEST));
        paced(packets(seconds as f64), each, |_| send(&socket, LARGEST));
    });
    print_arrivals(&sink.finish_after(sender));
    running.finish()
}

/// A pattern drops each 997th packet; says whether exactly those were missing at the other end, and
/// whether the trace says the same.
fn positions(line: Line, packets: u64) -> Result<(), Failure> {
    let doomed: BTreeSet<u64> = (997..=packets).step_by(997).collect();
    let lines: String = doomed
        .iter()
        .map(|place| format!("up drop {place}\n"))
        .collect();
    let pattern = Pattern::parse(&format!("posthaste pattern 1\n{lines}end\n"))?;
    let plan = Plan {
        script: Some(pattern.script(Direction::Up).clone()),
        ..Plan::default()
    };
    let (running, sightings) = line.start_seen(plan)?;
    let sink = Sink::start(&running, packets as usize - doomed.len());
    let latest = sink.latest.clone();
    let sender = running.at_client(move |connect| {
        let socket = connect();
        for position in 1..=packets {
            // No more on their way than the receiver has room for.
            while position > latest.load(Ordering::Relaxed) + 100 {
                std::thread::sleep(Duration::from_micros(50));
            }
            let _ = socket.send(&u64::to_ne_bytes(position));
        }
    });
    let (mut traced, mut dropped) = (0, BTreeSet::new());
    let mut read_trace = || {
        for sighting in sightings.drain() {
            traced += 1;
            if let Fate::Dropped(_) = sighting.fate {
                dropped.insert(sighting.position);
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

/// When each packet was sent and when it arrived.
fn print_arrivals(arrivals: &[Arrival]) {
    let lines: Vec<String> = arrivals
        .iter()
        .map(|arrival| format!("packet {} {}\n", arrival.first, arrival.stamp))
        .collect();
    print!("{}", lines.concat());
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
