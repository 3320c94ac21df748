//! A terminal inside: it belongs to the command during the run, and to its previous owner afterwards.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::getuid;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::tcgetattr;

use super::{NOBODY, User, own, users};

/// Interval after which a key is pressed again. The first may have come before its program had started. Ctrl-C and
/// Ctrl-Z discard unread input, as in every terminal.
const AGAIN: Duration = Duration::from_millis(300);
const CTRL_C: &str = "\x03";
const CTRL_Z: &str = "\x1a";

/// A shell in a session and a terminal of its own, and its user.
struct Terminal {
    shell: Child,
    keys: File,
    /// Kept open, so that its settings can be read at any time.
    line: OwnedFd,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn open(user: User) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let keys = openpt(flags).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let line = ioctl_tiocgptpeer(&keys, flags).unwrap();
        let end = || line.try_clone().unwrap();
        let mut shell = Command::new("setsid");
        shell
            .args(["--ctty", "env", "--default-signal", "sh", "-i"])
            .env_remove("ENV")
            .current_dir("/")
            .stdin(end())
            .stdout(end())
            .stderr(end());
        if matches!(user, User::Nobody) {
            shell.uid(NOBODY).gid(NOBODY);
        }
        let shell = shell.spawn().unwrap();
        let keys = File::from(keys);
        let mut glass = keys.try_clone().unwrap();
        let (shown, screen) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = glass.read(&mut bytes) {
                let _ = shown.send(bytes[..length].to_vec());
            }
        });
        Self {
            shell,
            keys,
            line,
            screen,
            seen: String::new(),
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until these words appear, or until the time is over. Forgets the output up to them.
    fn shows(&mut self, text: &str, within: Duration) -> bool {
        let patience = Instant::now() + within;
        loop {
            if let Some(index) = self.seen.find(text) {
                self.seen.drain(..index + text.len());
                return true;
            }
            let left = patience.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.screen.recv_timeout(left) else {
                return false;
            };
            self.seen += &String::from_utf8_lossy(&bytes);
        }
    }

    fn expect(&mut self, text: &str) {
        let shown = self.shows(text, Duration::from_secs(120));
        assert!(shown, "no {text:?} in {:?}", self.seen);
    }

    /// Repeats the keys until the words appear.
    fn press_until(&mut self, keys: &str, text: &str) {
        let patience = Instant::now() + Duration::from_secs(120);
        self.press(keys);
        while !self.shows(text, AGAIN) {
            assert!(Instant::now() < patience, "no {text:?} in {:?}", self.seen);
            self.press(keys);
        }
    }

    /// All settings of the line, without unread input.
    fn settings(&self) -> String {
        format!("{:?}", tcgetattr(&self.line).unwrap())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// Sums computed by the shell distinguish its output from the echo of the input.
#[test]
fn a_shell_inside_has_job_control_and_gives_the_terminal_back() {
    let inner = ["bash --norc -i", "sh -i"];
    for (user, inner) in users()
        .iter()
        .flat_map(|user| inner.map(|shell| (user, shell)))
    {
        if inner.starts_with("bash") && !Path::new("/bin/bash").exists() {
            continue;
        }
        let posthaste = own(*user);
        let root = matches!(user, User::Own) && getuid().is_root();
        let prompt = ["$ ", "# "][usize::from(root)];
        let mut terminal = Terminal::open(*user);
        terminal.press("echo outer$((40+1))\n");
        terminal.expect("outer41");
        let before = terminal.settings();
        terminal.press(&format!("{posthaste} net -- {inner}\n"));
        terminal.press("echo in$POSTHASTE_SERVER\n");
        terminal.expect("in10.0.0.2");
        // Shells may lose a key while they start a program. A program that answers has been started.
        terminal.press("sed -u s/i/o/\n");
        terminal.press_until("ping\n", "pong");
        // Ctrl-Z stops the foreground process inside, and nothing else.
        terminal.press(CTRL_Z);
        terminal.expect("Stopped");
        terminal.expect(prompt);
        terminal.press("fg\n");
        terminal.press_until("ping\n", "pong");
        // So does Ctrl-C: the shell continues.
        terminal.press(CTRL_C);
        terminal.expect(prompt);
        terminal.press("echo on$((40+4))\n");
        terminal.expect("on44");
        terminal.expect(prompt);
        terminal.press("exit 5\n");
        terminal.expect("posthaste: 0 connections");
        terminal.press("echo code$?\n");
        terminal.expect("code5");
        assert_eq!(terminal.settings(), before);
    }
}

#[test]
fn the_terminals_keys_reach_the_command() {
    for user in users() {
        let posthaste = own(*user);
        let mut terminal = Terminal::open(*user);
        let script = "trap \"echo caught; exit 9\" INT; echo ready; while :; do sleep 0.1; done";
        terminal.press(&format!("{posthaste} net -- sh -c '{script}'\n"));
        terminal.expect("ready\r\n");
        terminal.press(CTRL_C);
        terminal.expect("caught\r\n");
        terminal.expect("posthaste: 0 connections");
        terminal.press("echo code$?\n");
        terminal.expect("code9");
        // The whole run is a job of the shell outside.
        terminal.press(&format!("{posthaste} net -- sh -c 'echo here; sleep 4'\n"));
        terminal.expect("here\r\n");
        terminal.press_until(CTRL_Z, "Stopped");
        terminal.press("fg\n");
        terminal.expect("posthaste: 0 connections");
        terminal.press("echo end$?\n");
        terminal.expect("end0");
    }
}
