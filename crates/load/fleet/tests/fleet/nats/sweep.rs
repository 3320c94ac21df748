//! Sweeps on agents in processes of their own: the same bytes as of one process.

use std::time::Duration;

use async_nats::Subscriber;
use futures_util::StreamExt as _;

use super::load_support::{AgentProcess, conducted, simulate};
use super::server::{NatsServer, on_one_thread, subjects};

const SWEEP: &str = "--bandwidth 1Mbit --delay 5ms --loss 1%,2% --service author --seed 11";

#[test]
#[ignore = "needs a NATS server"]
fn agents_simulate_the_bytes_of_one_process() {
    let server = NatsServer::deployed();
    let _agents = [
        AgentProcess::start(&server, "agent-1", "--threads 2"),
        AgentProcess::start(&server, "agent-2", "--threads 1"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let pattern = folder.path().join("a.pattern");
    std::fs::write(&pattern, "posthaste pattern 1\ndown drop 3-4\nend\n").unwrap();
    for options in [
        format!("{SWEEP} --transactions 20000"),
        "--bandwidth 1Mbit --loss 1% --transactions 17000 --compare tlp,rack".to_owned(),
        format!(
            "{SWEEP} --transactions 17000 --pattern {}",
            pattern.display()
        ),
        // All of it is simulated by the conductor.
        format!("{SWEEP} --transactions 100"),
    ] {
        let alone = conducted(simulate(None, &options));
        let together = conducted(simulate(Some(&server), &format!("{options} --agents 2")));
        assert_eq!(
            (alone.code, together.code),
            (0, 0),
            "{options}: {}",
            together.messages
        );
        assert!(alone.report.is_object() || alone.report.is_array());
        assert_eq!(together.report, alone.report, "{options}");
    }
}

/// Waits for so many requests of jobs to one agent.
async fn requested(jobs: &mut Subscriber, agent: &str, count: usize) {
    for _ in 0..count {
        while jobs.next().await.expect("the server runs").subject.as_str() != agent {}
    }
}

#[test]
#[ignore = "needs a NATS server"]
fn a_killed_agent_and_a_killed_server_change_nothing() {
    let mut server = NatsServer::deployed();
    let _stays = AgentProcess::start(&server, "agent-1", "--threads 1");
    let leaves = AgentProcess::start(&server, "agent-2", "--threads 1");
    let options = format!("{SWEEP} --transactions 200000");
    let mut running = None;
    on_one_thread(async {
        let observer = server.connect("conductor").await;
        let client = observer.client();
        let mut jobs = client.subscribe("ph1.default.agent.*.job").await.unwrap();
        client.flush().await.unwrap();
        running = Some(simulate(Some(&server), &format!("{options} --agents 2")));
        // The job of the killed agent is left for the other one, whatever the number of jobs: it depends on the machine.
        requested(&mut jobs, &subjects().job(&"agent-2".parse().unwrap()), 1).await;
        leaves.signal("KILL");
        requested(&mut jobs, &subjects().job(&"agent-1".parse().unwrap()), 1).await;
    });
    server.kill();
    // Longer than a client's attempts to connect are apart.
    std::thread::sleep(Duration::from_secs(2));
    server.start();
    let together = conducted(running.expect("it was started"));
    assert_eq!(together.code, 0, "{}", together.messages);
    let alone = conducted(simulate(None, &options));
    assert_eq!(together.report, alone.report);
}

#[test]
#[ignore = "needs a NATS server"]
fn an_agent_that_comes_back_late_gets_further_jobs() {
    let mut server = NatsServer::deployed();
    let agent = AgentProcess::start(&server, "agent-1", "--threads 1");
    let options = format!("{SWEEP} --transactions 100000");
    let mut running = None;
    on_one_thread(async {
        let observer = server.connect("conductor").await;
        let client = observer.client();
        let mut jobs = client.subscribe("ph1.default.agent.*.job").await.unwrap();
        client.flush().await.unwrap();
        running = Some(simulate(Some(&server), &format!("{options} --agents 1")));
        // Each case has a job at least, and this sweep has two cases.
        requested(&mut jobs, &subjects().job(&"agent-1".parse().unwrap()), 2).await;
    });
    // Stopped, the agent connects to the new server after the conductor has asked it for several jobs in vain.
    agent.signal("STOP");
    server.kill();
    server.start();
    std::thread::sleep(Duration::from_secs(2));
    agent.signal("CONT");
    let together = conducted(running.expect("it was started"));
    assert_eq!(together.code, 0, "{}", together.messages);
    let alone = conducted(simulate(None, &options));
    assert_eq!(together.report, alone.report);
}
