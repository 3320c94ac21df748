//! `posthaste offers`: the offers of a broker, for people.

mod book;
mod wanted;

use std::path::PathBuf;

use posthaste_broker_client::{BestOfferQuery, BrokerClient, Error, ListedOffer};

use self::wanted::Wanted;
use super::broker_access::{BrokerAccess, failure, wait};
use super::{Failure, print, tell};

/// Number of offers per page of a list.
const PAGE: usize = 1_000;

/// Look up offers at a broker, publish them, or watch changes.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  The cheapest service that answers within 300 ms for at most 0.40 EUR:
    posthaste offers get books --processing-time 300ms --max-price 0.40EUR
  The same from a document of requirements:
    posthaste offers get books --requirements need.wsqos
  Publish a provider's offers; what he offered before and is not in the file is withdrawn:
    POSTHASTE_BROKER_TOKEN=pht_... posthaste offers put books ada offers.wsqos
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
    /// The best adequate offer, or the reasons why the cheapest one is not
    Get {
        /// The type of interface
        #[arg(value_name = "TYPE")]
        kind: String,
        #[command(flatten)]
        wanted: Box<Wanted>,
        #[command(flatten)]
        broker: BrokerAccess,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// Replace all offers of a provider by those of a file
    Put {
        /// The type of interface
        #[arg(value_name = "TYPE")]
        kind: String,
        /// Provider of the offers
        provider: String,
        /// A .wsqos document, or JSON with the same names
        file: PathBuf,
        #[command(flatten)]
        broker: BrokerAccess,
    },
    /// Withdraw an offer
    Withdraw {
        /// The type of interface
        #[arg(value_name = "TYPE")]
        kind: String,
        /// Provider of the offer
        provider: String,
        /// Name of the offer
        name: String,
        #[command(flatten)]
        broker: BrokerAccess,
    },
    /// The offers for a type, the cheapest first; without a type, the types there are
    List {
        /// The type of interface
        #[arg(value_name = "TYPE")]
        kind: Option<String>,
        #[command(flatten)]
        broker: BrokerAccess,
        /// Print a JSON object for each line
        #[arg(long)]
        json: bool,
    },
    /// Every change as it happens, until Ctrl-C
    Watch {
        #[command(flatten)]
        broker: BrokerAccess,
        /// Print a JSON object for each line
        #[arg(long)]
        json: bool,
    },
    /// All offers, a JSON object for each line
    Export {
        #[command(flatten)]
        broker: BrokerAccess,
    },
    /// Publish exported offers; needs the token of their provider
    Import {
        /// Output of `export`; - for standard input
        file: PathBuf,
        #[command(flatten)]
        broker: BrokerAccess,
    },
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

impl BrokerAccess {
    /// A client that publishes. It needs a token.
    fn publisher(&self) -> Result<BrokerClient, Failure> {
        self.bearer(
            "publishing needs the provider's token: give a file with it by --token-file FILE, or set \
             POSTHASTE_BROKER_TOKEN; `posthaste broker token new PROVIDER` makes one",
        )
    }
}

fn list(client: &BrokerClient, kind: Option<&str>, json: bool) -> Result<(), Failure> {
    match kind {
        None => pages(
            |skip| client.types(skip, PAGE),
            |kind| {
                if json {
                    print(&book::line(&serde_json::json!({ "type": kind })))
                } else {
                    print(&format!("{kind}\n"))
                }
            },
        ),
        Some(kind) => pages(
            |skip| client.list(kind, skip, PAGE),
            |listed: ListedOffer| {
                if json {
                    print(&book::line(&listed))
                } else {
                    print(&book::entry(&listed))
                }
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
