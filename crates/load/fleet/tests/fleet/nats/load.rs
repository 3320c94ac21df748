//! Runs of load on agents in processes of their own, with the deployed configuration.

use std::time::{Duration, Instant};

use super::load_support::{
    AgentProcess, RecordingService, conducted, conductor, program, signal_process,
};
use super::server::NatsServer;

/// A file in a folder of its own.
fn file(folder: &tempfile::TempDir, name: &str, content: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    path.display().to_string()
}

/// A mix of three requests, one with rows.
fn mix(folder: &tempfile::TempDir, service: &RecordingService) -> String {
    let address = service.address;
    let request = |name: &str, weight: f64, path: &str| {
        format!(
            "[[request]]\nname = \"{name}\"\nweight = {weight}\nurl = \"http://{address}/{path}\"\n"
        )
    };
    let mix = [
        request("one", 0.5, "one"),
        request("two", 0.3, "two/{{row}}"),
        request("three", 0.2, "three"),
    ];
    let rows: String = (0..7).map(|row| format!("r{row}\n")).collect();
    let (mix, rows) = (
        file(folder, "mix.toml", &mix.concat()),
        file(folder, "rows.csv", &format!("row\n{rows}")),
    );
    format!("--mix {mix} --data {rows}")
}

#[test]
#[ignore = "needs a NATS server"]
fn agents_send_the_requests_of_one_process() {
    let server = NatsServer::deployed();
    let service = RecordingService::start();
    let folder = tempfile::tempdir().unwrap();
    let mix = mix(&folder, &service);
    let _agents = [
        AgentProcess::start(&server, "agent-1", "--threads 2"),
        AgentProcess::start(&server, "agent-2", "--threads 1"),
    ];
    for pace in [
        "--rate 300/s --duration 2s --warm-up 500ms",
        "--steps 100/s..300/s:3 --duration 3s --arrivals poisson --seed 7",
    ] {
        service.clear();
        let alone = program()
            .args(["load", "--json", "--threads", "3", "--allow-late"])
            .args(mix.split(' '))
            .args(pace.split(' '))
            .output()
            .unwrap();
        let alone: serde_json::Value = serde_json::from_slice(&alone.stdout).unwrap();
        let targets = service.targets();
        service.clear();
        let options = format!("{mix} {pace} --agents 2 --allow-late");
        let together = conducted(conductor(&server, &options));
        assert_eq!(together.code, 0, "{}", together.messages);
        together.check_identity();
        assert_eq!(together.outcome("ok"), together.number("/intended"));
        assert_eq!(service.targets(), targets, "{pace}");
        for same in [
            "intended",
            "outcomes",
            "warm_up_requests",
            "statuses",
            "bytes_sent",
        ] {
            assert_eq!(together.report[same], alone[same], "{same}");
        }
        for parts in ["steps", "requests"] {
            let outcomes = |report: &serde_json::Value| {
                let parts = report[parts].as_array().cloned().unwrap_or_default();
                let part =
                    |part: &serde_json::Value| (part["name"].clone(), part["outcomes"].clone());
                parts.iter().map(part).collect::<Vec<_>>()
            };
            assert_eq!(outcomes(&together.report), outcomes(&alone), "{parts}");
        }
        let bound = together.report["agents"][0]["clock_bound_ms"].as_f64();
        assert!(bound.is_some_and(|bound| bound < 50.0), "{bound:?}");
    }
}

#[test]
#[ignore = "needs a NATS server"]
fn killed_agents_lose_requests_and_stopped_ones_do_not() {
    let server = NatsServer::deployed();
    let service = RecordingService::start();
    let folder = tempfile::tempdir().unwrap();
    let mix = mix(&folder, &service);
    let _stays = AgentProcess::start(&server, "agent-1", "--threads 1");
    for (signal, outcome, other) in [("KILL", "lost", "in-flight"), ("TERM", "in-flight", "lost")] {
        service.clear();
        let leaves = AgentProcess::start(&server, "agent-2", "--threads 1");
        let options = format!("{mix} --steps 100/s..300/s:2 --duration 6s --agents 2 --allow-late");
        let running = conductor(&server, &options);
        service.wait_for(300);
        leaves.signal(signal);
        let result = conducted(running);
        result.check_identity();
        assert_eq!(
            result.number("/intended"),
            1_200,
            "{signal}: {}",
            result.messages
        );
        assert_eq!(result.outcome(other), 0, "{signal}");
        let missing = result.outcome(outcome);
        assert!(
            (100..600).contains(&missing),
            "{signal}: {missing} {outcome}"
        );
        assert_eq!(result.outcome("ok") + missing, 1_200);
        let agents = result.report["agents"].as_array().unwrap();
        assert_eq!(agents[0]["lost"], 0);
        let warnings = agents[1]["warnings"].to_string();
        match signal {
            "KILL" => {
                assert_eq!(result.code, 3, "{}", result.messages);
                assert!(result.messages.contains("agent-2"), "{}", result.messages);
                assert!(warnings.contains("lost after second"), "{warnings}");
                assert_eq!(agents[1]["lost"], missing);
            }
            _ => assert!(warnings.contains("left early"), "{warnings}"),
        }
    }
}

#[test]
#[ignore = "needs a NATS server"]
fn a_server_that_restarts_disturbs_no_run() {
    let mut server = NatsServer::deployed();
    let service = RecordingService::start();
    let _agents =
        ["agent-1", "agent-2"].map(|name| AgentProcess::start(&server, name, "--threads 1"));
    let url = format!("http://{}/", service.address);
    let running = conductor(
        &server,
        &format!("{url} --rate 200/s --duration 8s --agents 2 --allow-late"),
    );
    service.wait_for(300);
    server.kill();
    let before = service.count();
    service.wait_for(before + 600);
    server.start();
    let result = conducted(running);
    assert_eq!(result.code, 0, "{}", result.messages);
    result.check_identity();
    assert_eq!((result.outcome("ok"), service.count()), (1_600, 1_600));
    assert!(
        result.messages.contains("the NATS server is away"),
        "{}",
        result.messages
    );
}

#[test]
#[ignore = "needs a NATS server"]
fn all_agents_stop_at_one_time_of_the_run() {
    let server = NatsServer::deployed();
    let service = RecordingService::start();
    let _agents =
        ["agent-1", "agent-2"].map(|name| AgentProcess::start(&server, name, "--threads 2"));
    let url = format!("http://{}/", service.address);
    let running = conductor(
        &server,
        &format!("{url} --rate 200/s --duration 1h --agents 2"),
    );
    service.wait_for(200);
    signal_process(&running, "INT");
    let result = conducted(running);
    assert_eq!(result.code, 3, "{}", result.messages);
    result.check_identity();
    assert_eq!(result.report["stopped"], true);
    assert_eq!(result.outcome("lost"), 0);
    // Requests due until the common time and none after it: the numbers of four loops differ by one at most.
    let agents = result.report["agents"].as_array().unwrap();
    let intended: Vec<u64> = agents
        .iter()
        .map(|agent| agent["intended"].as_u64().unwrap())
        .collect();
    assert!(intended[0].abs_diff(intended[1]) <= 2, "{intended:?}");
}

#[test]
#[ignore = "needs a NATS server"]
fn a_target_that_an_agent_does_not_permit_gets_no_connection() {
    let server = NatsServer::deployed();
    let service = RecordingService::start();
    let port = service.address.port();
    let other = port.wrapping_add(1);
    let _agent = AgentProcess::start(
        &server,
        "agent-1",
        &format!("--threads 1 --allow 127.0.0.1:{other}"),
    );
    for (url, more) in [
        (format!("http://127.0.0.1:{port}/"), String::new()),
        (format!("http://localhost:{port}/"), String::new()),
        (
            format!("http://shop.example:{port}/"),
            format!("--resolve shop.example:{port}:127.0.0.1"),
        ),
        (
            format!("http://127.0.0.1:{other}/"),
            format!("--broker http://127.0.0.1:{port}"),
        ),
    ] {
        let options = format!("{url} {more} --rate 10/s --duration 1s --agents 1");
        let refused = conducted(conductor(&server, &options));
        assert_eq!(refused.code, 3, "{url}: {}", refused.messages);
        assert!(
            refused.messages.contains("not allowed here"),
            "{}",
            refused.messages
        );
    }
    assert_eq!(service.count(), 0);
}

#[test]
#[ignore = "needs a NATS server"]
fn secrets_are_not_stored_by_the_server() {
    const CANARY: &str = "canary-7d1f";
    let server = NatsServer::deployed();
    let service = RecordingService::start();
    let folder = tempfile::tempdir().unwrap();
    // Long enough for a sealed file.
    let rows: String = (0..40_000).map(|row| format!("{CANARY}-{row}\n")).collect();
    let rows = file(&folder, "rows.csv", &format!("row\n{rows}"));
    let _agent = AgentProcess::start(&server, "agent-1", "--threads 1");
    let url = format!("http://{}/{{{{row}}}}", service.address);
    let options = format!(
        "{url} --data {rows} --bearer {CANARY} --rate 50/s --duration 1s --agents 1 --allow-late"
    );
    let result = conducted(conductor(&server, &options));
    assert_eq!(result.code, 0, "{}", result.messages);
    assert!(
        service
            .targets()
            .iter()
            .all(|target| target.contains(CANARY))
    );
    let mut folders = vec![server.store()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let content = std::fs::read(entry.path()).unwrap();
                let canary = CANARY.as_bytes();
                assert!(content.windows(canary.len()).all(|window| window != canary));
                files += 1;
            }
        }
    }
    assert!(files > 0, "the server has stored something");
    assert!(!server.output().contains(CANARY));
}

#[test]
#[ignore = "needs a NATS server"]
fn agents_stop_without_their_conductor() {
    let server = NatsServer::deployed();
    let service = RecordingService::start();
    let _agents =
        ["agent-1", "agent-2"].map(|name| AgentProcess::start(&server, name, "--threads 1"));
    let url = format!("http://{}/", service.address);
    let mut running = conductor(
        &server,
        &format!("{url} --rate 100/s --duration 1h --agents 2"),
    );
    service.wait_for(100);
    running.kill().unwrap();
    running.wait().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let before = service.count();
        std::thread::sleep(Duration::from_secs(1));
        if service.count() == before {
            break;
        }
        assert!(Instant::now() < end, "they go on");
    }
    // They are free for the next run.
    let options = format!("{url} --rate 100/s --duration 1s --agents 2 --allow-late");
    let result = conducted(conductor(&server, &options));
    assert_eq!(result.code, 0, "{}", result.messages);
}

#[test]
#[ignore = "needs a NATS server"]
fn a_search_finds_a_capacity_with_agents() {
    let server = NatsServer::deployed();
    let service = RecordingService::with_one_worker(Duration::from_millis(5));
    let _agents =
        ["agent-1", "agent-2"].map(|name| AgentProcess::start(&server, name, "--threads 1"));
    let url = format!("http://{}/", service.address);
    let options = format!("{url} --find p99<300ms --duration 40s --agents 2");
    let result = conducted(conductor(&server, &options));
    assert_eq!(result.code, 0, "{}", result.messages);
    // One worker that sleeps for 5 ms or more serves less than 200/s in the time of all trials. In a short one, a busy
    // machine may take over replies of before.
    assert!(result.report.is_object(), "{}", result.messages);
    let trials = result.report["trials"].as_array().unwrap();
    let sum = |figure: fn(&serde_json::Value) -> f64| trials.iter().map(figure).sum::<f64>();
    let seconds = |trial: &serde_json::Value| trial["seconds"].as_f64().unwrap();
    let served = |trial: &serde_json::Value| {
        trial["throughput"].as_f64().unwrap() * trial["seconds"].as_f64().unwrap()
    };
    let rate = sum(served) / sum(seconds);
    assert!(rate > 0.0 && rate < 205.0, "{rate}");
}
