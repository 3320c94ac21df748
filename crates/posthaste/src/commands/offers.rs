//! `posthaste offers`: the offers of a broker, for people.

mod book;
mod wanted;

use std::path::PathBuf;

use posthaste_broker_client::{BestOfferQuery, BrokerClient, Error, ListedOffer};
use posthaste_serve::Trust;

use self::wanted::Wanted;
use super::{Failure, print, tell};

/// Number of offers per page of a list.
const PAGE: usize = 1_000;

/// Ask a broker for offers, publish them, or watch them change.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  The cheapest service that answers within 300 ms for at most 0.40 EUR:
    posthaste offers get books --processing-time 300ms --max-price 0.40EUR
  The same from a document of requirements:
    posthaste offers get books --requirements need.wsqos
  Publish a provider's offers; what he offered before and is not in the file is withdrawn:
    POSTHASTE_TOKEN=pht_... posthaste offers put books ada offers.wsqos
  What there is, and what changes:
    posthaste offers list books
    posthaste offers watch
  From one broker to another:
    posthaste offers export > offers.jsonl
    posthaste offers import offers.jsonl --broker http://127.0.0.1:8091

Exit codes: 0 all well, 1 no offer is enough, 2 usage, 3 the broker refused or cannot be reached.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// The best offer that is enough, or what speaks against the cheapest
    Get {
        /// The type of interface
        #[arg(value_name = "TYPE")]
        kind: String,
        #[command(flatten)]
        wanted: Box<Wanted>,
        #[command(flatten)]
        broker: BrokerArgs,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// Have a provider's offers be those of a file and no others
    Put {
        /// The type of interface
        #[arg(value_name = "TYPE")]
        kind: String,
        /// Whose offers they are
        provider: String,
        /// A .wsqos document, or JSON with the same names
        file: PathBuf,
        #[command(flatten)]
        broker: BrokerArgs,
    },
    /// Take an offer back
    Withdraw {
        /// The type of interface
        #[arg(value_name = "TYPE")]
        kind: String,
        /// Whose offer it is
        provider: String,
        /// What it is called
        name: String,
        #[command(flatten)]
        broker: BrokerArgs,
    },
    /// The offers for a type, the cheapest first; without a type, the types there are
    List {
        /// The type of interface
        #[arg(value_name = "TYPE")]
        kind: Option<String>,
        #[command(flatten)]
        broker: BrokerArgs,
        /// Print a JSON object for each line
        #[arg(long)]
        json: bool,
    },
    /// Every change as it happens, until Ctrl-C
    Watch {
        #[command(flatten)]
        broker: BrokerArgs,
        /// Print a JSON object for each line
        #[arg(long)]
        json: bool,
    },
    /// All offers, a JSON object for each line
    Export {
        #[command(flatten)]
        broker: BrokerArgs,
    },
    /// Publish what was exported; needs the token of the provider whose offers they are
    Import {
        /// What `export` has written; - for standard input
        file: PathBuf,
        #[command(flatten)]
        broker: BrokerArgs,
    },
}

/// Where the broker is.
#[derive(clap::Args)]
struct BrokerArgs {
    /// The broker's address
    #[arg(
        long = "broker",
        value_name = "URL",
        default_value = "http://127.0.0.1:8090"
    )]
    url: String,
    /// A file with the provider's token, for publishing; or set POSTHASTE_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Trust the certificates in this file (PEM) instead of the machine's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    ca: Option<PathBuf>,
    /// Accept any certificate of the broker; whoever answers can read the token
    #[arg(long)]
    insecure: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.verb {
            Verb::Get {
                kind,
                wanted,
                broker,
                json,
            } => {
                let question = BestOfferQuery {
                    kind,
                    requirements: wanted.requirement()?,
                    ranking: wanted.ranking,
                };
                let client = broker.client()?;
                let answer = wait(client.best_offer(&question))?;
                if json {
                    print(&book::line(&answer))?;
                }
                book::show(answer, json)
            }
            Verb::Put {
                kind,
                provider,
                file,
                broker,
            } => {
                let offers = book::offers_in(&file)?;
                let count = offers.len();
                wait(broker.publisher()?.put_all(&kind, &provider, offers))?;
                print(&format!("{count} offers of {provider} for {kind}\n"))
            }
            Verb::Withdraw {
                kind,
                provider,
                name,
                broker,
            } => wait(broker.publisher()?.withdraw(&kind, &provider, &name)),
            Verb::List { kind, broker, json } => list(&broker.client()?, kind.as_deref(), json),
            Verb::Watch { broker, json } => book::watch(&broker.client()?, json),
            Verb::Export { broker } => book::export(&broker.client()?),
            Verb::Import { file, broker } => book::import(&file, &broker.publisher()?),
        }
    }
}

impl BrokerArgs {
    /// A client that only reads.
    fn client(&self) -> Result<BrokerClient, Failure> {
        let trust = match &self.ca {
            _ if self.insecure => Trust::Any,
            Some(file) => Trust::File(file.clone()),
            None => Trust::Machine,
        };
        let client = BrokerClient::new(&self.url).map_err(Failure::usage)?;
        client.trusting(&trust).map_err(Failure::usage)
    }

    /// A client that publishes. It needs a token.
    fn publisher(&self) -> Result<BrokerClient, Failure> {
        let token = match &self.token_file {
            Some(file) => {
                let text = std::fs::read_to_string(file);
                text.map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?
            }
            None => std::env::var("POSTHASTE_TOKEN").unwrap_or_default(),
        };
        let token = token.trim();
        if token.is_empty() {
            return Err(Failure::usage(
                "publishing needs the provider's token: give a file with it by --token-file FILE, or set POSTHASTE_TOKEN; \
                 `posthaste broker token new PROVIDER` makes one",
            ));
        }
        Ok(self.client()?.with_token(Some(token.to_owned())))
    }
}

fn list(client: &BrokerClient, kind: Option<&str>, json: bool) -> Result<(), Failure> {
    match kind {
        None => pages(
            |skip| client.types(skip, PAGE),
            |kind| match json {
                true => print(&book::line(&serde_json::json!({ "type": kind }))),
                false => print(&format!("{kind}\n")),
            },
        ),
        Some(kind) => pages(
            |skip| client.list(kind, skip, PAGE),
            |listed: ListedOffer| match json {
                true => print(&book::line(&listed)),
                false => print(&book::entry(&listed)),
            },
        ),
    }
}

/// Calls `take` with every item of a paged list.
fn pages<T, P: Future<Output = Result<Vec<T>, Error>>>(
    page: impl Fn(usize) -> P,
    mut take: impl FnMut(T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for skip in (0..).step_by(PAGE) {
        let page = wait(page(skip))?;
        let last = page.len() < PAGE;
        page.into_iter().try_for_each(&mut take)?;
        if last {
            break;
        }
    }
    Ok(())
}

/// Waits for the broker's answer.
fn wait<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
    let done = posthaste_broker_client::wait(work).map_err(Failure::run)?;
    done.map_err(failure)
}

/// Converts an error of a broker, with the remedy if its certificate was rejected.
fn failure(error: Error) -> Failure {
    if error.is_certificate_refused() {
        return Failure::run(format!(
            "{error}: trust the broker's certificate, or the authority that issued it, with --ca FILE, \
             or accept any certificate with --insecure"
        ));
    }
    Failure::run(error)
}
