//! Behaviour of FreeBSD 6 in the packet-loss study: timing of acknowledgements, and counted duplicates.

use std::sync::Arc;

use posthaste_tcp::profile;
use posthaste_units::Span;

use crate::pair::{Application, EndpointPair, Fate};

/// A reply of nine segments to a FreeBSD client that reads at once, over a link as slow as the study's: one segment
/// every 40 ms.
fn reply(lost: usize) -> EndpointPair {
    let profile = Arc::new(profile::named("freebsd-6.0").expect("listed"));
    let mut pair = EndpointPair::new([&profile, &profile], [7, 9], Span::from_millis(10));
    pair.applications = [Application::new(0, 12_974), Application::new(12_974, 0)];
    pair.serialise(1, Span::from_millis(40));
    pair.run(Span::from_secs(60), |end, number| Fate {
        lost: end == 1 && number == lost,
        ..Fate::default()
    });
    pair
}

#[test]
fn the_receiver_acknowledges_2_3_5_6_8_9() {
    let pair = reply(0);
    let mut seen = Vec::new();
    for left in &pair.log {
        let ack = left.segment.ack.map_or(0, |ack| ack.wrapping_sub(9));
        if left.end == 0 && ack > 1 && !left.segment.fin {
            seen.push((ack - 1).div_ceil(1448));
        }
    }
    assert_eq!(seen, [2, 3, 5, 6, 8, 9], "{}", pair.ladder());
}
