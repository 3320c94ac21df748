//! Foreign programs: started in a process group of their own, limited in time, stopped with us.
//!
//! Each child leads a process group, so that its descendants end with it. A child's output goes to files under
//! `target/peers/logs`, so no pipe can fill up, and a failed test leaves its output. CPU time is read from the dead
//! child before it is reaped, so that a measurement covers the whole life of exactly one process.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::error::{Outcome, TaskError};

/// Living groups, which Ctrl-C has to end, with the grace period of each.
static GROUPS: Mutex<Vec<(Pid, Duration)>> = Mutex::new(Vec::new());
/// Distinguishes the log files of children with the same name.
static STARTED: AtomicU32 = AtomicU32::new(0);
/// Interval between checks of a child that is waited for.
const LOOK: Duration = Duration::from_millis(10);
/// Grace period for a child to end.
const PATIENCE: Duration = Duration::from_millis(700);
/// The same for a child that may be a program of ours, and then has children to end.
const LONG_PATIENCE: Duration = Duration::from_secs(2);

/// A child that leads its own group. Dropping it ends the group.
struct Led {
    child: Child,
    pid: Pid,
    patience: Duration,
}

/// A running child with output to files.
pub struct Running {
    name: String,
    led: Led,
    stdout: PathBuf,
    stderr: PathBuf,
    since: Instant,
}

/// A child that has ended by itself.
pub struct Finished {
    /// Exit code. `None` if a signal ended it.
    pub code: Option<i32>,
    /// Standard output, as UTF-8.
    pub stdout: String,
    /// Standard error, as UTF-8.
    pub stderr: String,
    /// User and system time of all its threads, to the clock tick (10 ms).
    pub cpu: Duration,
    /// From start to end, to within 10 ms.
    pub wall: Duration,
    /// Maximum memory in KiB. A peak in its last 10 ms can be missed.
    pub peak_kib: u64,
}

impl Running {
    /// Starts `command` in a group of its own, with output to `logs`.
    pub fn start(name: &str, command: &mut Command, logs: &Path) -> Outcome<Self> {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let file = |end: &str| logs.join(format!("{number:03}-{name}.{end}"));
        let (stdout, stderr) = (file("out"), file("err"));
        let open = |path: &Path| File::create(path).map_err(|error| TaskError::at(path, error));
        command
            .stdin(Stdio::null())
            .stdout(open(&stdout)?)
            .stderr(open(&stderr)?);
        let led = Led::spawn(name, command, PATIENCE)?;
        Ok(Self {
            name: name.into(),
            led,
            stdout,
            stderr,
            since: Instant::now(),
        })
    }

    /// The process (and group) id.
    pub fn pid(&self) -> Pid {
        self.led.pid
    }

    /// User and system time so far, all threads together.
    pub fn cpu(&self) -> Outcome<Duration> {
        cpu_of(self.pid())
    }

    /// Sends a signal to the whole group.
    pub fn signal(&self, signal: Signal) -> Outcome<()> {
        rustix::process::kill_process_group(self.pid(), signal)
            .map_err(|error| TaskError::Failed(format!("{}: no signal sent: {error}", self.name)))
    }

    /// True if it has ended.
    pub fn has_ended(&self) -> bool {
        has_ended(self.pid())
    }

    /// Output so far, standard error last.
    pub fn output(&self) -> String {
        read(&self.stdout) + &read(&self.stderr)
    }

    /// Waits for its end. After `limit` it is stopped, and the step has failed.
    pub fn finish(self, limit: Duration) -> Outcome<Finished> {
        let mut peak_kib = 0;
        while !self.has_ended() {
            if self.since.elapsed() > limit {
                let output = tail(&self.output());
                return Err(TaskError::Failed(format!(
                    "{} did not end within {} s; its output:\n{output}",
                    self.name,
                    limit.as_secs()
                )));
            }
            peak_kib = peak_kib.max(peak_of(self.pid()));
            std::thread::sleep(LOOK);
        }
        let wall = self.since.elapsed();
        let cpu = self.cpu()?;
        let mut this = self;
        end_group(this.pid());
        let status = this.led.child.wait().map_err(|error| {
            TaskError::Failed(format!(
                "{}: its status could not be read: {error}",
                this.name
            ))
        })?;
        Ok(Finished {
            code: status.code(),
            stdout: read(&this.stdout),
            stderr: read(&this.stderr),
            cpu,
            wall,
            peak_kib,
        })
    }
}

impl Led {
    fn spawn(name: &str, command: &mut Command, patience: Duration) -> Outcome<Self> {
        use std::os::unix::process::CommandExt;
        // Held during the start, so that a Ctrl-C in between finds the group.
        let mut groups = lock();
        let child = command
            .process_group(0)
            .spawn()
            .map_err(|error| cannot_start(name, command, &error))?;
        let pid = Pid::from_child(&child);
        groups.push((pid, patience));
        Ok(Self {
            child,
            pid,
            patience,
        })
    }
}

impl Drop for Led {
    fn drop(&mut self) {
        // SIGTERM first, because a child of ours may have children to end.
        ask_group(self.pid);
        let end = Instant::now() + self.patience;
        while !has_ended(self.pid) && Instant::now() < end {
            std::thread::sleep(LOOK);
        }
        end_group(self.pid);
        // Reaped here or before. Nothing can be done about a failure.
        let _ = self.child.wait();
        lock().retain(|(pid, _)| *pid != self.pid);
    }
}

impl Finished {
    /// Fails, with the last lines of output, unless the exit code is 0.
    pub fn succeeded(self, name: &str) -> Outcome<Self> {
        if self.code == Some(0) {
            return Ok(self);
        }
        let output = tail(&format!("{}{}", self.stdout, self.stderr));
        let code = self
            .code
            .map_or_else(|| "a signal".into(), |code| format!("exit {code}"));
        Err(TaskError::Failed(format!(
            "{name} ended with {code}; its output:\n{output}"
        )))
    }
}

/// Runs `command` to its end and requires exit 0.
pub fn run(name: &str, command: &mut Command, limit: Duration, logs: &Path) -> Outcome<Finished> {
    Running::start(name, command, logs)?
        .finish(limit)?
        .succeeded(name)
}

/// Runs `command` with output to our own terminal. Calls `hear` with each line of its standard output, and requires
/// exit 0.
pub fn pass_through(
    name: &str,
    command: &mut Command,
    limit: Duration,
    mut hear: impl FnMut(&str),
) -> Outcome<()> {
    follow(name, command, limit, |line| {
        println!("{line}");
        hear(line);
    })
}

/// The same without standard output on our terminal.
pub fn follow(
    name: &str,
    command: &mut Command,
    limit: Duration,
    mut hear: impl FnMut(&str),
) -> Outcome<()> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut led = Led::spawn(name, command, LONG_PATIENCE)?;
    let (sender, lines) = mpsc::channel();
    let output = led.child.stdout.take();
    // Ends with the pipe, and so with the last process of the group that holds it.
    std::thread::spawn(move || {
        for line in output
            .into_iter()
            .flat_map(|pipe| BufReader::new(pipe).lines())
        {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let end = Instant::now() + limit;
    loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => hear(&line),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let seconds = limit.as_secs();
                return Err(TaskError::Failed(format!(
                    "{name} did not end within {seconds} s"
                )));
            }
        }
    }
    match led.child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(TaskError::Failed(format!("{name}: {status}"))),
        Err(error) => Err(TaskError::Failed(format!("{name}: {error}"))),
    }
}

/// Makes Ctrl-C and SIGTERM end every child before this process.
pub fn end_children_with_us() -> Outcome<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])
        .map_err(|error| TaskError::Failed(format!("no signal handler: {error}")))?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let groups = lock();
            let since = Instant::now();
            for (group, _) in groups.iter() {
                ask_group(*group);
            }
            for (group, patience) in groups.iter() {
                while !has_ended(*group) && since.elapsed() < *patience {
                    std::thread::sleep(LOOK);
                }
                end_group(*group);
            }
            std::process::exit(130);
        }
    });
    Ok(())
}

fn lock() -> std::sync::MutexGuard<'static, Vec<(Pid, Duration)>> {
    GROUPS
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// True if a child has ended. It stays to be reaped.
fn has_ended(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(rustix::process::waitid(WaitId::Pid(pid), options), Ok(None))
}

/// Requests the end of a group. A stopped group must be continued to receive the signal.
fn ask_group(group: Pid) {
    for signal in [Signal::TERM, Signal::CONT] {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// Kills a group. An already ended group is no error.
fn end_group(group: Pid) {
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
}

fn cannot_start(name: &str, command: &Command, error: &std::io::Error) -> TaskError {
    let program = command.get_program().to_string_lossy().into_owned();
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            TaskError::Missing(format!("{name}: there is no program {program}"))
        }
        _ => TaskError::Failed(format!("{name}: {program} did not start: {error}")),
    }
}

/// User and system time of a process that runs or waits to be reaped (proc(5), stat 14 and 15).
fn cpu_of(pid: Pid) -> Outcome<Duration> {
    let path = PathBuf::from(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let stat = std::fs::read_to_string(&path).map_err(|error| TaskError::at(&path, error))?;
    // The name in brackets may contain anything, including brackets and spaces.
    let ticks = stat
        .rsplit_once(')')
        .map(|(_, after)| after.split_ascii_whitespace().skip(11).take(2))
        .and_then(|two| {
            two.map(|ticks| ticks.parse::<u64>().ok())
                .sum::<Option<u64>>()
        })
        .ok_or_else(|| TaskError::at(&path, "no CPU times in it"))?;
    Ok(Duration::from_secs(ticks)
        / u32::try_from(rustix::param::clock_ticks_per_second()).unwrap_or(100))
}

/// Maximum memory of a process in KiB. 0 after its end.
fn peak_of(pid: Pid) -> u64 {
    read(Path::new(&format!("/proc/{}/status", pid.as_raw_nonzero())))
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|value| value.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

/// Text of a file. Empty if it cannot be read.
fn read(path: &Path) -> String {
    std::fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}

/// The last 30 lines.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str, logs: &Path) -> Running {
        Running::start("sh", Command::new("sh").args(["-c", line]), logs).expect("sh starts")
    }

    #[test]
    fn a_child_is_measured_and_its_words_kept() {
        let logs = tempfile::tempdir().expect("a folder");
        let line =
            "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo out; echo err >&2; exit 3";
        let done = shell(line, logs.path())
            .finish(Duration::from_secs(60))
            .expect("it ends");
        assert_eq!(
            (done.code, done.stdout.as_str(), done.stderr.as_str()),
            (Some(3), "out\n", "err\n")
        );
        // One thread cannot use more CPU time than elapsed time. A tick of 10 ms may be rounded up.
        assert!(done.cpu > Duration::ZERO && done.cpu <= done.wall + Duration::from_millis(20));
        let failed = done
            .succeeded("sh")
            .err()
            .expect("exit 3 is no success")
            .to_string();
        assert!(
            failed.contains("exit 3") && failed.contains("out\nerr"),
            "{failed}"
        );
    }

    #[test]
    fn a_child_that_takes_too_long_is_ended() {
        let logs = tempfile::tempdir().expect("a folder");
        let child = shell("echo waiting; sleep 600", logs.path());
        let group = child.pid();
        let output = child
            .finish(Duration::from_secs(3))
            .err()
            .expect("it is too slow")
            .to_string();
        assert!(
            output.contains("did not end") && output.contains("waiting"),
            "{output}"
        );
        assert!(is_gone(group));
    }

    #[test]
    fn dropping_a_child_kills_its_process_group() {
        let logs = tempfile::tempdir().expect("a folder");
        // Ignores SIGTERM, in the same group as its parent.
        let child = shell("trap '' TERM; sleep 600 & echo started; wait", logs.path());
        while !child.output().contains("started") {
            std::thread::sleep(LOOK);
        }
        let group = child.pid();
        drop(child);
        assert!(is_gone(group));
    }

    /// True if a group soon has no members. The process that adopted the orphans has to reap them first.
    fn is_gone(group: Pid) -> bool {
        (0..6000).any(|_| {
            std::thread::sleep(LOOK);
            rustix::process::test_kill_process_group(group).is_err()
        })
    }

    #[test]
    fn a_missing_program_is_missing_not_failed() {
        let logs = tempfile::tempdir().expect("a folder");
        let started = Running::start("x", &mut Command::new("no-such-program-here"), logs.path());
        assert!(matches!(started, Err(TaskError::Missing(_))));
    }
}
