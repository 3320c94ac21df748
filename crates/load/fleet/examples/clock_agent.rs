//! An agent that shows its clock and refuses every run, for tests of clocks in another process.
//!
//! Arguments: the URL of the server, the fleet and the agent's name. A line on standard output tells that it is ready.

use std::error::Error;
use std::future::Future;

use posthaste_fleet::agent::assignment::{AgentLimits, ForgetReason};
use posthaste_fleet::agent::{Agent, AgentHandler};
use posthaste_fleet::clock::monotonic_ns;
use posthaste_fleet::connection::{Connection, NatsOptions, ServerSafety};
use posthaste_fleet::message::{AgentInfo, PrepareRequest};
use posthaste_fleet::names::RunId;
use posthaste_fleet::notes::{Merge, NoteSender};
use posthaste_fleet::storage::Storage;
use posthaste_units::Span;
use serde::Serialize;

/// No results.
#[derive(Serialize)]
struct Nothing;

impl Merge for Nothing {
    fn merge(&mut self, _later: Self) {}
}

struct RefusingHandler;

impl AgentHandler for RefusingHandler {
    type Plan = ();
    type Ready = ();
    type Sum = Nothing;
    type End = ();
    type Job = ();
    type JobResult = ();

    async fn prepare(&mut self, _: PrepareRequest<()>, _: &Storage) -> Result<(), String> {
        Err("this agent shows its clock only".to_owned())
    }

    fn start(&mut self, _run: RunId, _origin_ns: u64, _notes: NoteSender<Nothing, ()>) {}

    fn stop(&mut self, _at_ns: u64) {}

    fn forget(&mut self, _run: RunId, _reason: ForgetReason) {}

    fn work(&mut self, _: ()) -> impl Future<Output = Result<(), String>> + Send + 'static {
        std::future::ready(Err("this agent shows its clock only".to_owned()))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, fleet, name] = arguments.as_slice() else {
        return Err("arguments: URL FLEET NAME".into());
    };
    let options = NatsOptions {
        url: url.parse()?,
        name: name.clone(),
        credentials: None,
        authority: None,
        safety: ServerSafety::Required,
    };
    let info = AgentInfo {
        name: name.parse()?,
        fleet: fleet.parse()?,
        build: String::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        numerics: posthaste_fleet::numerics::numerics(),
        loops: 1,
        processor: String::new(),
        descriptors: 0,
        allow: String::new(),
        machine: String::new(),
    };
    let limits = AgentLimits {
        longest_run: Span::from_secs(1),
    };
    let mut agent = Agent::new(Connection::open(&options).await?, info, limits);
    println!("ready at {} ns", monotonic_ns());
    agent
        .serve(&mut RefusingHandler, std::future::pending())
        .await?;
    Ok(())
}
