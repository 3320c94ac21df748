//! The commands of the README and the tutorials, run as written.
//!
//! A block marked `console` holds commands after `$ `, their further lines after `> `, and their output. All blocks of
//! a page run in one shell, in an empty folder. Numbers, with their units, may differ from the page; `...` stands for
//! any lines. Ports are replaced by free ones, so that pages can run at the same time, next to services of this
//! machine. With `POSTHASTE_WRITE_DOCS=1` the output on the page is replaced by that of this run; `POSTHASTE_BINARY`
//! names a binary of another build for it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Time limit for a command, and for the output of a background command.
const PATIENCE: Duration = Duration::from_secs(120);

/// Ports that the pages use.
const PORTS: [&str; 7] = ["8080", "8090", "9000", "9001", "9002", "9003", "9090"];

/// A line that no command prints.
const MARK: &str = "--- next command ---";

#[test]
fn the_readme_runs_as_typed() {
    run("README.md");
}

#[test]
fn the_tutorial_of_load_runs_as_typed() {
    run("docs/start/load.md");
}

#[test]
fn the_tutorial_of_the_emulator_runs_as_typed() {
    run("docs/start/emulate.md");
}

#[test]
fn the_tutorial_of_the_simulator_runs_as_typed() {
    run("docs/start/simulate.md");
}

#[test]
fn the_tutorial_of_the_gateway_runs_as_typed() {
    run("docs/start/gateway.md");
}

#[test]
fn the_guide_to_routing_by_offers_runs_as_typed() {
    run("docs/guides/route-by-offers.md");
}

#[test]
fn every_tutorial_is_run() {
    let this = include_str!("documented.rs");
    for page in root().join("docs/start").read_dir().unwrap() {
        let name = page.unwrap().file_name().into_string().unwrap();
        let is_run = this.contains(&format!("run(\"docs/start/{name}\")"));
        assert!(is_run, "docs/start/{name} has no test here");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a page, three times at most, because a busy machine may exceed the bounds that a page asserts.
fn run(page: &str) {
    if !["bash", "curl"].into_iter().all(is_there) {
        assert!(
            std::env::var_os("CI").is_none_or(|value| value != "true"),
            "no bash or no curl here"
        );
        eprintln!("skipped: no bash or no curl here");
        return;
    }
    let writes = std::env::var_os("POSTHASTE_WRITE_DOCS").is_some();
    let mut left = 3;
    loop {
        let (written, differences) = run_once(page);
        left -= 1;
        if writes {
            return std::fs::write(root().join(page), written).unwrap();
        }
        if differences.is_empty() {
            return;
        }
        assert!(left > 0, "{page}:\n{differences}");
        println!("{page} again, since:\n{differences}");
    }
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// Returns the page with this run's output, and its differences from the page.
fn run_once(page: &str) -> (String, String) {
    let path = root().join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut shell = Shell::open();
    let (mut written, mut differences) = (String::new(), String::new());
    let mut index = 0;
    let mut commands = 0;
    while let Some(line) = lines.get(index) {
        let _ = writeln!(written, "{line}");
        index += 1;
        if *line != "```console" {
            continue;
        }
        while let Some(command) = lines[index].strip_prefix("$ ") {
            let _ = writeln!(written, "{}", lines[index]);
            index += 1;
            let mut command = command.to_owned();
            while let Some(more) = lines[index].strip_prefix('>') {
                let more = more.strip_prefix(' ').unwrap_or(more);
                let _ = writeln!(written, "{}", lines[index]);
                let _ = write!(command, "\n{more}");
                index += 1;
            }
            let end = lines[index..]
                .iter()
                .position(|line| line.starts_with("$ ") || *line == "```");
            let expected = &lines[index..index + end.expect("a block ends")];
            index += expected.len();
            // A background service prints its address.
            let least = usize::from(command.ends_with('&')).max(expected.len());
            let printed = shell.type_in(&command, least);
            commands += 1;
            // The page may show it shortened.
            let agrees = agree(expected, &printed);
            let (expected, printed) = (expected.join("\n"), printed.join("\n"));
            for line in if agrees { &expected } else { &printed }.lines() {
                let _ = writeln!(written, "{line}");
            }
            if !agrees {
                let _ = writeln!(
                    differences,
                    "$ {command}\n{expected}\n--- but:\n{printed}\n"
                );
            }
        }
    }
    assert!(commands > 0, "{page} has no command");
    (written, differences)
}

/// A shell with `posthaste` in its path.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: Receiver<String>,
    ports: BTreeMap<&'static str, u16>,
    folder: tempfile::TempDir,
}

impl Shell {
    fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let binary = std::env::var_os("POSTHASTE_BINARY");
        let binary = binary.unwrap_or_else(|| env!("CARGO_BIN_EXE_posthaste").into());
        let programs = folder.path().join(".bin");
        std::fs::create_dir(&programs).unwrap();
        std::os::unix::fs::symlink(binary, programs.join("posthaste")).unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut child = Command::new("bash")
            .args(["--norc", "--noprofile"])
            .current_dir(folder.path())
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("POSTHASTE_LOG", "error")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "exec 2>&1").unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        // All are held until the end, so that they differ.
        let free = PORTS.map(|port| (port, TcpListener::bind("127.0.0.1:0").unwrap()));
        let ports = free
            .iter()
            .map(|(port, free)| (*port, free.local_addr().unwrap().port()));
        Self {
            child,
            input,
            output,
            ports: ports.collect(),
            folder,
        }
    }

    /// Runs a command to its end, or in the background until it has printed that many lines.
    fn type_in(&mut self, command: &str, lines: usize) -> Vec<String> {
        let mut typed = command.to_owned();
        for (port, free) in &self.ports {
            typed = typed.replace(port, &free.to_string());
        }
        // The default port is replaced too.
        if command.starts_with("posthaste bookshop") && !command.contains("--listen") {
            let listen = format!(
                "posthaste bookshop --listen 127.0.0.1:{}",
                self.ports["8080"]
            );
            typed = typed.replacen("posthaste bookshop", &listen, 1);
        }
        // The next command may use this one's status.
        let end = format!("status=$?; echo; echo '{MARK}'; (exit $status)");
        writeln!(self.input, "{typed}\n{end}").unwrap();
        let in_background = command.ends_with('&');
        let (mut printed, mut over) = (Vec::new(), false);
        while !over || (in_background && printed.len() < lines) {
            let line = self.output.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no end of {command}: {printed:#?}"));
            over |= line == MARK;
            if line != MARK && !(line.is_empty() && in_background) {
                printed.push(self.as_on_the_page(&line));
            }
        }
        // An empty line was added for output without a final one.
        while printed.last().is_some_and(String::is_empty) {
            printed.pop();
        }
        printed
    }

    /// Replaces the ports by those of the page, and removes the folder's name.
    fn as_on_the_page(&self, line: &str) -> String {
        let mut line = line.replace(&*self.folder.path().to_string_lossy(), "");
        for (port, free) in &self.ports {
            line = line.replace(&free.to_string(), port);
        }
        line.trim_end().to_owned()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// True if the output is that of the page, except for numbers. `...` stands for any lines.
fn agree(expected: &[&str], printed: &[String]) -> bool {
    match expected {
        [] => printed.is_empty(),
        ["...", rest @ ..] => (0..=printed.len()).any(|skipped| agree(rest, &printed[skipped..])),
        [first, rest @ ..] => match printed {
            [line, others @ ..] => masked(first) == masked(line) && agree(rest, others),
            [] => false,
        },
    }
}

/// Words of a date in HTTP (RFC 9110, section 5.6.7). They differ from day to day.
const DATE_WORDS: &[&str] = &[
    "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan", "Feb", "Mar", "Apr", "May", "Jun",
    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Removes numbers, units, bars of pictures and column widths from a line.
fn masked(line: &str) -> String {
    const UNITS: [&str; 14] = [
        "ns", "us", "µs", "ms", "s", "min", "kB", "MB", "GB", "B", "kbit", "Mbit", "k", "%",
    ];
    let cleaned = line.replace('#', " ");
    let mut masked = Vec::new();
    for word in cleaned.split_whitespace() {
        if DATE_WORDS.contains(&word.trim_end_matches(',')) {
            masked.push("D".to_owned());
            continue;
        }
        let mut text = String::new();
        let mut rest = word;
        while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
            text += &rest[..start];
            let number = |character: char| character.is_ascii_digit() || ".,".contains(character);
            let end = rest[start..].find(|character| !number(character));
            rest = &rest[end.map_or(rest.len(), |end| start + end)..];
            let letters =
                rest.find(|character: char| !character.is_alphabetic() && character != '%');
            let (unit, behind) = rest.split_at(letters.unwrap_or(rest.len()));
            if UNITS.contains(&unit) {
                rest = behind;
            }
            text.push('N');
        }
        text += rest;
        // A unit as a word of its own, after its number.
        let is_unit = UNITS.contains(&text.trim_end_matches([',', ')']))
            && masked
                .last()
                .is_some_and(|before: &String| before.ends_with('N'));
        if !is_unit {
            masked.push(text);
        }
    }
    masked.join(" ")
}

#[test]
fn numbers_and_their_units_may_differ() {
    let dates = [
        "Wed, 25 Nov 2026 10:50:45 GMT",
        "Thu, 3 Dec 2026 00:50:27 GMT",
    ];
    assert_eq!(masked(dates[0]), masked(dates[1]));
    assert_ne!(
        masked(dates[0]),
        masked("Wednesday, 25 Nov 2026 10:50:45 GMT")
    );
    for (one, other) in [
        ("p50 1.2 ms, p99 3 s", "p50   900 µs, p99 12.5 ms"),
        ("200 ok 1,500 ### 3%", "404 ok 3 # 12%"),
        ("12kbit of 3.5MB", "1Mbit of 4kB"),
    ] {
        assert_eq!(masked(one), masked(other));
    }
    assert_ne!(masked("3 requests"), masked("3 replies"));
    let printed = ["a 1".to_owned(), "b".to_owned(), "c 3".to_owned()];
    assert!(agree(&["a 2", "...", "c 4"], &printed));
    assert!(agree(&["...", "b", "..."], &printed));
    assert!(!agree(&["a 2", "c 4"], &printed));
    assert!(!agree(&["a 2", "...", "d 4"], &printed));
}
