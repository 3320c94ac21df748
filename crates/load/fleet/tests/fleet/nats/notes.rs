//! Notes through outages: every note once.

use std::collections::BTreeMap;
use std::time::Duration;

use posthaste_fleet::connection::Connection;
use posthaste_fleet::message::NoteContent;
use posthaste_fleet::names::{AgentName, RunId};
use posthaste_fleet::notes::{
    Merge, NotePublisher, NoteReader, NoteSender, PublisherReport, ReaderState, channel,
};
use posthaste_fleet::storage::Storage;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use super::server::{NatsServer, on_one_thread, subjects};

/// Values by second, so that a second that is added twice is seen, and a text that compression cannot shorten.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sums {
    seconds: BTreeMap<u64, u64>,
    text: String,
}

impl Merge for Sums {
    fn merge(&mut self, later: Self) {
        for (second, value) in later.seconds {
            *self.seconds.entry(second).or_default() += value;
        }
    }
}

fn sums(second: u64) -> Sums {
    Sums {
        seconds: BTreeMap::from([(second, 1000 + second)]),
        text: String::new(),
    }
}

fn run() -> RunId {
    RunId::from_bits(1)
}

fn agent() -> AgentName {
    "agent-1".parse().unwrap()
}

/// Everything that a reader received.
#[derive(Debug, Default)]
struct ReceivedNotes {
    seconds: Sums,
    /// First and last second of each note.
    ranges: Vec<(u64, u64)>,
    total: Option<Sums>,
    end: Option<u8>,
    state: ReaderState,
}

async fn receive(mut reader: NoteReader<Sums, u8>) -> ReceivedNotes {
    let mut received = ReceivedNotes::default();
    while let Some(note) = reader.next().await {
        match note.note.unwrap().content {
            NoteContent::Seconds { first, last, sum } => {
                received.ranges.push((first, last));
                received.seconds.merge(sum);
            }
            NoteContent::Total { sum } => assert_eq!(received.total.replace(sum), None),
            NoteContent::End { end, .. } => assert_eq!(received.end.replace(end), None),
            NoteContent::StoodDown { reason } => panic!("{reason}"),
        }
    }
    received.state = reader.state();
    received
}

/// Asserts that each second came once, alone or summed with others.
fn assert_complete(received: &ReceivedNotes, seconds: u64) {
    let expected: BTreeMap<u64, u64> = (0..seconds).map(|second| (second, 1000 + second)).collect();
    assert_eq!(received.seconds.seconds, expected);
    let mut ranges = received.ranges.clone();
    ranges.sort_unstable();
    let mut next = 0;
    for (first, last) in ranges {
        assert_eq!(first, next);
        next = last + 1;
    }
    assert_eq!(next, seconds);
    assert_eq!(
        received.total.as_ref().map(|total| &total.seconds),
        Some(&expected)
    );
    assert_eq!(received.end, Some(7));
}

fn publish(connection: Connection) -> (NoteSender<Sums, u8>, JoinHandle<PublisherReport>) {
    let (sender, source) = channel();
    let publisher = NotePublisher::new(connection, &subjects(), run(), agent());
    (sender, tokio::spawn(publisher.publish(source)))
}

/// Adds notes of so many seconds, one every 50 ms, from a thread of its own as the loops do.
fn produce(sender: NoteSender<Sums, u8>, seconds: u64) -> std::thread::JoinHandle<Duration> {
    std::thread::spawn(move || {
        let (mut total, mut longest) = (Sums::default(), Duration::ZERO);
        for second in 0..seconds {
            std::thread::sleep(Duration::from_millis(50));
            total.merge(sums(second));
            let start = std::time::Instant::now();
            sender.second(second, sums(second));
            longest = longest.max(start.elapsed());
        }
        sender.total(total);
        sender.end(7);
        longest
    })
}

async fn reader(connection: &Connection) -> NoteReader<Sums, u8> {
    NoteReader::start(connection, &subjects(), run(), [agent()])
        .await
        .unwrap()
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn notes_survive_the_death_of_the_server_for_three_seconds() {
    let mut server = NatsServer::open();
    on_one_thread(async {
        let conductor = server.connect("conductor").await;
        let reader = reader(&conductor).await;
        let (sender, published) = publish(server.connect("agent-1").await);
        let produced = produce(sender, 120);
        let outage = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            server.kill();
            tokio::time::sleep(Duration::from_secs(3)).await;
            server.start();
        };
        let (received, ()) = tokio::join!(receive(reader), outage);
        assert_complete(&received, 120);
        let report = published.await.unwrap();
        assert_eq!(report.messages, received.ranges.len() as u64 + 2);
        assert_eq!(report.too_long, 0);
        // It would have to wait for seconds if it waited for the server.
        assert!(produced.join().unwrap() < Duration::from_secs(1));
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn seconds_are_summed_while_the_server_is_away_for_long() {
    let mut server = NatsServer::open();
    on_one_thread(async {
        let conductor = server.connect("conductor").await;
        let reader = reader(&conductor).await;
        let (sender, published) = publish(server.connect("agent-1").await);
        server.kill();
        let mut total = Sums::default();
        for second in 0..200 {
            total.merge(sums(second));
            sender.second(second, sums(second));
            tokio::task::yield_now().await;
        }
        sender.total(total);
        sender.end(7);
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.start();
        let received = receive(reader).await;
        assert_complete(&received, 200);
        assert!(received.ranges.len() <= 62, "{:?}", received.ranges);
        assert!(published.await.unwrap().messages <= 64);
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn notes_survive_the_loss_of_the_store() {
    let mut server = NatsServer::open();
    on_one_thread(async {
        let conductor = server.connect("conductor").await;
        let reader = reader(&conductor).await;
        let (sender, _published) = publish(server.connect("agent-1").await);
        let _produced = produce(sender, 60);
        let outage = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            server.kill();
            std::fs::remove_dir_all(server.store()).unwrap();
            server.start();
        };
        // The conductor creates the stream again. All notes before were seen live, or are sent again.
        let (received, ()) = tokio::join!(receive(reader), outage);
        assert_complete(&received, 60);
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn notes_from_before_the_subscription_come_from_the_stream() {
    let server = NatsServer::open();
    on_one_thread(async {
        let conductor = server.connect("conductor").await;
        Storage::new(&conductor, subjects()).ensure().await.unwrap();
        let (sender, published) = publish(server.connect("agent-1").await);
        let _produced = produce(sender, 10);
        let report = published.await.unwrap();
        assert_eq!(
            (report.messages, report.retries, report.duplicates),
            (12, 0, 0)
        );
        let received = receive(reader(&conductor).await).await;
        assert_complete(&received, 10);
        assert_eq!((received.state.live, received.state.recovered), (0, 12));
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn a_long_total_travels_in_parts() {
    let server = NatsServer::open();
    on_one_thread(async {
        let conductor = server.connect("conductor").await;
        let reader = reader(&conductor).await;
        let (sender, published) = publish(server.connect("agent-1").await);
        let mut state = 1u64;
        let letters = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            char::from(b' ' + ((state >> 40) % 90) as u8)
        });
        let text: String = letters
            .filter(|letter| !"\"\\".contains(*letter))
            .take(4 << 20)
            .collect();
        sender.second(0, sums(0));
        let total = Sums { text, ..sums(0) };
        sender.total(total.clone());
        sender.end(7);
        let received = receive(reader).await;
        assert_eq!(received.total, Some(total));
        let report = published.await.unwrap();
        assert!(report.messages > 8, "{report:?}");
    });
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn a_purged_run_leaves_no_notes() {
    let server = NatsServer::open();
    on_one_thread(async {
        let conductor = server.connect("conductor").await;
        let storage = Storage::new(&conductor, subjects());
        storage.ensure().await.unwrap();
        let (sender, published) = publish(server.connect("agent-1").await);
        let _produced = produce(sender, 3);
        published.await.unwrap();
        let count = async || storage.notes().await.unwrap().cached_info().state.messages;
        assert_eq!(count().await, 5);
        storage.purge(RunId::from_bits(2)).await.unwrap();
        assert_eq!(count().await, 5);
        storage.purge(run()).await.unwrap();
        assert_eq!(count().await, 0);
    });
}
