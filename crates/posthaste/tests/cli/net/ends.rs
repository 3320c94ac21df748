//! Nothing is left behind: whatever a command does, and whoever is killed.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{User, net, users};
use crate::command::{said, signal};

/// Three that stay: one in the background, one in a session of its own, one that will not hear.
const STAYS: &str = "sleep 300 & echo $!; setsid sleep 300 & echo $!; \
    (trap '' TERM; sleep 300 & wait) & echo $!; ";

fn lives(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

/// Fails unless all of them have ended soon.
fn expect_ended(processes: &[u32]) {
    let patience = Instant::now() + Duration::from_secs(10);
    while processes.iter().any(|process| lives(*process)) {
        assert!(Instant::now() < patience, "{processes:?} are left");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A run whose command has started three that stay, and waits.
struct Run {
    guard: Child,
    out: BufReader<ChildStdout>,
    inside: Vec<u32>,
}

fn start(user: User) -> Run {
    let script = format!("{STAYS} echo $$; exec sleep 300");
    let mut command = net(user, &["--", "sh", "-c", &script]);
    command
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut guard = command.spawn().unwrap();
    let mut out = BufReader::new(guard.stdout.take().unwrap());
    let inside = (0..4).map(|_| process(&mut out)).collect();
    Run { guard, out, inside }
}

fn process(out: &mut BufReader<ChildStdout>) -> u32 {
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    line.trim()
        .parse()
        .unwrap_or_else(|_| panic!("{line:?} is no process"))
}

/// The process that the guard watches.
fn ward(guard: u32) -> u32 {
    let output = Command::new("ps")
        .args(["-o", "pid=", "--ppid", &guard.to_string()])
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn what_a_command_leaves_is_ended() {
    for user in users() {
        let script = format!("{STAYS} exit 3");
        let run = said(&mut net(*user, &["--", "sh", "-c", &script]));
        assert_eq!(run.code, Some(3), "{}", run.err);
        let left: Vec<u32> = run.out.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(left.len(), 3);
        assert!(left.iter().all(|process| !lives(*process)), "{left:?}");
    }
}

#[test]
fn a_killed_guard_leaves_nothing() {
    for user in users() {
        let mut run = start(*user);
        let ward = ward(run.guard.id());
        signal("KILL", run.guard.id());
        run.guard.wait().unwrap();
        run.inside.push(ward);
        expect_ended(&run.inside);
    }
}

#[test]
fn a_killed_run_leaves_nothing() {
    for user in users() {
        let mut run = start(*user);
        signal("KILL", ward(run.guard.id()));
        assert_eq!(run.guard.wait().unwrap().code(), Some(3));
        expect_ended(&run.inside);
    }
}

#[test]
fn a_killed_command_ends_the_run() {
    for user in users() {
        let mut run = start(*user);
        signal("KILL", run.inside[3]);
        assert_eq!(run.guard.wait().unwrap().code(), Some(128 + 9));
        expect_ended(&run.inside);
    }
}

#[test]
fn signals_reach_the_command_and_the_report_is_made() {
    for user in users() {
        for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
            let mut run = start(*user);
            signal(name, run.guard.id());
            assert_eq!(
                run.guard.wait().unwrap().code(),
                Some(128 + number),
                "{name}"
            );
            expect_ended(&run.inside);
            let mut said = String::new();
            let mut err = BufReader::new(run.guard.stderr.take().unwrap());
            while err.read_line(&mut said).unwrap() > 0 {}
            assert!(said.contains("0 connections"), "{said}");
            drop(run.out);
        }
    }
}

/// A command that handles Ctrl-C decides itself when it ends.
#[test]
fn an_interrupted_command_goes_on_if_it_wants_to() {
    for user in users() {
        let script = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.1; done";
        let mut command = net(*user, &["--", "sh", "-c", script]);
        let mut run = command
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(run.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let group = format!("-{}", run.id());
        let sent = Command::new("kill")
            .args(["-s", "INT", "--", &group])
            .status()
            .unwrap();
        assert!(sent.success());
        out.read_line(&mut line).unwrap();
        assert_eq!(
            (line.as_str(), run.wait().unwrap().code()),
            ("ready\ncaught\n", Some(9))
        );
    }
}
