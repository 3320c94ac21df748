//! qlog files: each record is JSON, and the datagrams in them are those of the connections.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use posthaste_evaluation::report::Report;
use posthaste_load::{Connections, Multiplexing, Outcome, Plan, QlogOptions, Run};
use posthaste_units::Span;
use serde_json::Value;

use super::server::{LossyLine, QuicServer, ReplyAct, ServerScript};
use super::{all_are, plan as http3_plan, with_connections};
use crate::server::carried_out;

fn write_to(plan: &mut Plan, directory: &Path, connections: u64) {
    plan.qlog = Some(QlogOptions {
        directory: directory.to_owned(),
        connections,
    });
}

/// The records of a file: the head, then the events.
fn records(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let rest = text.strip_prefix('\u{1e}').expect("a record separator");
    let record = |record: &str| {
        let line = record.strip_suffix('\n').expect("a line");
        assert!(!line.contains('\n'), "{line}");
        serde_json::from_str(line).expect(line)
    };
    rest.split('\u{1e}').map(record).collect()
}

/// The data of the events with this name.
fn events<'r>(records: &'r [Value], name: &str) -> Vec<&'r Value> {
    let named = |event: &&Value| event["name"] == format!("quic:{name}");
    let events = records.iter().filter(named);
    events.map(|event| &event["data"]).collect()
}

/// Number and bytes of datagrams in the events with this name.
fn datagrams(records: &[Value], name: &str) -> (usize, u64) {
    let (mut count, mut bytes) = (0, 0);
    for data in events(records, name) {
        let lengths = data["raw"].as_array().unwrap();
        assert_eq!(data["count"], lengths.len());
        count += lengths.len();
        bytes += lengths
            .iter()
            .map(|raw| raw["length"].as_u64().unwrap())
            .sum::<u64>();
    }
    (count, bytes)
}

/// Waits until the server has read this many datagrams. The last one leaves at the end of the run.
fn wait_for(server: &QuicServer, count: usize) -> usize {
    let end = Instant::now() + Duration::from_secs(5);
    while server.log().datagrams < count && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    server.log().datagrams
}

fn qlog(run: &Run) -> (u64, u64, u64) {
    let report = run.qlog.as_ref().expect("qlog files");
    (report.files, report.omitted, report.incomplete)
}

#[test]
fn files_have_the_datagrams_of_their_connections() {
    let server = ServerScript::answering(Duration::ZERO).start();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("new/qlog");
    let mut plan = http3_plan(server.address, 400.0, 300, with_connections(2));
    write_to(&mut plan, &directory, 100);
    let run = carried_out(&plan);
    all_are(&run, Outcome::Ok);
    assert_eq!(qlog(&run), (2, 0, 0));
    let (mut sent, mut received) = ((0, 0), (0, 0));
    for number in 1..=2 {
        let records = records(&directory.join(format!("{number}.sqlog")));
        let head = &records[0];
        assert_eq!(head["file_schema"], "urn:ietf:params:qlog:file:sequential");
        assert_eq!(head["trace"]["vantage_point"]["type"], "client");
        let times: Vec<f64> = records[1..]
            .iter()
            .map(|event| event["time"].as_f64().unwrap())
            .collect();
        assert!(times.is_sorted() && times[0] >= 0.0);
        assert_eq!(records[1]["name"], "quic:connection_started");
        let remote = &records[1]["data"]["remote"];
        assert_eq!(remote["port_v4"], server.address.port());
        assert!(!events(&records, "recovery_metrics_updated").is_empty());
        let [closed] = events(&records, "connection_closed")[..] else {
            panic!("one end of a connection")
        };
        assert_eq!(closed["trigger"], "application");
        for (sum, name) in [
            (&mut sent, "udp_datagrams_sent"),
            (&mut received, "udp_datagrams_received"),
        ] {
            let (count, bytes) = datagrams(&records, name);
            (sum.0, sum.1) = (sum.0 + count, sum.1 + bytes);
        }
    }
    assert_eq!(wait_for(&server, sent.0), sent.0);
    assert_eq!(received.1, run.bytes_received);
    // CONNECTION_CLOSE leaves after the measurement.
    assert!((run.bytes_sent..run.bytes_sent + 2 * 1_200).contains(&sent.1));
    let text = posthaste_evaluation::report::text(&Report::new(&plan, &run), Default::default());
    assert!(text.contains("qlog       2 files in "), "{text}");
}

#[test]
fn the_first_connections_have_files() {
    let server = ServerScript::answering(Duration::ZERO).start();
    let folder = tempfile::tempdir().unwrap();
    let mut plan = http3_plan(server.address, 100.0, 100, Multiplexing::default());
    plan.connections = Connections::New;
    write_to(&mut plan, folder.path(), 4);
    let run = carried_out(&plan);
    all_are(&run, Outcome::Ok);
    assert_eq!(qlog(&run), (4, 6, 0));
    let files = fs::read_dir(folder.path()).unwrap();
    assert_eq!(files.count(), 4);
    // A later run does not mix its files with these.
    let stop = AtomicBool::new(false);
    let error = posthaste_load::run(&plan, &stop, &mut ()).err().unwrap();
    assert!(error.to_string().contains("name another folder"), "{error}");
}

#[test]
fn lost_packets_and_ends_are_recorded() {
    let mut script = ServerScript::answering(Duration::ZERO);
    script.line = Box::new(|| LossyLine {
        loss: 0.3,
        ..LossyLine::default()
    });
    let server = script.start();
    let folder = tempfile::tempdir().unwrap();
    let mut plan = http3_plan(server.address, 200.0, 500, with_connections(1));
    write_to(&mut plan, folder.path(), 100);
    all_are(&carried_out(&plan), Outcome::Ok);
    let records = records(&folder.path().join("1.sqlog"));
    let metrics = events(&records, "recovery_metrics_updated");
    let last = metrics.last().unwrap();
    assert!(last["packets_lost"].as_u64().unwrap() > 0, "{last}");
    assert!(last["congestion_window"].as_u64().unwrap() > 0, "{last}");
    assert!(last["smoothed_rtt"].as_f64().unwrap() > 0.0, "{last}");
}

#[test]
fn each_end_of_a_connection_has_its_trigger() {
    let closing = ServerScript::new(|_| ReplyAct::Close(0x102)).start();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    for (address, initiator, trigger, outcome) in [
        (closing.address, "remote", "application", Outcome::Reset),
        (
            silent.local_addr().unwrap(),
            "local",
            "aborted",
            Outcome::ConnectAborted,
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut plan = http3_plan(address, 100.0, 20, Multiplexing::default());
        plan.connections = Connections::New;
        plan.connect_timeout = Span::from_millis(500);
        write_to(&mut plan, folder.path(), 100);
        all_are(&carried_out(&plan), outcome);
        let records = records(&folder.path().join("1.sqlog"));
        let [closed] = events(&records, "connection_closed")[..] else {
            panic!("one end of a connection")
        };
        assert_eq!(
            (&closed["initiator"], &closed["trigger"]),
            (&initiator.into(), &trigger.into())
        );
    }
}

#[test]
fn files_that_cannot_be_written_are_reported() {
    let server = ServerScript::answering(Duration::ZERO).start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let mut plan = http3_plan(server.address, 50.0, 500, Multiplexing::default());
    plan.connections = Connections::New;
    write_to(&mut plan, &file, 100);
    let stop = AtomicBool::new(false);
    let error = posthaste_load::run(&plan, &stop, &mut ()).err().unwrap();
    assert!(error.to_string().contains("--qlog"), "{error}");

    let directory = folder.path().join("qlog");
    write_to(&mut plan, &directory, 100);
    let first = directory.join("1.sqlog");
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !first.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            fs::remove_dir_all(&directory).unwrap();
        });
        carried_out(&plan)
    });
    // The requests are not affected.
    all_are(&run, Outcome::Ok);
    let report = run.qlog.as_ref().unwrap();
    assert!(report.incomplete >= 10, "{report:?}");
    let failure = report.failure_in_words().unwrap();
    assert!(failure.contains(".sqlog: No such file"), "{failure}");
}
