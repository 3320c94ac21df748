//! System calls on the sockets of a script, mapped to calls of one endpoint.
//!
//! A script has one connection at a time. A listening socket holds an endpoint that listens, `accept` gives the
//! connection its own number. A socket that opens a connection replaces the one before.

use std::collections::BTreeMap;
use std::sync::Arc;

use posthaste_tcp::{ConnectionEnd, Endpoint, Profile, TcpState};
use posthaste_units::Instant;

use super::script::{Expression, SystemCall};
use super::segments::OWN_ISN;

/// Outcome of a system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallOutcome {
    /// Returns this number.
    Returns(i64),
    /// Returns -1 with this error.
    Fails(&'static str),
    /// Waits, or fails with this error if the socket does not block.
    Waits(&'static str),
    /// The model cannot decide the result.
    Unevaluated,
    /// The model does not have this.
    Unsupported(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SocketRole {
    #[default]
    Fresh,
    Listener,
    Connection,
}

#[derive(Clone, Debug, Default)]
struct Socket {
    role: SocketRole,
    nonblocking: bool,
    /// `shutdown(SHUT_RD)`.
    deaf: bool,
    /// Bytes of a blocking write that the endpoint has accepted.
    written: u64,
}

/// Sockets and the endpoint behind them.
#[derive(Clone, Debug)]
pub(super) struct Sockets {
    profile: Arc<Profile>,
    sockets: BTreeMap<i64, Socket>,
    pub(super) endpoint: Option<Endpoint>,
    /// TCP_NODELAY of the next connection.
    no_delay: bool,
}

impl Sockets {
    pub(super) fn new(profile: Profile) -> Self {
        Self {
            profile: Arc::new(profile),
            sockets: BTreeMap::new(),
            endpoint: None,
            no_delay: false,
        }
    }

    /// Prepares for a SYN: a listening socket whose last connection has ended listens again.
    pub(super) fn listen_again(&mut self) {
        let listens = self
            .sockets
            .values()
            .any(|socket| socket.role == SocketRole::Listener);
        let ended = self
            .endpoint
            .as_ref()
            .is_none_or(|endpoint| endpoint.state().is_closed());
        if listens && ended {
            self.endpoint = Some(Endpoint::listen(&self.profile, OWN_ISN));
        }
    }

    /// Runs a call, or continues one that waits.
    pub(super) fn call(&mut self, now: Instant, call: &SystemCall) -> CallOutcome {
        if matches!(
            call.error.as_deref(),
            Some("EFAULT" | "EINVAL" | "ENOTSUP" | "EOPNOTSUPP")
        ) {
            return CallOutcome::Unsupported("invalid arguments of system calls".to_owned());
        }
        let first = call.arguments.first().and_then(Expression::number);
        if call.name == "socket" {
            return self.open(call);
        }
        let number = first.unwrap_or(-1);
        match call.name.as_str() {
            "poll" | "epoll_create" | "epoll_ctl" | "epoll_wait" | "open" | "getsockname" => {
                return CallOutcome::Unevaluated;
            }
            // A script may connect with another number than its socket has.
            "connect" if !self.sockets.contains_key(&number) => {
                self.sockets.insert(number, Socket::default());
            }
            _ if !self.sockets.contains_key(&number) => {
                let text = format!("{} on something that is no socket", call.name);
                return CallOutcome::Unsupported(text);
            }
            _ => {}
        }
        match call.name.as_str() {
            "bind" => CallOutcome::Returns(0),
            "listen" => self.listen(number),
            "connect" => self.connect(now, number),
            "accept" | "accept4" => self.accept(call),
            "setsockopt" => self.set_option(number, call),
            "getsockopt" => self.option(call),
            "fcntl" => self.control(number, call),
            "ioctl" => self.ioctl(call),
            "write" | "send" | "sendto" | "writev" | "sendmsg" | "sendfile" => {
                self.write(now, number, call)
            }
            "read" | "recv" | "recvfrom" | "readv" | "recvmsg" => self.read(number, call),
            "shutdown" => self.shutdown(number, call),
            "close" => self.close(now, number),
            other => CallOutcome::Unsupported(format!("the system call {other}")),
        }
    }

    /// Returns true if calls on the socket return at once.
    pub(super) fn returns_at_once(&self, call: &SystemCall) -> bool {
        let number = call.arguments.first().and_then(Expression::number);
        let socket = number.and_then(|number| self.sockets.get(&number));
        let flags = call.arguments.last().and_then(Expression::word);
        socket.is_some_and(|socket| socket.nonblocking)
            || flags.is_some_and(|flags| flags.contains("MSG_DONTWAIT"))
    }

    fn socket(&mut self, number: i64) -> &mut Socket {
        self.sockets.entry(number).or_default()
    }

    fn open(&mut self, call: &SystemCall) -> CallOutcome {
        let kind = call
            .arguments
            .get(1)
            .and_then(Expression::word)
            .unwrap_or_default();
        let Some(number) = call.result.number().filter(|number| *number >= 0) else {
            return CallOutcome::Unsupported("a socket that cannot be opened".to_owned());
        };
        if !kind.contains("SOCK_STREAM") {
            return CallOutcome::Unsupported("sockets other than TCP".to_owned());
        }
        let nonblocking = kind.contains("SOCK_NONBLOCK");
        self.sockets.insert(
            number,
            Socket {
                nonblocking,
                ..Socket::default()
            },
        );
        CallOutcome::Returns(number)
    }

    fn listen(&mut self, number: i64) -> CallOutcome {
        self.socket(number).role = SocketRole::Listener;
        self.endpoint = Some(Endpoint::listen(&self.profile, OWN_ISN));
        CallOutcome::Returns(0)
    }

    fn connect(&mut self, now: Instant, number: i64) -> CallOutcome {
        if self.socket(number).role == SocketRole::Fresh {
            self.socket(number).role = SocketRole::Connection;
            let mut endpoint = Endpoint::connect(&self.profile, OWN_ISN, now);
            endpoint.set_no_delay(self.no_delay);
            self.endpoint = Some(endpoint);
            return CallOutcome::Waits("EINPROGRESS");
        }
        match self.endpoint.as_ref().map(Endpoint::state) {
            Some(TcpState::SynSent | TcpState::SynReceived) => CallOutcome::Waits("EALREADY"),
            Some(TcpState::Closed(ConnectionEnd::Reset)) => CallOutcome::Fails("ECONNREFUSED"),
            Some(TcpState::Closed(ConnectionEnd::TimedOut)) => CallOutcome::Fails("ETIMEDOUT"),
            _ => CallOutcome::Returns(0),
        }
    }

    fn accept(&mut self, call: &SystemCall) -> CallOutcome {
        let state = self.endpoint.as_ref().map(Endpoint::state);
        let open =
            state.is_some_and(|state| state.is_synchronised() && state != TcpState::SynReceived);
        if !open {
            return CallOutcome::Waits("EAGAIN");
        }
        let number = call.result.number().unwrap_or(-1);
        self.socket(number).role = SocketRole::Connection;
        CallOutcome::Returns(number)
    }

    fn set_option(&mut self, number: i64, call: &SystemCall) -> CallOutcome {
        let name = call
            .arguments
            .get(2)
            .and_then(Expression::word)
            .unwrap_or_default();
        let value = call.arguments.get(3).map(|value| value.items());
        let value = value
            .and_then(|items| items.first())
            .and_then(Expression::number);
        match (name, value) {
            ("TCP_NODELAY", Some(value)) => {
                self.no_delay = value != 0;
                if let Some(endpoint) = &mut self.endpoint
                    && self
                        .sockets
                        .get(&number)
                        .is_some_and(|socket| socket.role == SocketRole::Connection)
                {
                    endpoint.set_no_delay(value != 0);
                }
            }
            ("TCP_MAXSEG", Some(value)) => match u16::try_from(value) {
                Ok(mss) => self.set_mss(mss),
                Err(_) => return CallOutcome::Unsupported(format!("TCP_MAXSEG {value}")),
            },
            // Without an effect on segments: the model's send buffer is that of the profile.
            (
                "SO_REUSEADDR" | "SO_SNDBUF" | "SO_ZEROCOPY" | "SO_TIMESTAMPING" | "TCP_INQ"
                | "IP_TOS" | "IPV6_TCLASS" | "IP_MTU_DISCOVER" | "IP_RECVERR" | "IPV6_RECVERR",
                _,
            ) => {}
            _ => return CallOutcome::Unsupported(format!("the socket option {name}")),
        }
        CallOutcome::Returns(0)
    }

    /// Sets the MSS of the connections to come.
    fn set_mss(&mut self, mss: u16) {
        Arc::make_mut(&mut self.profile).offer.mss = mss;
        let endpoint = self.endpoint.as_mut();
        if let Some(endpoint) = endpoint.filter(|tcp| tcp.state() == TcpState::Listen) {
            *endpoint = Endpoint::listen(&self.profile, OWN_ISN);
        }
    }

    fn option(&self, call: &SystemCall) -> CallOutcome {
        let name = call
            .arguments
            .get(2)
            .and_then(Expression::word)
            .unwrap_or_default();
        let wanted = call.arguments.get(3).map(|value| value.items());
        let wanted = wanted
            .and_then(|items| items.first())
            .and_then(Expression::number);
        let value = match name {
            "TCP_MAXSEG" => match &self.endpoint {
                Some(endpoint) if endpoint.state() == TcpState::Established => endpoint.look().mss,
                _ => u32::from(self.profile.offer.mss),
            },
            _ => return CallOutcome::Unevaluated,
        };
        if wanted == Some(i64::from(value)) {
            CallOutcome::Returns(0)
        } else {
            CallOutcome::Returns(value.into())
        }
    }

    fn control(&mut self, number: i64, call: &SystemCall) -> CallOutcome {
        let word = |index: usize| call.arguments.get(index).and_then(Expression::word);
        if word(1) != Some("F_SETFL") {
            return CallOutcome::Unevaluated;
        }
        let flags = word(2).unwrap_or_default();
        self.socket(number).nonblocking = flags.contains("O_NONBLOCK");
        CallOutcome::Returns(0)
    }

    /// `ioctl(4, SIOCINQ, [1000]) = 0`.
    fn ioctl(&self, call: &SystemCall) -> CallOutcome {
        let name = call.arguments.get(1).and_then(Expression::word);
        let wanted = call.arguments.get(2).map(|value| value.items());
        let wanted = wanted
            .and_then(|items| items.first())
            .and_then(Expression::number);
        let Some(endpoint) = self.endpoint.as_ref().filter(|_| name == Some("SIOCINQ")) else {
            return CallOutcome::Unevaluated;
        };
        // The kernel counts the FIN behind read data as one byte.
        let readable = endpoint.readable() as i64;
        let ended = i64::from(endpoint.peer_has_closed());
        match wanted {
            Some(wanted) if wanted == readable || wanted == readable + ended => {
                CallOutcome::Returns(0)
            }
            _ => CallOutcome::Returns(readable),
        }
    }

    fn write(&mut self, now: Instant, number: i64, call: &SystemCall) -> CallOutcome {
        let flags = call
            .arguments
            .last()
            .and_then(Expression::word)
            .unwrap_or_default();
        for flag in ["MSG_MORE", "MSG_EOR", "MSG_FASTOPEN", "MSG_OOB"] {
            if flags.contains(flag) {
                return CallOutcome::Unsupported(flag.to_owned());
            }
        }
        let Some(bytes) = length(call) else {
            return CallOutcome::Unsupported(format!("{} without a length", call.name));
        };
        // The kernel counts the memory of its buffers, the model bytes of data.
        let wanted = call
            .result
            .number()
            .and_then(|wanted| u64::try_from(wanted).ok());
        if wanted.is_some_and(|wanted| wanted < bytes) || (call.until.is_some() && bytes > 0) {
            let reason = "the kernel's accounting of send memory";
            return CallOutcome::Unsupported(reason.to_owned());
        }
        let Some(endpoint) = &mut self.endpoint else {
            return CallOutcome::Fails("EPIPE");
        };
        match endpoint.state() {
            TcpState::Listen | TcpState::SynSent | TcpState::SynReceived => {
                return CallOutcome::Waits("EAGAIN");
            }
            TcpState::Established | TcpState::CloseWait => {}
            TcpState::Closed(ConnectionEnd::Reset) => return CallOutcome::Fails("ECONNRESET"),
            TcpState::Closed(ConnectionEnd::TimedOut) => return CallOutcome::Fails("ETIMEDOUT"),
            _ => return CallOutcome::Fails("EPIPE"),
        }
        let socket = self.sockets.entry(number).or_default();
        socket.written += endpoint.write(now, bytes - socket.written);
        if socket.written == bytes || (socket.nonblocking && socket.written > 0) {
            return CallOutcome::Returns(std::mem::take(&mut socket.written) as i64);
        }
        CallOutcome::Waits("EAGAIN")
    }

    fn read(&mut self, number: i64, call: &SystemCall) -> CallOutcome {
        let flags = call
            .arguments
            .last()
            .and_then(Expression::word)
            .unwrap_or_default();
        if flags.contains("MSG_ERRQUEUE") {
            return CallOutcome::Unevaluated;
        }
        if flags.contains("MSG_PEEK") || flags.contains("MSG_TRUNC") {
            return CallOutcome::Unsupported(flags.to_owned());
        }
        let Socket { role, deaf, .. } = *self.socket(number);
        if role != SocketRole::Connection {
            return CallOutcome::Fails("ENOTCONN");
        }
        let (Some(bytes), Some(endpoint)) = (length(call), &mut self.endpoint) else {
            return CallOutcome::Unsupported(format!("{} without a length", call.name));
        };
        if endpoint.readable() > 0 {
            return CallOutcome::Returns(endpoint.read(bytes) as i64);
        }
        match endpoint.state() {
            _ if endpoint.peer_has_closed() || deaf => CallOutcome::Returns(0),
            TcpState::Closed(ConnectionEnd::Reset) => CallOutcome::Fails("ECONNRESET"),
            TcpState::Closed(ConnectionEnd::TimedOut) => CallOutcome::Fails("ETIMEDOUT"),
            TcpState::Closed(_) => CallOutcome::Returns(0),
            _ => CallOutcome::Waits("EAGAIN"),
        }
    }

    fn shutdown(&mut self, number: i64, call: &SystemCall) -> CallOutcome {
        let how = call
            .arguments
            .get(1)
            .and_then(Expression::word)
            .unwrap_or_default();
        self.socket(number).deaf |= matches!(how, "SHUT_RD" | "SHUT_RDWR");
        if let Some(endpoint) = &mut self.endpoint
            && matches!(how, "SHUT_WR" | "SHUT_RDWR")
        {
            endpoint.close();
        }
        CallOutcome::Returns(0)
    }

    fn close(&mut self, now: Instant, number: i64) -> CallOutcome {
        let socket = self.sockets.remove(&number).unwrap_or_default();
        let Some(endpoint) = &mut self.endpoint else {
            return CallOutcome::Returns(0);
        };
        match socket.role {
            SocketRole::Fresh => {}
            // Its connections live on once they are accepted.
            SocketRole::Listener if endpoint.state() != TcpState::Listen => {}
            SocketRole::Listener => endpoint.close(),
            // Unread data: a reset tells the peer (RFC 2525, section 2.17; tcp_close in tcp.c).
            SocketRole::Connection if endpoint.readable() > 0 => endpoint.abort(),
            SocketRole::Connection => endpoint.leave(now),
        }
        CallOutcome::Returns(0)
    }
}

/// Number of bytes of a call that reads or writes.
fn length(call: &SystemCall) -> Option<u64> {
    let at = |index: usize| call.arguments.get(index);
    let number = match call.name.as_str() {
        "sendmsg" | "recvmsg" => at(1)?.items().iter().find_map(|field| match field {
            Expression::Field(name, list) if name == "msg_iov" => Some(vector_length(list)),
            _ => None,
        })?,
        "writev" | "readv" => vector_length(at(1)?),
        "sendfile" => at(3)?.number(),
        _ => at(2)?.number(),
    };
    u64::try_from(number?).ok()
}

/// Sum of the lengths of `[{..., 100}, {..., 200}]`.
fn vector_length(list: &Expression) -> Option<i64> {
    let lengths = list
        .items()
        .iter()
        .map(|part| part.items().get(1)?.number());
    lengths.sum()
}
