//! Agents that share a user of the deployed configuration.

use posthaste_fleet::names::RunId;
use posthaste_fleet::storage::Storage;

use super::load_support::{AgentProcess, RecordingService, conducted, conductor};
use super::permissions::{assert_publication_denied, assert_subscription_denied};
use super::server::{NatsServer, on_one_thread, subjects};

#[test]
#[ignore = "needs a NATS server"]
fn agents_of_a_pool_need_no_user_each() {
    let server = NatsServer::deployed();
    let service = RecordingService::start();
    let _agents = ["pod-7f", "pod-x2"]
        .map(|name| AgentProcess::start_as(&server, "pool", name, "--threads 1"));
    let url = format!("http://{}/", service.address);
    let options = format!("{url} --rate 50/s --duration 1s --agents 2 --allow-late");
    let result = conducted(conductor(&server, &options));
    assert_eq!(result.code, 0, "{}", result.messages);
    result.check_identity();
    assert_eq!(result.outcome("lost"), 0);
    assert_eq!(service.count(), 50);
}

#[test]
#[ignore = "needs a NATS server"]
fn agents_of_a_pool_cannot_command() {
    let server = NatsServer::deployed();
    on_one_thread(async {
        let conductor = server.connect("conductor").await;
        Storage::new(&conductor, subjects()).ensure().await.unwrap();
        let agent = server.connect("pool").await;
        let (subjects, run) = (subjects(), RunId::from_bits(1));
        let other = "agent-2".parse().unwrap();
        for subject in [
            subjects.prepare(&other),
            subjects.arm(&other),
            subjects.clock(&other),
            subjects.run(run),
            "$SRV.INFO.posthaste-agent".to_owned(),
            "_INBOX_conductor.x.y".to_owned(),
            "$O.ph1-default-files.C.x".to_owned(),
        ] {
            assert_publication_denied(&agent, &subject).await;
        }
        for subject in [
            "ph1.default.notes.>",
            "_INBOX_conductor.>",
            "$JS.API.>",
            ">",
        ] {
            assert_subscription_denied(&agent, subject).await;
        }
    });
}
