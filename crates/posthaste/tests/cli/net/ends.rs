//! No process is left behind, for any behaviour of a command and after any process is killed.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{NOBODY, User, folder, net, own, users};
use crate::command::{CommandOutput, execute, signal};

/// Longer than anything needs on a busy machine, so that a test that hangs fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts three processes that stay: one in the background, one in a session of its own, one that ignores SIGTERM.
const STAYS: &str = "sleep 300 & echo $!; setsid sleep 300 & echo $!; \
    (trap '' TERM; sleep 300 & wait) & echo $!; ";

fn lives(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

/// Fails unless all of them end soon.
fn expect_ended(processes: &[u32]) {
    let patience = Instant::now() + PATIENCE;
    while processes.iter().any(|process| lives(*process)) {
        assert!(Instant::now() < patience, "{processes:?} are left");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Networks of a process's threads, by the kernel's name for each.
fn networks(process: u32) -> HashSet<PathBuf> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten();
    threads
        .filter_map(|thread| std::fs::read_link(thread.path().join("ns/net")).ok())
        .collect()
}

/// Networks created by a run: those of both hosts, and the emulator's between them.
fn own_networks(supervised: u32) -> HashSet<PathBuf> {
    let machine = networks(std::process::id());
    let made: HashSet<PathBuf> = networks(supervised).difference(&machine).cloned().collect();
    assert_eq!(made.len(), 3, "{made:?}");
    made
}

/// Fails unless these networks are soon empty, so that their devices are gone. A freed number may meanwhile be the
/// network of another test's run, which ends soon too.
fn expect_empty(made: &HashSet<PathBuf>) {
    let patience = Instant::now() + PATIENCE;
    let someone = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.find(|process| !networks(*process).is_disjoint(made))
    };
    while let Some(process) = someone() {
        assert!(Instant::now() < patience, "{process} is left");
        thread::sleep(Duration::from_millis(50));
    }
}

/// A run whose command has started three processes that stay, and waits.
struct NetRun {
    supervisor: Child,
    out: BufReader<ChildStdout>,
    inside: Vec<u32>,
}

fn start(user: User) -> NetRun {
    let script = format!("{STAYS} echo $$; exec sleep 300");
    let mut command = net_with_signals(user, &["--", "sh", "-c", &script]);
    command
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut supervisor = command.spawn().unwrap();
    let mut out = BufReader::new(supervisor.stdout.take().unwrap());
    let inside = (0..4).map(|_| process(&mut out)).collect();
    NetRun {
        supervisor,
        out,
        inside,
    }
}

fn process(out: &mut BufReader<ChildStdout>) -> u32 {
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    line.trim()
        .parse()
        .unwrap_or_else(|_| panic!("{line:?} is no process"))
}

/// `posthaste net`, started with an ignored signal, like under `nohup`.
fn net_that_ignores(name: &str, user: User, arguments: &[&str]) -> Command {
    net_by_env(&format!("--ignore-signal={name}"), user, arguments)
}

/// `posthaste net`, started with the default effect of all signals. In the background of a script, and under `nohup`,
/// some are ignored.
fn net_with_signals(user: User, arguments: &[&str]) -> Command {
    net_by_env("--default-signal", user, arguments)
}

/// `posthaste net`, started by env(1) with an option.
fn net_by_env(option: &str, user: User, arguments: &[&str]) -> Command {
    let mut command = Command::new("env");
    command
        .arg(option)
        .arg(own(user))
        .arg("net")
        .args(arguments)
        .stdin(Stdio::null())
        .current_dir("/");
    if matches!(user, User::Nobody) {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Returns the process that the supervisor watches.
fn supervised(supervisor: u32) -> u32 {
    let text =
        std::fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn processes_left_by_a_command_are_ended() {
    for user in users() {
        let script = format!("{STAYS} exit 3");
        let run = execute(&mut net(*user, &["--", "sh", "-c", &script]));
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
        let supervised = supervised(run.supervisor.id());
        let networks = own_networks(supervised);
        signal("KILL", run.supervisor.id());
        run.supervisor.wait().unwrap();
        run.inside.push(supervised);
        expect_ended(&run.inside);
        expect_empty(&networks);
    }
}

#[test]
fn a_killed_run_leaves_nothing() {
    for user in users() {
        let mut run = start(*user);
        let supervised = supervised(run.supervisor.id());
        let networks = own_networks(supervised);
        signal("KILL", supervised);
        assert_eq!(run.supervisor.wait().unwrap().code(), Some(3));
        expect_ended(&run.inside);
        expect_empty(&networks);
    }
}

#[test]
fn a_killed_command_ends_the_run() {
    for user in users() {
        let mut run = start(*user);
        signal("KILL", run.inside[3]);
        assert_eq!(run.supervisor.wait().unwrap().code(), Some(128 + 9));
        expect_ended(&run.inside);
    }
}

#[test]
fn signals_reach_the_command_and_the_report_is_made() {
    for user in users() {
        let signals = [
            ("INT", 2),
            ("TERM", 15),
            ("HUP", 1),
            ("USR1", 10),
            ("USR2", 12),
        ];
        for (name, number) in signals {
            let mut run = start(*user);
            signal(name, run.supervisor.id());
            assert_eq!(
                run.supervisor.wait().unwrap().code(),
                Some(128 + number),
                "{name}"
            );
            expect_ended(&run.inside);
            let mut output = String::new();
            let mut err = BufReader::new(run.supervisor.stderr.take().unwrap());
            while err.read_line(&mut output).unwrap() > 0 {}
            assert!(output.contains("0 connections"), "{output}");
            drop(run.out);
        }
    }
}

/// A command that handles Ctrl-C decides when it ends.
#[test]
fn an_interrupted_command_goes_on_if_it_wants_to() {
    for user in users() {
        let script = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.1; done";
        let mut command = net_with_signals(*user, &["--", "sh", "-c", script]);
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

/// Like a service that reopens its log files.
#[test]
fn a_signal_for_the_command_does_not_end_it() {
    for user in users() {
        let script = "trap 'echo first' USR1; trap 'echo second; exit 9' USR2; echo ready; \
            while :; do sleep 0.1; done";
        let mut run = net_with_signals(*user, &["--", "sh", "-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(run.stdout.take().unwrap());
        let mut line = String::new();
        for name in ["USR1", "USR2"] {
            out.read_line(&mut line).unwrap();
            signal(name, run.id());
        }
        out.read_line(&mut line).unwrap();
        let code = run.wait().unwrap().code();
        assert_eq!((line.as_str(), code), ("ready\nfirst\nsecond\n", Some(9)));
    }
}

/// If SIGCHLD is ignored, the kernel would reap children itself and report no exit status.
#[test]
fn a_parent_that_ignores_its_children_costs_no_news_of_ours() {
    for user in users() {
        let mut run = net_that_ignores("CHLD", *user, &["--quiet", "--", "sh", "-c", "exit 7"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let patience = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = run.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > patience {
                run.kill().unwrap();
                panic!("it waits for ever");
            }
            thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(status.code(), Some(7));
    }
}

#[test]
fn a_signal_that_was_ignored_from_the_beginning_stays_ignored() {
    for user in users() {
        // Longer than the grace period of a command.
        let script = "echo ready; sleep 3; exit 7";
        let mut run = net_that_ignores("HUP,USR1", *user, &["--", "sh", "-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(run.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        signal("HUP", run.id());
        signal("USR1", run.id());
        assert_eq!(run.wait().unwrap().code(), Some(7));
    }
}

#[test]
fn a_server_is_asked_before_it_is_ended() {
    for user in users() {
        let (posthaste, folder) = (own(*user), folder());
        let file = folder.path().join("ended");
        let file = file.to_str().unwrap();
        let server = format!(
            "trap 'echo ended > {file}; exit' TERM; {posthaste} bookshop --listen 0.0.0.0:80 & wait"
        );
        let run = execute(&mut net(*user, &["--server", &server, "--", "true"]));
        assert_eq!(run.code, Some(0), "{}", run.err);
        let text = std::fs::read_to_string(file).unwrap_or_default();
        assert_eq!(text, "ended\n", "{}", run.err);
    }
}

/// The run blocks while the report's pipe has no reader. Its signals are held by then.
#[test]
fn a_signal_before_the_command_stops_the_run() {
    for user in users() {
        let folder = folder();
        let pipe = folder.path().join("report");
        let pipe = pipe.to_str().unwrap();
        let made = Command::new("mkfifo").args(["-m", "666", pipe]).status();
        assert!(made.unwrap().success());
        let run = net_with_signals(*user, &["--report", pipe, "--", "echo", "ran"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let children = format!("/proc/{0}/task/{0}/children", run.id());
        let patience = Instant::now() + PATIENCE;
        while std::fs::read_to_string(&children).is_ok_and(|text| text.is_empty()) {
            assert!(Instant::now() < patience, "nobody was guarded");
            thread::sleep(Duration::from_millis(2));
        }
        signal("INT", supervised(run.id()));
        let _report = std::fs::read(pipe).unwrap();
        let run = CommandOutput::from(run.wait_with_output().unwrap());
        assert_eq!((run.code, run.out.as_str()), (Some(3), ""), "{}", run.err);
        assert!(run.err.contains("stopped by signal 2"), "{}", run.err);
    }
}
