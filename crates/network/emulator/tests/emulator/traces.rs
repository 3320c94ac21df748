//! Traces and response times of real traffic, compared with the kernels' counters and the client's measurements, and
//! read by a foreign program.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use posthaste_emulator::trace::Sending;
use posthaste_emulator::{Emulation, Setup, TcpCounters, response, trace};
use posthaste_link::{Direction, LinkCounters, Plan};
use posthaste_units::{BitRate, Span};

use crate::inside::{
    ReplyService, delay, emulation, kernel_counters, patterned, seen, servers, transact,
};

const CONNECTIONS: usize = 8;
const REPLY: usize = 30_000;
const PATTERN: &str = "posthaste pattern 1\ndown drop 8\nend\n";
const PROCESSING: Duration = Duration::from_millis(50);

fn service(reply: usize) -> ReplyService {
    ReplyService {
        request: 1000,
        reply,
        processing: PROCESSING,
        connections: CONNECTIONS,
    }
}

/// Runs successive connections with a trace in each format. Returns the kernel's own count of segments that the server
/// retransmitted.
fn traced(folder: &Path, emulation: &Emulation, name: &str) -> (u64, String) {
    let path = folder.join(name);
    let writer = trace::TraceFileWriter::create(&[&path], &[]).expect("a file");
    let mut running = emulation.clone().start().expect("an emulation");
    let packet_records = running.packet_records.take().expect("they were asked for");
    let following = writer.follow(packet_records).expect("a thread");
    let before = running.server.run(TcpCounters::read).expect("counters");
    let (at, served) = service(REPLY).start(&running, servers()[0]);
    for _ in 0..CONNECTIONS {
        running.client.run(move || transact(at, 1000, REPLY));
    }
    served.join().expect("served");
    // The last packets of a connection come after its last byte.
    std::thread::sleep(Duration::from_millis(200));
    let after = running.server.run(TcpCounters::read).expect("counters");
    let outcome = running.finish().expect("an outcome");
    let written = following.finish().expect("a whole trace");
    let link = |way: &LinkCounters| way.delivered.packets + way.dropped_in_all().packets;
    assert_eq!(outcome.unseen, 0);
    assert_eq!(
        written.packets,
        link(&outcome.up.link) + link(&outcome.down.link)
    );
    let again = (after - before).retransmitted_segments;
    (again, path.to_str().expect("text").to_owned())
}

pub(crate) fn every_packet() {
    let folder = tempfile::tempdir().expect("a folder");
    let [up, down] = patterned(&delay(5), PATTERN);
    let emulation = Emulation::new(up, down)
        .real_time(true)
        .packet_records(trace::BUFFER);
    let (again, path) = traced(folder.path(), &emulation, "run.csv");
    let mut table = csv::Reader::from_path(&path).expect("a table");
    let columns = table.headers().expect("columns").clone();
    let lines: Vec<csv::StringRecord> = table.records().map(|line| line.expect("a line")).collect();
    let field = |line: &csv::StringRecord, name: &str| {
        let column = columns
            .iter()
            .position(|column| column == name)
            .expect("a column");
        line[column].to_owned()
    };
    let dropped: Vec<_> = lines
        .iter()
        .filter(|line| field(line, "fate") == "dropped")
        .collect();
    assert_eq!(dropped.len(), CONNECTIONS);
    for line in &dropped {
        let named = [
            "direction",
            "position",
            "reason",
            "what",
            "sending",
            "sent_ns",
        ];
        let named = named.map(|name| field(line, name));
        assert_eq!(named, ["down", "8", "pattern", "data", "first", ""]);
    }
    let repeated: Vec<_> = lines
        .iter()
        .filter(|line| field(line, "direction") == "down")
        .filter(|line| !["", "first"].contains(&&*field(line, "sending")))
        .collect();
    assert_eq!(repeated.len() as u64, again);
    // Enough packets follow the eighth for duplicate ACKs: no timer is needed.
    let lost = |line: &&&csv::StringRecord| {
        dropped
            .iter()
            .any(|dropped| field(dropped, "seq") == field(line, "seq"))
    };
    let fast = repeated
        .iter()
        .filter(lost)
        .filter(|line| field(line, "sending") == "fast");
    assert!(fast.count() >= CONNECTIONS - 1, "{repeated:?}");
    let arrivals: Vec<u64> = lines
        .iter()
        .map(|line| field(line, "arrived_ns").parse().unwrap())
        .collect();
    assert!(arrivals.is_sorted());
}

/// True if tshark can be started.
pub(crate) fn has_tshark() -> bool {
    Command::new("tshark").arg("--version").output().is_ok()
}

/// Reported as ignored without tshark, unless no test may be skipped.
pub(crate) fn read_by_tshark() {
    let folder = tempfile::tempdir().expect("a folder");
    let [up, down] = patterned(&delay(5), PATTERN);
    let emulation = Emulation::new(up, down)
        .real_time(true)
        .packet_records(trace::BUFFER);
    let (_, path) = traced(folder.path(), &emulation, "run.pcapng");
    let output = Command::new("tshark")
        .args(["-r", &path, "-T", "fields", "-E", "separator=;"])
        .args([
            "-e",
            "frame.interface_name",
            "-e",
            "frame.time_epoch",
            "-e",
            "frame.comment",
        ])
        .args(["-e", "_ws.malformed"])
        .output()
        .expect("tshark starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).expect("text");
    let dropped = text
        .lines()
        .filter(|line| line.contains("down 8: data, first; dropped: pattern"));
    assert_eq!(dropped.count(), CONNECTIONS);
    let on = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!(on("before;") - CONNECTIONS, on("after;"));
    let stamps = text
        .lines()
        .map(|line| line.split(';').nth(1).expect("a stamp").to_owned());
    assert!(stamps.is_sorted_by_key(|stamp| stamp.replace('.', "").parse::<u64>().unwrap()));
    assert!(!text.contains("alformed"), "{text}");
}

pub(crate) fn response_times() {
    let plan = Plan {
        bandwidth: BitRate::per_second(2_000_000),
        ..delay(10)
    };
    let running = emulation(plan).start().expect("an emulation");
    let (at, served) = service(REPLY).start(&running, servers()[0]);
    let taken: Vec<Duration> = (0..CONNECTIONS)
        .map(|_| running.client.run(move || transact(at, 1000, REPLY)))
        .collect();
    served.join().expect("served");
    let reading = response::read(seen(&running));
    running.finish().expect("an outcome");
    assert_eq!(
        (reading.responses.len(), reading.incomplete),
        (CONNECTIONS, 0)
    );
    let mut closest = Span::MAX;
    for (response, taken) in reading.responses.iter().zip(taken) {
        assert_eq!((response.request, response.reply), (1000, REPLY as u64));
        // Measured from before connect() to after the last read(): slightly longer than on the line.
        let taken = Span::from(taken);
        assert!(response.time.total() <= taken, "{response:?} {taken:?}");
        closest = closest.min(taken.saturating_sub(response.time.total()));
        assert!(
            response.time.t_conn >= Span::from_millis(20),
            "{response:?}"
        );
        assert!(response.time.t_req >= Span::from_millis(14), "{response:?}");
        assert!(
            response.time.t_proc >= Span::from(PROCESSING),
            "{response:?}"
        );
        // Thirty kilobytes at 2 Mbit/s.
        assert!(
            response.time.t_resp >= Span::from_millis(130),
            "{response:?}"
        );
    }
    // Busy machines spoil some.
    assert!(closest < Span::from_millis(2), "{closest}");
}

/// Counters of a kernel for retransmitted segments, by reason.
const REASONS: [&str; 4] = [
    "TCPFastRetrans",
    "TCPTimeouts",
    "TCPLossProbes",
    "TCPSlowStartRetrans",
];

fn reasons() -> [u64; 4] {
    kernel_counters("TcpExt:", REASONS)
}

/// The reasons inferred by the trace equal the kernel's counters, for losses in the middle, of the last segments and of
/// all segments, with and without SACK.
pub(crate) fn why_again() {
    for (sack, lost) in [
        ("1", "6"),
        ("1", "11"),
        ("1", "10-11"),
        ("0", "6"),
        ("0", "11"),
        ("0", "9-11"),
    ] {
        let pattern = format!("posthaste pattern 1\ndown drop {lost}\nend\n");
        let [up, down] = patterned(&delay(10), &pattern);
        let setup = Setup {
            sysctls: vec![("net.ipv4.tcp_sack".to_owned(), sack.to_owned())],
            ..Setup::default()
        };
        let emulation = Emulation::new(up, down).client(setup.clone()).server(setup);
        let emulation = emulation.real_time(true).packet_records(trace::BUFFER);
        let running = emulation.start().expect("an emulation");
        let (at, served) = service(12_974).start(&running, servers()[0]);
        for _ in 0..CONNECTIONS {
            running.client.run(move || transact(at, 1000, 12_974));
        }
        served.join().expect("served");
        let counted = running.server.run(reasons);
        let mut event_order = trace::EventOrder::new();
        seen(&running)
            .into_iter()
            .for_each(|packet_record| event_order.push(packet_record));
        event_order.end();
        running.finish().expect("an outcome");
        let sent = std::iter::from_fn(|| event_order.pop()).filter_map(|event| match event {
            trace::PacketEvent::Arrived(seen)
                if seen.packet_record.direction == Direction::Down =>
            {
                seen.tcp.as_ref()?.sending
            }
            _ => None,
        });
        let sent: Vec<Sending> = sent.collect();
        let count = |sending| sent.iter().filter(|sent| **sent == sending).count() as u64;
        let either = count(Sending::TimeoutOrProbe);
        let [fast, timeouts, probes, after] = counted;
        let case = format!("sack {sack}, lost {lost}: {REASONS:?} {counted:?} {sent:?}");
        assert_eq!(count(Sending::Fast), fast, "{case}");
        assert_eq!(count(Sending::AfterTimeout), after, "{case}");
        let both = count(Sending::Timeout) + count(Sending::Probe) + either;
        assert_eq!(both, timeouts + probes, "{case}");
        assert!(
            (count(Sending::Timeout)..=count(Sending::Timeout) + either).contains(&timeouts),
            "{case}"
        );
        assert_eq!(
            count(Sending::Unclear) + count(Sending::Answer),
            0,
            "{case}"
        );
    }
}
