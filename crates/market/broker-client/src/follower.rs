//! Continuous follower of a broker, on its own thread.

use std::cell::RefCell;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use posthaste_serve::Background;
use tokio::time::{Instant, MissedTickBehavior, sleep};

use crate::client::BrokerClient;
use crate::error::Error;
use crate::events::Event;

/// First and maximum wait before a retry.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Duration after which a stream resets the wait.
const GOOD: Duration = Duration::from_secs(30);

/// Event of a followed broker, or of the connection to it.
#[derive(Debug)]
pub enum FollowerEvent {
    /// An event of the broker.
    Told(Event),
    /// The stream broke or could not start; it is retried. Discard everything after a [`Event::Begin`] that no
    /// [`Event::Ready`] followed.
    Lost(Error),
    /// Sent every second, also without a connection: time to remove expired offers.
    Second,
}

/// Handle of the follower's thread. Dropping it stops the thread.
pub struct Follower {
    _thread: Background,
}

/// Position in the stream, across reconnects.
#[derive(Clone, Default)]
struct StreamPosition {
    last: Option<u64>,
    /// True during a complete transfer. Until its end no position is valid.
    beginning: bool,
}

impl Follower {
    /// Starts a thread that passes the news of the client's broker to `tell`. The broker need not be reachable yet. A
    /// broken stream resumes at its last position after a wait of 100 ms to 5 s. If `tell` fails, the stream is handled
    /// as broken.
    pub fn start(
        client: BrokerClient,
        tell: impl FnMut(FollowerEvent) -> Result<(), Error> + Send + 'static,
    ) -> io::Result<Self> {
        let thread = Background::start("follow", move || async move {
            let tell = RefCell::new(tell);
            tokio::select! {
                biased;
                () = follow(&client, |news| tell.borrow_mut()(news)) => {}
                () = seconds(|| drop(tell.borrow_mut()(FollowerEvent::Second))) => {}
            }
        })?;
        Ok(Self { _thread: thread })
    }
}

/// Follows forever.
async fn follow(client: &BrokerClient, mut tell: impl FnMut(FollowerEvent) -> Result<(), Error>) {
    let mut position = StreamPosition::default();
    let mut wait = BACK_OFF.0;
    loop {
        let begun = Instant::now();
        let ended = client.follow(position.last, |event| {
            let before = position.clone();
            position.pass(&event);
            match tell(FollowerEvent::Told(event)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    position = before;
                    ControlFlow::Break(error)
                }
            }
        });
        let (Ok(error) | Err(error)) = ended.await;
        position.beginning = false;
        if begun.elapsed() > GOOD {
            wait = BACK_OFF.0;
        }
        let _ = tell(FollowerEvent::Lost(error));
        sleep(wait).await;
        wait = (wait * 2).min(BACK_OFF.1);
        debug_assert!(wait > BACK_OFF.0, "the pauses do not grow");
    }
}

/// Calls `tell` every second, forever.
async fn seconds(mut tell: impl FnMut()) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    second.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        second.tick().await;
        tell();
    }
}

impl StreamPosition {
    fn pass(&mut self, event: &Event) {
        match event {
            Event::Begin => self.beginning = true,
            Event::Ready(number) => {
                self.beginning = false;
                self.last = Some(*number);
            }
            Event::Changed {
                number: Some(number),
                ..
            } if !self.beginning => self.last = Some(*number),
            Event::Changed { .. } | Event::Alive | Event::Late(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread::JoinHandle;

    /// Answers each reader with the next stream and disconnects. Returns the `Last-Event-ID` of each reader.
    fn broker(streams: Vec<String>) -> (String, JoinHandle<Vec<Option<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answer = move |stream: String| {
            let (mut socket, _) = listener.accept().unwrap();
            let lines = BufReader::new(socket.try_clone().unwrap()).lines();
            let head = lines
                .map(Result::unwrap)
                .take_while(|line| !line.is_empty());
            let id = |line: String| Some(line.strip_prefix("last-event-id: ")?.to_owned());
            let last = head.filter_map(id).last();
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
            let answer = format!("{head}{stream}");
            socket.write_all(answer.as_bytes()).unwrap();
            last
        };
        let served = std::thread::spawn(|| streams.into_iter().map(answer).collect());
        (url, served)
    }

    fn event(id: &str, name: &str) -> String {
        let data = r#"{"type":"books","provider":"ada","name":"Gold"}"#;
        format!("{id}event: {name}\ndata: {data}\n\n")
    }

    #[test]
    fn a_broken_stream_is_taken_up_where_it_was() {
        let begin = event("", "begin");
        let streams = vec![
            // Broken during the complete transfer: no position is valid.
            format!("{begin}{}", event("id: 3\n", "withdrawn")),
            format!("{begin}{}", event("id: 7\n", "ready")),
            begin,
            event("id: 9\n", "withdrawn"),
            event("", "alive"),
        ];
        let (url, served) = broker(streams);
        let (tell, news) = mpsc::channel();
        let follower = Follower::start(BrokerClient::new(&url).unwrap(), move |news| {
            let _ = tell.send(news);
            Ok(())
        });
        let lost = news
            .iter()
            .filter(|news| matches!(news, FollowerEvent::Lost(_)));
        assert_eq!(lost.take(5).count(), 5);
        let last = |number: &str| Some(number.to_owned());
        let had = [None, None, last("7"), last("7"), last("9")];
        assert_eq!(served.join().unwrap(), had);
        drop(follower);
        // The closure is dropped with the thread.
        news.iter().for_each(drop);
    }

    #[test]
    fn seconds_pass_without_a_broker() {
        // A port that was just released has no listener.
        let gone = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let (tell, news) = mpsc::channel();
        let client = BrokerClient::new(&format!("http://{gone}")).unwrap();
        let _follower = Follower::start(client, move |news| {
            let _ = tell.send(news);
            Ok(())
        });
        let (mut seconds, mut losses) = (0, 0);
        while seconds < 2 || losses < 2 {
            match news.recv().unwrap() {
                FollowerEvent::Second => seconds += 1,
                FollowerEvent::Lost(Error::Unreachable { .. }) => losses += 1,
                other => panic!("{other:?}"),
            }
        }
    }
}
