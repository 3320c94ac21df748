//! Delay until a change is visible: published at one broker, read from its event stream and from those of brokers that
//! follow it.
//!
//! The time of a change starts before the provider publishes it, including a new connection, and ends when its event
//! has been read. The provider's reply is timed as well; it confirms that the change is stored.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use posthaste_broker::{Admin, Broker, BrokerConfig, StoreUrl};
use posthaste_broker_client::{BrokerClient, Event, Follower, FollowerEvent, wait};
use posthaste_qos::{Definition, Offer};
use posthaste_study::{Conditions, Failure, Needs, RecordTable, Records, Study, lab::starting};

pub(super) static STUDY: Study = Study {
    name: "wsqos-changes",
    needs: Needs::Processor,
    core: false,
    run: |conditions| study(conditions, if conditions.full { 5_000 } else { 400 }),
};

/// Places where a change is seen, by their names in records.
pub(super) const PLACES: [&str; 4] = [
    "the provider's reply",
    "the same broker",
    "a broker that follows it",
    "a broker that follows that one",
];

const KIND: &str = "books";
const PROVIDER: &str = "ada";

/// Minimum interval between changes.
const PACE: Duration = Duration::from_millis(5);
/// Maximum wait for any event.
const PATIENCE: Duration = Duration::from_secs(10);

/// The number of a change that was read, and the time.
type ReadChange = (u64, Instant);

fn study(conditions: &Conditions<'_>, changes: u64) -> Result<Records, Failure> {
    let mut records = Records::new();
    records.set_parameter("store", "SQLite, each change kept before the reply");
    records.set_parameter("changes", changes);
    records.set_parameter(
        "pace",
        format!("one after the other, {PACE:?} apart at least"),
    );
    let folder = tempfile::tempdir()?;
    let store = StoreUrl::Sqlite(folder.path().join("offers.db"));
    let (_, token) = Admin::open(&store)?.make_token(PROVIDER)?;
    let first = open(|config| config.store = store)?;
    let second = open(|config| config.follow = Some(url(&first)))?;
    let third = open(|config| config.follow = Some(url(&second)))?;
    let publisher = BrokerClient::new(&url(&first))?.with_token(Some(token));
    let streams = [stream(&first)?, stream(&second)?, stream(&third)?];
    let mut table = RecordTable::new(["change", "place", "ms"]);
    // The first change only confirms the chain: a follower reconnects 100 ms after a broker was not ready.
    for number in 0..=changes {
        if conditions.stopped() {
            break;
        }
        if number % 100 == 0 {
            conditions.progress.step(number, changes, "changes");
        }
        let offer = offer(number);
        records.set_number("changes", number as f64);
        let begun = Instant::now();
        let change = || {
            wait(publisher.put(KIND, PROVIDER, &offer))??;
            let mut seen = vec![begun.elapsed()];
            for (_, read_changes) in &streams {
                seen.push(at(read_changes, number)? - begun);
            }
            Ok::<_, Failure>(seen)
        };
        let seen = match change() {
            Ok(seen) => seen,
            Err(error) => {
                records.cut_short(&error);
                break;
            }
        };
        let counted = PLACES.into_iter().zip(seen).filter(|_| number > 0);
        for (location, time) in counted {
            let ms = time.as_secs_f64() * 1e3;
            table.push([number.into(), location.into(), ms.into()]);
        }
        std::thread::sleep(PACE.saturating_sub(begun.elapsed()));
    }
    records.set_table("seen", table);
    for broker in [third, second, first] {
        broker.stop();
    }
    Ok(records)
}

fn open(differs: impl FnOnce(&mut BrokerConfig)) -> Result<Broker, Failure> {
    let mut config = BrokerConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        ..BrokerConfig::default()
    };
    differs(&mut config);
    let _turn = starting();
    Ok(posthaste_broker::start(config)?)
}

fn url(broker: &Broker) -> String {
    format!("http://{}", broker.addr)
}

/// Follows the changes of a broker. Returns after the broker has reported its initial state.
fn stream(broker: &Broker) -> Result<(Follower, Receiver<ReadChange>), Failure> {
    let (sender, read_changes) = channel();
    let (ready, is_ready) = channel();
    let tell = move |news| {
        tell(news, &sender, &ready);
        Ok(())
    };
    let follower = Follower::start(BrokerClient::new(&url(broker))?, tell)?;
    let begun = is_ready.recv_timeout(PATIENCE);
    begun.map_err(|_| format!("{} reports nothing", url(broker)))?;
    Ok((follower, read_changes))
}

fn tell(news: FollowerEvent, read_changes: &Sender<ReadChange>, ready: &Sender<()>) {
    // A closed receiver means that the study is over.
    match news {
        FollowerEvent::Told(Event::Changed { put, .. }) => {
            let number = put.name.parse().unwrap_or(u64::MAX);
            let _ = read_changes.send((number, Instant::now()));
        }
        FollowerEvent::Told(Event::Ready(_)) => {
            let _ = ready.send(());
        }
        _ => {}
    }
}

/// Time when the change of this number was seen.
fn at(read_changes: &Receiver<ReadChange>, number: u64) -> Result<Instant, Failure> {
    match read_changes.recv_timeout(PATIENCE) {
        Ok((seen, at)) if seen == number => Ok(at),
        Ok((seen, _)) => Err(format!("change {seen} was seen where {number} was due").into()),
        Err(_) => Err(format!("change {number} was not seen").into()),
    }
}

fn offer(number: u64) -> Offer {
    Offer {
        name: number.to_string(),
        expires: Timestamp::MAX,
        endpoint: None,
        qos: Definition {
            price: "0.40 EUR".parse().ok(),
            ..Definition::default()
        },
    }
}

/// Times at a place in milliseconds, in ascending order.
pub(super) fn times(records: &Records, location: &str) -> Vec<f64> {
    let rows = records.table("seen").rows();
    let mut times: Vec<f64> = rows
        .filter(|row| row.text("place") == location)
        .map(|row| row.number("ms"))
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_study;

    #[test]
    fn a_tiny_study_sees_every_change_in_every_place() {
        let records = test_study::run(None, |conditions| study(conditions, 3));
        for location in PLACES {
            let times = times(&records, location);
            assert_eq!(times.len(), 3, "{location}");
            assert!(times[0] > 0.0, "{location}: {times:?}");
        }
    }
}
