//! `posthaste broker`: the registry of offers in the foreground, until a signal, and its tokens.

mod register;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use posthaste_broker::{Admin, BrokerConfig, BrokerError, OfferKey, StoreUrl, TokenRole, start};
use posthaste_serve::{Signal, Signals, listen_address};

use super::{Failure, log_to_stderr, print};

/// Registry of QoS offers: stores the offers of providers and returns the cheapest adequate one.
///
/// Prints the address once it listens: a page of its state, JSON (/openapi.json), SOAP (/soap?wsdl) and a stream of
/// changes. SIGTERM or Ctrl-C finishes what is under way and ends.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  A broker that keeps its offers in a file, and a provider who may publish:
    posthaste broker token new ada --store sqlite:offers.db
    posthaste broker --store sqlite:offers.db
  Every key there is, with its default: examples/broker.toml
    posthaste broker --config broker.toml --check
  Brokers that share a registry:
    posthaste broker --store postgres://broker@db.example/offers
  A broker next to the client that follows another one:
    posthaste broker --follow http://broker.example:8090 --listen 127.0.0.1:8091
  A new token without a gap: make one, hand it over, then end the old one:
    posthaste broker token list
    posthaste broker token revoke 1
  Who changed what:
    posthaste broker log
  A copy of the store while the broker runs:
    posthaste broker backup offers-today.db"
)]
pub(crate) struct Args {
    #[command(flatten)]
    at: At,
    /// Address for clients [default: 127.0.0.1:8090]
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    listen: Option<SocketAddr>,
    /// Follow the changes of this broker, in place of a store
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    follow: Option<String>,
    /// Event loops, each with a thread of its own [default: 1]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Read the configuration, say whether it can be used, and end
    #[arg(long)]
    check: bool,
    #[command(subcommand)]
    verb: Option<Verb>,
}

/// The store and its configuration.
#[derive(clap::Args)]
struct At {
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Store of the offers: sqlite:FILE or postgres://... [default: sqlite:posthaste-offers.db]
    #[arg(long, value_name = "PLACE")]
    store: Option<StoreUrl>,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Tokens of publishers
    Token {
        #[command(subcommand)]
        verb: TokenCommand,
    },
    Register(Box<register::Args>),
    /// Copy an SQLite store to a new file, also while a broker uses it
    Backup {
        /// The copy; it must not exist
        #[arg(value_name = "FILE")]
        to: PathBuf,
        #[command(flatten)]
        at: At,
    },
    /// Changes, the newest first, each with its time and token (CSV)
    Log {
        #[command(flatten)]
        at: At,
        /// Number of changes
        #[arg(long, value_name = "N", default_value_t = 100)]
        most: usize,
    },
}

#[derive(clap::Subcommand)]
enum TokenCommand {
    /// Make a token for a provider, a gateway or an operator; it is shown once
    New {
        /// Provider of the offers that it may change, or for other roles any name
        provider: String,
        /// Purpose: provider publishes offers, gateway reports charges, operator keeps accounts
        #[arg(long, value_name = "ROLE", default_value = "provider")]
        role: TokenRole,
        #[command(flatten)]
        at: At,
    },
    /// All tokens, the revoked ones included (CSV)
    List {
        #[command(flatten)]
        at: At,
    },
    /// End a token's validity
    Revoke {
        /// Its number
        number: u64,
        #[command(flatten)]
        at: At,
    },
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.verb {
            None => self.serve(),
            Some(Verb::Token { verb }) => verb.run(),
            Some(Verb::Register(args)) => args.run(),
            Some(Verb::Backup { to, at }) => {
                let store = at.config()?.store;
                Admin::backup(&store, &to).map_err(Failure::run)?;
                print(&format!("{store} is in {}\n", to.display()))
            }
            Some(Verb::Log { at, most }) => log(&at, most),
        }
    }

    fn serve(self) -> Result<(), Failure> {
        let mut config = self.at.config()?;
        config.listen = self.listen.unwrap_or(config.listen);
        config.threads = self.threads.unwrap_or(config.threads);
        config.follow = self.follow.or(config.follow);
        if self.check {
            posthaste_broker::check(&config).map_err(Failure::usage)?;
            return print("the configuration can be used\n");
        }
        log_to_stderr();
        let scheme = if config.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let source = source(&config);
        let broker = start(config).map_err(|error| match error {
            BrokerError::Config(_) | BrokerError::Tls(_) | BrokerError::Address(_) => {
                Failure::usage(error)
            }
            _ => Failure::run(error),
        })?;
        let mut signals = Signals::take().map_err(Failure::run)?;
        print(&format!(
            "listening on {scheme}://{}, {source}\n",
            broker.addr
        ))?;
        while signals.wait() == Signal::Reload {}
        broker.stop();
        broker.join();
        Ok(())
    }
}

/// The place of the offers: the store, or the broker that is followed.
fn source(config: &BrokerConfig) -> String {
    match &config.follow {
        Some(url) => format!("following {url}"),
        None => format!("store {}", config.store.clone().absolute()),
    }
}

impl At {
    fn config(&self) -> Result<BrokerConfig, Failure> {
        let mut config = match &self.config {
            None => BrokerConfig::default(),
            Some(file) => read(file).map_err(Failure::Usage)?,
        };
        if let Some(path) = &self.store {
            config.store = path.clone();
            config.follow = None;
        }
        Ok(config)
    }

    /// Opens the store, which must exist.
    fn open(&self) -> Result<Admin, Failure> {
        Admin::open_existing(&self.config()?.store).map_err(Failure::run)
    }

    /// Opens the store, and creates it if it does not exist.
    fn make(&self) -> Result<Admin, Failure> {
        Admin::open(&self.config()?.store).map_err(Failure::run)
    }
}

impl TokenCommand {
    fn run(self) -> Result<(), Failure> {
        match self {
            Self::New { provider, role, at } => {
                let made = at.make()?.make_token_for(role, &provider);
                let (number, token) = made.map_err(Failure::run)?;
                let purpose = match role {
                    TokenRole::Provider => format!("for the offers of {provider}"),
                    role => format!("of the {} {provider}", role.name()),
                };
                note!("token {number}, {purpose}; it is not shown again");
                print(&format!("{token}\n"))
            }
            Self::List { at } => {
                let tokens = at.open()?.tokens().map_err(Failure::run)?;
                let rows = tokens.into_iter().map(|token| {
                    let revoked = token.revoked.map(|at| at.to_string()).unwrap_or_default();
                    [
                        token.number.to_string(),
                        token.provider,
                        token.made.to_string(),
                        revoked,
                        token.role.name().to_owned(),
                    ]
                });
                table(["number", "provider", "made", "revoked", "role"], rows)
            }
            Self::Revoke { number, at } => {
                if at.open()?.revoke(number).map_err(Failure::run)? {
                    Ok(())
                } else {
                    Err(Failure::run(format!(
                        "there is no valid token {number}: posthaste broker token list"
                    )))
                }
            }
        }
    }
}

fn log(at: &At, most: usize) -> Result<(), Failure> {
    let changes = at.open()?.log(most).map_err(Failure::run)?;
    let rows = changes.into_iter().map(|(token, change)| {
        let OfferKey {
            kind,
            provider,
            name,
        } = change.key;
        let offer = change
            .offer
            .map(|offer| serde_json::to_string(&offer).unwrap_or_default());
        let content = offer.unwrap_or_else(|| "withdrawn".to_owned());
        let (number, at) = (change.number.to_string(), change.at.to_string());
        [number, at, token.to_string(), kind, provider, name, content]
    });
    table(
        ["number", "at", "token", "type", "provider", "name", "what"],
        rows,
    )
}

/// Prints CSV.
fn table<const N: usize>(
    head: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> Result<(), Failure> {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(head).map_err(Failure::run)?;
    for row in rows {
        out.write_record(row).map_err(Failure::run)?;
    }
    let bytes = out.into_inner().map_err(Failure::run)?;
    print(&String::from_utf8_lossy(&bytes))
}

fn read(file: &Path) -> Result<BrokerConfig, String> {
    let path = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| format!("{path}: {error}"))?;
    let folder = file.parent().unwrap_or(Path::new(""));
    BrokerConfig::read(&text, folder).map_err(|error| format!("{path}: {error}"))
}
