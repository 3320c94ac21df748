//! Pairs of a sender and a client: response times of the emulator compared with those of the simulator.
//!
//! Each end is this machine's kernel or a profile of a TCP. The simulator has the profile `linux-6` for the kernel. A
//! cell is a pair, a line, and the position of one lost packet of the server.
//!
//! This is a test program of its own, because it measures thousands of transactions: no other test runs beside it.
//! Needs root or user namespaces. If a kernel forbids both, every test is reported as ignored and the reason is
//! printed.

mod cell;
mod comparison;
mod emulated;
mod simulated;

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use libtest_mimic::{Arguments, Failed, Trial};
use posthaste_emulator::namespace;

use cell::{PROFILES, StackPair, TcpEnd};

/// Emulated transactions of a cell with a kernel.
const RUNS: usize = 9;
/// Emulated transactions of a cell without one: both programs then have the same TCP.
const FEW_RUNS: usize = 3;
/// Pairs that are emulated at the same time. Most of the time of an emulation is a wait for the last timeouts.
const AT_ONCE: usize = 3;

fn main() -> ExitCode {
    let allowed = namespace::enter();
    let mut trials = vec![
        trial("kernel_as_client", || compare(&kernel_as_client(), RUNS)),
        trial("kernel_as_server", || compare(&kernel_as_server(), RUNS)),
        trial("profiles_at_both_ends", || compare(&profiles(), FEW_RUNS)),
    ];
    if let Err(error) = &allowed {
        let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!in_ci, "{error}");
        eprintln!("skipped: {error}");
        for trial in &mut trials {
            let skipped = std::mem::replace(trial, Trial::test("", || Ok(())));
            *trial = skipped.with_ignored_flag(true);
        }
    }
    let mut arguments = Arguments::from_args();
    // Each test has several emulations with hundreds of connections.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(name: &'static str, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    Trial::test(name, test)
}

/// Every sender with this machine's kernel as the client.
fn kernel_as_client() -> Vec<StackPair> {
    let servers = PROFILES.map(TcpEnd::Profile).into_iter();
    servers
        .chain([TcpEnd::Kernel])
        .map(|server| StackPair {
            server,
            client: TcpEnd::Kernel,
        })
        .collect()
}

/// This machine's kernel as the sender with every client.
fn kernel_as_server() -> Vec<StackPair> {
    PROFILES
        .map(|client| StackPair {
            server: TcpEnd::Kernel,
            client: TcpEnd::Profile(client),
        })
        .into()
}

fn profiles() -> Vec<StackPair> {
    let pair = |server, client| StackPair {
        server: TcpEnd::Profile(server),
        client: TcpEnd::Profile(client),
    };
    PROFILES
        .into_iter()
        .flat_map(|server| PROFILES.map(|client| pair(server, client)))
        .collect()
}

/// Fails if a cell of one of the pairs differs each time that it is emulated, `runs` transactions each time.
fn compare(pairs: &[StackPair], runs: usize) -> Result<(), Failed> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut differences = Vec::new();
        while let Some(pair) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
            differences.extend(comparison::differences(pair, runs));
        }
        differences
    };
    let differences: Vec<String> = thread::scope(|scope| {
        let workers = [(); AT_ONCE].map(|()| scope.spawn(worker));
        let results = workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"));
        results.flatten().collect()
    });
    if differences.is_empty() {
        return Ok(());
    }
    let count = differences.len();
    Err(format!("{count} cells differ:\n{}", differences.join("\n")).into())
}
