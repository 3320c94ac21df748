//! Effect of each remedy on a reply that loses one of its last segments.

use std::sync::Arc;

use posthaste_tcp::remedy::Remedy;
use posthaste_tcp::{Endpoint, EndpointCounters, Parity, Segment, profile};
use posthaste_units::{Instant, Span};

use crate::pair::{Application, EndpointPair, Fate};

/// Position of the last segment of a reply of nine: the SYN-ACK is the first.
const LAST: usize = 10;

/// Runs a reply of nine segments over a path of 10 ms with a segment every 10 ms. The server's segment number `lost` is
/// dropped. Returns both ends' counters, the time of the complete reply, and the ladder.
fn reply(
    name: &str,
    remedies: &[Remedy],
    lost: usize,
) -> (EndpointCounters, EndpointCounters, f64, String) {
    let profile = Arc::new(profile::named(name).expect("listed").with(remedies));
    let mut pair = EndpointPair::new([&profile, &profile], [7, 9], Span::from_millis(10));
    pair.applications = [Application::new(0, 12_974), Application::new(12_974, 0)];
    pair.serialise(1, Span::from_millis(10));
    pair.run(Span::from_secs(600), |end, number| Fate {
        lost: end == 1 && number == lost,
        ..Fate::default()
    });
    assert_eq!(
        pair.read(0),
        12_974,
        "{name} {remedies:?} {lost}\n{}",
        pair.ladder()
    );
    let [client, server] = &pair.ends;
    (
        *server.counters(),
        *client.counters(),
        pair.complete(0),
        pair.ladder(),
    )
}

/// Difference between the times of the complete reply without and with the remedy.
fn gain(name: &str, remedy: Remedy, lost: usize) -> f64 {
    reply(name, &[], lost).2 - reply(name, &[remedy], lost).2
}

#[test]
fn every_remedy_delivers_on_every_stack() {
    for name in profile::names() {
        for remedy in Remedy::ALL {
            for lost in 1..=14 {
                reply(name, &[remedy], lost);
            }
        }
    }
}

#[test]
fn a_shorter_timeout_is_shorter_by_what_was_cut() {
    for name in ["freebsd-6.0", "linux-2.6.15", "linux-2005"] {
        let gain = gain(name, Remedy::ShortTimeout, LAST);
        assert!((50.0..200.0).contains(&gain), "{name}: {gain}");
    }
}

#[test]
fn early_retransmit_needs_no_timeout_where_one_segment_follows() {
    for name in ["freebsd-6.0", "linux-2.6.15", "rfc"] {
        let (before, ..) = reply(name, &[], LAST - 1);
        let (after, _, _, ladder) = reply(name, &[Remedy::EarlyRetransmit], LAST - 1);
        assert_eq!(
            (before.timeouts, after.timeouts),
            (1, 0),
            "{name}\n{ladder}"
        );
    }
}

#[test]
fn adaptive_acks_help_where_the_fin_shows_the_hole() {
    for lost in LAST - 2..LAST {
        let (server, client, _, ladder) = reply("freebsd-6.0", &[Remedy::AdaptiveAcks], lost);
        assert_eq!(server.timeouts, 0, "{lost}\n{ladder}");
        assert!(client.adaptive_acks > 0, "{lost}\n{ladder}");
    }
    let (server, ..) = reply("freebsd-6.0", &[Remedy::AdaptiveAcks], LAST);
    assert_eq!(server.timeouts, 1, "the FIN is lost with the data");
    let (server, _, _, ladder) = reply("freebsd-6.0", &[Remedy::AdaptiveAcksOwnFin], LAST);
    assert_eq!(server.timeouts, 0, "{ladder}");
}

#[test]
fn a_copy_or_parity_of_the_tail_spares_the_timeout() {
    for name in ["freebsd-6.0", "linux-2.6.15", "linux-6", "rfc"] {
        for remedy in [Remedy::TailCopies, Remedy::TailParity] {
            for lost in LAST - 1..=LAST {
                let (server, client, _, ladder) = reply(name, &[remedy], lost);
                assert_eq!(server.timeouts, 0, "{name} {remedy} {lost}\n{ladder}");
                let parity = u64::from(remedy == Remedy::TailParity);
                assert_eq!(client.restored, parity, "{name} {remedy} {lost}\n{ladder}");
            }
        }
    }
}

/// The parity segment has the length of a data segment and takes no sequence numbers.
#[test]
fn parity_that_comes_when_all_has_come_brings_nothing() {
    let profile = profile::named("rfc").expect("listed");
    let profile = Arc::new(profile.with(&[Remedy::TailParity]));
    let now = Instant::from_nanos(1);
    let mut endpoint = Endpoint::listen(&profile, 7);
    let mut syn = Segment {
        syn: true,
        window: 65_535,
        ..Segment::default()
    };
    syn.options.mss = Some(1000);
    syn.options.parity = Some(Parity::default());
    endpoint.push(now, &syn);
    endpoint.pop(now).expect("a SYN-ACK");
    let data = Segment {
        seq: 1,
        ack: Some(8),
        window: 65_535,
        len: 700,
        ..Segment::default()
    };
    let mut parity = Segment {
        seq: 501,
        len: 500,
        ..data
    };
    parity.options.parity = Some(Parity {
        covered: 500,
        fin: false,
    });
    assert_eq!(endpoint.push(now, &data), Some(1..701));
    while endpoint.pop(now + Span::from_secs(1)).is_some() {}
    assert_eq!(endpoint.push(now + Span::from_secs(1), &parity), None);
    assert_eq!(endpoint.received(), 700);
}

#[test]
fn a_probe_spares_the_timeout() {
    for name in ["freebsd-6.0", "linux-2.6.15", "rfc"] {
        for lost in LAST - 1..=LAST {
            let (server, _, _, ladder) = reply(name, &[Remedy::TailProbe], lost);
            assert_eq!(server.timeouts, 0, "{name} {lost}\n{ladder}");
        }
    }
}

#[test]
fn probes_and_rack_work_alike_in_either_order() {
    for name in ["freebsd-6.0", "linux-2.6.15", "rfc"] {
        for lost in 1..=LAST {
            let with = |remedies: [Remedy; 2]| {
                let (server, client, _, ladder) = reply(name, &remedies, lost);
                (server, client, ladder)
            };
            assert_eq!(
                with([Remedy::TailProbe, Remedy::Rack]),
                with([Remedy::Rack, Remedy::TailProbe]),
                "{name} {lost}"
            );
        }
    }
}

#[test]
fn smart_framing_makes_more_of_less() {
    let (plain, ..) = reply("freebsd-6.0", &[], 0);
    let (framed, ..) = reply("freebsd-6.0", &[Remedy::SmartFraming], 0);
    assert!(framed.segments_out > 2 * plain.segments_out);
    assert_eq!(framed.retransmissions, 0);
}

#[test]
fn a_restarted_timer_counts_from_the_last_segment_sent() {
    for name in ["freebsd-6.0", "linux-2.6.15", "linux-2005"] {
        let gain = gain(name, Remedy::RtoRestart, LAST);
        assert!(gain > 5.0, "{name}: {gain}");
    }
}
