//! Worked scenarios: packets of two stacks, compared with their known behaviour and with manual calculation.

use std::sync::Arc;

use posthaste_tcp::{ConnectionEnd, Profile, TcpState, profile};
use posthaste_units::{Instant, Span};

use crate::play::{Passed, Play, Program, TestLink};

/// Payload of a full segment with timestamps at an MTU of 1500.
const MSS: u64 = 1448;
const REQUEST: u64 = 1438;
/// The reply of the 2007 study's service: nine segments.
const REPLY: u64 = 12_974;
/// Bandwidth of the study's link, and one with hardly any effect, in bits per second.
const STUDY: u64 = 300_000;
const FAST: u64 = 100_000_000;
const CLIENT: usize = 0;
const SERVER: usize = 1;

fn stack(name: &str) -> Arc<Profile> {
    Arc::new(profile::named(name).expect("a stack"))
}

const fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// Runs a transaction: a request, 200 ms of processing, the reply; the server closes. Packets of the server at `lost`
/// are dropped.
fn transaction(client: &str, server: &str, delay: Span, lost: &[u64]) -> Play {
    transaction_at(client, server, delay, lost, STUDY)
}

fn transaction_at(client: &str, server: &str, delay: Span, lost: &[u64], rate: u64) -> Play {
    let lines = [TestLink::losing(delay, &[]), TestLink::losing(delay, lost)];
    let lines = lines.map(|line| line.at_rate(rate));
    let mut play = Play::new([&stack(client), &stack(server)], [7, u32::MAX - 9], lines);
    play.programs = [Program::writing(REQUEST), Program::writing(REPLY)];
    play.programs[CLIENT].closes_first = false;
    play.programs[SERVER].after = REQUEST;
    play.programs[SERVER].wait = ms(200);
    play
}

fn whole(mut play: Play) -> Play {
    let until = play.now + Span::from_secs(300);
    play.run(until, 100_000);
    for end in &play.ends {
        let state = end.state();
        let fine = matches!(
            state,
            TcpState::TimeWait | TcpState::Closed(ConnectionEnd::Finished)
        );
        assert!(fine, "{state:?}");
    }
    play
}

/// The full segments reached by the client's acknowledgements of the reply.
fn reached(play: &Play) -> Vec<u64> {
    let isn = play.ends[SERVER].isn();
    let acks = play
        .log
        .iter()
        .filter(|passed| passed.from == CLIENT && passed.segment.is_pure_ack());
    let places = acks.filter_map(|passed| passed.segment.ack);
    let bytes = places.map(|ack| u64::from(ack.wrapping_sub(isn).wrapping_sub(1)));
    bytes
        .filter(|bytes| *bytes > 0)
        .map(|bytes| bytes.div_ceil(MSS).min(9))
        .collect()
}

fn data(passed: &Passed) -> bool {
    passed.from == SERVER && passed.segment.len > 0
}

/// Alternates between an immediate acknowledgement of every second segment and a window update for every third once it
/// is read.
#[test]
fn a_freebsd_receiver_acknowledges_2_3_5_6_8_9() {
    for server in ["freebsd-6.0", "linux-2.6.15", "linux-6"] {
        let play = whole(transaction_at("freebsd-6.0", server, ms(10), &[], FAST));
        assert_eq!(reached(&play), [2, 3, 5, 6, 8, 9], "from {server}");
    }
}

#[test]
fn a_linux_receiver_begins_quickly() {
    for client in ["linux-2.6.15", "linux-6"] {
        let play = whole(transaction(client, "freebsd-6.0", ms(10), &[]));
        assert!(
            reached(&play).starts_with(&[1, 2, 3, 4, 5, 6, 7, 8]),
            "{:?}",
            reached(&play)
        );
    }
}

/// SYN-ACK, acknowledgement of the request, nine segments of data with FIN on the last, and the acknowledgement of the
/// client's FIN.
#[test]
fn the_reply_takes_twelve_packets() {
    let stacks = ["freebsd-6.0", "linux-2.6.15", "linux-6", "freebsd-14"];
    for server in stacks {
        for client in stacks {
            let play = whole(transaction_at(client, server, ms(10), &[], FAST));
            let sent: Vec<_> = play
                .log
                .iter()
                .filter(|passed| passed.from == SERVER)
                .collect();
            assert_eq!(sent.len(), 12, "{client} {server}");
            assert!(sent[0].segment.syn && sent[1].segment.is_pure_ack());
            assert!(sent[2..11].iter().all(|passed| data(passed)));
            assert!(sent[10].segment.fin && sent[11].segment.is_pure_ack());
        }
    }
}

/// Positions of the server's packets whose loss costs a timeout.
fn sensitive(name: &str) -> Vec<u64> {
    (3..=11)
        .filter(|position| {
            let play = whole(transaction(name, name, ms(10), &[*position]));
            let counters = play.ends[SERVER].counters();
            assert_eq!(
                counters.retransmissions - counters.probes,
                counters.fast + counters.after_timeout
            );
            counters.timeouts > 0
        })
        .collect()
}

/// The study's positions, counted from the SYN-ACK. FreeBSD has one more, because it takes one of three duplicates for
/// a window update.
#[test]
fn late_losses_cost_a_timeout() {
    assert_eq!(sensitive("freebsd-6.0"), [8, 9, 10, 11]);
    assert_eq!(sensitive("linux-2.6.15"), [9, 10, 11]);
    assert_eq!(sensitive("linux-6"), [0; 0]);
}

/// The server's timeout after the handshake, computed by hand: a round trip of two delays, 74 bytes of SYN-ACK and 52
/// of its acknowledgement. FreeBSD counts a tick more and adds 200 ms; Linux has four deviations of at least 200 ms.
#[test]
fn timeouts_after_the_handshake() {
    for (delay, freebsd, linux) in [(10, 260..=280, 220..=236), (60, 560..=590, 352..=384)] {
        for (name, expected) in [
            ("freebsd-6.0", freebsd),
            ("linux-2.6.15", linux.clone()),
            ("linux-6", linux),
        ] {
            let mut play = transaction(name, name, ms(delay), &[]);
            let handshake = play.now + ms(3 * delay + 60);
            play.run(handshake, 1000);
            assert_eq!(play.ends[SERVER].state(), TcpState::Established);
            let timeout = play.ends[SERVER].look().timeout.as_nanos() / 1_000_000;
            assert!(
                expected.contains(&timeout),
                "{name} at {delay} ms: {timeout} ms"
            );
        }
    }
}

/// The last two segments are lost. After the rest is acknowledged, the last is sent again after two round trips and 2
/// ms, and its SACK triggers the repair of the other. If only the last is lost, the timer allows for a delayed
/// acknowledgement, but is at most the retransmission timeout.
#[test]
fn a_tail_loss_probe_takes_two_round_trips() {
    for (lost, copies) in [(&[10_u64, 11][..], 2), (&[11], 1)] {
        let play = whole(transaction_at("linux-6", "linux-6", ms(20), lost, FAST));
        let counters = play.ends[SERVER].counters();
        assert_eq!((counters.probes, counters.timeouts), (1, 0), "{lost:?}");
        let sent: Vec<&Passed> = play.log.iter().filter(|passed| data(passed)).collect();
        assert_eq!(sent.len(), 9 + copies);
        // The round trip of a handshake; later ones hardly differ. The jiffies' wheel is late by up to two of 4 ms (32
        // ms beyond 0.25 s).
        let round_trip = 40.0;
        let waited = sent[9].at.since(sent[8].at).as_millis_f64();
        let expected = match copies {
            2 => round_trip + 2.0 * round_trip + 2.0,
            _ => round_trip + round_trip + 200.0,
        };
        assert!(
            (0.0..40.0).contains(&(waited - expected)),
            "{waited} ms for {expected}"
        );
    }
}

/// Times of the SYNs without an answer, in seconds.
fn syns(name: &str) -> Vec<u64> {
    let nobody = || TestLink::new(Box::new(|_, _| Vec::new()));
    let mut play = Play::new([&stack(name), &stack(name)], [1, 2], [nobody(), nobody()]);
    let began = play.now;
    play.run(began + Span::from_secs(600), 1000);
    assert_eq!(
        play.ends[CLIENT].state(),
        TcpState::Closed(ConnectionEnd::TimedOut)
    );
    let after = |at: Instant| (at.since(began).as_secs_f64() + 0.2) as u64;
    play.log.iter().map(|passed| after(passed.at)).collect()
}

/// Three seconds doubled (RFC 1122), one second doubled (RFC 6298), and Linux's four linear ones
/// (`tcp_syn_linear_timeouts`).
#[test]
fn syns_are_sent_again() {
    assert!(
        syns("linux-2.6.15").starts_with(&[0, 3, 9, 21, 45]),
        "{:?}",
        syns("linux-2.6.15")
    );
    assert!(
        syns("rfc").starts_with(&[0, 1, 3, 7, 15]),
        "{:?}",
        syns("rfc")
    );
    assert!(
        syns("linux-6").starts_with(&[0, 1, 2, 3, 4, 5, 7, 11]),
        "{:?}",
        syns("linux-6")
    );
    assert!(
        syns("freebsd-6.0").starts_with(&[0, 3]),
        "{:?}",
        syns("freebsd-6.0")
    );
}

/// A reader that stops closes the window. A reader that continues opens it, even if the update is lost: the sender
/// probes (RFC 9293, section 3.8.6.1).
#[test]
fn a_closed_window_opens_again() {
    for name in profile::names() {
        let mut profile = profile::named(name).unwrap();
        profile.receive_buffer = 8_000;
        let profile = Arc::new(profile);
        // Everything that the client sends after the window has closed is lost for a while.
        let mut updates = 0;
        let up = TestLink::new(Box::new(move |_, segment| {
            let lost = segment.window > 0 && segment.is_pure_ack() && updates < 3;
            updates += u32::from(segment.window == 0 || updates > 0);
            if lost && updates > 0 {
                Vec::new()
            } else {
                vec![ms(10)]
            }
        }));
        let mut play = Play::new(
            [&profile, &profile],
            [1, 2],
            [up, TestLink::losing(ms(10), &[])],
        );
        play.programs = [Program::writing(0), Program::writing(100_000)];
        play.programs[CLIENT].closes_first = false;
        play.programs[CLIENT].chunk = 8_000;
        play.programs[CLIENT].pause = Span::from_secs(2);
        let play = whole(play);
        assert_eq!(play.programs[CLIENT].read, 100_000, "{name}");
    }
}
