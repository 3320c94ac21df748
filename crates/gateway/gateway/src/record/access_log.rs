//! The access log: one line for each reply, written by a separate thread.
//!
//! A slow or full disk delays no request. Lines that fit neither in memory nor on the disk are dropped and counted.
//! `log_entry` collects the facts of a line, and `log_line` formats it.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use posthaste_compression::{Preference, Reason};
use posthaste_serve::environment::is_simulated;

/// Lines in memory. More wait for the disk only while it is slower than the requests for seconds.
const WAITING_LINES: usize = 128_000;

/// Time limit for the remaining lines when the log is closed.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Writer of the access log, with counters of lost lines. Writes the remaining lines when it is dropped.
pub(crate) struct AccessLog {
    writer: LogWriter,
    dropped: AtomicU64,
    failed: Arc<AtomicU64>,
    next: Arc<NextFile>,
}

/// The writer of lines.
enum LogWriter {
    Thread(LogThread),
    /// The caller, in a simulation.
    Caller(Mutex<CountingFile<ReplaceableFile>>),
}

/// A thread that writes lines. Dropping it writes the remaining ones.
struct LogThread {
    /// None once the log is closed.
    lines: Option<SyncSender<Vec<u8>>>,
    /// Disconnected when the thread has ended.
    ended: Mutex<Receiver<Infallible>>,
}

/// A file that replaces the current one, such as after a rotation.
#[derive(Debug, Default)]
struct NextFile {
    is_there: AtomicBool,
    file: Mutex<Option<File>>,
}

/// The compression decision about a reply: the client's preference and the reason.
pub(crate) type Decided = (Preference, Reason);

impl AccessLog {
    /// Opens `file` for appending.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        let failed = Arc::<AtomicU64>::default();
        let next = Arc::<NextFile>::default();
        let file = CountingFile {
            file: ReplaceableFile {
                file: append(file)?,
                next: next.clone(),
            },
            failed: failed.clone(),
            is_cut_off: false,
        };
        Ok(Self {
            writer: if is_simulated() {
                LogWriter::Caller(Mutex::new(file))
            } else {
                LogWriter::Thread(LogThread::start(file)?)
            },
            dropped: AtomicU64::new(0),
            failed,
            next,
        })
    }

    /// Opens `file` for the lines from now on. Returns the file for [`AccessLog::replace`].
    pub(crate) fn reopen(file: &Path) -> io::Result<File> {
        append(file)
    }

    /// Writes further lines to another file.
    pub(crate) fn replace(&self, file: File) {
        let mut next = self
            .next
            .file
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *next = Some(file);
        self.next.is_there.store(true, Relaxed);
    }

    /// Writes a line, with its line break.
    pub(super) fn write(&self, line: &[u8]) {
        match &self.writer {
            LogWriter::Thread(thread) if thread.write(line) => {}
            LogWriter::Thread(_) => drop(self.dropped.fetch_add(1, Relaxed)),
            LogWriter::Caller(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.write(line);
            }
        }
    }

    /// Lines lost, in memory or on the disk.
    pub(crate) fn lost(&self) -> u64 {
        self.dropped.load(Relaxed) + self.failed.load(Relaxed)
    }
}

impl LogThread {
    fn start(mut file: CountingFile<ReplaceableFile>) -> io::Result<Self> {
        let (lines, waiting) = sync_channel::<Vec<u8>>(WAITING_LINES);
        let (ending, ended) = channel();
        let name = thread::Builder::new().name("access-log".to_owned());
        name.spawn(move || {
            let _ending = ending;
            waiting.into_iter().for_each(|line| file.write(&line));
        })?;
        Ok(Self {
            lines: Some(lines),
            ended: Mutex::new(ended),
        })
    }

    /// False if the line is lost.
    fn write(&self, line: &[u8]) -> bool {
        let lines = self.lines.as_ref().expect("it is open until it is dropped");
        lines.try_send(line.to_vec()).is_ok()
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        self.lines = None;
        let ended = self.ended.get_mut();
        let ended = ended.unwrap_or_else(PoisonError::into_inner);
        // Disconnected, or too slow.
        let _ = ended.recv_timeout(LAST_LINES);
    }
}

/// Opens a file for appending.
fn append(file: &Path) -> io::Result<File> {
    File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(file)
}

impl NextFile {
    /// Takes the file, if there is one.
    fn take(&self) -> Option<File> {
        if !self.is_there.load(Relaxed) {
            return None;
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_there.store(false, Relaxed);
        file.take()
    }
}

/// A file that another one can replace between two lines.
struct ReplaceableFile {
    file: File,
    next: Arc<NextFile>,
}

/// A writer of lines that may be told to begin a new file.
trait LineFile: Write {
    /// Begins the next file, if there is one. Returns true if it did.
    fn begin_next(&mut self) -> bool;
}

impl LineFile for ReplaceableFile {
    fn begin_next(&mut self) -> bool {
        let next = self.next.take();
        let is_new = next.is_some();
        if let Some(next) = next {
            self.file = next;
        }
        is_new
    }
}

impl Write for ReplaceableFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A file that counts failed writes, because the caller does not see them.
struct CountingFile<F> {
    file: F,
    failed: Arc<AtomicU64>,
    /// The last line was written in part. A disk can become full within a line.
    is_cut_off: bool,
}

impl<F: LineFile> CountingFile<F> {
    fn write(&mut self, line: &[u8]) {
        if self.take(line).is_err() {
            self.failed.fetch_add(1, Relaxed);
        }
    }

    /// Writes the line, after a line break if the previous line is incomplete.
    fn take(&mut self, line: &[u8]) -> io::Result<()> {
        if self.file.begin_next() {
            self.is_cut_off = false;
        }
        if self.is_cut_off {
            self.file.write_all(b"\n")?;
            self.is_cut_off = false;
        }
        let mut rest = line;
        while !rest.is_empty() {
            let taken = self.file.write(rest)?;
            rest = &rest[taken..];
            self.is_cut_off = !rest.is_empty();
            if taken == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts `room` bytes and then fails until `room` is raised.
    struct Disk {
        room: usize,
        holds: Vec<u8>,
        is_replaced: bool,
    }

    impl LineFile for Disk {
        fn begin_next(&mut self) -> bool {
            std::mem::take(&mut self.is_replaced)
        }
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.room);
            if taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= taken;
            self.holds.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn closing_writes_the_remaining_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let log = AccessLog::open(&path).unwrap();
        for _ in 0..1000 {
            log.write(b"line\n");
        }
        assert_eq!(log.lost(), 0);
        drop(log);
        assert_eq!(std::fs::read(&path).unwrap(), b"line\n".repeat(1000));
    }

    #[test]
    fn a_line_that_a_full_disk_cut_off_does_not_spoil_the_next() {
        let mut log = CountingFile {
            file: Disk {
                room: 6,
                holds: Vec::new(),
                is_replaced: false,
            },
            failed: Arc::default(),
            is_cut_off: false,
        };
        for line in [&b"one\n"[..], b"two\n", b"three\n"] {
            log.write(line);
        }
        log.file.room = 100;
        log.write(b"four\n");
        assert_eq!(log.file.holds, b"one\ntw\nfour\n");
        assert_eq!(log.failed.load(Relaxed), 2);
        // A new file begins with a whole line.
        log.file.room = 2;
        log.write(b"five\n");
        (log.file.room, log.file.is_replaced) = (100, true);
        log.file.holds.clear();
        log.write(b"six\n");
        assert_eq!(log.file.holds, b"six\n");
    }
}
