//! The MTU behind a link.

use posthaste_link::{DropReason, LinkCounters, Mtu, Plan};
use posthaste_units::{Ratio, Span};

use crate::support::{dropped, pass, rate};

#[test]
fn a_long_packet_is_dropped_at_the_end_of_the_link() {
    let plan = Plan {
        bandwidth: rate(12_000_000),
        delay: Span::from_millis(5),
        mtu: Some(Mtu {
            bytes: 1400,
            silent: false,
        }),
        ..Plan::default()
    };
    // Packets with an odd identity may not be fragmented.
    let out = pass(
        &plan,
        1,
        &[
            (0, 1500),
            (0, 1500),
            (0, 1400),
            (0, 1400),
            (0, 1401),
            (0, 1401),
        ],
    );
    assert_eq!(dropped(&out, DropReason::TooBig), [2, 6]);
    let left: Vec<Span> = out.iter().map(|out| out.left.since(out.arrived)).collect();
    assert_eq!(
        left[1],
        Span::from_millis(7),
        "it took its time on the line"
    );
    assert_eq!(
        LinkCounters::default().dropped(DropReason::TooBig).packets,
        0
    );
}

#[test]
fn flipped_bits_let_no_long_packet_pass() {
    let plan = Plan {
        mtu: Some(Mtu {
            bytes: 1400,
            silent: true,
        }),
        bit_error_rate: Ratio::new(0.01).unwrap(),
        ..Plan::default()
    };
    let out = pass(&plan, 1, &[(0, 1500); 20]);
    let long: Vec<u64> = (1..=20).filter(|number| number % 2 == 0).collect();
    assert_eq!(dropped(&out, DropReason::TooBig), long);
}
