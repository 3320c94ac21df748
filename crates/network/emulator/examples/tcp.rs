//! A TCP stack of `posthaste-tcp` against this machine's kernel, over a bad link and for a long time.
//!
//! `bytes PROFILE client|server MEGABYTES` sends that amount each way at once, with 1 % loss, 1 % duplication and 1 %
//! reordering, and compares every byte. `short PROFILE client|server COUNT` runs that many transactions, each on its
//! own connection, and prints their times. The profile replaces the kernel at that end. The other end uses the
//! machine's kernel.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use posthaste_emulator::{Emulation, RunningEmulation, SERVER, TcpCounters, namespace};
use posthaste_link::{Direction, Plan, Reordering};
use posthaste_tcp::profile;
use posthaste_units::{Ratio, Span};

type Failure = Box<dyn std::error::Error>;

/// Bytes written and compared at a time.
const PIECE: usize = 64 << 10;
const REQUEST: usize = 300;
const REPLY: usize = 13_000;
/// Concurrent transactions.
const AT_ONCE: usize = 4;
/// Minimum time of a stalled transaction on a link without loss.
const STALL: Duration = Duration::from_secs(1);

fn main() -> Result<(), Failure> {
    namespace::enter()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [subject, name, end, count] = arguments.as_slice() else {
        return Err("write: bytes|short PROFILE client|server COUNT".into());
    };
    let modelled = match end.as_str() {
        "client" => Direction::Up,
        "server" => Direction::Down,
        _ => return Err("which end: client or server?".into()),
    };
    let count = count.parse()?;
    match subject.as_str() {
        "bytes" => bytes(start(bad(), name, modelled)?, modelled, count),
        "short" => short(start(Plan::default(), name, modelled)?, modelled, count),
        _ => Err("which: bytes or short?".into()),
    }
}

/// A short link that loses, duplicates and reorders packets.
fn bad() -> Plan {
    let percent = Ratio::new(0.01).expect("a share");
    Plan {
        delay: Span::from_micros(200),
        loss: Some("1%".parse().expect("a loss")),
        duplication: percent,
        reordering: Some(Reordering::Hold {
            share: percent,
            places: 3,
        }),
        ..Plan::default()
    }
}

fn start(plan: Plan, name: &str, modelled: Direction) -> Result<RunningEmulation, Failure> {
    let profile = Arc::new(profile::named(name)?);
    let plan = Arc::new(plan);
    let emulation = Emulation::new(plan.clone(), plan).real_time(true);
    Ok(emulation.tcp(modelled, Some(profile)).start()?)
}

fn listen(running: &RunningEmulation) -> (TcpListener, SocketAddr) {
    let bind = || TcpListener::bind((SERVER.v4, 0)).expect("a free port");
    let listener = running.server.run(bind);
    let at = listener.local_addr().expect("bound");
    (listener, at)
}

fn bytes(running: RunningEmulation, modelled: Direction, megabytes: usize) -> Result<(), Failure> {
    let pieces = megabytes * 1_000_000 / PIECE + 1;
    let (listener, at) = listen(&running);
    let began = Instant::now();
    let server = running.server.spawn(move || {
        let (connection, _) = listener.accept().expect("a connection");
        exchange(connection, [1, 2], pieces)
    });
    let client = running.client.spawn(move || {
        let connection = TcpStream::connect(at).expect("connected");
        exchange(connection, [2, 1], pieces)
    });
    for (whose, thread) in [("down", client), ("up", server)] {
        let (right, wrong) = thread.join().expect("an end");
        println!("{whose}: {right} bytes right, {wrong} wrong");
    }
    let taken = began.elapsed();
    println!("{:.1} s", taken.as_secs_f64());
    report(running, modelled)
}

/// Writes its own stream while it compares the other's. Returns the numbers of right and wrong bytes.
fn exchange(mut connection: TcpStream, [own, other]: [u64; 2], pieces: usize) -> (u64, u64) {
    let mut writer = connection.try_clone().expect("a second handle");
    let writes = thread::spawn(move || {
        for number in 0..pieces {
            writer.write_all(&piece(own, number)).expect("written");
        }
        writer.shutdown(Shutdown::Write).expect("closed");
    });
    let (mut right, mut wrong) = (0, 0);
    let mut buffer = vec![0; PIECE];
    for number in 0..pieces {
        connection.read_exact(&mut buffer).expect("a piece");
        let differ = |(got, wanted): (&u8, &u8)| u64::from(got != wanted);
        let different: u64 = match piece(other, number) {
            wanted if wanted == buffer => 0,
            wanted => buffer.iter().zip(&wanted).map(differ).sum(),
        };
        wrong += different;
        right += PIECE as u64 - different;
    }
    let more = connection.read(&mut buffer).expect("the end");
    writes.join().expect("written");
    (right, wrong + more as u64)
}

/// Content of a stream: no two words are equal.
fn piece(stream: u64, number: usize) -> Vec<u8> {
    let piece_words = PIECE as u64 / 8;
    let first = number as u64 * piece_words;
    let word = |at: u64| ((first + at) << 2 | stream).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..piece_words)
        .flat_map(|at| word(at).to_le_bytes())
        .collect()
}

fn short(running: RunningEmulation, modelled: Direction, count: usize) -> Result<(), Failure> {
    let (listener, at) = listen(&running);
    let each = count / AT_ONCE;
    let served = running.server.spawn(move || {
        let threads: Vec<JoinHandle<()>> = (0..AT_ONCE)
            .map(|_| {
                let listener = listener.try_clone().expect("a second handle");
                thread::spawn(move || (0..each).for_each(|_| answer(&listener)))
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("replied"));
    });
    let began = Instant::now();
    let clients: Vec<JoinHandle<Vec<Duration>>> = (0..AT_ONCE)
        .map(|_| {
            let asks = move || (0..each).map(|_| ask(at)).collect();
            running.client.spawn(asks)
        })
        .collect();
    let mut taken: Vec<Duration> = clients
        .into_iter()
        .flat_map(|client| client.join().expect("replies"))
        .collect();
    served.join().expect("served");
    taken.sort();
    let stalled = taken.iter().filter(|taken| **taken >= STALL).count();
    println!(
        "{} transactions in {:.1} s: median {:?}, the longest {:?}, {stalled} of a second or more",
        taken.len(),
        began.elapsed().as_secs_f64(),
        taken[taken.len() / 2],
        taken[taken.len() - 1],
    );
    report(running, modelled)
}

fn answer(listener: &TcpListener) {
    let (mut connection, _) = listener.accept().expect("a connection");
    connection.read_exact(&mut [0; REQUEST]).expect("a request");
    connection.write_all(&[b'r'; REPLY]).expect("replied");
}

fn ask(at: SocketAddr) -> Duration {
    let began = Instant::now();
    let mut connection = TcpStream::connect(at).expect("connected");
    connection.write_all(&[b'q'; REQUEST]).expect("asked");
    let mut reply = Vec::new();
    connection.read_to_end(&mut reply).expect("a reply");
    assert!(reply == [b'r'; REPLY]);
    began.elapsed()
}

fn report(running: RunningEmulation, modelled: Direction) -> Result<(), Failure> {
    let kernel = match modelled {
        Direction::Up => &running.server,
        Direction::Down => &running.client,
    };
    println!("the kernel: {:?}", kernel.run(TcpCounters::read)?);
    let outcome = running.finish()?;
    println!(
        "the profile: {:?}",
        outcome.stacks[modelled as usize].ok_or("no stack")?
    );
    println!("{}", outcome.verdict());
    Ok(())
}
