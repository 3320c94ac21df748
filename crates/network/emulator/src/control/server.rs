//! The server of a control: sockets, and a thread for each connection.
//!
//! A run has the requested address, and a Unix socket in a private folder for COMMAND, whose network namespace does not
//! have the machine's loopback. Both are bound before the run begins, and the Unix sockets are removed at its end.

use std::fs::Permissions;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use tempfile::TempDir;

use super::http::{self, ControlReply, ControlRequest};
use super::{AppliedChangeDocument, ControlAddress, ControlError, LinkControl};

/// Maximum number of connections at a time to each socket, so that clients outside do not shut out COMMAND.
const CONNECTIONS: usize = 16;
/// Time limit for a client to send its request, and to take the reply.
const PATIENCE: Duration = Duration::from_secs(5);
/// Wait after a failure to accept, as without free descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// Time for which a connection is read after the reply, and bytes that are read at most.
const LINGER: Duration = Duration::from_secs(1);
const UNREAD: usize = 8 << 20;

/// Bound sockets of a control.
pub(crate) struct ControlSockets {
    listeners: [ControlListener; 2],
    /// The requested address, with the selected port.
    address: ControlAddress,
    /// The socket for COMMAND.
    inside: ControlAddress,
    files: SocketFiles,
}

/// A control in service. Ends when dropped.
pub(crate) struct ControlServer {
    stop: Arc<OwnedFd>,
    _files: SocketFiles,
}

/// Files of the Unix sockets, which are removed when dropped.
struct SocketFiles {
    requested: Option<PathBuf>,
    _folder: TempDir,
}

enum ControlListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection with time limits.
trait ControlConnection: Read + Write + Send {
    /// Limits the time of each read and write.
    fn limit(&self, time: Duration) -> io::Result<()>;
    /// Ends the sending direction.
    fn end_sending(&self) -> io::Result<()>;
}

/// Connections of a socket that have a thread.
#[derive(Default)]
struct ServedConnections {
    served: AtomicUsize,
    refused: AtomicUsize,
}

/// A Unix socket for COMMAND, in a folder of its own.
pub(crate) struct PrivateSocket {
    folder: TempDir,
    path: PathBuf,
    listener: UnixListener,
}

impl PrivateSocket {
    pub(crate) fn bind() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("posthaste-").tempdir()?;
        let path = folder.path().join("control");
        let listener = bind_unix(&path)?;
        Ok(Self {
            folder,
            path,
            listener,
        })
    }
}

impl ControlSockets {
    /// Binds the address, in addition to the socket for COMMAND.
    pub(crate) fn bind(address: &ControlAddress, inside: PrivateSocket) -> io::Result<Self> {
        let (listener, address, requested) = match address {
            ControlAddress::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                let address = ControlAddress::Tcp(listener.local_addr()?);
                (ControlListener::Tcp(listener), address, None)
            }
            ControlAddress::Unix(path) => {
                let listener = bind_unix(path)?;
                (
                    ControlListener::Unix(listener),
                    address.clone(),
                    Some(path.clone()),
                )
            }
        };
        Ok(Self {
            listeners: [listener, ControlListener::Unix(inside.listener)],
            address,
            inside: ControlAddress::Unix(inside.path),
            files: SocketFiles {
                requested,
                _folder: inside.folder,
            },
        })
    }

    /// The requested address, with the selected port.
    pub(crate) const fn address(&self) -> &ControlAddress {
        &self.address
    }

    /// The address for COMMAND.
    pub(crate) const fn inside(&self) -> &ControlAddress {
        &self.inside
    }

    /// Serves requests in threads of its own.
    pub(crate) fn serve(self, control: Arc<LinkControl>) -> io::Result<ControlServer> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        for listener in &self.listeners {
            listener.set_nonblocking()?;
        }
        let (listeners, stopped) = (self.listeners, stop.clone());
        thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || accept_all(&listeners, &stopped, &control))?;
        Ok(ControlServer {
            stop,
            _files: self.files,
        })
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        // The thread ends by itself. A write fails only after 2^64 others.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
    }
}

impl Drop for SocketFiles {
    fn drop(&mut self) {
        if let Some(path) = &self.requested {
            // It may have been removed already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Binds a socket that only its owner can open.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Accepts connections until `stop` is written to.
fn accept_all(listeners: &[ControlListener; 2], stop: &OwnedFd, control: &Arc<LinkControl>) {
    let open = [(); 2].map(|()| Arc::<ServedConnections>::default());
    loop {
        let [one, other] = listeners.each_ref().map(ControlListener::file);
        let mut files = [
            PollFd::from_borrowed_fd(one, PollFlags::IN),
            PollFd::from_borrowed_fd(other, PollFlags::IN),
            PollFd::new(stop, PollFlags::IN),
        ];
        let polled = poll(&mut files, None);
        if !files[2].revents().is_empty() {
            return;
        }
        let accepted = polled.map_err(io::Error::from).and_then(|_| {
            let mut sockets = listeners.iter().zip(&open);
            sockets.try_for_each(|(listener, open)| match listener.accept() {
                Ok(connection) => {
                    begin(connection, open, control);
                    Ok(())
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
                Err(error) => Err(error),
            })
        });
        if accepted.is_err() {
            thread::sleep(PAUSE);
        }
    }
}

/// Serves a connection in a thread, or refuses it in one. Closes it without a reply if there are too many of both.
fn begin(
    connection: Box<dyn ControlConnection>,
    open: &Arc<ServedConnections>,
    control: &Arc<LinkControl>,
) {
    let is_full = |count: &AtomicUsize| count.load(Ordering::Relaxed) >= CONNECTIONS;
    // A client that is gone or too slow gets no reply.
    if !is_full(&open.served) {
        let control = control.clone();
        in_thread(
            open,
            |open| &open.served,
            move || {
                let _ = serve(connection, &control);
            },
        );
    } else if !is_full(&open.refused) {
        in_thread(
            open,
            |open| &open.refused,
            move || {
                let _ = refuse(connection);
            },
        );
    }
}

/// Runs `work` in a thread that counts while it runs.
fn in_thread(
    open: &Arc<ServedConnections>,
    count: fn(&ServedConnections) -> &AtomicUsize,
    work: impl FnOnce() + Send + 'static,
) {
    count(open).fetch_add(1, Ordering::Relaxed);
    let counted = open.clone();
    let run = move || {
        work();
        count(&counted).fetch_sub(1, Ordering::Relaxed);
    };
    let thread = thread::Builder::new().name("control".to_owned());
    if thread.spawn(run).is_err() {
        count(open).fetch_sub(1, Ordering::Relaxed);
    }
}

fn refuse(connection: Box<dyn ControlConnection>) -> io::Result<()> {
    let why = format!("{CONNECTIONS} clients are connected, which is the limit");
    reply_last(
        connection,
        &ControlReply::refusal((503, "Service Unavailable"), &why),
    )
}

/// Sends the reply, and reads what is left of the request for a while: closing with unread bytes would reset the
/// connection, and the client would lose the reply.
fn reply_last(mut connection: Box<dyn ControlConnection>, reply: &ControlReply) -> io::Result<()> {
    connection.limit(PATIENCE)?;
    connection.write_all(&reply.to_bytes())?;
    connection.end_sending()?;
    connection.limit(LINGER)?;
    let deadline = Instant::now() + LINGER;
    let (mut left, mut bytes) = (UNREAD, [0; 4 << 10]);
    while left > 0 && Instant::now() < deadline {
        match connection.read(&mut bytes)? {
            0 => break,
            length => left = left.saturating_sub(length),
        }
    }
    Ok(())
}

fn serve(mut connection: Box<dyn ControlConnection>, control: &LinkControl) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let mut received = Vec::new();
    let mut bytes = [0; 4 << 10];
    let reply = loop {
        match http::read(&received) {
            Ok(None) => {}
            Ok(Some(request)) => break answer(request, control),
            Err(refusal) => break refusal,
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        connection.limit(left)?;
        let length = connection.read(&mut bytes)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        received.extend_from_slice(&bytes[..length]);
    };
    reply_last(connection, &reply)
}

/// Carries out a request.
fn answer(request: ControlRequest, control: &LinkControl) -> ControlReply {
    let text = match request {
        ControlRequest::State => return ControlReply::json(&control.state()),
        ControlRequest::Change(text) => text,
    };
    let change = text.parse().map_err(ControlError::Change);
    match change.and_then(|change| control.change(change)) {
        Ok(applied) => ControlReply::json(&AppliedChangeDocument::from(&applied)),
        Err(error @ ControlError::Change(_)) => {
            ControlReply::refusal((400, "Bad Request"), &error.to_string())
        }
        Err(error @ ControlError::Stopped) => {
            ControlReply::refusal((503, "Service Unavailable"), &error.to_string())
        }
    }
}

impl ControlListener {
    fn file(&self) -> rustix::fd::BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener) => listener.as_fd(),
        }
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Tcp(listener) => listener.set_nonblocking(true),
            Self::Unix(listener) => listener.set_nonblocking(true),
        }
    }

    fn accept(&self) -> io::Result<Box<dyn ControlConnection>> {
        Ok(match self {
            Self::Tcp(listener) => Box::new(listener.accept()?.0),
            Self::Unix(listener) => Box::new(listener.accept()?.0),
        })
    }
}

impl ControlConnection for TcpStream {
    fn limit(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }

    fn end_sending(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl ControlConnection for UnixStream {
    fn limit(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }

    fn end_sending(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}
