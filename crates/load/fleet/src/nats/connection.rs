//! Connection to a NATS server, with errors that name the remedy.
//!
//! async-nats reconnects by itself and for ever. While it is disconnected, its publications are accepted until its
//! queue is full, then they block, and what was in the socket is lost. Callers therefore publish only while
//! [`Connection::is_connected`], with a time limit.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event};
use percent_encoding::percent_decode_str;
use thiserror::Error;
use tokio::sync::watch;
use url::{Host, Url};

/// Minimum `max_payload` of a server.
const LEAST_PAYLOAD: usize = 64 << 10;

/// Longest pause between two attempts to reconnect.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Interval of checks while disconnected.
const CHECK: Duration = Duration::from_millis(20);

/// Interval of pings, for servers that vanish without closing.
const PING: Duration = Duration::from_secs(5);

/// Address of a server and credentials, such as `nats://user:password@host:4222`. Printed without credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsUrl {
    /// Without credentials.
    url: Url,
    login: Login,
}

#[derive(Clone, PartialEq, Eq)]
enum Login {
    None,
    Token(String),
    User(String, String),
}

/// A text that is no URL of a NATS server. It may hold a password and is not repeated.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "the NATS URL is not valid: write nats://HOST:PORT or tls://HOST:PORT, with USER:PASSWORD@ before the host"
)]
pub struct NatsUrlError;

/// Options of a connection.
#[derive(Clone, Debug)]
pub struct NatsOptions {
    /// The server.
    pub url: NatsUrl,
    /// Name of the client, and of its inbox if the URL has no user.
    pub name: String,
    /// File with a JWT and its key.
    pub credentials: Option<PathBuf>,
    /// File with the certificate of the authority. The system's authorities if there is none.
    pub authority: Option<PathBuf>,
    /// Requirements on the server.
    pub safety: ServerSafety,
}

/// Requirements on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerSafety {
    /// Authentication and TLS, unless the server has a loopback address. Agents obey the server's clients, and requests
    /// carry secrets.
    Required,
    /// None.
    Waived,
}

/// Properties of a server that decide about its safety.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerProperties {
    /// It has a loopback address.
    pub is_loopback: bool,
    /// It requires authentication.
    pub has_authentication: bool,
    /// The connection uses TLS.
    pub has_tls: bool,
}

/// A server that an agent does not obey.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum UnsafeServer {
    /// Anybody could command the agent.
    #[error(
        "the server requires no authentication, so any client could command agents\n\
         add users to its configuration (deploy/nats.conf), or accept this with --nats-insecure"
    )]
    NoAuthentication,
    /// Anybody in between could command the agent.
    #[error(
        "the connection is not encrypted, so any host in between could command agents and read requests\n\
         add TLS to the server's configuration (deploy/nats.conf), or accept this with --nats-insecure"
    )]
    NoTls,
}

/// A connection that could not be opened.
#[derive(Debug, Error)]
pub enum ConnectionError {
    /// No server there.
    #[error(
        "cannot connect to NATS at {url}: {reason}\n\
         start a server with `nats-server -js`, or give its address with --nats URL"
    )]
    Unreachable {
        /// The server.
        url: String,
        /// The reason.
        reason: String,
    },
    /// Wrong or missing credentials.
    #[error(
        "NATS at {url} refused the login\n\
         give the user in --nats nats://USER:PASSWORD@HOST, or a file with --nats-creds FILE"
    )]
    Login {
        /// The server.
        url: String,
    },
    /// TLS failed.
    #[error(
        "TLS with NATS at {url} failed: {reason}\n\
         give the certificate of its authority with --nats-ca FILE"
    )]
    Tls {
        /// The server.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The file of credentials.
    #[error("cannot read the credentials {path}: {source}", path = path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The server is not safe.
    #[error("NATS at {url}: {reason}")]
    Unsafe {
        /// The server.
        url: String,
        /// The reason.
        reason: UnsafeServer,
    },
    /// The server's limit of messages is too small.
    #[error(
        "NATS at {url} accepts {bytes} bytes at most: set max_payload to at least {LEAST_PAYLOAD}"
    )]
    Payload {
        /// The server.
        url: String,
        /// Its limit.
        bytes: usize,
    },
}

/// An open connection. Clones share it.
#[derive(Clone, Debug)]
pub struct Connection {
    client: Client,
    connects: watch::Receiver<u64>,
    last_error: Arc<Mutex<Option<String>>>,
}

impl ServerSafety {
    /// Checks a server.
    pub fn check(self, server: ServerProperties) -> Result<(), UnsafeServer> {
        match self {
            Self::Waived => Ok(()),
            Self::Required if server.is_loopback => Ok(()),
            Self::Required if !server.has_authentication => Err(UnsafeServer::NoAuthentication),
            Self::Required if !server.has_tls => Err(UnsafeServer::NoTls),
            Self::Required => Ok(()),
        }
    }
}

impl Connection {
    /// Connects. Later interruptions end by themselves.
    pub async fn open(options: &NatsOptions) -> Result<Self, ConnectionError> {
        // Fails if a provider is there already. There is no other provider than ring in this program.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (connected, connects) = watch::channel(0);
        let last_error = Arc::<Mutex<Option<String>>>::default();
        let errors = last_error.clone();
        let connecting = connect_options(options)
            .await?
            .event_callback(move |event| {
                hear(&event, &connected, &errors);
                std::future::ready(())
            });
        let client = connecting.connect(options.url.url.as_str()).await;
        let client = client.map_err(|error| connection_error(options, &error))?;
        let this = Self {
            client,
            connects,
            last_error,
        };
        this.check(options)?;
        Ok(this)
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// True while a server is connected.
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Waits until a server is connected.
    pub async fn wait(&self) {
        let mut connects = self.connects.clone();
        while !self.is_connected() {
            // The state changes around the event, hence the time limit.
            let _ = tokio::time::timeout(CHECK, connects.changed()).await;
        }
    }

    /// Number of times that a server was connected. Changes with each reconnection.
    pub fn connects(&self) -> watch::Receiver<u64> {
        self.connects.clone()
    }

    /// The last complaint of the server, such as a missing permission.
    pub fn last_error(&self) -> Option<String> {
        self.last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Maximum size of a message of ours: half of the server's limit, for headers and for messages of other programs.
    pub fn max_message(&self) -> usize {
        self.client.server_info().max_payload / 2
    }

    fn check(&self, options: &NatsOptions) -> Result<(), ConnectionError> {
        let url = &options.url;
        let info = self.client.server_info();
        let properties = ServerProperties {
            is_loopback: url.is_loopback(),
            has_authentication: info.auth_required,
            has_tls: info.tls_required || needs_tls(options),
        };
        let safety = options.safety.check(properties);
        safety.map_err(|reason| ConnectionError::Unsafe {
            url: url.to_string(),
            reason,
        })?;
        if info.max_payload < LEAST_PAYLOAD {
            let bytes = info.max_payload;
            return Err(ConnectionError::Payload {
                url: url.to_string(),
                bytes,
            });
        }
        Ok(())
    }
}

/// True if the client insists on TLS, also after a reconnection. The server's own statement is not protected, and comes
/// before the login.
fn needs_tls(options: &NatsOptions) -> bool {
    let is_exposed = options.safety == ServerSafety::Required && !options.url.is_loopback();
    options.url.url.scheme() == "tls" || options.authority.is_some() || is_exposed
}

async fn connect_options(options: &NatsOptions) -> Result<ConnectOptions, ConnectionError> {
    let mut connecting = ConnectOptions::new()
        .name(&options.name)
        .custom_inbox_prefix(format!("_INBOX_{}", options.inbox_owner()))
        .ping_interval(PING)
        .reconnect_delay_callback(|attempt| {
            let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
            Duration::from_millis(50)
                .saturating_mul(attempt)
                .min(LONGEST_PAUSE)
        })
        // A server must not name other servers: they would escape the checks.
        .ignore_discovered_servers()
        .require_tls(needs_tls(options));
    connecting = match &options.url.login {
        Login::None => connecting,
        Login::Token(token) => connecting.token(token.clone()),
        Login::User(user, password) => connecting.user_and_password(user.clone(), password.clone()),
    };
    if let Some(path) = &options.credentials {
        let with = connecting.credentials_file(path).await;
        connecting = with.map_err(|source| ConnectionError::Credentials {
            path: path.clone(),
            source,
        })?;
    }
    if let Some(path) = &options.authority {
        connecting = connecting.add_root_certificates(path.clone());
    }
    Ok(connecting)
}

/// Reacts to an event of the client.
fn hear(event: &Event, connected: &watch::Sender<u64>, errors: &Mutex<Option<String>>) {
    match event {
        Event::Connected => connected.send_modify(|count| *count += 1),
        Event::Disconnected => tracing::warn!("the NATS server is gone; reconnecting"),
        Event::ServerError(error) => {
            tracing::warn!("the NATS server complains: {error}");
            *errors.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        }
        Event::SlowConsumer(_) => tracing::warn!("messages of the NATS server were dropped here"),
        _ => {}
    }
}

fn connection_error(options: &NatsOptions, error: &async_nats::ConnectError) -> ConnectionError {
    let url = options.url.to_string();
    let reason = match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    };
    let tls = std::error::Error::source(error).and_then(tls_error);
    match (error.kind(), tls) {
        (ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation, _) => {
            ConnectionError::Login { url }
        }
        // The server sent plain text.
        (_, Some(rustls::Error::InvalidMessage(_))) => {
            let reason = UnsafeServer::NoTls;
            ConnectionError::Unsafe { url, reason }
        }
        (ConnectErrorKind::Tls, _) | (_, Some(_)) => ConnectionError::Tls { url, reason },
        _ => ConnectionError::Unreachable { url, reason },
    }
}

/// The error of TLS inside an error of a connection.
fn tls_error<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    let inside = error
        .downcast_ref::<std::io::Error>()
        .and_then(|error| error.get_ref());
    match inside {
        Some(inside) => tls_error(inside),
        None => error.downcast_ref(),
    }
}

impl NatsOptions {
    /// Name in the prefix of the inbox: each user may read its own inbox only.
    fn inbox_owner(&self) -> &str {
        match &self.url.login {
            Login::User(user, _) if is_token(user) => user,
            _ => &self.name,
        }
    }
}

/// True if the text can be part of a subject.
fn is_token(text: &str) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    !text.is_empty() && text.chars().all(is_part)
}

impl NatsUrl {
    /// True for loopback addresses and `localhost`.
    pub fn is_loopback(&self) -> bool {
        match self.url.host() {
            Some(Host::Domain(name)) => {
                // The parser reads hosts of unknown schemes as names.
                name.eq_ignore_ascii_case("localhost")
                    || name
                        .parse::<IpAddr>()
                        .is_ok_and(|address| address.is_loopback())
            }
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }
}

impl FromStr for NatsUrl {
    type Err = NatsUrlError;

    fn from_str(text: &str) -> Result<Self, NatsUrlError> {
        let text = if text.contains("://") {
            text.to_owned()
        } else {
            format!("nats://{text}")
        };
        let mut url: Url = text.parse().map_err(|_| NatsUrlError)?;
        let is_plain = matches!(url.path(), "" | "/")
            && url.query().is_none()
            && url.fragment().is_none()
            && url.host_str().is_some_and(|host| !host.is_empty());
        if !matches!(url.scheme(), "nats" | "tls") || !is_plain {
            return Err(NatsUrlError);
        }
        let decoded = |text: &str| {
            let text = percent_decode_str(text).decode_utf8();
            text.map(Into::into).map_err(|_| NatsUrlError)
        };
        let login = match (url.username(), url.password()) {
            ("", None) => Login::None,
            (token, None) => Login::Token(decoded(token)?),
            (user, Some(password)) => Login::User(decoded(user)?, decoded(password)?),
        };
        let cleared = url.set_username("").and_then(|()| url.set_password(None));
        cleared.map_err(|()| NatsUrlError)?;
        Ok(Self { url, login })
    }
}

impl fmt::Display for NatsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.as_str())
    }
}

impl fmt::Debug for NatsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> NatsUrl {
        text.parse().unwrap()
    }

    #[test]
    fn credentials_are_read_and_never_printed() {
        let with = url("nats://conductor:p%40ss+w&=ord@example.org:4222");
        assert!(with.login == Login::User("conductor".into(), "p@ss+w&=ord".into()));
        assert_eq!(with.to_string(), "nats://example.org:4222");
        assert_eq!(format!("{with:?}"), "nats://example.org:4222");
        assert!(url("tls://s3cret@example.org").login == Login::Token("s3cret".into()));
        assert!(url("127.0.0.1:4222").login == Login::None);
        let error = "http://a:s3cret@b"
            .parse::<NatsUrl>()
            .unwrap_err()
            .to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }

    #[test]
    fn texts_that_are_no_server_are_refused() {
        for text in [
            "",
            "http://a",
            "nats://",
            "nats://a/b",
            "nats://a?b",
            "nats://a:x",
            "nats://a#b",
            "nats://%ff:a@b",
        ] {
            assert_eq!(text.parse::<NatsUrl>(), Err(NatsUrlError), "{text}");
        }
    }

    #[test]
    fn loopback_is_known_by_address_and_one_name() {
        for text in [
            "nats://127.0.0.1",
            "nats://127.9.9.9:1",
            "nats://[::1]:4222",
            "LOCALHOST",
        ] {
            assert!(url(text).is_loopback(), "{text}");
        }
        for text in [
            "nats://192.0.2.1",
            "nats://127.0.0.1.example.org",
            "nats://[::2]",
            "tls://a",
        ] {
            assert!(!url(text).is_loopback(), "{text}");
        }
    }

    #[test]
    fn the_inbox_belongs_to_the_user() {
        let options = |text: &str| NatsOptions {
            url: url(text),
            name: "web-7".into(),
            credentials: None,
            authority: None,
            safety: ServerSafety::Required,
        };
        assert_eq!(options("nats://a:b@c").inbox_owner(), "a");
        assert_eq!(options("nats://token@c").inbox_owner(), "web-7");
        assert_eq!(options("nats://a.>:b@c").inbox_owner(), "web-7");
    }
}
