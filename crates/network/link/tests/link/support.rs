//! Helpers that push packets through a link, and random plans.

use std::sync::Arc;

use posthaste_link::loss::{GilbertElliott, Independent};
use posthaste_link::pattern::Pattern;
use posthaste_link::{
    BackgroundTraffic, Class, Classes, CoDel, DeliveryMarks, Departure, Direction, Discipline,
    DropReason, Ecn, Fate, Jitter, JitterShape, Link, Loss, Mtu, Order, Packet, Plan, PlanError,
    Queue, Reordering, Spread, Step,
};
use posthaste_units::{BitRate, Dscp, Instant, Ratio, Seed, Size, Span};
use proptest::prelude::*;

/// A packet that counts its flips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parcel {
    pub(crate) bytes: u32,
    pub(crate) dscp: Dscp,
    pub(crate) ecn: Ecn,
    pub(crate) id: usize,
    pub(crate) flips: u32,
}

impl Packet for Parcel {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn flip(&mut self, bit: u32) {
        assert!(bit < self.bytes * 8, "bit {bit} of {} bytes", self.bytes);
        self.flips += 1;
    }
    fn dscp(&self) -> Dscp {
        self.dscp
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn may_be_fragmented(&self) -> bool {
        self.id.is_multiple_of(2)
    }
    fn mark_congestion(&mut self) {
        assert!(self.ecn.is_capable(), "a mark on {self:?}");
        self.ecn = Ecn::Ce;
    }
}

/// Arrival in ns, and bytes.
pub(crate) type Arrival = (u64, u32);

pub(crate) fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

pub(crate) fn rate(bits: u64) -> Option<BitRate> {
    BitRate::per_second(bits)
}

pub(crate) fn share(share: f64) -> Ratio {
    Ratio::new(share).unwrap()
}

pub(crate) fn dscp(value: u8) -> Dscp {
    Dscp::new(value).unwrap()
}

pub(crate) fn parcel(id: usize, bytes: u32) -> Parcel {
    Parcel {
        bytes,
        dscp: dscp((id % 64) as u8),
        ecn: Ecn::new((id % 3) as u8).unwrap(),
        id,
        flips: 0,
    }
}

/// Pops everything left, at the times of `wake`.
pub(crate) fn drain<P: Packet>(link: &mut Link<P>) -> Vec<Departure<P>> {
    let mut out = Vec::new();
    while let Some(wake) = link.wake() {
        out.extend(std::iter::from_fn(|| link.pop(wake)));
    }
    out
}

/// Pushes all, then pops all.
pub(crate) fn pass(plan: &Plan, seed: u64, arrivals: &[Arrival]) -> Vec<Departure<Parcel>> {
    let mut link = Link::new(&Arc::new(plan.clone()), Seed(seed));
    for (id, (ns, bytes)) in arrivals.iter().enumerate() {
        link.push(at(*ns), parcel(id, *bytes));
    }
    let out = drain(&mut link);
    assert_eq!(link.counters().inside(), 0);
    out
}

/// A plan with a pattern for the direction up.
pub(crate) fn patterned(text: &str) -> Plan {
    let pattern = Pattern::parse(&format!("posthaste pattern 1\n{text}\nend\n")).unwrap();
    Plan {
        script: Some(pattern.script(Direction::Up).clone()),
        ..Plan::default()
    }
}

pub(crate) fn marks(fate: Fate) -> Option<DeliveryMarks> {
    match fate {
        Fate::Delivered(marks) => Some(marks),
        Fate::Dropped(_) => None,
    }
}

pub(crate) fn dropped<P>(out: &[Departure<P>], reason: DropReason) -> Vec<u64> {
    out.iter()
        .filter(|departure| departure.fate == Fate::Dropped(reason))
        .map(|departure| departure.position)
        .collect()
}

/// Arrivals that never decrease, some of them simultaneous.
pub(crate) fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![Just(0u64), 0..20_000_000u64, 0..2_000_000_000u64];
    proptest::collection::vec((gap, 1u32..1500), 1..120).prop_map(|gaps| {
        let mut now = 1_000;
        let arrive = |(gap, bytes)| {
            now += gap;
            (now, bytes)
        };
        gaps.into_iter().map(arrive).collect()
    })
}

fn discipline() -> impl Strategy<Value = Discipline> {
    prop_oneof![
        3 => Just(Discipline::DropTail),
        1 => Just(Discipline::DropHead),
        1 => (0u32..20).prop_map(|packets| Discipline::Step(match packets {
            0..10 => Step::Packets(packets + 1),
            _ => Step::Time(Span::from_millis(packets.into())),
        })),
        1 => (1u64..20, 20u64..200, any::<bool>()).prop_map(|(target, interval, ecn)| Discipline::CoDel(CoDel {
            target: Span::from_millis(target),
            interval: Span::from_millis(interval),
            ecn,
        })),
    ]
}

fn loss() -> impl Strategy<Value = Loss> {
    let ratio = || (0.0..1.0).prop_map(share);
    prop_oneof![
        ratio().prop_map(|loss| Loss::Independent(Independent { loss })),
        (ratio(), ratio(), ratio(), ratio()).prop_map(
            |(to_bad, to_good, loss_in_bad, loss_in_good)| {
                Loss::GilbertElliott(GilbertElliott {
                    to_bad,
                    to_good,
                    loss_in_bad,
                    loss_in_good,
                })
            }
        ),
    ]
}

fn jitter() -> impl Strategy<Value = Jitter> {
    let spread = prop_oneof![
        (0u64..50).prop_map(|ms| Spread::Fixed(Span::from_millis(ms))),
        (0.0..1.0).prop_map(|part| Spread::OfMean(share(part))),
        (0.0..1.0).prop_map(|part| Spread::VarianceOfMean(share(part))),
    ];
    let shape = prop_oneof![
        Just(JitterShape::Normal),
        Just(JitterShape::Uniform),
        Just(JitterShape::Pareto)
    ];
    (shape, spread).prop_map(|(shape, spread)| Jitter { shape, spread })
}

fn reordering() -> impl Strategy<Value = Reordering> {
    prop_oneof![
        (0.0..1.0, 1u32..5).prop_map(|(part, gap)| Reordering::AtOnce {
            share: share(part),
            gap
        }),
        (0.0..1.0, 1u32..5).prop_map(|(part, places)| Reordering::Hold {
            share: share(part),
            places
        }),
    ]
}

fn classes(bandwidth: u64) -> Arc<Classes> {
    let class = |dscp: Vec<Dscp>, percent: u64| Class {
        rest: dscp.is_empty(),
        dscp,
        guaranteed: rate((bandwidth * percent / 100).max(1)).unwrap(),
        ceiling: rate(bandwidth).unwrap(),
    };
    Arc::new(Classes::new(vec![
        class((0..20).map(dscp).collect(), 30),
        class(vec![], 60),
    ]))
}

const SCRIPTS: [&str; 3] = [
    "up drop 3, 7-9\nup flip 4: 0-7, 100\nup delay 5: 20ms\nup hold 6: 2",
    "up copy 1-2: 2\nup bandwidth from 4: 200kbit\nup drop 100ms-200ms",
    "up hold 1-4: 3\nup delay from 50ms: 30ms",
];

fn script() -> impl Strategy<Value = Option<usize>> {
    proptest::option::of(0..SCRIPTS.len())
}

prop_compose! {
    fn queues()(packets in 1u32..20, bytes in proptest::option::of(1500u64..20_000), discipline in discipline()) -> Queue {
        Queue { packets, bytes: bytes.map(Size::from_bytes), discipline }
    }
}

prop_compose! {
    /// A plan with a random selection of all features.
    pub(crate) fn plans()(
        bits in proptest::option::of(50_000u64..10_000_000),
        delay in 0u64..100,
        jitter in proptest::option::of(jitter()),
        (keeps_order, netem, overhead, has_classes) in (any::<bool>(), any::<bool>(), 0u32..40, any::<bool>()),
        (changeable, mtu) in (any::<bool>(), proptest::option::of(1280u32..1500)),
        loss in proptest::option::of(loss()),
        errors in prop_oneof![Just(0.0), 0.0..0.001],
        duplication in prop_oneof![Just(0.0), 0.0..1.0],
        reordering in proptest::option::of(reordering()),
        queue in queues(),
        script in script(),
        background in proptest::option::of((0u8..64, 10_000u64..10_000_000, 100u32..2000)),
    ) -> Plan {
        let order = if netem { Order::Netem } else { Order::Dummynet };
        let mut plan = Plan {
            bandwidth: bits.and_then(rate),
            delay: Span::from_millis(delay),
            jitter,
            keeps_order,
            loss,
            bit_error_rate: share(errors),
            duplication: share(duplication),
            reordering,
            queue: if netem { Queue { discipline: Discipline::DropTail, ..queue } } else { queue },
            overhead,
            order,
            classes: bits.filter(|_| has_classes && !netem).map(classes),
            background: background.filter(|_| bits.is_some() && !netem).map(|(code, bits, bytes)| {
                BackgroundTraffic { dscp: dscp(code), rate: rate(bits).unwrap(), bytes }
            }),
            script: script.and_then(|number| patterned(SCRIPTS[number]).script),
            mtu: mtu.map(|bytes| Mtu { bytes, silent: false }),
            outage_until: None,
            changeable,
        };
        if let Discipline::Step(Step::Packets(threshold)) = &mut plan.queue.discipline {
            *threshold = plan.queue.packets.min(*threshold);
        }
        if plan.check() == Err(PlanError::NothingToOvertake) {
            plan.reordering = None;
        }
        assert_eq!(plan.check(), Ok(()));
        plan
    }
}
