//! Agents that are killed at some moment of a run: every request has one outcome, and the others lose nothing.

use super::load_support::{AgentProcess, RecordingService, conducted, conductor};
use super::server::NatsServer;

/// Requests of a run.
const INTENDED: u64 = 600;

/// Requests that have arrived when the agent is killed. All of them have at the last moment, and its total may be on its
/// way.
const MOMENTS: [usize; 5] = [1, 130, 290, 430, 600];

/// Kills the second of three agents of a fleet.
fn kill_one(server: &NatsServer, fleet: usize) {
    let moment = MOMENTS[fleet];
    let service = RecordingService::start();
    let options = format!("--threads 1 --fleet f{fleet}");
    let start = |name| AgentProcess::start(server, name, &options);
    let [_first, killed, _last] = ["a", "b", "c"].map(start);
    let folder = tempfile::tempdir().unwrap();
    // The row of a request is its number.
    let rows: String = (0..INTENDED).map(|row| format!("{row}\n")).collect();
    let data = folder.path().join("rows.csv");
    std::fs::write(&data, format!("row\n{rows}")).unwrap();
    let running = conductor(
        server,
        &format!(
            "http://{}/{{{{row}}}} --data {} --rate 200/s --duration 3s --agents 3 --fleet f{fleet} --allow-late",
            service.address,
            data.display()
        ),
    );
    service.wait_for(moment);
    killed.signal("KILL");
    let result = conducted(running);
    let about = format!("{moment}: {} {}", result.report, result.messages);
    result.check_identity();
    assert_eq!(result.number("/intended"), INTENDED, "{about}");
    let lost = result.outcome("lost");
    assert_eq!(result.outcome("ok") + lost, INTENDED, "{about}");
    for (index, name) in ["a", "b", "c"].into_iter().enumerate() {
        let agent = &result.report["agents"][index];
        assert_eq!(
            (&agent["name"], &agent["intended"]),
            (&name.into(), &200.into()),
            "{about}"
        );
        let owed = if name == "b" { lost } else { 0 };
        assert_eq!(agent["lost"], owed, "{about}");
    }
    // Its requests after its death were not sent.
    assert!(lost > 0 || moment as u64 > INTENDED / 2, "{about}");
    assert_eq!(result.code, if lost > 0 { 3 } else { 0 }, "{about}");
    // Request n belongs to loop n mod 3. The service has seen all that have an outcome, and each once.
    let mut seen = [const { Vec::new() }; 3];
    for target in service.targets() {
        let number: usize = target[1..].parse().unwrap();
        seen[number % 3].push(number);
    }
    for (index, seen) in seen.iter_mut().enumerate() {
        let count = seen.len() as u64;
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len() as u64, count, "twice: {about}");
        let known = if index == 1 { 200 - lost } else { 200 };
        let most = if index == 1 { 200 } else { known };
        assert!((known..=most).contains(&count), "{count} seen: {about}");
    }
}

#[test]
#[ignore = "needs a NATS server"]
fn an_agent_killed_at_any_moment_takes_no_other_request_with_it() {
    let server = NatsServer::open();
    // At the same time, because a conductor waits for a silent agent.
    std::thread::scope(|scope| {
        for fleet in 0..MOMENTS.len() {
            let server = &server;
            scope.spawn(move || kill_one(server, fleet));
        }
    });
}
