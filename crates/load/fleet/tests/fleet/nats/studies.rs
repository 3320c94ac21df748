//! Studies in virtual time on agents in processes of their own: the same records as of one process.

use std::path::Path;
use std::process::{Child, Stdio};

use futures_util::StreamExt as _;
use serde_json::Value;

use super::load_support::{AgentProcess, conducted, connect, program};
use super::server::{NatsServer, on_one_thread, subjects};

/// A figure of a study in virtual time.
const FIGURE: &str = "packet-loss/fig-02";

/// Starts `posthaste reproduce`, with two agents if there is a server.
fn reproduce(server: Option<&NatsServer>, out: &Path) -> Child {
    let mut command = program();
    command.args(["reproduce", FIGURE]).arg("--out").arg(out);
    if let Some(server) = server {
        command.args(["--agents", "2"]);
        connect(&mut command, server);
    }
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().unwrap()
}

/// The records of the figure, and what its manifest says about them.
fn records(out: &Path) -> (Vec<u8>, [Value; 4]) {
    let folder = out.join(FIGURE);
    let records = std::fs::read(folder.join("records.csv")).unwrap();
    let manifest = std::fs::read(folder.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let fields = ["ended", "parameters", "numbers", "tables"];
    (records, fields.map(|field| manifest[field].clone()))
}

#[test]
#[ignore = "needs a NATS server"]
fn an_agent_repeats_the_study_of_a_killed_one_identically() {
    let server = NatsServer::deployed();
    // The first agent gets the study. The second one repeats it, because no other job is left.
    let leaves = AgentProcess::start(&server, "agent-1", "--threads 1");
    let _stays = AgentProcess::start(&server, "agent-2", "--threads 2");
    let folder = tempfile::tempdir().unwrap();
    let (alone, together) = (folder.path().join("alone"), folder.path().join("together"));
    let mut running = None;
    on_one_thread(async {
        let observer = server.connect("conductor").await;
        let client = observer.client();
        let job = subjects().job(&"agent-1".parse().unwrap());
        let mut jobs = client.subscribe(job).await.unwrap();
        client.flush().await.unwrap();
        running = Some(reproduce(Some(&server), &together));
        jobs.next().await.expect("the server runs");
        leaves.signal("KILL");
    });
    let with_agents = conducted(running.expect("it was started"));
    assert_eq!(with_agents.code, 0, "{}", with_agents.messages);
    assert_eq!(conducted(reproduce(None, &alone)).code, 0);
    let (ours, theirs) = (records(&together), records(&alone));
    assert!(ours.0 == theirs.0, "{}", with_agents.messages);
    assert_eq!(ours.1, theirs.1);
}
